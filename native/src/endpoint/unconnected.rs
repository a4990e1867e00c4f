//! Datagrams from peers without a connection: pongs, out-of-band messages, advertisements, pings and handshake
//! requests.
//!
//! The protocol queues only a few replies. Requests are therefore handled in small batches, with replies sent in
//! between, so that each of a thousand clients that connect at the same time gets a reply.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

/// The reply of a server to a ping. `I` identifies a peer: in RakNet it is the GUID.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pong<I> {
    /// The address of the server.
    pub from: SocketAddr,
    /// The identity of the server.
    pub identity: I,
    /// The time between ping and pong.
    pub latency: Duration,
    /// The advertisement of the server, 0 to 399 bytes, without the length before it.
    pub data: Vec<u8>,
}

/// The kind of a message from a peer without a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnconnectedKind {
    /// Sent by [`send_out_of_band`](crate::raknet::Endpoint::send_out_of_band).
    OutOfBand,
    /// Sent by [`advertise`](crate::raknet::Endpoint::advertise).
    Advertisement,
}

/// A message from a peer without a connection. Its sender and its content can be forged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unconnected<I> {
    /// The address of the sender.
    pub from: SocketAddr,
    /// The identity of the sender.
    pub identity: I,
    /// The kind of message.
    pub kind: UnconnectedKind,
    /// The content, at most 399 bytes.
    pub data: Vec<u8>,
}

/// Maximum length of the queue.
const MAX_MESSAGES: usize = 256;

/// Messages from peers without a connection that the application has not received yet. A full queue drops new messages.
#[derive(Debug)]
pub(crate) struct UnconnectedQueue<I> {
    waiting: VecDeque<Unconnected<I>>,
    dropped: u64,
}

impl<I> Default for UnconnectedQueue<I> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), dropped: 0 }
    }
}

impl<I> UnconnectedQueue<I> {
    pub(crate) fn push(&mut self, message: Unconnected<I>) {
        if self.waiting.len() < MAX_MESSAGES {
            self.waiting.push_back(message);
        } else {
            self.dropped += 1;
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Unconnected<I>> {
        self.waiting.pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) const fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// Tasks that wait for pongs, each with the address of its ping.
#[derive(Debug)]
pub(crate) struct Pings<I> {
    /// Pings to one server. The result is `None` if the server is unreachable.
    pub(crate) one: Vec<(SocketAddr, oneshot::Sender<Option<Pong<I>>>)>,
    /// Broadcast pings, each with the channel of the task that waits for pongs.
    pub(crate) broadcasts: Vec<(SocketAddr, mpsc::Sender<Pong<I>>)>,
}

impl<I> Default for Pings<I> {
    fn default() -> Self {
        Self { one: Vec::new(), broadcasts: Vec::new() }
    }
}

impl<I: Copy> Pings<I> {
    /// Passes a pong to the tasks that pinged its sender, or else to those that sent a broadcast.
    pub(crate) fn on_pong(&mut self, pong: &Pong<I>) {
        let mut was_pinged = false;
        for (_, waiting) in self.one.extract_if(.., |(to, _)| *to == pong.from) {
            was_pinged = true;
            // The task may have been cancelled.
            let _ = waiting.send(Some(pong.clone()));
        }
        if !was_pinged {
            // A full channel already holds as many pongs as its task may return.
            self.broadcasts.iter().for_each(|(_, found)| drop(found.try_send(pong.clone())));
        }
    }

    /// Notifies the tasks that pinged a server that it is unreachable.
    pub(crate) fn on_unreachable(&mut self, address: SocketAddr) {
        for (_, waiting) in self.one.extract_if(.., |(to, _)| *to == address) {
            let _ = waiting.send(None);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.one.clear();
        self.broadcasts.clear();
    }

    /// Returns true if a task waits for the pong from the server at `to`.
    pub(crate) fn is_pinging(&self, to: SocketAddr) -> bool {
        self.one.iter().any(|(other, _)| *other == to)
    }

    /// Returns true if a task waits for pongs to a broadcast at `to`.
    pub(crate) fn is_discovering(&self, to: SocketAddr) -> bool {
        self.broadcasts.iter().any(|(other, _)| *other == to)
    }

    /// Removes the pings of cancelled tasks.
    pub(crate) fn remove_abandoned(&mut self) {
        self.one.retain(|(_, waiting)| !waiting.is_closed());
        self.broadcasts.retain(|(_, found)| !found.is_closed());
    }
}

/// The number of requests in a batch. It is small, because a flood of requests must not delay the datagrams of
/// connections. It is far below the length of the protocol's queue of replies, so no reply is displaced.
const BATCH: usize = 16;
/// The maximum length of the queue. Further requests are dropped and counted; their senders repeat them.
const MAX_REQUESTS: usize = 1_024;

/// Requests that have not been handled yet. Their arrival times do not matter.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    waiting: VecDeque<(SocketAddr, Box<[u8]>)>,
    dropped: u64,
}

impl Requests {
    pub(crate) fn push(&mut self, from: SocketAddr, datagram: &[u8]) {
        if self.waiting.len() < MAX_REQUESTS {
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
    fn the_queue_of_unconnected_messages_is_bounded() {
        let mut queue = UnconnectedQueue::default();
        for identity in 0..300_u64 {
            let from = ([127, 0, 0, 1], 1).into();
            queue.push(Unconnected { from, identity, kind: UnconnectedKind::OutOfBand, data: vec![1] });
        }
        assert_eq!((queue.waiting.len(), queue.dropped()), (MAX_MESSAGES, 44));
        assert_eq!(queue.pop().map(|message| message.identity), Some(0));
    }

    #[test]
    fn requests_are_limited_and_taken_in_order_and_in_batches() {
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
    fn replies_and_data_are_not_requests() {
        assert!(RakNet::is_request(&[1]) && RakNet::is_request(&[7, 0]));
        assert!(!RakNet::is_request(&[]) && !RakNet::is_request(&[0x1C]) && !RakNet::is_request(&[0x84]));
        // END and acknowledgements have four bytes, like the requests.
        assert!(GameProtocol::is_request(&[0x40, 1, 2, 3]) && GameProtocol::is_request(&[0x80, 1, 2, 3]));
        assert!(!GameProtocol::is_request(&[0x0C, 0, 0, 0]) && !GameProtocol::is_request(&[5, 0, 0, 7, 1]));
    }
}
