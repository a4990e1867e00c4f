//! A peer's connections: how they begin, change and end, so that every table lists them as they are.

use core::net::SocketAddr;

use super::protocol::{Connection, Context, Peer, Protocol, State};
use super::tables::{Occupant, Slot, Wakeups};
use super::types::PartitionError;

impl<'a, P: Protocol> Peer<'a, P> {
    /// The slot of the connection with `address`; a connection that has ended makes way for a new one.
    pub(crate) fn find_or_evict(&mut self, address: &SocketAddr) -> Option<u16> {
        let slot = self.tables.connections.find(address)?;
        if self.evict_if_over(slot) { None } else { Some(slot) }
    }

    /// Takes a connection that has ended out of the indices; false if it has not.
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

    /// A slot for a new connection; if need be, that of one that makes way.
    pub(crate) fn vacant_slot(&mut self) -> Option<u16> {
        if let Some(slot) = self.tables.connections.take_vacant() {
            return Some(slot);
        }
        let (at, _) = self.tables.connections.occupied().find(|(_, slot)| slot.makes_way())?;
        self.release(at);
        self.tables.connections.take_vacant()
    }

    /// Frees the slot of a connection that makes way; false if it does not, or not yet.
    pub(crate) fn release_if_it_makes_way(&mut self, at: u16) -> bool {
        let makes_way = self.tables.connections.slot(at).is_some_and(Slot::makes_way);
        if makes_way {
            self.release(at);
        }
        makes_way
    }

    /// Enters a new connection into the tables. `begin` sets it up; if that fails the slot stays vacant.
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

    /// Changes a connection and lists it for its datagrams and events.
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

    /// Lists a connection that was with `before` until it changed.
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

    /// As [`with`](Self::with), for what changes neither the identity of the other peer nor the events.
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

    /// Changes all connections, and has their deadlines computed again.
    pub(crate) fn with_all(&mut self, mut change: impl FnMut(&mut P::Connection, &mut Context<'_, 'a, P>)) {
        let mut at = 0;
        while let Some(slot) = self.tables.connections.slot(at) {
            if !slot.is_vacant() {
                self.with_quietly(at, &mut change);
            }
            // There are never as many slots as a slot's number has values.
            at = at.saturating_add(1);
        }
    }

    /// Lists a connection that has events, and counts it while others opened it.
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

    /// Parks a connection that has nothing to do until its deadline.
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

    /// Frees the slot of a connection that is over, once it stands in no queue.
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

    /// Makes this peer the one with `number`, from 0, among `of` peers of one server: no two of them have connections of the same
    /// id. To be called before there are connections. A slot then has so many ids fewer: 2^32 divided by `of`.
    ///
    /// # Errors
    ///
    /// [`PartitionError`], and nothing has changed, if `number` is none of `of` peers, or an id was given to a connection already.
    ///
    /// ```
    /// use rakwire::Instant;
    /// use rakwire::raknet::{Capacity, Config, Peer};
    ///
    /// let mut peers = [0, 1].map(|_| Peer::with_capacity(Capacity::default(), Config::new([7; 32])));
    /// for (peer, number) in peers.iter_mut().zip(0..) {
    ///     peer.partition_ids(number, 2)?;
    /// }
    /// let [first, second] = peers.map(|mut peer| peer.connect(Instant::ZERO, ([192, 0, 2, 1], 19132).into()));
    /// assert_ne!(first?, second?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn partition_ids(&mut self, number: u16, of: u16) -> Result<(), PartitionError> {
        self.tables.connections.partition_ids(number, of)
    }

    /// Lets this peer decide together with others which clients it lets in and which it answers. To be called before there are
    /// connections.
    #[cfg(all(feature = "alloc", feature = "server"))]
    pub fn share_admission(&mut self, shared: alloc::boxed::Box<dyn super::admission::SharedAdmission>) {
        self.admission.share(shared);
    }
}
