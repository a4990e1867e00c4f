//! The connections of a peer, by slot, by name and by address.

use core::net::SocketAddr;

use super::incoming::Incoming;
use super::types::{ConnectionId, ConnectionState, PartitionError};
use crate::storage::{AddressKey, Share, SlotIndex, SlotQueue, Slots};
use crate::time::Instant;

/// The state of a connection by which the tables list it.
pub(crate) trait Occupant {
    fn state(&self) -> ConnectionState;

    /// Whether there are events.
    fn has_events(&self) -> bool;

    /// The blocks that the connection holds for sending.
    fn send_share(&self) -> &Share;

    /// Whether the connection has ended; it may still answer what the other peer resends.
    fn is_over(&self) -> bool;

    /// Whether nothing is left to do: the slot can be given to another connection.
    fn is_finished(&self, now: Instant) -> bool;

    /// Whether the connection has ended and only waits to answer what the other peer resends: it can make room.
    fn is_lingering(&self) -> bool;

    /// Whether a connection that begins may have the slot of this one, which was refused or has ended and has nothing left
    /// but to answer what the other peer resends.
    fn makes_way(&self) -> bool {
        self.is_lingering()
    }

    /// How the connection counts against the limits of incoming ones.
    fn incoming(&self) -> Incoming;

    /// Since when the connection counts as unvalidated, if it does or did.
    fn unvalidated_since(&self) -> Instant {
        Instant::ZERO
    }
}

/// A place for one connection, and what the peer keeps of it beside the protocol.
#[derive(Debug)]
pub(crate) struct Slot<C> {
    /// Where the other peer is; none while the slot is vacant.
    pub(crate) remote: Option<SocketAddr>,
    /// Distinguishes this connection from earlier ones in the slot. The last number is never used.
    pub(crate) generation: u32,
    /// Whether the slot stands in the queue of those that may have something to send.
    pub(super) in_ready: bool,
    /// Whether the slot stands in the queue of those that have events.
    pub(super) in_readable: bool,
    /// How the connection counts among the incoming ones.
    pub(crate) incoming: Incoming,
    /// Whether the addresses lead here. Another connection with the same address may have taken the place.
    pub(crate) is_attached: bool,
    /// Whether the application takes no events for now.
    pub(crate) is_paused: bool,
    /// Whether the slot stands in the queue of those that wait for room of others.
    pub(super) in_blocked: bool,
    /// Whether the slot stands in the queue of those that have room again.
    pub(super) in_writable: bool,
    /// The blocks of the smallest message that was refused since the connection had room; 0 if none was.
    pub(super) wanted: u32,
    pub(crate) connection: C,
}

impl<C: Default> Default for Slot<C> {
    /// A vacant slot. Out of line, because it is needed rarely and takes much code.
    #[inline(never)]
    fn default() -> Self {
        Self {
            remote: None,
            generation: 0,
            in_ready: false,
            in_readable: false,
            incoming: Incoming::NO,
            is_attached: false,
            is_paused: false,
            in_blocked: false,
            in_writable: false,
            wanted: 0,
            connection: C::default(),
        }
    }
}

impl<C: Default> Slot<C> {
    /// Forgets the connection. The next one finds everything as in a new slot, but for the generation and
    /// the queues where the slot still stands.
    fn vacate(&mut self) {
        let Self { generation, in_blocked, in_writable, .. } = *self;
        *self = Self { generation, in_blocked, in_writable, ..Self::default() };
    }
}

impl<C> Slot<C> {
    pub(crate) const fn is_vacant(&self) -> bool {
        self.remote.is_none()
    }

    /// Whether this is the connection with the peer at `address`.
    fn is_at(&self, address: &SocketAddr) -> bool {
        self.is_attached && self.remote.as_ref() == Some(address)
    }

    /// Whether this is the connection that `id`, which names this slot, means.
    const fn is(&self, id: ConnectionId) -> bool {
        self.generation == id.generation && !self.is_vacant()
    }

    /// Whether the slot stands in no queue.
    const fn is_idle(&self) -> bool {
        !self.in_ready && !self.in_readable && !self.is_vacant()
    }
}

impl<C: Occupant> Slot<C> {
    /// Whether the connection makes way for another one and stands in no queue.
    pub(crate) fn makes_way(&self) -> bool {
        self.is_idle() && self.connection.makes_way()
    }

