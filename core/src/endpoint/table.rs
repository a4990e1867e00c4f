//! The connection table: connections by address, the queues of those with something to send and of those with events, and
//! the places of clients, which the peers of one server give out together.

use core::net::{IpAddr, SocketAddr};

use super::incoming::{ClientLimits, Incoming, IncomingCounts, Origin, Rejection, Request};
use super::protocol::{Connection, Context, Peer, Protocol, State};
use super::tables::Slot;
use super::types::{ConnectionId, PartitionError};
use crate::rate_limit::{Allowance, Rates};
use crate::storage::{AddressKey, SlotQueue};
use crate::time::Instant;

impl<'a, P: Protocol> Peer<'a, P> {
    pub(crate) fn slot(&self, slot: u16) -> Option<&Slot<P::Connection>> {
        self.tables.slots.get(usize::from(slot))
    }

    pub(crate) fn slot_mut(&mut self, slot: u16) -> Option<&mut Slot<P::Connection>> {
        self.tables.slots.get_mut(usize::from(slot))
    }

    /// Every slot with a connection.
    pub(crate) fn occupied(&self) -> impl Iterator<Item = (u16, &Slot<P::Connection>)> {
        (0..).zip(&*self.tables.slots).filter(|(_, slot)| !slot.is_vacant())
    }

    pub(crate) fn id(&self, slot: u16) -> ConnectionId {
        ConnectionId { slot, generation: self.slot(slot).map_or(0, |slot| slot.generation) }
    }

    pub(crate) fn get(&self, id: ConnectionId) -> Option<&Slot<P::Connection>> {
        self.slot(id.slot).filter(|slot| slot.is(id))
    }

    /// The slot of the connection with `address`, which is often that of the last datagram.
    pub(crate) fn find(&mut self, address: &SocketAddr) -> Option<u16> {
        if self.slot(self.last_slot).is_some_and(|last| last.is_at(address)) {
            return Some(self.last_slot);
        }
        let slot = self.slot_at(address)?;
        self.last_slot = slot;
        Some(slot)
    }

    /// As [`find`](Self::find), but a connection that has ended makes way for a new one.
    pub(crate) fn find_or_evict(&mut self, address: &SocketAddr) -> Option<u16> {
        let slot = self.find(address)?;
        if self.evict_if_over(slot) { None } else { Some(slot) }
    }

    /// Takes a connection that has ended out of the indices; false if it has not.
    pub(crate) fn evict_if_over(&mut self, at: u16) -> bool {
        let Some(slot) = self.tables.slots.get_mut(usize::from(at)) else { return false };
        let is_over = slot.connection.is_over();
        if let (true, Some(remote)) = (is_over, slot.remote) {
            slot.is_attached = false;
            self.tables.addresses.remove(&AddressKey(remote), at);
            self.state.on_identity(at, Some(slot.connection.identity()), None);
        }
        is_over
    }

    pub(crate) fn slot_at(&self, address: &SocketAddr) -> Option<u16> {
        let slots = &self.tables.slots;
        self.tables.addresses.find(&AddressKey(*address), |slot| {
            slots.get(usize::from(slot)).is_some_and(|slot| slot.is_at(address))
        })
    }

    /// A slot for a new connection; if need be, that of one that makes way.
    pub(crate) fn vacant_slot(&mut self) -> Option<u16> {
        if let Some(slot) = self.tables.vacant.pop() {
            return Some(slot);
        }
        let (at, _) = self.occupied().find(|(_, slot)| makes_way::<P>(slot))?;
        self.release(at);
        self.tables.vacant.pop()
    }

