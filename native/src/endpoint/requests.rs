//! Datagrams of peers that are not connected and want an answer: pings and the messages of a handshake.
//!
//! The protocol keeps only a few answers until they are sent. So requests are handled a few at a time, between which
//! the answers are sent: a thousand clients that come at once all get theirs.

use std::collections::VecDeque;
use std::net::SocketAddr;

/// Requests that are handled at a time: few, so that a flood of them does not keep the datagrams of connections waiting,
/// and far fewer than the answers that the protocol keeps, so that none of those is pushed out.
const AT_A_TIME: usize = 16;
/// Requests that wait; further ones are dropped and counted, and their senders repeat them.
const MOST_WAITING: usize = 1_024;

/// Requests that were received and not handled yet. When they arrived does not matter to the answer.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    waiting: VecDeque<(SocketAddr, Box<[u8]>)>,
    dropped: u64,
}

impl Requests {
    pub(crate) fn push(&mut self, from: SocketAddr, datagram: &[u8]) {
        if self.waiting.len() < MOST_WAITING {
            self.waiting.push_back((from, datagram.into()));
        } else {
            self.dropped += 1;
        }
    }

    /// Takes as many requests as can be answered before the answers are sent.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = (SocketAddr, Box<[u8]>)> {
        self.waiting.drain(..AT_A_TIME.min(self.waiting.len()))
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
    fn requests_are_taken_in_order_and_a_few_at_a_time() {
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
        // Salts and answers to challenges have four bytes, and so have END and acknowledgements.
        assert!(GameProtocol::is_request(&[0x40, 1, 2, 3]) && GameProtocol::is_request(&[0x80, 1, 2, 3]));
        assert!(!GameProtocol::is_request(&[0x0C, 0, 0, 0]) && !GameProtocol::is_request(&[5, 0, 0, 7, 1]));
    }
}