    /// Whether the connection is over and stands in no queue.
    pub(crate) fn is_done(&self, now: Instant) -> bool {
        self.is_idle() && self.connection.is_finished(now)
    }
}

/// Connections by slot, by name and by address.
#[derive(Debug)]
pub(crate) struct ConnectionTable<'a, C> {
    slots: Slots<'a, Slot<C>>,
    addresses: SlotIndex<'a>,
    /// Slots without a connection, but for those whose names are used up. The one that has been vacant longest is taken
    /// next.
    vacant: SlotQueue<'a>,
    /// The slot that the last datagram was for: often the next one's, too.
    last_slot: u16,
    /// The last generation that a connection may have.
    last_generation: u32,
}

impl<'a, C> ConnectionTable<'a, C> {
    pub(crate) const fn new(
        slots: Slots<'a, Slot<C>>,
        addresses: SlotIndex<'a>,
        vacant: SlotQueue<'a>,
    ) -> Self {
        Self { slots, addresses, vacant, last_slot: 0, last_generation: u32::MAX }
    }
}

impl<C: Default> ConnectionTable<'_, C> {
    #[inline]
    pub(crate) fn slot(&self, slot: u16) -> Option<&Slot<C>> {
        self.slots.get(usize::from(slot))
    }

    #[inline]
    pub(crate) fn slot_mut(&mut self, slot: u16) -> Option<&mut Slot<C>> {
        self.slots.get_mut(usize::from(slot))
    }

    /// Every slot with a connection.
    pub(crate) fn occupied(&self) -> impl Iterator<Item = (u16, &Slot<C>)> {
        (0..).zip(&*self.slots).filter(|(_, slot)| !slot.is_vacant())
    }

    pub(crate) fn id(&self, slot: u16) -> ConnectionId {
        ConnectionId { slot, generation: self.slot(slot).map_or(0, |slot| slot.generation) }
    }

    pub(crate) fn get(&self, id: ConnectionId) -> Option<&Slot<C>> {
        self.slot(id.slot).filter(|slot| slot.is(id))
    }

    pub(crate) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Slot<C>> {
        self.slot_mut(id.slot).filter(|slot| slot.is(id))
    }

    /// The slot of the connection with `address`.
    pub(crate) fn at(&self, address: &SocketAddr) -> Option<u16> {
        let slots = &self.slots;
        self.addresses.find(&AddressKey(*address), |slot| {
            slots.get(usize::from(slot)).is_some_and(|slot| slot.is_at(address))
        })
    }

    /// As [`at`](Self::at), after a look at the slot of the last datagram.
    pub(crate) fn find(&mut self, address: &SocketAddr) -> Option<u16> {
        if self.slot(self.last_slot).is_some_and(|last| last.is_at(address)) {
            return Some(self.last_slot);
        }
        let slot = self.at(address)?;
        self.last_slot = slot;
        Some(slot)
    }

    /// Takes a vacant slot.
    pub(crate) fn take_vacant(&mut self) -> Option<u16> {
        self.vacant.pop()
    }

    /// Gives back a vacant slot that was not used after all.
    pub(crate) fn return_vacant(&mut self, at: u16) {
        self.vacant.push(at);
    }

    /// Gives a vacant slot to a connection with `remote`, under a new name.
    pub(crate) fn occupy(&mut self, at: u16, remote: SocketAddr) {
        if let Some(slot) = self.slot_mut(at) {
            slot.remote = Some(remote);
            // A slot whose names are used up is not vacant.
            slot.generation = slot.generation.saturating_add(1);
            slot.is_attached = true;
        }
    }

    /// Lets the address of a connection lead to it.
    pub(crate) fn list_address(&mut self, at: u16, remote: SocketAddr) {
        self.addresses.insert(&AddressKey(remote), at);
    }

    /// Lets the address of a connection no longer lead to it.
    pub(crate) fn unlist_address(&mut self, at: u16) {
        let Some(slot) = self.slots.get_mut(usize::from(at)) else { return };
        if let Some(remote) = slot.remote {
            slot.is_attached = false;
            self.addresses.remove(&AddressKey(remote), at);
        }
    }

    /// Empties a slot, and lists it as vacant unless every name that a connection in it can have was used.
    pub(crate) fn vacate(&mut self, at: u16) {
        let last = self.last_generation;
        let Some(slot) = self.slot_mut(at) else { return };
        slot.vacate();
        if slot.generation < last {
            self.vacant.push(at);
        }
    }

    /// Lets names be those of the peer with `number` among `of` peers.
    pub(crate) fn partition_ids(&mut self, number: u16, of: u16) -> Result<(), PartitionError> {
        let Some(ids) = u32::MAX.checked_div(of.into()).filter(|_| number < of) else {
            return Err(PartitionError::NoSuchPeer);
        };
        if self.slots.iter().any(|slot| slot.generation != 0) {
            return Err(PartitionError::InUse);
        }
        let before_first = ids * u32::from(number);
        self.last_generation = before_first + ids;
        for slot in &mut *self.slots {
            slot.generation = before_first;
        }
        Ok(())
    }
}