    /// Frees the slot of a connection that makes way; false if it does not, or not yet.
    pub(crate) fn release_if_it_makes_way(&mut self, at: u16) -> bool {
        let makes_way = self.slot(at).is_some_and(makes_way::<P>);
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
        if let Some(slot) = self.slot_mut(at) {
            slot.remote = Some(remote);
            // A slot whose names are used up is not vacant.
            slot.generation = slot.generation.saturating_add(1);
            slot.is_attached = true;
        }
        let Some((connection, mut cx)) = self.borrow(at) else { return Ok(()) };
        let begun = begin(connection, &mut cx);
        let identity = connection.identity();
        if begun.is_ok() {
            self.state.on_identity(at, None, Some(identity));
            self.tables.addresses.insert(&AddressKey(remote), at);
            self.list_changed(at, identity);
        } else {
            self.vacate(at);
        }
        begun
    }

    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) fn borrow(&mut self, slot: u16) -> Option<(&mut P::Connection, Context<'_, 'a, P>)> {
        let entry = self.tables.slots.get_mut(usize::from(slot))?;
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

    /// Changes a connection and lists it for what follows: datagrams to send, events to tell.
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
        let Some(slot) = self.tables.slots.get_mut(usize::from(at)) else { return };
        let identity = slot.connection.identity();
        list_ready(slot, at, &mut self.tables.ready);
        let before_change = list_events::<P>(slot, at, &mut self.tables.readable, &mut self.incoming);
        let is_blocked = slot.wanted > 0;
        if before != identity {
            self.state.on_identity(at, Some(before), Some(identity));
        }
        if is_blocked {
            self.list_writable(at);
        }
        self.share_change(at, before_change);
    }

    /// As [`with`](Self::with), for what changes neither who the other peer is nor what there is to tell.
    pub(crate) fn with_quietly<R>(
        &mut self,
        slot: u16,
        change: impl FnOnce(&mut P::Connection, &mut Context<'_, 'a, P>) -> R,
    ) -> Option<R> {
        let (connection, mut cx) = self.borrow(slot)?;
        let result = change(connection, &mut cx);
        let entry = self.tables.slots.get_mut(usize::from(slot))?;
        list_ready(entry, slot, &mut self.tables.ready);
        if entry.wanted > 0 {
            self.list_writable(slot);
        }
        Some(result)
    }

    /// Changes all connections, and has their deadlines computed again.
    pub(crate) fn with_all(&mut self, mut change: impl FnMut(&mut P::Connection, &mut Context<'_, 'a, P>)) {
        for at in (0..).take(self.tables.slots.len()) {
            if self.slot(at).is_some_and(|slot| !slot.is_vacant()) {
                self.with_quietly(at, &mut change);
            }
        }
    }

    /// Lists a connection that has events, and counts it while others opened it.
    pub(crate) fn list_events(&mut self, at: u16) {
        let Some(slot) = self.tables.slots.get_mut(usize::from(at)) else { return };
        let before_change = list_events::<P>(slot, at, &mut self.tables.readable, &mut self.incoming);
        self.share_change(at, before_change);
    }

    /// Takes the first connection out of the queue of those that have events; returns its slot.
    pub(crate) fn unlist_events(&mut self) -> Option<u16> {
        let at = self.tables.readable.front()?;
        self.tables.readable.pop();
        if let Some(slot) = self.slot_mut(at) {
            slot.in_readable = false;
        }
        Some(at)
    }

    /// Takes the deadline of a connection that has changed.
    pub(crate) fn update_deadline(&mut self, at: u16) {
        if let Some((connection, cx)) = self.borrow(at) {
            let deadline = connection.deadline(&cx);
            self.tables.deadlines.set(at, deadline);
        }
    }

    /// A connection has nothing to do until its deadline.
    pub(crate) fn park(&mut self, at: u16) {
        self.update_deadline(at);
        let now = self.last_now;
        let Some(slot) = self.tables.slots.get_mut(usize::from(at)) else { return };
        slot.in_ready = false;
        let before_change = list_events::<P>(slot, at, &mut self.tables.readable, &mut self.incoming);
        let is_done = is_done::<P>(slot, now);
        self.share_change(at, before_change);
        if is_done {
            self.release(at);
        }
    }

    /// Frees the slot of a connection that is over, once it stands in no queue.
    pub(crate) fn release_if_finished(&mut self, at: u16) {
        let now = self.last_now;
        if self.slot(at).is_some_and(|slot| is_done::<P>(slot, now)) {
            self.release(at);
        }
    }

    fn release(&mut self, at: u16) {
        let Some((connection, mut cx)) = self.borrow(at) else { return };
        connection.release(&mut cx);
        let Some(slot) = self.tables.slots.get_mut(usize::from(at)) else { return };
        self.state.on_identity(at, Some(slot.connection.identity()), None);
        if let Some(remote) = slot.remote {
            self.tables.addresses.remove(&AddressKey(remote), at);
        }
        self.tables.deadlines.set(at, None);
        self.vacate(at);
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
        let Some(ids) = u32::MAX.checked_div(of.into()).filter(|_| number < of) else {
            return Err(PartitionError::NoSuchPeer);
        };
        if self.tables.slots.iter().any(|slot| slot.generation != 0) {
            return Err(PartitionError::InUse);
        }
        let before_first = ids * u32::from(number);
        self.last_generation = before_first + ids;
        for slot in &mut *self.tables.slots {
            slot.generation = before_first;
        }
        Ok(())
    }

    /// Empties a slot, and lists it as vacant unless every name that a connection in it can have was used.
    fn vacate(&mut self, at: u16) {
        let last = self.last_generation;
        let Some(slot) = self.slot_mut(at) else { return };
        slot.vacate();
        if slot.generation < last {
            self.tables.vacant.push(at);
        }
    }
}

