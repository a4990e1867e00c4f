//! Polling of events of all connections or of a single connection, and of connections that can send again.

use super::event::{Event, Message};
use super::hook::{Hook, Injected, Verdict};
use super::protocol::{
    Connection, ConnectionEvent, Ending, Peer, Protocol, State, Unconnected, UnconnectedEvents,
    UnconnectedKind,
};
use super::tables::{EventData, Occupant, Tables};
use super::types::ConnectionId;

impl<P: Protocol> Peer<'_, P> {
    /// Returns the next event, or `None` if there is none.
    ///
    /// It borrows its data until the next call that changes this peer.
    ///
    /// To read one connection at a time instead, use [`poll_unconnected`](Self::poll_unconnected),
    /// [`poll_readable`](Self::poll_readable) and [`poll_event_of`](Self::poll_event_of). Together they return all
    /// events that `poll_event` would return.
    pub fn poll_event(&mut self) -> Option<Event<'_, P>> {
        self.release_event_data();
        let next = self.next()?;
        next.event(self)
    }

    /// Returns the first event from `next` that the hook passes; events before it are dropped.
    ///
    /// Before each event, the hook may inject a message, for example to replace an event that it dropped. If `of` is
    /// set, the message must be for that connection.
    pub(super) fn poll_event_through<H: Hook<P>>(
        &mut self,
        hook: &mut H,
        of: Option<ConnectionId>,
        mut next: impl FnMut(&mut Self) -> Option<Next<P>>,
    ) -> Option<Event<'_, P>> {
        let now = self.last_now;
        loop {
            self.release_event_data();
            if let Some((id, delivery)) = self.lend_injected(hook, of) {
                return Some(Event::Message { id, delivery, message: self.event_data() });
            }
            let next = next(self)?;
            if next.event(self).is_some_and(|event| hook.on_event(now, &event) == Verdict::Pass) {
                return next.event(self);
            }
        }
    }

    /// Returns the first unconnected message of a `wanted` kind that the hook passes; messages before it are dropped.
    pub(super) fn poll_unconnected_through<H: Hook<P>>(
        &mut self,
        hook: &mut H,
        wanted: UnconnectedEvents,
    ) -> Option<Event<'_, P>> {
        let now = self.last_now;
        loop {
            self.release_event_data();
            let next = self.next_unconnected_of(wanted)?;
            if next.event(self).is_some_and(|event| hook.on_event(now, &event) == Verdict::Pass) {
                return next.event(self);
            }
        }
    }

    /// Takes a message from the hook, and stores its bytes until the next event is polled.
    ///
    /// A message for a connection that does not exist is dropped. A message for which no memory is free stays with
    /// the hook.
    fn lend_injected<H: Hook<P>>(
        &mut self,
        hook: &mut H,
        of: Option<ConnectionId>,
    ) -> Option<(ConnectionId, P::Delivery)> {
        loop {
            let (mut found, mut is_dropped) = (None, false);
            hook.inject(of, &mut |Injected { id, delivery, message }| {
                is_dropped = message.is_empty() || self.tables.connections.get(id).is_none();
                if is_dropped {
                    return true;
                }
                let header = P::BlockHeader::default();
                let Some(block) = self.tables.pool.store_common(message, &header) else { return false };
                self.tables.events.set_data(EventData::Injected(block));
                found = Some((id, delivery));
                true
            });
            if !is_dropped {
                return found;
            }
        }
    }

    #[cfg_attr(target_pointer_width = "64", inline)]
    pub(super) fn next(&mut self) -> Option<Next<P>> {
        if let Some(next) = self.next_unconnected() {
            return Some(next);
        }
        while let Some(slot) = self.tables.events.front() {
            if let Some(next) = self.next_of(slot) {
                return Some(next);
            }
            self.tables.events.pop(&mut self.tables.connections);
            self.release_if_finished(slot);
        }
        None
    }

    fn next_unconnected(&mut self) -> Option<Next<P>> {
        self.tables.events.set_data(EventData::Unconnected(self.state.unconnected()?.data));
        Some(Next::Unconnected)
    }

    fn next_of(&mut self, at: u16) -> Option<Next<P>> {
        let slot = self.tables.connections.slot(at)?;
        if slot.is_vacant() || slot.is_paused || !slot.connection.has_events() {
            return None;
        }
        let (connection, mut cx) = self.borrow(at)?;
        let id = ConnectionId { slot: at, generation: cx.generation };
        let event = connection.poll_event(&mut cx)?;
        if let ConnectionEvent::Message(message) = event {
            self.tables.events.set_data(EventData::Message { message, id });
        }
        Some(Next::Of(id, event))
    }

    /// Returns a connection that may have events, to be read with [`poll_event_of`](Self::poll_event_of).
    ///
    /// Each connection is returned once until it has new events. With these two methods instead of
    /// [`poll_event`](Self::poll_event), a slow reader of one connection does not block others, and messages need not
    /// be copied.
    ///
    /// ```
    /// use rakwire::raknet::{Capacity, Config, Delivery, Event, Peer};
    /// use rakwire::sim::{Conditions, Pair};
    ///
    /// # let mut config = Config::new([1; 32]);
    /// # config.max_incoming = 1;
    /// # let server = Peer::with_capacity(Capacity::default(), config);
    /// # let client = Peer::with_capacity(Capacity::default(), Config::new([2; 32]));
    /// let mut pair = Pair::new(client, server, Conditions::default(), 7);
    /// let id = pair.a.connect(pair.now, pair.b_address)?;
    /// while !matches!(pair.a.poll_event(), Some(Event::Connected { .. })) {
    ///     assert!(pair.step());
    /// }
    /// pair.a.send(pair.now, id, b"\xFEhello", Delivery::RELIABLE)?;
    /// let mut messages = 0;
    /// while messages == 0 {
    ///     assert!(pair.step());
    ///     while let Some(id) = pair.b.poll_readable() {
    ///         while let Some(event) = pair.b.poll_event_of(id) {
    ///             messages += usize::from(matches!(event, Event::Message { .. }));
    ///         }
    ///     }
    /// }
    /// assert_eq!((messages, pair.b.poll_readable()), (1, None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn poll_readable(&mut self) -> Option<ConnectionId> {
        while let Some(at) = self.tables.events.pop(&mut self.tables.connections) {
            if self
                .tables
                .connections
                .slot(at)
                .is_some_and(|slot| !slot.is_paused && slot.connection.has_events())
            {
                return Some(self.tables.connections.id(at));
            }
            self.release_if_finished(at);
        }
        None
    }

    /// Returns the next event of one connection, or `None` if it has none.
    ///
    /// The call releases the data of the previous event, like [`poll_event`](Self::poll_event).
    pub fn poll_event_of(&mut self, id: ConnectionId) -> Option<Event<'_, P>> {
        self.release_event_data();
        let next = self.next_of_id(id)?;
        next.event(self)
    }

    pub(super) fn next_of_id(&mut self, id: ConnectionId) -> Option<Next<P>> {
        self.tables.connections.get(id)?;
        let next = self.next_of(id.slot);
        if next.is_none() {
            self.release_if_finished(id.slot);
        }
        next
    }

    /// Returns the next `wanted` event of an unconnected peer, or `None` if there is none; RakNet only.
    ///
    /// Other events remain queued. The call releases the data of the previous event, like
    /// [`poll_event`](Self::poll_event).
    pub fn poll_unconnected(&mut self, wanted: UnconnectedEvents) -> Option<Event<'_, P>> {
        self.release_event_data();
        let next = self.next_unconnected_of(wanted)?;
        next.event(self)
    }

    /// Returns the first unconnected message of a `wanted` kind.
    fn next_unconnected_of(&mut self, wanted: UnconnectedEvents) -> Option<Next<P>> {
        if self.state.bring_forward(wanted) { self.next_unconnected() } else { None }
    }

    /// Releases the data of the last event early.
    ///
    /// The memory is free immediately, before the next event is polled. [`Message`](super::Message) has an example.
    #[cfg_attr(target_pointer_width = "64", inline)]
    pub fn release_event_data(&mut self) {
        match self.tables.events.take_data() {
            EventData::Nothing => {}
            EventData::Unconnected(_) => {
                if let Some(unconnected) = self.state.pop_unconnected() {
                    self.tables.pool.free_common(unconnected.data);
                }
            }
            EventData::Injected(message) => self.tables.pool.free_common(message),
            EventData::Message { message, id } => {
                let is_receipt = P::delivery(self.tables.pool.header(message)).is_err();
                let blocks = self.tables.pool.free(message);
                let Some((connection, mut cx)) = self.borrow(id.slot) else { return };
                if cx.generation != id.generation || cx.remote.is_none() {
                    return;
                }
                if is_receipt {
                    connection.on_receipt_read(&mut cx, blocks);
                } else if connection.on_read(&mut cx, blocks) {
                    self.with(id.slot, P::Connection::resume_deferred);
                }
            }
        }
    }

    /// Returns the data of the last event: the message of a connection or of an unconnected peer.
    ///
    /// It stays valid until the next event is polled or the data is [released](Self::release_event_data). It is empty
    /// if the last event had no data.
    #[must_use]
    pub const fn event_data(&self) -> Message<'_, P> {
        match self.tables.events.data().block() {
            None => Message::empty(&self.tables.pool),
            Some(message) => Message::new(&self.tables.pool, message),
        }
    }

    /// Takes the data of the last event as a vector; see [`event_data`](Self::event_data).
    ///
    /// A large RakNet message was reassembled in the returned vector, so it is not copied. All other data is copied.
    ///
    /// ```
    /// use rakwire::endpoint::{Event, Peer, Protocol};
    ///
    /// /// Returns the next message that arrived.
    /// fn next_message<P: Protocol>(peer: &mut Peer<'_, P>) -> Option<Vec<u8>> {
    ///     while let Some(event) = peer.poll_event() {
    ///         if matches!(event, Event::Message { .. }) {
    ///             return Some(peer.take_event_data());
    ///         }
    ///     }
    ///     None
    /// }
    /// ```
    #[cfg(feature = "zero-copy")]
    pub fn take_event_data(&mut self) -> alloc::vec::Vec<u8> {
        let owned = match self.tables.events.data() {
            EventData::Message { message, .. } => self.tables.pool.take_owned(message),
            EventData::Nothing | EventData::Unconnected(_) | EventData::Injected(_) => None,
        };
        let bytes = owned.unwrap_or_else(|| self.event_data().to_vec());
        self.release_event_data();
        bytes
    }
}

