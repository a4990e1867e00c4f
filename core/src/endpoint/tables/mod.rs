//! The tables of a peer, independent of their sizes: connections by slot, by id and by address, and the queues of
//! connections.
//!
//! The tables depend neither on a protocol nor on each other; [`Peer`](super::Peer) keeps them consistent.

use core::net::SocketAddr;

use super::incoming::Incoming;
use super::types::{ConnectionId, ConnectionState, PartitionError};
use crate::storage::{
    AddressKey, Block, Deadlines, Index, Pool, Purpose, SEVERAL, Share, Shares, SlotIndex, SlotQueue, Slots,
};
use crate::time::Instant;

/// The state of a connection that the tables inspect.
pub(crate) trait Occupant {
    fn state(&self) -> ConnectionState;

    /// Returns true if the connection has events to poll.
    fn has_events(&self) -> bool;

    /// Returns the share of blocks that the connection holds for sending.
    fn send_share(&self) -> &Share;

    /// Returns true if the connection has closed, even if it still answers retransmissions of the remote peer.
    fn is_over(&self) -> bool;

    /// Returns true if the connection has closed and has nothing left to answer, so that the slot can be reused.
    fn is_finished(&self, now: Instant) -> bool;

    /// Returns true if the connection has closed and only answers retransmissions, so that it may be evicted.
    fn is_lingering(&self) -> bool;

    /// Returns true if a new connection may evict this one.
    ///
    /// That is the case if it was refused, or if it has closed and only answers retransmissions.
    fn is_evictable(&self) -> bool {
        self.is_lingering()
    }

    /// Returns how the connection counts against the limits of incoming connections.
    fn incoming(&self) -> Incoming;

    /// Returns when the connection began to count as unvalidated. The time remains available after validation.
    fn unvalidated_since(&self) -> Instant {
        Instant::ZERO
    }
}

/// A connection, with the state that the endpoint keeps for it.
#[derive(Debug)]
pub(crate) struct Slot<C> {
    /// The address of the remote peer; `None` while the slot is vacant.
    pub(crate) remote: Option<SocketAddr>,
    /// Distinguishes successive connections in the slot. The maximum value is never used.
    pub(crate) generation: u32,
    /// Set while the slot is in the send queue.
    pub(super) in_ready: bool,
    /// Set while the slot is in the queue of readable connections.
    pub(super) in_readable: bool,
    /// How the connection counts against the limits of incoming connections.
    pub(crate) incoming: Incoming,
    /// Set while the address index points to this slot.
    ///
    /// It is cleared when another connection with the same address replaces this one.
    pub(crate) is_attached: bool,
    /// Set while the application has paused the events of this connection.
    pub(crate) is_paused: bool,
    /// Set while the slot is in the queue of connections that wait for memory held by others.
    pub(super) in_blocked: bool,
    /// Set while the slot is in the queue of connections that can send again.
    pub(super) in_writable: bool,
    /// The number of blocks needed by the smallest message refused since the connection was last writable; 0 if no
    /// message was refused.
    pub(super) wanted: u32,
    pub(crate) connection: C,
}

impl<C: Default> Default for Slot<C> {
    /// Creates a vacant slot. The function is not inlined, because it is rarely called and takes much code.
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
    /// Resets the slot, except for its generation and its membership in queues.
    fn vacate(&mut self) {
        let Self { generation, in_blocked, in_writable, .. } = *self;
        *self = Self { generation, in_blocked, in_writable, ..Self::default() };
    }
}

impl<C> Slot<C> {
    pub(crate) const fn is_vacant(&self) -> bool {
        self.remote.is_none()
    }

    /// Returns true if the connection is indexed under `address`.
    fn is_at(&self, address: &SocketAddr) -> bool {
        self.is_attached && self.remote.as_ref() == Some(address)
    }

    /// Returns true if the slot holds a connection and `id` has its generation.
    const fn is(&self, id: ConnectionId) -> bool {
        self.generation == id.generation && !self.is_vacant()
    }

    /// Returns true if the slot is in no queue.
    const fn is_idle(&self) -> bool {
        !self.in_ready && !self.in_readable && !self.is_vacant()
    }
}

impl<C: Occupant> Slot<C> {
    /// Returns true if the connection may be evicted and is in no queue.
    pub(crate) fn is_evictable(&self) -> bool {
        self.is_idle() && self.connection.is_evictable()
    }

    /// Returns true if the connection is finished and is in no queue.
    pub(crate) fn is_done(&self, now: Instant) -> bool {
        self.is_idle() && self.connection.is_finished(now)
    }
}