/// Lists a connection that may have something to send.
fn list_ready<C>(slot: &mut Slot<C>, at: u16, ready: &mut SlotQueue<'_>) {
    if !core::mem::replace(&mut slot.in_ready, true) {
        ready.push(at);
    }
}

/// Lists a connection that has events, and counts it while others opened it. Returns how it counted before, if that has
/// changed.
fn list_events<P: Protocol>(
    slot: &mut Slot<P::Connection>,
    at: u16,
    readable: &mut SlotQueue<'_>,
    incoming: &mut IncomingCounts,
) -> Option<Incoming> {
    let now = slot.connection.incoming();
    let before = core::mem::replace(&mut slot.incoming, now);
    let has_changed = before != now;
    if has_changed {
        incoming.change(before, now);
    }
    if !slot.in_readable && !slot.is_paused && slot.connection.has_events() {
        slot.in_readable = true;
        readable.push(at);
    }
    has_changed.then_some(before)
}

/// Whether a connection makes way for another one and stands in no queue.
fn makes_way<P: Protocol>(slot: &Slot<P::Connection>) -> bool {
    !slot.in_ready && !slot.in_readable && !slot.is_vacant() && slot.connection.makes_way()
}

/// Whether a connection is over and stands in no queue.
fn is_done<P: Protocol>(slot: &Slot<P::Connection>, now: Instant) -> bool {
    !slot.in_ready && !slot.in_readable && !slot.is_vacant() && slot.connection.is_finished(now)
}

