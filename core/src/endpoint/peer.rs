//! The run loop of a peer: input of datagrams and timeouts, output of datagrams, and the life cycle of connections.

use core::net::SocketAddr;

use super::protocol::{Connection, Context, Peer, Protocol, State};
use super::tables::{Occupant, Slot, Tables, Wakeups};
use super::types::PeerStats;
use crate::machine::{Machine, Transmit};
use crate::time::Instant;

impl<P: Protocol> Peer<'_, P> {
    /// Handles a datagram received from `from` at `now`.
    ///
    /// It never fails: malformed datagrams are dropped and counted in [`stats`](Self::stats). Pass the time of
    /// receipt as `now`, even if you handle the datagram later.
    pub fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        self.advance(now);
        self.stats.on_received(datagram.len());
        P::route(self, from, datagram);
    }

    /// Reports that the operating system refused a datagram of `length` bytes as too large for the path (`EMSGSIZE`).
    ///
    /// The refused datagram is lost. In RakNet, a client that is connecting immediately probes the next smaller MTU. An
    /// open connection reduces its MTU below the size of the datagram (feature `full`).
    pub fn handle_too_large(&mut self, now: Instant, to: SocketAddr, length: usize) {
        self.advance(now);
        if let Some(slot) = self.tables.connections.find(&to) {
            self.with(slot, |connection, cx| connection.on_too_large(cx, length));
        }
    }

    /// Reports that the operating system or a router signalled the address `to` as unreachable.
    ///
    /// The cause is usually a closed port or a missing route. A connection attempt that has received no response fails
    /// with `Unreachable`. All other connections ignore the report, because ICMP messages are easily forged (RFC 5927
    /// section 4, RFC 8085 section 5.2).
    pub fn handle_unreachable(&mut self, now: Instant, to: SocketAddr) {
        self.advance(now);
        if let Some(slot) = self.tables.connections.find(&to) {
            self.with(slot, P::Connection::on_unreachable);
        }
    }

    /// Performs the work that is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        while let Some(slot) = self.tables.wakeups.take_due(self.last_now) {
            self.with(slot, P::Connection::handle_timeout);
        }
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) and [`poll_transmit`](Self::poll_transmit) next.
    ///
    /// A time in the past means immediately. `None` means that there is nothing to do until a datagram arrives or the
    /// application calls a method.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let Tables { wakeups, writable, .. } = &self.tables;
        if wakeups.is_any_ready() || !self.state.is_idle() || writable.is_unfinished() {
            return Some(self.last_now);
        }
        wakeups.next_deadline()
    }

    /// Advances the monotonic clock of the peer.
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) fn advance(&mut self, now: Instant) {
        self.last_now = self.last_now.max(now);
    }
}

impl<P: Protocol> Machine for Peer<'_, P> {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        Peer::handle_datagram(self, now, from, datagram);
    }

    fn handle_timeout(&mut self, now: Instant) {
        Peer::handle_timeout(self, now);
    }

    fn poll_transmit<'b>(&mut self, now: Instant, buffer: &'b mut [u8]) -> Option<Transmit<'b>> {
        Peer::poll_transmit(self, now, buffer)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Peer::poll_timeout(self)
    }
}

