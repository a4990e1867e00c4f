//! The tables of a peer, independent of their sizes: its connections and the queues that list them.
//!
//! Each queue owns its methods and depends on neither a protocol nor the other queues; [`Peer`](super::Peer) keeps them
//! consistent.

use super::connection_table::{ConnectionTable, Occupant, Slot};
use super::types::ConnectionId;
use crate::storage::{Block, Deadlines, Index, Pool, Purpose, SEVERAL, Shares, SlotQueue};
use crate::time::Instant;

/// The connections that may have something to send, and the deadlines of all others.
#[derive(Debug)]
pub(crate) struct Wakeups<'a> {
    ready: SlotQueue<'a>,
    deadlines: Deadlines<'a>,
    /// The number of consecutive datagrams of the connection at the front of the queue.
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

    /// Returns the connection that has its turn to send.
    pub(crate) fn front(&self) -> Option<u16> {
        self.ready.front()
    }

    /// Counts a datagram of the connection in `at`, which has its turn.
    ///
    /// The turn ends after `burst` datagrams.
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

    /// Marks a connection as no longer queued after its turn has ended.
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

/// The data that the last event borrows. It is released before the next event.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EventData {
    Nothing,
    Message {
        message: Block,
        id: ConnectionId,
    },
    /// The data of the first message of a peer without a connection.
    Unconnected(Block),
    /// The data of a message that a hook has injected.
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

    /// Records the data that an event borrows.
    pub(crate) const fn set_data(&mut self, data: EventData) {
        self.data = data;
    }

    pub(crate) const fn data(&self) -> EventData {
        self.data
    }

    /// Removes the data that the last event borrowed, to release it.
    #[cfg_attr(target_pointer_width = "64", inline)]
    pub(crate) const fn take_data(&mut self) -> EventData {
        core::mem::replace(&mut self.data, EventData::Nothing)
    }
}

/// The most blocked connections examined by each poll for a writable one.
const AT_A_TIME: usize = 16;

/// The connections that refused a message, and those of them that have room for it now.
#[derive(Debug)]
pub(crate) struct Writable<'a> {
    /// Connections for which others may make room, in the order in which they get it.
    blocked: SlotQueue<'a>,
    /// Connections that have room.
    writable: SlotQueue<'a>,
    /// The number of blocked ones that have not been examined in this round.
    unexamined: usize,
    /// Blocks of the common part that may be assigned in this round.
    left: usize,
    /// Blocks of the common part that must be free for the next round to be worthwhile.
    needed: usize,
}

impl<'a> Writable<'a> {
    pub(crate) const fn new(blocked: SlotQueue<'a>, writable: SlotQueue<'a>) -> Self {
        Self { blocked, writable, unexamined: 0, left: 0, needed: usize::MAX }
    }

    /// Returns true if there are blocked connections to examine.
    pub(crate) const fn is_unfinished(&self) -> bool {
        SEVERAL && self.unexamined > 0
    }

    /// Records that a connection has refused a message.
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
        self.list_writable(slot, at);
    }

    /// Lists a connection that has room, once.
    fn list_writable<C>(&mut self, slot: &mut Slot<C>, at: u16) {
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

    /// Examines some of the connections that wait for memory of others, if enough is free for one.
    fn examine<C: Default + Occupant>(&mut self, connections: &mut ConnectionTable<'_, C>, shares: &Shares) {
        self.begin_round(shares);
        let mut left = shares.bounded(self.left);
        for _ in 0..AT_A_TIME.min(self.unexamined) {
            self.unexamined -= 1;
            let Some(at) = self.blocked.front() else { return };
            self.blocked.pop();
            let Some(slot) = connections.slot_mut(at) else { return };
            let (mut share, wanted) = (*slot.connection.send_share(), slot.wanted as usize);
            // The room of each listed connection is charged here, so that not all are listed for the same blocks.
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
        // Listed connections need not use their room, in which case it is available to others.
        self.begin_round(shares);
    }

    /// Begins to examine all connections that wait for memory held by others, if there may be enough for one.
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
    use alloc::collections::VecDeque;
    use alloc::vec::Vec;
    use core::time::Duration;

    use super::*;
    use crate::endpoint::ConnectionState;
    use crate::endpoint::incoming::Incoming;
    use crate::storage::{Share, Slots};

    /// An open connection, with or without events.
    #[derive(Debug, Default)]
    struct Open {
        has_events: bool,
        share: Share,
    }

    impl Occupant for Open {
        fn state(&self) -> ConnectionState {
            ConnectionState::Connected
        }

        fn has_events(&self) -> bool {
            self.has_events
        }

        fn send_share(&self) -> &Share {
            &self.share
        }

        fn is_over(&self) -> bool {
            false
        }

        fn is_finished(&self, _now: Instant) -> bool {
            false
        }

        fn is_lingering(&self) -> bool {
            false
        }

        fn incoming(&self) -> Incoming {
            Incoming::NO
        }
    }

    fn queue() -> SlotQueue<'static> {
        SlotQueue::Owned(VecDeque::with_capacity(2))
    }

    #[test]
    fn connections_take_turns_of_a_burst_and_are_queued_once() {
        let mut wakeups = Wakeups::new(queue(), Deadlines::new(Slots::owned(2)));
        let mut slots: [Slot<Open>; 2] = Default::default();
        for _ in 0..2 {
            for (at, slot) in (0..).zip(&mut slots) {
                wakeups.list(slot, at);
            }
        }
        let turns = core::iter::repeat_with(|| {
            let at = wakeups.front().expect("a connection");
            wakeups.on_composed(at, 2);
            at
        });
        assert_eq!(turns.take(6).collect::<Vec<_>>(), [0, 0, 1, 1, 0, 0]);
    }

    #[test]
    fn only_expired_deadlines_are_taken() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut wakeups = Wakeups::new(queue(), Deadlines::new(Slots::owned(2)));
        wakeups.set_deadline(0, Some(at(5)));
        wakeups.set_deadline(1, Some(at(3)));
        assert_eq!([wakeups.take_due(at(4)), wakeups.take_due(at(4))], [Some(1), None]);
        assert_eq!(wakeups.next_deadline(), Some(at(5)));
    }

    #[test]
    fn a_paused_connection_is_not_listed_for_its_events() {
        let mut events = EventQueue::new(queue());
        let mut slot = Slot {
            is_paused: true,
            connection: Open { has_events: true, ..Open::default() },
            ..Slot::default()
        };
        events.list(&mut slot, 0);
        assert_eq!(events.front(), None);
        slot.is_paused = false;
        events.list(&mut slot, 0);
        assert_eq!(events.front(), Some(0));
    }
}