impl<P: Protocol> Peer<'_, P> {
    /// Lets this peer decide together with others whom it lets in and whom it answers. To be called before there are
    /// connections.
    #[cfg(all(feature = "alloc", feature = "server"))]
    pub fn share_admission(&mut self, shared: alloc::boxed::Box<dyn super::admission::SharedAdmission>) {
        self.member = Some(super::admission::Member::new(shared));
    }

    /// Reserves a place among those of all peers for a client that is to get this slot.
    pub(crate) fn reserve(&self, slot: u16, request: &Request) -> Result<(), Rejection> {
        self.member.as_ref().map_or(Ok(()), |member| member.reserve(self.last_now, slot, request))
    }

    /// Whether a client with this identity is connected with any of the peers, as far as they decide together.
    pub(crate) fn is_known_to_others(&self, identity: u64) -> bool {
        self.member.as_ref().is_some_and(|member| member.knows(identity))
    }

    /// How many connections others have opened, at all peers.
    pub(crate) fn all_incoming(&self) -> usize {
        match &self.member {
            Some(member) => member.incoming(),
            None => self.incoming.all.into(),
        }
    }

    /// Whether all peers together have an answer left for a peer without a connection; nothing if this peer decides alone.
    pub(crate) fn admits_answer(&self, secret: &[u8; 16], rates: Rates, to: IpAddr) -> Option<bool> {
        self.member.as_ref().map(|member| member.admits_answer(secret, rates, self.last_now, to))
    }

    /// Whether one more client may come in without a proof of its address: by the ration of this peer, or by that of all
    /// peers if they decide together, and as long as fewer than the events of `allowance` are there now.
    pub(crate) fn has_unvalidated_left(&self, allowance: Allowance) -> bool {
        match &self.member {
            Some(member) => member.has_unvalidated_left(allowance, self.last_now),
            None => {
                let IncomingCounts { unvalidated, ration, .. } = &self.incoming;
                *unvalidated < allowance.events && ration.is_left(allowance, self.last_now)
            }
        }
    }

    /// Takes one client that comes in without a proof of its address from the ration of this peer, or from that of all peers.
    /// The ration gets back what is not filled up again when the address is validated.
    pub(crate) fn take_unvalidated(&mut self, allowance: Allowance) {
        match &self.member {
            Some(member) => member.take_unvalidated(allowance, self.last_now),
            None => {
                self.incoming.ration.take(allowance, self.last_now);
            }
        }
    }

    /// Tells the peers that decide together with this one how a connection counts now, if it counted like `before`; a peer
    /// that decides alone gives its ration back.
    pub(crate) fn share_change(&mut self, at: u16, before: Option<Incoming>) {
        if let Some(before) = before {
            self.share_change_of(at, before);
        }
    }

    #[cold]
    fn share_change_of(&mut self, at: u16, before: Incoming) {
        let Some(slot) = self.slot(at) else { return };
        let (after, since, now) = (slot.incoming, slot.connection.unvalidated_since(), self.last_now);
        match &self.member {
            Some(member) => member.change(at, (before, after), since, now),
            None if cfg!(feature = "server") && before.is_validated_by(after) => {
                self.incoming.ration.give_back(since, now);
            }
            None => {}
        }
    }

    /// Whether the limits let another client of this address in, as far as this peer knows of others. Connections whose
    /// address is not validated may be forged by anyone, so they keep out only clients whose address is not validated either.
    pub(crate) fn has_place_for(
        &mut self,
        address: IpAddr,
        limits: ClientLimits,
        is_validated: bool,
    ) -> bool {
        // As long as there are fewer clients in all, none of them has to be looked at.
        if self.incoming.all < limits.least() {
            return true;
        }
        let Some(origin) = Origin::of(address) else { return true };
        if self.incoming.is_crowded((origin, limits), is_validated) {
            return false;
        }
        let (mut of_address, mut of_network) = (0_u16, 0_u16);
        let keeps_out = |other: Incoming| other.is_counted() && !(is_validated && other.is_unvalidated());
        let incoming = self.occupied().filter(|(_, slot)| keeps_out(slot.incoming));
        let origins = incoming.filter_map(|(_, slot)| Origin::of(slot.remote?.ip()));
        for other in origins {
            of_address += u16::from(other.address == origin.address);
            of_network += u16::from(other.network == origin.network);
        }
        let has_place = of_address < limits.address && of_network < limits.network;
        if !has_place {
            self.incoming.note_crowded((origin, limits), is_validated);
        }
        has_place
    }
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::Peer;
    use crate::endpoint::{Capacity, ConnectError, PartitionError, Protocol};
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
        peer.slot_mut(0).expect("the only slot").generation = u32::MAX - 1;
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
            last = peer.last_generation;
            peer.slot_mut(0).expect("the only slot").generation = last - 1;
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
