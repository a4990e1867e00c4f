//! The connections of a peer, by slot, by id and by address.

use core::net::SocketAddr;

use super::incoming::Incoming;
use super::types::{ConnectionId, ConnectionState, PartitionError};
use crate::storage::{AddressKey, Share, SlotIndex, SlotQueue, Slots};
use crate::time::Instant;

/// The state of a connection that the tables need to list it.
pub(crate) trait Occupant {
    fn state(&self) -> ConnectionState;

    /// Returns true if there are events.
    fn has_events(&self) -> bool;

    /// Returns the share of blocks that the connection holds for sending.
    fn send_share(&self) -> &Share;

    /// Returns true if the connection has ended, even if it still answers retransmissions of the remote peer.
    fn is_over(&self) -> bool;

    /// Returns true if nothing is left to do, so that the slot can be reused.
    fn is_finished(&self, now: Instant) -> bool;

    /// Returns true if the connection has ended and only answers retransmissions, so that it can make room.
    fn is_lingering(&self) -> bool;

    /// Returns true if a new connection may take the slot of this one.
    ///
    /// That is the case if it was refused, or has ended and only answers retransmissions of the remote peer.
    fn is_evictable(&self) -> bool {
        self.is_lingering()
    }

    /// Returns the status of the connection in the counts of incoming ones.
    fn incoming(&self) -> Incoming;

    /// Returns since when the connection counts as unvalidated, if it does or did.
    fn unvalidated_since(&self) -> Instant {
        Instant::ZERO
    }
}

/// The entry of one connection, with the state that the endpoint keeps for it.
#[derive(Debug)]
pub(crate) struct Slot<C> {
    /// The address of the remote peer; `None` while the slot is vacant.
    pub(crate) remote: Option<SocketAddr>,
    /// Distinguishes this connection from earlier ones in the slot. The last number is never used.
    pub(crate) generation: u32,
    /// Set while the slot is in the queue of connections that may have something to send.
    pub(super) in_ready: bool,
    /// Set while the slot is in the queue of connections that have events.
    pub(super) in_readable: bool,
    /// The status of the connection in the counts of incoming ones.
    pub(crate) incoming: Incoming,
    /// Set while the address is indexed.
    ///
    /// Another connection with the same address may have replaced this one.
    pub(crate) is_attached: bool,
    /// Set while the application accepts no events.
    pub(crate) is_paused: bool,
    /// Set while the slot is in the queue of connections that wait for room held by others.
    pub(super) in_blocked: bool,
    /// Set while the slot is in the queue of connections that have room again.
    pub(super) in_writable: bool,
    /// The blocks of the smallest message refused since the connection last had room; 0 if none was.
    pub(super) wanted: u32,
    pub(crate) connection: C,
}

impl<C: Default> Default for Slot<C> {
    /// Creates a vacant slot. Out of line, because it is rarely needed and takes much code.
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
    /// Forgets the connection.
    ///
    /// The slot is then as new, except for the generation and the queues in which it still is.
    fn vacate(&mut self) {
        let Self { generation, in_blocked, in_writable, .. } = *self;
        *self = Self { generation, in_blocked, in_writable, ..Self::default() };
    }
}

impl<C> Slot<C> {
    pub(crate) const fn is_vacant(&self) -> bool {
        self.remote.is_none()
    }

    /// Returns true if this is the connection with the peer at `address`.
    fn is_at(&self, address: &SocketAddr) -> bool {
        self.is_attached && self.remote.as_ref() == Some(address)
    }

    /// Returns true if `id`, which names this slot, refers to this connection.
    const fn is(&self, id: ConnectionId) -> bool {
        self.generation == id.generation && !self.is_vacant()
    }

    /// Returns true if the slot is in no queue.
    const fn is_idle(&self) -> bool {
        !self.in_ready && !self.in_readable && !self.is_vacant()
    }
}

impl<C: Occupant> Slot<C> {
    /// Returns true if the connection makes way for another one and is in no queue.
    pub(crate) fn is_evictable(&self) -> bool {
        self.is_idle() && self.connection.is_evictable()
    }

    /// Returns true if the connection is over and is in no queue.
    pub(crate) fn is_done(&self, now: Instant) -> bool {
        self.is_idle() && self.connection.is_finished(now)
    }
}

