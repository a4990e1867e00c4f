//! Clients that a server has refused by what they showed.

use core::net::SocketAddr;

use heapless::Vec;
use rakwire::endpoint::{Event, Protocol, RefuseReason};

/// The length of the queue. A peer that lets no client in keeps none.
const KEPT: usize = if cfg!(feature = "server") { 4 } else { 0 };

/// A client that was refused by its password, its identity or its connect token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct RefusedClient<I> {
    /// The address that the client says is its own.
    pub remote: SocketAddr,
    /// The identity that the client claims: in RakNet its GUID.
    pub identity: I,
    /// Why it was refused.
    pub reason: RefuseReason,
    /// Whether the client has shown that it receives what is sent to `remote`, by a cookie or a pong. If not the address may be
    /// forged, so it is no reason for a ban.
    pub is_validated: bool,
}

/// Refused clients that no task has asked for. A full queue drops the oldest one.
#[derive(Debug)]
pub(crate) struct RefusedClients<I>(Vec<RefusedClient<I>, KEPT>);

impl<I> RefusedClients<I> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Keeps the client that an event names; false if the event is about something else.
    pub(crate) fn keep<P: Protocol<Identity = I>>(&mut self, event: &Event<'_, P>) -> bool
    where
        I: Copy,
    {
        let &Event::Refused { remote, identity, reason, is_validated, .. } = event else { return false };
        if KEPT > 0 {
            if self.0.is_full() {
                self.0.remove(0);
            }
            // There is room now.
            let _ = self.0.push(RefusedClient { remote, identity, reason, is_validated });
        }
        true
    }

    /// Takes the client that was refused first.
    pub(crate) fn pop(&mut self) -> Option<RefusedClient<I>> {
        if self.0.is_empty() { None } else { Some(self.0.remove(0)) }
    }
}
