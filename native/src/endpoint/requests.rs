//! Requests from peers without a connection: pings and the messages of a handshake.
//!
//! The protocol queues only a few replies. Requests are therefore handled in small batches, and the replies are sent in
//! between, so that a thousand clients that connect at once all get a reply.

use std::collections::VecDeque;
use std::net::SocketAddr;

/// The size of a batch: small, so that a flood of requests does not keep the datagrams of connections waiting, and far
/// smaller than the queue of replies, so that none of those is pushed out.
const BATCH: usize = 16;
/// The length of the queue. Further requests are dropped and counted; their senders repeat them.
const MAX_QUEUED: usize = 1_024;

/// Requests that have not been handled yet. Their times of arrival do not matter.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    waiting: VecDeque<(SocketAddr, Box<[u8]>)>,
    dropped: u64,
}

impl Requests {
    pub(crate) fn push(&mut self, from: SocketAddr, datagram: &[u8]) {
        if self.waiting.len() < MAX_QUEUED {
            self.waiting.push_back((from, datagram.into()));
        } else {
            self.dropped += 1;
        }
    }

    /// Takes the next batch.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = (SocketAddr, Box<[u8]>)> {
        self.waiting.drain(..BATCH.min(self.waiting.len()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) const fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use rakwire::endpoint::Protocol;
    use rakwire::game_protocol::GameProtocol;
    use rakwire::raknet::RakNet;

    use super::*;

    #[test]
    fn requests_are_taken_in_order_and_in_batches() {
        let mut requests = Requests::default();
        for number in 0..1_100_u16 {
            requests.push(([127, 0, 0, 1], number).into(), &[5]);
        }
        assert_eq!(requests.dropped(), 76);
        let ports: Vec<u16> = requests.take().map(|(from, _)| from.port()).collect();
        assert_eq!(ports, (0..16).collect::<Vec<_>>());
        while requests.take().next().is_some() {}
        assert!(requests.is_empty());
    }

    #[test]
    fn answers_and_data_are_no_requests() {
        assert!(RakNet::is_request(&[1]) && RakNet::is_request(&[7, 0]));
        assert!(!RakNet::is_request(&[]) && !RakNet::is_request(&[0x1C]) && !RakNet::is_request(&[0x84]));
        // END and acknowledgements have four bytes, like the requests.
        assert!(GameProtocol::is_request(&[0x40, 1, 2, 3]) && GameProtocol::is_request(&[0x80, 1, 2, 3]));
        assert!(!GameProtocol::is_request(&[0x0C, 0, 0, 0]) && !GameProtocol::is_request(&[5, 0, 0, 7, 1]));
    }
}
