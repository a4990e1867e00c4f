//! The tables of a peer, their sizes forgotten: its connections by slot and by address, and the queues in which they stand.
//!
//! Each table owns its methods and knows neither a protocol nor the other tables; [`Peer`](super::Peer) keeps them in step.

use core::net::SocketAddr;

use super::incoming::Incoming;
use super::types::{ConnectionId, ConnectionState, PartitionError};
use crate::storage::{
    AddressKey, Block, Deadlines, Index, Pool, Purpose, SEVERAL, Share, Shares, SlotIndex, SlotQueue, Slots,
};
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
    in_ready: bool,
    /// Whether the slot stands in the queue of those that have events.
    in_readable: bool,
    /// How the connection counts among the incoming ones.
    pub(crate) incoming: Incoming,
    /// Whether the addresses lead here. Another connection with the same address may have taken the place.
    pub(crate) is_attached: bool,
    /// Whether the application takes no events for now.
    pub(crate) is_paused: bool,
    /// Whether the slot stands in the queue of those that wait for room of others.
    in_blocked: bool,
    /// Whether the slot stands in the queue of those that have room again.
    in_writable: bool,
    /// The blocks of the smallest message that was refused since the connection had room; 0 if none was.
    wanted: u32,
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

/// The connections that may have something to send, and the deadlines of all others.
#[derive(Debug)]
pub(crate) struct Wakeups<'a> {
    ready: SlotQueue<'a>,
    deadlines: Deadlines<'a>,
    /// How many datagrams of the connection whose turn it is were composed one after the other.
    in_a_row: u8,
}

impl<'a> Wakeups<'a> {
    pub(crate) const fn new(ready: SlotQueue<'a>, deadlines: Deadlines<'a>) -> Self {
        Self { ready, deadlines, in_a_row: 0 }
    }

    /// Lists a connection that may have something to send.
    pub(crate) fn list<C>(&mut self, slot: &mut Slot<C>, at: u16) {
        if !core::mem::replace(&mut slot.in_ready, true) {
            self.ready.push(at);
        }
    }

    /// The connection whose turn it is to send.
    pub(crate) fn front(&self) -> Option<u16> {
        self.ready.front()
    }

    /// Counts a datagram of the connection in `at`, whose turn it is; after `burst` of them it is the next one's.
    pub(crate) fn on_composed(&mut self, at: u16, burst: u8) {
        self.in_a_row += 1;
        if self.in_a_row >= burst {
            self.in_a_row = 0;
            self.ready.pop();
            self.ready.push(at);
        }
    }

    /// Ends the turn of a connection that has nothing to send.
    pub(crate) fn end_turn(&mut self) {
        self.in_a_row = 0;
        self.ready.pop();
    }

    /// Notes that a connection whose turn has ended stands in the queue no more.
    pub(crate) const fn unlist<C>(slot: &mut Slot<C>) {
        slot.in_ready = false;
    }

    /// Sets when something is due on a connection.
    pub(crate) fn set_deadline(&mut self, at: u16, deadline: Option<Instant>) {
        self.deadlines.set(at, deadline);
    }

    /// Takes a connection on which something is due.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<u16> {
        let (due, at) = self.deadlines.first()?;
        if due > now {
            return None;
        }
        self.deadlines.set(at, None);
        Some(at)
    }

    pub(crate) fn is_any_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| at)
    }
}

/// The bytes that the last event lent and the next one takes back.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lent {
    Nothing,
    Message {
        message: Block,
        id: ConnectionId,
    },
    /// The bytes of what a peer without a connection said first.
    Unconnected(Block),
    /// The bytes of a message that a hook has injected.
    Injected(Block),
}

impl Lent {
    /// The block in which the bytes begin.
    pub(crate) const fn block(self) -> Option<Block> {
        match self {
            Self::Nothing => None,
            Self::Message { message, .. } | Self::Unconnected(message) | Self::Injected(message) => {
                Some(message)
            }
        }
    }
}

/// The connections that have events, and the bytes that the last event lent.
#[derive(Debug)]
pub(crate) struct EventQueue<'a> {
    readable: SlotQueue<'a>,
    lent: Lent,
}

impl<'a> EventQueue<'a> {
    pub(crate) const fn new(readable: SlotQueue<'a>) -> Self {
        Self { readable, lent: Lent::Nothing }
    }

    /// Lists a connection that has events, unless it is paused.
    pub(crate) fn list<C: Occupant>(&mut self, slot: &mut Slot<C>, at: u16) {
        if !slot.in_readable && !slot.is_paused && slot.connection.has_events() {
            slot.in_readable = true;
            self.readable.push(at);
        }
    }

    pub(crate) fn front(&self) -> Option<u16> {
        self.readable.front()
    }

    /// Takes the first connection out of the queue; returns its slot.
    pub(crate) fn pop<C: Default>(&mut self, connections: &mut ConnectionTable<'_, C>) -> Option<u16> {
        let at = self.readable.front()?;
        self.readable.pop();
        if let Some(slot) = connections.slot_mut(at) {
            slot.in_readable = false;
        }
        Some(at)
    }

    /// Notes what an event lends.
    pub(crate) const fn lend(&mut self, lent: Lent) {
        self.lent = lent;
    }

    pub(crate) const fn lent(&self) -> Lent {
        self.lent
    }

    /// Takes back what the last event lent.
    #[cfg_attr(target_pointer_width = "64", inline)]
    pub(crate) const fn take_back(&mut self) -> Lent {
        core::mem::replace(&mut self.lent, Lent::Nothing)
    }
}

