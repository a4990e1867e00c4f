//! One message to many connections.

use super::error::SendError;
use super::hook::{Hook, Hooked};
use super::protocol::{Connection, Peer, Protocol};
use super::types::{ConnectionId, ConnectionState};
use crate::time::Instant;

impl<P: Protocol> Peer<'_, P> {
    /// Sends a message to every open connection, but to `except` if there is one. Returns to how many; `refused` is called with
    /// each connection that does not take it, most often for want of room. Each takes a copy.
    ///
    /// ```
    /// use rakwire::Instant;
    /// use rakwire::raknet::{Config, Delivery, Peer, Resources};
    ///
    /// let mut resources = Resources::<1, 32, 128>::new();
    /// let mut peer = Peer::new(&mut resources, Config::new([7; 32]));
    /// let sent = peer.broadcast(Instant::ZERO, b"\x90hello", Delivery::RELIABLE, None, |_, _| ());
    /// assert_eq!(sent, 0, "nothing is open");
    /// ```
    pub fn broadcast(
        &mut self,
        now: Instant,
        message: &[u8],
        delivery: P::Delivery,
        except: Option<ConnectionId>,
        refused: impl FnMut(ConnectionId, SendError),
    ) -> usize {
        let send_next = |from: &mut u16| {
            let id = self.next_receiver(from, except)?;
            Some((id, self.send(now, id, message, delivery).map(|_| ())))
        };
        count_sent(send_next, refused)
    }

    /// The next open connection from a slot on, which becomes the slot behind it.
    fn next_receiver(&self, from: &mut u16, except: Option<ConnectionId>) -> Option<ConnectionId> {
        loop {
            let slot = self.slot(*from)?;
            let id = ConnectionId { slot: *from, generation: slot.generation };
            // There are never as many slots as a slot's number has values.
            *from = from.checked_add(1)?;
            let is_open = !slot.is_vacant() && slot.connection.state() == ConnectionState::Connected;
            if is_open && Some(id) != except {
                return Some(id);
            }
        }
    }
}

impl<P: Protocol, H: Hook<P>> Hooked<'_, P, H> {
    /// As [`Peer::broadcast`], through the hook, which is shown the message for each connection.
    pub fn broadcast(
        &mut self,
        now: Instant,
        message: &[u8],
        delivery: P::Delivery,
        except: Option<ConnectionId>,
        refused: impl FnMut(ConnectionId, SendError),
    ) -> usize {
        let send_next = |from: &mut u16| {
            let id = self.peer.next_receiver(from, except)?;
            Some((id, self.send(now, id, message, delivery).map(|_| ())))
        };
        count_sent(send_next, refused)
    }
}

/// Calls `send_next` with the slot behind the last receiver until there is none, and returns how many sends succeeded.
fn count_sent(
    mut send_next: impl FnMut(&mut u16) -> Option<(ConnectionId, Result<(), SendError>)>,
    mut refused: impl FnMut(ConnectionId, SendError),
) -> usize {
    let (mut sent, mut from) = (0, 0);
    while let Some((id, result)) = send_next(&mut from) {
        match result {
            Ok(()) => sent += 1,
            Err(error) => refused(id, error),
        }
    }
    sent
}