/// Connections by slot, by id and by address.
#[derive(Debug)]
pub(crate) struct ConnectionTable<'a, C> {
    slots: Slots<'a, Slot<C>>,
    addresses: SlotIndex<'a>,
    /// The vacant slots, in FIFO order, except for those that have used up their ids.
    vacant: SlotQueue<'a>,
    /// The slot of the last datagram, a cache for the next lookup.
    last_slot: u16,
    /// The highest generation that this peer may assign.
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

    /// Returns every slot that holds a connection.
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

    /// Returns the slot like [`at`](Self::at), but tries the slot of the last datagram first.
    pub(crate) fn find(&mut self, address: &SocketAddr) -> Option<u16> {
        if self.slot(self.last_slot).is_some_and(|last| last.is_at(address)) {
            return Some(self.last_slot);
        }
        let slot = self.at(address)?;
        self.last_slot = slot;
        Some(slot)
    }

    /// Takes the slot that has been vacant longest.
    pub(crate) fn take_vacant(&mut self) -> Option<u16> {
        self.vacant.pop()
    }

    /// Returns a slot that was taken but not used.
    pub(crate) fn return_vacant(&mut self, at: u16) {
        self.vacant.push(at);
    }

    /// Assigns a vacant slot to a connection with `remote`, with a new id.
    pub(crate) fn occupy(&mut self, at: u16, remote: SocketAddr) {
        if let Some(slot) = self.slot_mut(at) {
            slot.remote = Some(remote);
            // Cannot saturate: a slot that has used up its ids is not vacant.
            slot.generation = slot.generation.saturating_add(1);
            slot.is_attached = true;
        }
    }

    /// Adds a connection to the address index.
    pub(crate) fn list_address(&mut self, at: u16, remote: SocketAddr) {
        self.addresses.insert(&AddressKey(remote), at);
    }

    /// Removes a connection from the address index.
    pub(crate) fn unlist_address(&mut self, at: u16) {
        let Some(slot) = self.slots.get_mut(usize::from(at)) else { return };
        if let Some(remote) = slot.remote {
            slot.is_attached = false;
            self.addresses.remove(&AddressKey(remote), at);
        }
    }

    /// Clears a slot, and makes it vacant unless its ids are used up.
    pub(crate) fn vacate(&mut self, at: u16) {
        let last = self.last_generation;
        let Some(slot) = self.slot_mut(at) else { return };
        slot.vacate();
        if slot.generation < last {
            self.vacant.push(at);
        }
    }

    /// Restricts the connection ids to part `number` of `of` equal parts.
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
    /// Returns the next open connection at or after slot `from`, and moves `from` past it.
    pub(crate) fn next_open(&self, from: &mut u16, except: Option<ConnectionId>) -> Option<ConnectionId> {
        loop {
            let slot = self.slot(*from)?;
            let id = ConnectionId { slot: *from, generation: slot.generation };
            // The number of slots fits in a `u16`.
            *from = from.checked_add(1)?;
            let is_open = !slot.is_vacant() && slot.connection.state() == ConnectionState::Connected;
            if is_open && Some(id) != except {
                return Some(id);
            }
        }
    }
}

/// The send queue: connections that may have something to send, and the deadlines of all others.
#[derive(Debug)]
pub(crate) struct Wakeups<'a> {
    ready: SlotQueue<'a>,
    deadlines: Deadlines<'a>,
    /// The number of datagrams that the front connection has sent in a row.
    in_a_row: u8,
}

impl<'a> Wakeups<'a> {
    pub(crate) const fn new(ready: SlotQueue<'a>, deadlines: Deadlines<'a>) -> Self {
        Self { ready, deadlines, in_a_row: 0 }
    }

    /// Adds a connection to the send queue, because it may have something to send.
    pub(crate) fn list<C>(&mut self, slot: &mut Slot<C>, at: u16) {
        if !core::mem::replace(&mut slot.in_ready, true) {
            self.ready.push(at);
        }
    }

    /// Returns the connection that sends next.
    pub(crate) fn front(&self) -> Option<u16> {
        self.ready.front()
    }

    /// Counts a datagram of the front connection, which moves to the back after `burst` datagrams.
    pub(crate) fn on_composed(&mut self, at: u16, burst: u8) {
        self.in_a_row += 1;
        if self.in_a_row >= burst {
            self.in_a_row = 0;
            self.ready.pop();
            self.ready.push(at);
        }
    }

    /// Removes the front connection, which has nothing to send.
    pub(crate) fn end_turn(&mut self) {
        self.in_a_row = 0;
        self.ready.pop();
    }

    /// Marks a connection as no longer in the send queue.
    pub(crate) const fn unlist<C>(slot: &mut Slot<C>) {
        slot.in_ready = false;
    }

    /// Sets the deadline of a connection.
    pub(crate) fn set_deadline(&mut self, at: u16, deadline: Option<Instant>) {
        self.deadlines.set(at, deadline);
    }

    /// Returns a connection with an expired deadline, and removes the deadline.
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

/// The data that the last event borrows. It is freed before the next event.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EventData {
    Nothing,
    Message {
        message: Block,
        id: ConnectionId,
    },
    /// The first unconnected message.
    Unconnected(Block),
    /// A message that a hook has injected.
    Injected(Block),
}