/// The source of the next event for the application.
#[derive(Clone, Copy)]
pub(super) enum Next<P: Protocol> {
    /// An event of a connection.
    Of(ConnectionId, ConnectionEvent<P>),
    /// The first unconnected message.
    Unconnected,
}

impl<P: Protocol> Next<P> {
    /// Returns the event, which borrows its data from `peer`.
    #[cfg_attr(target_pointer_width = "64", inline)]
    fn event<'p>(self, peer: &'p Peer<'_, P>) -> Option<Event<'p, P>> {
        let pool = &peer.tables.pool;
        let (id, event) = match self {
            Self::Of(id, event) => (id, event),
            Self::Unconnected => return unconnected_event(peer),
        };
        if let ConnectionEvent::Message(message) = event {
            return Some(match P::delivery(pool.header(message)) {
                Ok(delivery) => Event::Message { id, delivery, message: Message::new(pool, message) },
                Err((receipt, outcome)) => Event::Receipt { id, receipt, outcome },
            });
        }
        let slot = peer.tables.connections.slot(id.slot)?;
        let remote = slot.remote?;
        Some(match event {
            ConnectionEvent::Message(_) => return None,
            ConnectionEvent::Opened => {
                let (identity, side) = (slot.connection.identity(), slot.connection.side());
                Event::Connected { id, remote, identity, side }
            }
            ConnectionEvent::Refused { reason, is_validated } => {
                Event::Refused { id, remote, identity: slot.connection.identity(), reason, is_validated }
            }
            ConnectionEvent::Progress(progress) => Event::Progress { id, progress },
            ConnectionEvent::MtuChanged(mtu) => Event::MtuChanged { id, mtu },
            ConnectionEvent::Ended(Ending::Failed(reason)) => Event::ConnectFailed { id, remote, reason },
            ConnectionEvent::Ended(Ending::Disconnected(reason)) => {
                Event::Disconnected { id, remote, reason }
            }
        })
    }
}

