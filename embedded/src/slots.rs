//! The slots of connections that tasks refer to.

use core::net::SocketAddr;

use rakwire::endpoint::{ConnectionId, Protocol};

/// The phase of a connection as seen by its tasks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Phase<P: Protocol> {
    /// A task is opening the connection.
    Connecting,
    /// A remote has opened the connection, and no task has accepted it yet.
    Incoming { remote: SocketAddr, identity: P::Identity },
    /// The connection is open.
    Connected,
    /// The connection is closed. There is no reason if it was never open.
    Ended(Option<P::DisconnectReason>),
}

/// The slot of a connection that has tasks, or that waits to be accepted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot<P: Protocol> {
    pub(crate) id: ConnectionId,
    pub(crate) phase: Phase<P>,
    /// The number of references.
    pub(crate) references: u8,
}

#[derive(Debug)]
pub(crate) struct Slots<'d, P: Protocol>(pub(crate) &'d mut [Option<Slot<P>>]);

impl<P: Protocol> Slots<'_, P> {
    pub(crate) fn get(&self, at: usize) -> Option<&Slot<P>> {
        self.0.get(at)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut Slot<P>> {
        self.0.get_mut(at)?.as_mut()
    }

    pub(crate) fn contains(&self, id: ConnectionId) -> bool {
        self.0.iter().flatten().any(|slot| slot.id == id)
    }

    /// Fills the first vacant slot and returns its index, or `None` if all are occupied.
    pub(crate) fn insert(&mut self, slot: Slot<P>) -> Option<usize> {
        let vacant = self.0.iter().position(Option::is_none)?;
        *self.0.get_mut(vacant)? = Some(slot);
        Some(vacant)
    }

    /// Accepts the first incoming connection. The caller receives the only reference.
    pub(crate) fn accept(&mut self) -> Option<(usize, SocketAddr, P::Identity)> {
        for (at, slot) in self.0.iter_mut().enumerate() {
            let Some(slot) = slot else { continue };
            if let Phase::Incoming { remote, identity } = slot.phase {
                slot.phase = Phase::Connected;
                slot.references = 1;
                return Some((at, remote, identity));
            }
        }
        None
    }

    /// Adds a reference to this connection if it is open and a task refers to it, and returns the index of its slot.
    pub(crate) fn retain_connected(&mut self, id: ConnectionId) -> Option<usize> {
        let is_it = |slot: &Slot<P>| slot.id == id && matches!(slot.phase, Phase::Connected);
        let at = self.0.iter().position(|slot| slot.as_ref().is_some_and(is_it))?;
        self.retain(at);
        Some(at)
    }

    /// Adds a reference to the connection in this slot.
    pub(crate) fn retain(&mut self, at: usize) {
        if let Some(slot) = self.get_mut(at) {
            slot.references = slot.references.saturating_add(1);
        }
    }

    /// Removes a reference. If it was the last one, the slot is vacated and returned.
    pub(crate) fn release(&mut self, at: usize) -> Option<Slot<P>> {
        let place = self.0.get_mut(at)?;
        let slot = place.as_mut()?;
        slot.references = slot.references.saturating_sub(1);
        if slot.references == 0 { place.take() } else { None }
    }
}
