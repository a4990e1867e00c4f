//! The tables of a peer: who is where, who has something to send, who has news.

use core::net::SocketAddr;

use super::Peer;
use crate::game_protocol::connection::{Connection, Context};
use crate::game_protocol::event::ConnectionId;
use crate::storage::AddressKey;

impl<'a> Peer<'a> {
    pub(super) fn id(&self, slot: u16) -> ConnectionId {
        let connection = self.tables.connections.get(usize::from(slot));
        ConnectionId { slot, generation: connection.map_or(0, |connection| connection.generation) }
    }

    pub(super) fn get(&self, id: ConnectionId) -> Option<&Connection> {
        let connection = self.tables.connections.get(usize::from(id.slot))?;
        (connection.generation == id.generation && !connection.is_free()).then_some(connection)
    }

    pub(super) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let connection = self.tables.connections.get_mut(usize::from(id.slot))?;
        (connection.generation == id.generation && !connection.is_free()).then_some(connection)
    }

    /// The slot of the connection with `address`, which is often that of the last datagram.
    pub(super) fn find(&mut self, address: &SocketAddr) -> Option<u16> {
        let last = self.tables.connections.get(usize::from(self.last_slot));
        if last.is_some_and(|last| last.is_at(address)) {
            return Some(self.last_slot);
        }
        let slot = self.slot_at(address)?;
        self.last_slot = slot;
        Some(slot)
    }

    /// As [`find`](Self::find), but a connection that has ended makes way for a new one.
    pub(super) fn find_living(&mut self, address: &SocketAddr) -> Option<u16> {
        let slot = self.find(address)?;
        if self.make_way(slot) { None } else { Some(slot) }
    }

    /// Takes a connection that has ended out of the tables; false if it has not.
    fn make_way(&mut self, slot: u16) -> bool {
        let Some(connection) = self.tables.connections.get_mut(usize::from(slot)) else { return false };
        let is_over = connection.is_over();
        if let (true, Some(remote)) = (is_over, connection.remote()) {
            self.tables.addresses.remove(&AddressKey(remote), slot);
            connection.detach();
        }
        is_over
    }

    pub(super) fn slot_at(&self, address: &SocketAddr) -> Option<u16> {
        let connections = &self.tables.connections;
        self.tables.addresses.find(&AddressKey(*address), |slot| {
            connections.get(usize::from(slot)).is_some_and(|connection| connection.is_at(address))
        })
    }

    /// A slot for a new connection; if need be, that of one that only lingers.
    pub(super) fn vacant_slot(&mut self) -> Option<u16> {
        if let Some(slot) = self.tables.vacant.pop() {
            return Some(slot);
        }
        let mut lingering = (0..).zip(&*self.tables.connections);
        let is_idle =
            |connection: &Connection| !connection.ready && !connection.noticed && connection.can_make_room();
        let (slot, _) = lingering.find(|(_, connection)| is_idle(connection))?;
        self.release(slot);
        self.tables.vacant.pop()
    }

    /// Enters a connection that was just made into the tables.
    pub(super) fn settle_in(&mut self, slot: u16, address: SocketAddr) {
        self.tables.addresses.insert(&AddressKey(address), slot);
        let first = self.first_sequence;
        if let Some(connection) = self.tables.connections.get_mut(usize::from(slot)) {
            connection.start_sequences_at(first);
        }
    }

    pub(super) fn borrow(&mut self, slot: u16) -> Option<(&mut Connection, Context<'_, 'a>)> {
        let connection = self.tables.connections.get_mut(usize::from(slot))?;
        let quota = self.tables.pool.share(self.config.connection_blocks);
        let cx = Context {
            now: self.last_now,
            slot,
            config: &self.config,
            pool: &mut self.tables.pool,
            index: &mut self.tables.index,
            acknowledgements: &mut self.tables.acknowledgements,
            stats: &mut self.stats,
            send_quota: quota,
            receive_quota: quota,
        };
        Some((connection, cx))
    }

    /// Changes a connection and lists it for what follows: datagrams to send, events to tell.
    pub(super) fn with<R>(
        &mut self,
        slot: u16,
        change: impl FnOnce(&mut Connection, &mut Context<'_, 'a>) -> R,
    ) -> Option<R> {
        let (connection, mut cx) = self.borrow(slot)?;
        let result = change(connection, &mut cx);
        let listed = core::mem::replace(&mut connection.ready, true);
        if !listed {
            self.tables.ready.push(slot);
        }
        self.notice(slot);
        Some(result)
    }

    /// Lists a connection that has news, and counts it while others opened it.
    pub(super) fn notice(&mut self, slot: u16) {
        let Some(connection) = self.tables.connections.get_mut(usize::from(slot)) else {
            return;
        };
        let incoming = connection.is_incoming();
        match (core::mem::replace(&mut connection.counted, incoming), incoming) {
            (false, true) => self.incoming += 1,
            (true, false) => self.incoming = self.incoming.saturating_sub(1),
            (true, true) | (false, false) => {}
        }
        if connection.has_news() && !connection.noticed {
            connection.noticed = true;
            self.tables.noticed.push(slot);
        }
    }

    /// Frees the slot of a connection that is over, once it stands in no queue.
    pub(super) fn release_if_finished(&mut self, slot: u16) {
        let now = self.last_now;
        let Some(connection) = self.tables.connections.get(usize::from(slot)) else { return };
        let listed = connection.ready || connection.noticed;
        if !listed && !connection.is_free() && connection.is_finished(now) {
            self.release(slot);
        }
    }

    fn release(&mut self, slot: u16) {
        let Some((connection, mut cx)) = self.borrow(slot) else { return };
        let remote = connection.remote();
        connection.release(&mut cx);
        if let Some(remote) = remote {
            self.tables.addresses.remove(&AddressKey(remote), slot);
        }
        self.tables.vacant.push(slot);
        self.tables.deadlines.set(slot, None);
    }
}