impl<C: Default + Occupant> ConnectionTable<'_, C> {
    /// The next open connection from a slot on, which becomes the slot behind it.
    pub(crate) fn next_open(&self, from: &mut u16, except: Option<ConnectionId>) -> Option<ConnectionId> {
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

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::*;
    use crate::endpoint::{Capacity, ConnectError, Peer, Protocol};
    use crate::game_protocol::GameProtocol;
    use crate::raknet::RakNet;

    /// Opens a connection in the only slot, and ends it.
    fn use_slot<P: Protocol>(peer: &mut Peer<'_, P>) -> Result<ConnectionId, ConnectError> {
        let id = peer.connect(Instant::ZERO, ([192, 0, 2, 1], 1).into())?;
        peer.disconnect(Instant::ZERO, id);
        while peer.poll_event().is_some() || peer.poll_transmit(Instant::ZERO, &mut [0; 1_500]).is_some() {}
        assert!(peer.connection(id).is_none());
        Ok(id)
    }

    /// The names of a slot are used up, and none of them was used twice.
    fn names_end<P: Protocol>() {
        let capacity = Capacity { connections: 1, blocks: 16, block_size: 64 };
        let mut peer = Peer::<P>::with_capacity(capacity, P::config([7; 32]));
        let first = use_slot(&mut peer).expect("a vacant slot");
        // As many names as sixteen bits have.
        for _ in 0..70_000 {
            assert_ne!(use_slot(&mut peer), Ok(first));
        }
        peer.tables.connections.slot_mut(0).expect("the only slot").generation = u32::MAX - 1;
        assert_eq!(use_slot(&mut peer).expect("the last name").generation, u32::MAX);
        assert_eq!(use_slot(&mut peer), Err(ConnectError::Full));
    }

    #[test]
    fn a_name_is_never_used_again() {
        names_end::<RakNet>();
        names_end::<GameProtocol>();
    }

    /// The last id that a peer gives comes before the first one of the next peer.
    fn ids_are_partitioned<P: Protocol>() {
        const PEERS: u16 = 3;
        let capacity = Capacity { connections: 1, blocks: 16, block_size: 64 };
        let mut last = 0;
        for number in 0..PEERS {
            let mut peer = Peer::<P>::with_capacity(capacity, P::config([7; 32]));
            assert_eq!(peer.partition_ids(number, PEERS), Ok(()));
            assert_eq!(use_slot(&mut peer).expect("a vacant slot").generation, last + 1);
            assert_eq!(peer.partition_ids(number, PEERS), Err(PartitionError::InUse));
            last = peer.tables.connections.last_generation;
            peer.tables.connections.slot_mut(0).expect("the only slot").generation = last - 1;
            assert_eq!(use_slot(&mut peer).expect("the last name").generation, last);
            assert_eq!(use_slot(&mut peer), Err(ConnectError::Full));
        }
    }

    #[test]
    fn peers_of_one_server_have_ids_of_their_own() {
        ids_are_partitioned::<RakNet>();
        ids_are_partitioned::<GameProtocol>();
    }

    #[test]
    fn a_peer_is_one_of_those_among_which_ids_are_partitioned() {
        let mut peer = Peer::<RakNet>::with_capacity(Capacity::default(), RakNet::config([7; 32]));
        for (number, of) in [(0, 0), (1, 1), (3, 2)] {
            assert_eq!(peer.partition_ids(number, of), Err(PartitionError::NoSuchPeer));
        }
    }
}