/// Connections by slot, by id and by address.
#[derive(Debug)]
pub(crate) struct ConnectionTable<'a, C> {
    slots: Slots<'a, Slot<C>>,
    addresses: SlotIndex<'a>,
    /// Vacant slots, except for those that have used up their ids.
    ///
    /// The one that has been vacant longest is taken next.
    vacant: SlotQueue<'a>,
    /// The slot of the last datagram, which is often that of the next one too.
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

    /// Returns every slot with a connection.
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

    /// Returns the slot of the connection with `address`.
    pub(crate) fn at(&self, address: &SocketAddr) -> Option<u16> {
        let slots = &self.slots;
        self.addresses.find(&AddressKey(*address), |slot| {
            slots.get(usize::from(slot)).is_some_and(|slot| slot.is_at(address))
        })
    }

    /// Returns the slot like [`at`](Self::at), after checking the slot of the last datagram.
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

    /// Returns an unused vacant slot.
    pub(crate) fn return_vacant(&mut self, at: u16) {
        self.vacant.push(at);
    }

    /// Assigns a vacant slot to a connection with `remote`, under a new id.
    pub(crate) fn occupy(&mut self, at: u16, remote: SocketAddr) {
        if let Some(slot) = self.slot_mut(at) {
            slot.remote = Some(remote);
            // A slot that has used up its ids is never vacant.
            slot.generation = slot.generation.saturating_add(1);
            slot.is_attached = true;
        }
    }

    /// Adds the address of a connection to the index.
    pub(crate) fn list_address(&mut self, at: u16, remote: SocketAddr) {
        self.addresses.insert(&AddressKey(remote), at);
    }

    /// Removes the address of a connection from the index.
    pub(crate) fn unlist_address(&mut self, at: u16) {
        let Some(slot) = self.slots.get_mut(usize::from(at)) else { return };
        if let Some(remote) = slot.remote {
            slot.is_attached = false;
            self.addresses.remove(&AddressKey(remote), at);
        }
    }

    /// Empties a slot, and lists it as vacant unless all its ids are used up.
    pub(crate) fn vacate(&mut self, at: u16) {
        let last = self.last_generation;
        let Some(slot) = self.slot_mut(at) else { return };
        slot.vacate();
        if slot.generation < last {
            self.vacant.push(at);
        }
    }

    /// Restricts ids to those of the peer with `number` among `of` peers.
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
    /// Returns the next open connection from a slot on, and advances `from` beyond it.
    pub(crate) fn next_open(&self, from: &mut u16, except: Option<ConnectionId>) -> Option<ConnectionId> {
        loop {
            let slot = self.slot(*from)?;
            let id = ConnectionId { slot: *from, generation: slot.generation };
            // There are fewer slots than a `u16` can number.
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

    /// Uses up the ids of a slot, none of which is used twice.
    fn names_end<P: Protocol>() {
        let capacity = Capacity { connections: 1, blocks: 16, block_size: 64 };
        let mut peer = Peer::<P>::with_capacity(capacity, P::config([7; 32]));
        let first = use_slot(&mut peer).expect("a vacant slot");
        // More than the ids that sixteen bits allow.
        for _ in 0..70_000 {
            assert_ne!(use_slot(&mut peer), Ok(first));
        }
        peer.tables.connections.slot_mut(0).expect("the only slot").generation = u32::MAX - 1;
        assert_eq!(use_slot(&mut peer).expect("the last name").generation, u32::MAX);
        assert_eq!(use_slot(&mut peer), Err(ConnectError::Full));
    }

    #[test]
    fn an_id_is_never_reused() {
        names_end::<RakNet>();
        names_end::<GameProtocol>();
    }

    /// The last id of a peer precedes the first one of the next peer.
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
    fn peers_of_one_server_have_disjoint_ids() {
        ids_are_partitioned::<RakNet>();
        ids_are_partitioned::<GameProtocol>();
    }

    #[test]
    fn a_partition_number_must_be_below_the_number_of_peers() {
        let mut peer = Peer::<RakNet>::with_capacity(Capacity::default(), RakNet::config([7; 32]));
        for (number, of) in [(0, 0), (1, 1), (3, 2)] {
            assert_eq!(peer.partition_ids(number, of), Err(PartitionError::NoSuchPeer));
        }
    }
}