impl EventData {
    /// Returns the first block of the data.
    pub(crate) const fn block(self) -> Option<Block> {
        match self {
            Self::Nothing => None,
            Self::Message { message, .. } | Self::Unconnected(message) | Self::Injected(message) => {
                Some(message)
            }
        }
    }
}

/// The connections that have events, and the data that the last event borrows.
#[derive(Debug)]
pub(crate) struct EventQueue<'a> {
    readable: SlotQueue<'a>,
    data: EventData,
}

impl<'a> EventQueue<'a> {
    pub(crate) const fn new(readable: SlotQueue<'a>) -> Self {
        Self { readable, data: EventData::Nothing }
    }

    /// Queues a connection that has events, unless it is paused.
    pub(crate) fn list<C: Occupant>(&mut self, slot: &mut Slot<C>, at: u16) {
        if !slot.in_readable && !slot.is_paused && slot.connection.has_events() {
            slot.in_readable = true;
            self.readable.push(at);
        }
    }

    pub(crate) fn front(&self) -> Option<u16> {
        self.readable.front()
    }

    /// Removes the first connection from the queue and returns its slot.
    pub(crate) fn pop<C: Default>(&mut self, connections: &mut ConnectionTable<'_, C>) -> Option<u16> {
        let at = self.readable.front()?;
        self.readable.pop();
        if let Some(slot) = connections.slot_mut(at) {
            slot.in_readable = false;
        }
        Some(at)
    }

    /// Records the data that an event borrows.
    pub(crate) const fn set_data(&mut self, data: EventData) {
        self.data = data;
    }

    pub(crate) const fn data(&self) -> EventData {
        self.data
    }

    /// Takes the data that the last event borrowed, to free it.
    #[cfg_attr(target_pointer_width = "64", inline)]
    pub(crate) const fn take_data(&mut self) -> EventData {
        core::mem::replace(&mut self.data, EventData::Nothing)
    }
}

/// The maximum number of blocked connections examined per call.
const AT_A_TIME: usize = 16;

/// The connections that refused a message, and the connections that can send again.
#[derive(Debug)]
pub(crate) struct Writable<'a> {
    /// Connections that wait for memory held by others, in FIFO order.
    blocked: SlotQueue<'a>,
    /// Connections that have enough memory now.
    writable: SlotQueue<'a>,
    /// The number of blocked connections not yet examined in this round.
    unexamined: usize,
    /// The number of free shared blocks not yet assigned to a connection in this round.
    left: usize,
    /// The number of free shared blocks from which another round can succeed.
    needed: usize,
}

impl<'a> Writable<'a> {
    pub(crate) const fn new(blocked: SlotQueue<'a>, writable: SlotQueue<'a>) -> Self {
        Self { blocked, writable, unexamined: 0, left: 0, needed: usize::MAX }
    }

    /// Returns true if blocked connections remain to be examined in this round.
    pub(crate) const fn is_unfinished(&self) -> bool {
        SEVERAL && self.unexamined > 0
    }

    /// Called when a connection has refused a message for lack of memory.
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

    /// Queues a connection as writable after a change, if it refused a message that fits now.
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
        self.list_writable(slot, at);
    }

    /// Queues a connection as writable, at most once.
    fn list_writable<C>(&mut self, slot: &mut Slot<C>, at: u16) {
        if !core::mem::replace(&mut slot.in_writable, true) {
            self.writable.push(at);
        }
    }

    /// Removes the next writable connection from the queue and returns its slot.
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

    /// Examines some of the blocked connections, if enough memory is free for at least one.
    fn examine<C: Default + Occupant>(&mut self, connections: &mut ConnectionTable<'_, C>, shares: &Shares) {
        self.begin_round(shares);
        let mut left = shares.bounded(self.left);
        for _ in 0..AT_A_TIME.min(self.unexamined) {
            self.unexamined -= 1;
            let Some(at) = self.blocked.front() else { return };
            self.blocked.pop();
            let Some(slot) = connections.slot_mut(at) else { return };
            let (mut share, wanted) = (*slot.connection.send_share(), slot.wanted as usize);
            // Charge the blocks for each queued connection, so that no two connections are queued for the same blocks.
            if wanted > 0 && left.charge(&mut share, wanted, Purpose::Send).is_err() {
                self.needed = self.needed.min(left.needed(&share, wanted));
                self.blocked.push(at);
                continue;
            }
            slot.in_blocked = false;
            if core::mem::take(&mut slot.wanted) > 0 {
                self.list_writable(slot, at);
            }
        }
        self.left = left.free();
        // A writable connection may not use its blocks; the next round offers them to others.
        self.begin_round(shares);
    }

    /// Starts a round over all blocked connections, if there may be enough memory for one.
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
mod tests;