/// Blocked connections that are looked at for each call that asks for a writable one.
const AT_A_TIME: usize = 16;

/// The connections that refused a message, and those of them that have room for it now.
#[derive(Debug)]
pub(crate) struct Writable<'a> {
    /// Those for which others may make room, in the order in which they get it.
    blocked: SlotQueue<'a>,
    /// Those that have room.
    writable: SlotQueue<'a>,
    /// How many of the blocked ones are still to be looked at in this round.
    unexamined: usize,
    /// Blocks of the common part that may be given away in this round.
    left: usize,
    /// How many blocks of the common part must be free for the next round to be worth while.
    needed: usize,
}

impl<'a> Writable<'a> {
    pub(crate) const fn new(blocked: SlotQueue<'a>, writable: SlotQueue<'a>) -> Self {
        Self { blocked, writable, unexamined: 0, left: 0, needed: usize::MAX }
    }

    /// Whether there are blocked connections to look at.
    pub(crate) const fn is_unfinished(&self) -> bool {
        SEVERAL && self.unexamined > 0
    }

    /// Notes that a connection has refused a message.
    #[cold]
    pub(crate) fn on_refused<C: Occupant>(&mut self, slot: &mut Slot<C>, at: u16, shares: &Shares) {
        let refused = u32::try_from(shares.refused()).unwrap_or(u32::MAX).max(1);
        slot.wanted = if slot.wanted == 0 { refused } else { slot.wanted.min(refused) };
        let (share, wanted) = (slot.connection.send_share(), slot.wanted as usize);
        if SEVERAL && shares.depends_on_others(share, wanted, Purpose::Send) {
            self.needed = self.needed.min(shares.needed(share, wanted));
            if !core::mem::replace(&mut slot.in_blocked, true) {
                self.blocked.push(at);
            }
        }
    }

    /// Lists a connection that refused a message and has changed, if it has room now.
    #[inline]
    pub(crate) fn list<C: Occupant>(&mut self, slot: &mut Slot<C>, at: u16, shares: &Shares) {
        if slot.wanted == 0 {
            return;
        }
        if slot.connection.is_over() {
            slot.wanted = 0;
            return;
        }
        let (share, wanted) = (slot.connection.send_share(), slot.wanted as usize);
        if shares.check(share, wanted, Purpose::Send).is_err() {
            return;
        }
        slot.wanted = 0;
        self.name(slot, at);
    }

    /// Names a connection that has room, once.
    fn name<C>(&mut self, slot: &mut Slot<C>, at: u16) {
        if !core::mem::replace(&mut slot.in_writable, true) {
            self.writable.push(at);
        }
    }

    /// Takes the next connection that has room; returns its slot.
    pub(crate) fn pop<C: Default + Occupant>(
        &mut self,
        connections: &mut ConnectionTable<'_, C>,
        shares: &Shares,
    ) -> Option<u16> {
        if SEVERAL && self.writable.is_empty() {
            self.examine(connections, shares);
        }
        let at = self.writable.front()?;
        self.writable.pop();
        if let Some(slot) = connections.slot_mut(at) {
            slot.in_writable = false;
        }
        Some(at)
    }

    /// Lists some of the connections that wait for what others hold, if so much is free that it may be enough for one.
    fn examine<C: Default + Occupant>(&mut self, connections: &mut ConnectionTable<'_, C>, shares: &Shares) {
        self.begin_round(shares);
        let mut left = shares.bounded(self.left);
        for _ in 0..AT_A_TIME.min(self.unexamined) {
            self.unexamined -= 1;
            let Some(at) = self.blocked.front() else { return };
            self.blocked.pop();
            let Some(slot) = connections.slot_mut(at) else { return };
            let (mut share, wanted) = (*slot.connection.send_share(), slot.wanted as usize);
            // Each one that is named takes its room here, so that not all are named for the same blocks.
            if wanted > 0 && left.charge(&mut share, wanted, Purpose::Send).is_err() {
                self.needed = self.needed.min(left.needed(&share, wanted));
                self.blocked.push(at);
                continue;
            }
            slot.in_blocked = false;
            if core::mem::take(&mut slot.wanted) > 0 {
                self.name(slot, at);
            }
        }
        self.left = left.free();
        // Those that were named need not take their room: then it is for others.
        self.begin_round(shares);
    }

    /// Begins to look at all that wait for room of others, if it may be enough for one of them.
    fn begin_round(&mut self, shares: &Shares) {
        let free = shares.free();
        if self.unexamined == 0 && free >= self.needed {
            self.unexamined = self.blocked.len();
            self.left = free;
            self.needed = usize::MAX;
        }
    }
}

/// All tables of a peer.
#[derive(Debug)]
pub(crate) struct Tables<'a, C, H> {
    pub(crate) connections: ConnectionTable<'a, C>,
    pub(crate) wakeups: Wakeups<'a>,
    pub(crate) events: EventQueue<'a>,
    pub(crate) writable: Writable<'a>,
    pub(crate) pool: Pool<'a, H>,
    pub(crate) index: Index<'a>,
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::PartitionError;
    use crate::endpoint::{Capacity, ConnectError, Peer, Protocol};
    use crate::game_protocol::GameProtocol;
    use crate::raknet::RakNet;
    use crate::time::Instant;

    /// Opens a connection in the only slot, and ends it.
    fn use_slot<P: Protocol>(peer: &mut Peer<'_, P>) -> Result<super::ConnectionId, ConnectError> {
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
