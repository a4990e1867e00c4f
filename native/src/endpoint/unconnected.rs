//! What peers without a connection send: answers to pings, out-of-band messages and advertisements.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

/// Messages that wait for the application.
const MOST_WAITING: usize = 256;

/// What a server answers to a ping. `I` is who a peer is beside its address: in RakNet its GUID.
///
/// ```
/// fn is_near(pong: &rakwire_native::Pong) -> bool {
///     pong.latency < std::time::Duration::from_millis(30)
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pong<I> {
    /// The server's address.
    pub from: SocketAddr,
    /// The server's identity.
    pub identity: I,
    /// From the ping to the pong.
    pub latency: Duration,
    /// What the server says of itself, 0 to 399 bytes, without the length before it.
    pub data: Vec<u8>,
}

/// What kind of message a peer without a connection sent.
///
/// ```
/// use rakwire_native::UnconnectedKind;
///
/// assert_ne!(UnconnectedKind::OutOfBand, UnconnectedKind::Advertisement);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnconnectedKind {
    /// A message of its application.
    OutOfBand,
    /// It makes itself known.
    Advertisement,
}

/// A message from a peer without a connection. Its sender and its contents may be forged.
///
/// ```
/// use rakwire_native::{Unconnected, UnconnectedKind};
///
/// fn is_invitation(message: &Unconnected) -> bool {
///     message.kind == UnconnectedKind::Advertisement && message.data.starts_with(b"come and play")
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unconnected<I> {
    /// Where it came from.
    pub from: SocketAddr,
    /// Who sent it.
    pub identity: I,
    /// What kind of message it is.
    pub kind: UnconnectedKind,
    /// What it says, at most 399 bytes.
    pub data: Vec<u8>,
}

/// Messages of peers without a connection, between the driver and the application. Further ones are dropped and counted.
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
        if self.waiting.len() < MOST_WAITING {
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

/// The pings whose pongs tasks wait for, each with the address that was asked.
#[derive(Debug)]
pub(crate) struct Pings<I> {
    /// One server was asked.
    pub(crate) one: Vec<(SocketAddr, oneshot::Sender<Pong<I>>)>,
    /// Everybody who hears a broadcast was asked.
    pub(crate) broadcasts: Vec<(SocketAddr, mpsc::Sender<Pong<I>>)>,
}

impl<I> Default for Pings<I> {
    fn default() -> Self {
        Self { one: Vec::new(), broadcasts: Vec::new() }
    }
}

impl<I: Copy> Pings<I> {
    /// Passes a pong to the tasks that asked its sender, or else to those that asked everybody.
    pub(crate) fn on_pong(&mut self, pong: &Pong<I>) {
        let mut was_asked = false;
        for (_, waiting) in self.one.extract_if(.., |(to, _)| *to == pong.from) {
            was_asked = true;
            // The task may have given up.
            let _ = waiting.send(pong.clone());
        }
        if !was_asked {
            // A channel without room belongs to a task that has found enough.
            self.broadcasts.iter().for_each(|(_, found)| drop(found.try_send(pong.clone())));
        }
    }

    pub(crate) fn clear(&mut self) {
        self.one.clear();
        self.broadcasts.clear();
    }

    /// Whether a task waits for the pong of the server at `to` alone.
    pub(crate) fn asks_one(&self, to: SocketAddr) -> bool {
        self.one.iter().any(|(other, _)| *other == to)
    }

    /// Whether a task waits for pongs to a broadcast to `to`.
    pub(crate) fn asks_everybody(&self, to: SocketAddr) -> bool {
        self.broadcasts.iter().any(|(other, _)| *other == to)
    }

    /// Removes the pings for which no task waits any more.
    pub(crate) fn remove_given_up(&mut self) {
        self.one.retain(|(_, waiting)| !waiting.is_closed());
        self.broadcasts.retain(|(_, found)| !found.is_closed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unconnected_messages_do_not_fill_the_memory() {
        let mut queue = UnconnectedQueue::default();
        for identity in 0..300_u64 {
            let from = ([127, 0, 0, 1], 1).into();
            queue.push(Unconnected { from, identity, kind: UnconnectedKind::OutOfBand, data: vec![1] });
        }
        assert_eq!((queue.waiting.len(), queue.dropped()), (MOST_WAITING, 44));
        assert_eq!(queue.pop().map(|message| message.identity), Some(0));
    }
}
