//! The tables of a peer, their sizes forgotten.

use core::net::SocketAddr;

use super::incoming::Incoming;
use super::types::ConnectionId;
use crate::storage::{Deadlines, Index, Pool, SlotIndex, SlotQueue, Slots};

/// A place for one connection, and what the peer keeps of it beside the protocol.
#[derive(Debug)]
pub(crate) struct Slot<C> {
    /// Where the other peer is; none while the slot is vacant.
    pub(crate) remote: Option<SocketAddr>,
    /// Tells this user of the slot from those before; none has the last number there is.
    pub(crate) generation: u32,
    /// Whether the slot stands in the queue of those that may have something to send.
    pub(crate) in_ready: bool,
    /// Whether the slot stands in the queue of those that have events.
    pub(crate) in_readable: bool,
    /// How the connection counts among the incoming ones.
    pub(crate) incoming: Incoming,
    /// Whether the addresses lead here. Another connection with the same address may have taken the place.
    pub(crate) is_attached: bool,
    /// Whether the application takes no events for now.
    pub(crate) is_paused: bool,
    /// Whether the slot stands in the queue of those that wait for room of others.
    pub(crate) in_blocked: bool,
    /// Whether the slot stands in the queue of those that have room again.
    pub(crate) in_writable: bool,
    /// The blocks of the smallest message that was refused since the connection had room; 0 if none was.
    pub(crate) wanted: u32,
    pub(crate) connection: C,
}

impl<C: Default> Default for Slot<C> {
    /// A vacant slot. Out of line: it is made rarely and takes much code.
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
    pub(crate) fn vacate(&mut self) {
        let Self { generation, in_blocked, in_writable, .. } = *self;
        *self = Self { generation, in_blocked, in_writable, ..Self::default() };
    }
}

impl<C> Slot<C> {
    pub(crate) const fn is_vacant(&self) -> bool {
        self.remote.is_none()
    }

    /// Whether this is the connection with the peer at `address`.
    pub(crate) fn is_at(&self, address: &SocketAddr) -> bool {
        self.is_attached && self.remote.as_ref() == Some(address)
    }

    /// Whether this is the connection that `id`, which names this slot, means.
    pub(crate) const fn is(&self, id: ConnectionId) -> bool {
        self.generation == id.generation && !self.is_vacant()
    }
}

/// All tables of a peer.
#[derive(Debug)]
pub(crate) struct Tables<'a, C, H> {
    pub(crate) slots: Slots<'a, Slot<C>>,
    pub(crate) addresses: SlotIndex<'a>,
    pub(crate) deadlines: Deadlines<'a>,
    /// Connections that may have something to send.
    pub(crate) ready: SlotQueue<'a>,
    /// Connections that have events.
    pub(crate) readable: SlotQueue<'a>,
    /// Connections that refused a message for which others may make room, in the order in which they get it.
    pub(crate) blocked: SlotQueue<'a>,
    /// Connections that refused a message and have room for it now.
    pub(crate) writable: SlotQueue<'a>,
    /// Slots without a connection, but for those whose names are used up. The one that has been vacant longest is taken
    /// next.
    pub(crate) vacant: SlotQueue<'a>,
    pub(crate) pool: Pool<'a, H>,
    pub(crate) index: Index<'a>,
}