/// Returns the event for the first unconnected message.
#[cold]
fn unconnected_event<'p, P: Protocol>(peer: &'p Peer<'_, P>) -> Option<Event<'p, P>> {
    let &Unconnected { from, identity, kind, data } = peer.state.unconnected()?;
    let data = Message::new(&peer.tables.pool, data);
    Some(match kind {
        UnconnectedKind::Pong(latency) => Event::Pong { from, identity, latency, data },
        UnconnectedKind::OutOfBand => Event::OutOfBand { from, identity, data },
        UnconnectedKind::Advertisement => Event::Advertisement { from, identity, data },
    })
}
impl<P: Protocol> Peer<'_, P> {
    /// Returns a connection that can now accept the smallest message that it has refused.
    ///
    /// A message counts as refused if `send` returned [`QuotaExceeded`](super::SendError::QuotaExceeded) or
    /// [`PoolExhausted`](super::SendError::PoolExhausted). A connection is returned once for all refusals so far, and
    /// again only after a new refusal.
    ///
    /// Connections that wait for memory held by others are returned in FIFO order, and only as many as fit into
    /// the free memory. Each call examines at most 16 of them; if more remain,
    /// [`poll_timeout`](Self::poll_timeout) is due immediately. A driver that calls this a few times per iteration
    /// therefore does bounded work, regardless of the number of waiting connections.
    ///
    /// ```
    /// use rakwire::Instant;
    /// use rakwire::endpoint::{ConnectionId, Peer, Protocol, SendError};
    ///
    /// /// Sends `message` again on each connection that refused it and can accept it now.
    /// fn send_again<P: Protocol>(peer: &mut Peer<'_, P>, now: Instant, message: &[u8]) -> Result<(), SendError> {
    ///     while let Some(id) = peer.poll_writable() {
    ///         peer.send(now, id, message, P::Delivery::default())?;
    ///     }
    ///     Ok(())
    /// }
    /// # use rakwire::raknet::{Config, Resources};
    /// # let mut resources = Resources::<1, 32, 128>::new();
    /// # let mut peer = Peer::new(&mut resources, Config::new([7; 32]));
    /// # assert_eq!(send_again(&mut peer, Instant::ZERO, b"\x86"), Ok(()));
    /// ```
    pub fn poll_writable(&mut self) -> Option<ConnectionId> {
        let Tables { connections, writable, pool, .. } = &mut self.tables;
        let at = writable.pop(connections, &pool.shares)?;
        Some(connections.id(at))
    }
}