impl<P: Protocol> Peer<'_, P> {
    /// Writes the next datagram to send at `now` into `buffer`, or returns `None` if there is none.
    ///
    /// The buffer must have at least [`Protocol::MAX_DATAGRAM`] bytes.
    pub fn poll_transmit<'b>(&mut self, now: Instant, buffer: &'b mut [u8]) -> Option<Transmit<'b>> {
        self.advance(now);
        match P::poll_transmit(self, buffer) {
            Some((to, length)) => transmit::<P>(&mut self.stats, &to, length, buffer),
            None => {
                let (slot, length) = self.poll_connections(buffer)?;
                let to = &self.tables.connections.slot(slot)?.remote;
                transmit::<P>(&mut self.stats, to.as_ref()?, length, buffer)
            }
        }
    }

    /// Writes a datagram of the connection at the front of the send queue; returns its slot and the datagram's
    /// length.
    ///
    /// A protocol may allow a connection several datagrams in a row. The operating system can then send them in one
    /// call.
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn poll_connections(&mut self, buffer: &mut [u8]) -> Option<(u16, usize)> {
        while let Some(slot) = self.tables.wakeups.front() {
            let (connection, mut cx) = self.borrow(slot)?;
            let length = connection.poll_transmit(&mut cx, buffer);
            let Tables { connections, wakeups, writable, pool, .. } = &mut self.tables;
            if let Some(entry) = connections.slot_mut(slot) {
                writable.list(entry, slot, &pool.shares);
            }
            if let Some(length) = length {
                wakeups.on_composed(slot, P::BURST);
                return Some((slot, length));
            }
            wakeups.end_turn();
            self.park(slot);
        }
        None
    }
}

/// Counts a sent datagram.
fn transmit<'b, P: Protocol>(
    stats: &mut PeerStats<P::DropReason>,
    to: &SocketAddr,
    length: usize,
    buffer: &'b [u8],
) -> Option<Transmit<'b>> {
    stats.on_sent(length);
    Some(Transmit { to: *to, payload: buffer.get(..length)? })
}

impl<'a, P: Protocol> Peer<'a, P> {
    /// Returns the slot of the connection with `address`.
    ///
    /// A closed connection is evicted, so that a new one with this address can be opened.
    pub(crate) fn find_or_evict(&mut self, address: &SocketAddr) -> Option<u16> {
        let slot = self.tables.connections.find(address)?;
        if self.evict_if_over(slot) { None } else { Some(slot) }
    }

    /// Removes a closed connection from the indices; returns false if it has not closed.
    pub(crate) fn evict_if_over(&mut self, at: u16) -> bool {
        let Some(slot) = self.tables.connections.slot(at) else { return false };
        let is_over = slot.connection.is_over();
        if is_over {
            let identity = slot.connection.identity();
            self.tables.connections.unlist_address(at);
            self.state.on_identity(at, Some(identity), None);
        }
        is_over
    }

    /// Returns a slot for a new connection. If no slot is vacant, it evicts a connection that may be evicted.
    pub(crate) fn vacant_slot(&mut self) -> Option<u16> {
        if let Some(slot) = self.tables.connections.take_vacant() {
            return Some(slot);
        }
        let (at, _) = self.tables.connections.occupied().find(|(_, slot)| slot.is_evictable())?;
        self.release(at);
        self.tables.connections.take_vacant()
    }

    /// Evicts a connection and frees its slot; returns false if it must not be evicted.
    pub(crate) fn release_if_evictable(&mut self, at: u16) -> bool {
        let is_evictable = self.tables.connections.slot(at).is_some_and(Slot::is_evictable);
        if is_evictable {
            self.release(at);
        }
        is_evictable
    }

    /// Adds a new connection to the tables. If `begin`, which initializes it, fails, the slot stays vacant.
    pub(crate) fn insert<E>(
        &mut self,
        at: u16,
        remote: SocketAddr,
        begin: impl FnOnce(&mut P::Connection, &mut Context<'_, 'a, P>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.tables.connections.occupy(at, remote);
        let Some((connection, mut cx)) = self.borrow(at) else { return Ok(()) };
        let begun = begin(connection, &mut cx);
        let identity = connection.identity();
        if begun.is_ok() {
            self.state.on_identity(at, None, Some(identity));
            self.tables.connections.list_address(at, remote);
            self.list_changed(at, identity);
        } else {
            self.tables.connections.vacate(at);
        }
        begun
    }

    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) fn borrow(&mut self, slot: u16) -> Option<(&mut P::Connection, Context<'_, 'a, P>)> {
        let entry = self.tables.connections.slot_mut(slot)?;
        let cx = Context {
            now: self.last_now,
            slot,
            generation: entry.generation,
            remote: &entry.remote,
            config: &self.config,
            pool: &mut self.tables.pool,
            index: &mut self.tables.index,
            stats: &mut self.stats,
            state: &mut self.state,
        };
        Some((&mut entry.connection, cx))
    }

    /// Calls `change` on a connection, then updates the queues for its datagrams and events.
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) fn with<R>(
        &mut self,
        slot: u16,
        change: impl FnOnce(&mut P::Connection, &mut Context<'_, 'a, P>) -> R,
    ) -> Option<R> {
        let (connection, mut cx) = self.borrow(slot)?;
        let before = connection.identity();
        let result = change(connection, &mut cx);
        self.list_changed(slot, before);
        Some(result)
    }

    /// Updates all queues after a connection changed; its remote identity was `before`.
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn list_changed(&mut self, at: u16, before: P::Identity) {
        let Some(slot) = self.tables.connections.slot_mut(at) else { return };
        let identity = slot.connection.identity();
        self.tables.wakeups.list(slot, at);
        self.admission.recount(slot, at, self.last_now);
        self.tables.events.list(slot, at);
        self.tables.writable.list(slot, at, &self.tables.pool.shares);
        if before != identity {
            self.state.on_identity(at, Some(before), Some(identity));
        }
    }

    /// Calls `change` like [`with`](Self::with). Precondition: `change` leaves the remote identity and the events
    /// unchanged.
    pub(crate) fn with_quietly<R>(
        &mut self,
        slot: u16,
        change: impl FnOnce(&mut P::Connection, &mut Context<'_, 'a, P>) -> R,
    ) -> Option<R> {
        let (connection, mut cx) = self.borrow(slot)?;
        let result = change(connection, &mut cx);
        let entry = self.tables.connections.slot_mut(slot)?;
        self.tables.wakeups.list(entry, slot);
        self.tables.writable.list(entry, slot, &self.tables.pool.shares);
        Some(result)
    }

    /// Calls `change` on all connections and recomputes their deadlines.
    pub(crate) fn with_all(&mut self, mut change: impl FnMut(&mut P::Connection, &mut Context<'_, 'a, P>)) {
        let mut at = 0;
        while let Some(slot) = self.tables.connections.slot(at) {
            if !slot.is_vacant() {
                self.with_quietly(at, &mut change);
            }
            // Cannot saturate: the number of slots fits in a `u16`.
            at = at.saturating_add(1);
        }
    }

    /// Queues a connection that has events, and updates the counts of incoming connections.
    pub(crate) fn list_events(&mut self, at: u16) {
        let Some(slot) = self.tables.connections.slot_mut(at) else { return };
        self.admission.recount(slot, at, self.last_now);
        self.tables.events.list(slot, at);
    }

    /// Updates the deadline of a connection that has changed.
    pub(crate) fn update_deadline(&mut self, at: u16) {
        if let Some((connection, cx)) = self.borrow(at) {
            let deadline = connection.deadline(&cx);
            self.tables.wakeups.set_deadline(at, deadline);
        }
    }

    /// Removes a connection that has nothing to send from the send queue until its deadline.
    pub(crate) fn park(&mut self, at: u16) {
        self.update_deadline(at);
        let Some(slot) = self.tables.connections.slot_mut(at) else { return };
        Wakeups::unlist(slot);
        self.admission.recount(slot, at, self.last_now);
        self.tables.events.list(slot, at);
        if slot.is_done(self.last_now) {
            self.release(at);
        }
    }

    /// Frees the slot of a finished connection once it is in no queue.
    pub(crate) fn release_if_finished(&mut self, at: u16) {
        if self.tables.connections.slot(at).is_some_and(|slot| slot.is_done(self.last_now)) {
            self.release(at);
        }
    }

    fn release(&mut self, at: u16) {
        let Some((connection, mut cx)) = self.borrow(at) else { return };
        connection.release(&mut cx);
        let identity = connection.identity();
        self.state.on_identity(at, Some(identity), None);
        self.tables.connections.unlist_address(at);
        self.tables.wakeups.set_deadline(at, None);
        self.tables.connections.vacate(at);
    }
}
