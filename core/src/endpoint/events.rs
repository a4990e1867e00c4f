//! Events of a peer, all in one order or those of one connection, and connections that have room again after they refused a
//! message.

use super::event::{Event, Message};
use super::hook::{Hook, Injected, Verdict};
use super::protocol::{
    Blocked, Connection, ConnectionEvent, Ending, Lent, Peer, Protocol, State, Unconnected, UnconnectedKind,
};
use super::types::ConnectionId;
use crate::storage::{Claim, SEVERAL};

impl<P: Protocol> Peer<'_, P> {
    /// What happened next, if anything. An event lends its bytes until the next call that changes this peer.
    ///
    /// A driver that must not take what nobody reads yet takes the events of one connection at a time instead:
    /// [`poll_unconnected`](Self::poll_unconnected), [`poll_readable`](Self::poll_readable) and
    /// [`poll_event_of`](Self::poll_event_of) together tell the same.
    pub fn poll_event(&mut self) -> Option<Event<'_, P>> {
        self.give_back();
        let next = self.next()?;
        self.tell(next)
    }

    /// What happens next by `next` that passes the hook; what does not is dropped. Before anything else the hook may inject
    /// a message for any connection or for that one, also in the place of one that it has just dropped.
    pub(super) fn poll_event_past<H: Hook<P>>(
        &mut self,
        hook: &mut H,
        of: Option<ConnectionId>,
        mut next: impl FnMut(&mut Self) -> Option<Next<P>>,
    ) -> Option<Event<'_, P>> {
        let now = self.last_now;
        loop {
            self.give_back();
            if let Some((id, delivery)) = self.lend_injected(hook, of) {
                return Some(Event::Message { id, delivery, message: self.lent() });
            }
            let next = next(self)?;
            if self.tell(next).is_some_and(|event| hook.on_event(now, &event) == Verdict::Pass) {
                return self.tell(next);
            }
        }
    }

    /// What a peer without a connection said first of the kind that is `wanted`, if it passes the hook; what does not is
    /// dropped.
    pub(super) fn poll_unconnected_past<H: Hook<P>>(
        &mut self,
        hook: &mut H,
        wanted: fn(&UnconnectedKind) -> bool,
    ) -> Option<Event<'_, P>> {
        let now = self.last_now;
        loop {
            self.give_back();
            let next = self.next_unconnected_of(wanted)?;
            if self.tell(next).is_some_and(|event| hook.on_event(now, &event) == Verdict::Pass) {
                return self.tell(next);
            }
        }
    }

    /// Takes a message from the hook, and keeps its bytes until the next event. What is for a connection that is gone is
    /// dropped; what finds no room stays with the hook.
    fn lend_injected<H: Hook<P>>(
        &mut self,
        hook: &mut H,
        of: Option<ConnectionId>,
    ) -> Option<(ConnectionId, P::Delivery)> {
        loop {
            let (mut found, mut is_dropped) = (None, false);
            hook.inject(of, &mut |Injected { id, delivery, message }| {
                is_dropped = message.is_empty() || self.get(id).is_none();
                if is_dropped {
                    return true;
                }
                let header = P::BlockHeader::default();
                let Some(block) = self.tables.pool.store_common(message, &header) else { return false };
                self.lent = Lent::Injected(block);
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
        while let Some(slot) = self.tables.readable.front() {
            if let Some(next) = self.next_of(slot) {
                return Some(next);
            }
            self.unlist_events();
            self.release_if_finished(slot);
        }
        None
    }

    fn next_unconnected(&mut self) -> Option<Next<P>> {
        self.lent = Lent::Unconnected(self.state.unconnected()?.data);
        Some(Next::Unconnected)
    }

    fn next_of(&mut self, at: u16) -> Option<Next<P>> {
        let slot = self.slot(at)?;
        if slot.is_vacant() || slot.is_paused || !slot.connection.has_events() {
            return None;
        }
        let (connection, mut cx) = self.borrow(at)?;
        let id = ConnectionId { slot: at, generation: cx.generation };
        let event = connection.poll_event(&mut cx)?;
        if let ConnectionEvent::Message(message) = event {
            self.lent = Lent::Message { message, id };
        }
        Some(Next::Of(id, event))
    }

    /// The next connection that may have events, for [`poll_event_of`](Self::poll_event_of). It is named again when more
    /// happens on it, and not before.
    ///
    /// With these two in place of [`poll_event`](Self::poll_event), a slow reader of one connection holds up no other
    /// one, and nothing is copied in between.
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
        while let Some(at) = self.unlist_events() {
            if self.slot(at).is_some_and(|slot| !slot.is_paused && slot.connection.has_events()) {
                return Some(self.id(at));
            }
            self.release_if_finished(at);
        }
        None
    }

    /// What happened next on one connection, if anything. It gives back what the last event lent, as
    /// [`poll_event`](Self::poll_event) does.
    pub fn poll_event_of(&mut self, id: ConnectionId) -> Option<Event<'_, P>> {
        self.give_back();
        let next = self.next_of_id(id)?;
        self.tell(next)
    }

    pub(super) fn next_of_id(&mut self, id: ConnectionId) -> Option<Next<P>> {
        self.get(id)?;
        let next = self.next_of(id.slot);
        if next.is_none() {
            self.release_if_finished(id.slot);
        }
        next
    }

    /// What a peer without a connection said, if any did; only in RakNet. It gives back what the last event lent, as
    /// [`poll_event`](Self::poll_event) does.
    pub fn poll_unconnected(&mut self) -> Option<Event<'_, P>> {
        self.give_back();
        let next = self.next_unconnected()?;
        self.tell(next)
    }

    /// As [`poll_unconnected`](Self::poll_unconnected), for pongs alone: messages stay for later.
    pub fn poll_pong(&mut self) -> Option<Event<'_, P>> {
        self.poll_unconnected_of(UnconnectedKind::is_pong)
    }

    /// As [`poll_unconnected`](Self::poll_unconnected), for out-of-band messages and advertisements alone: pongs stay
    /// for later.
    pub fn poll_out_of_band(&mut self) -> Option<Event<'_, P>> {
        self.poll_unconnected_of(UnconnectedKind::is_message)
    }

    fn poll_unconnected_of(&mut self, wanted: fn(&UnconnectedKind) -> bool) -> Option<Event<'_, P>> {
        self.give_back();
        let next = self.next_unconnected_of(wanted)?;
        self.tell(next)
    }

    /// What a peer without a connection said first of the kind that is `wanted`.
    pub(super) fn next_unconnected_of(&mut self, wanted: fn(&UnconnectedKind) -> bool) -> Option<Next<P>> {
        if self.state.bring_forward(wanted) { self.next_unconnected() } else { None }
    }

    /// Gives back what the last event lent, so that its memory is free before another event is asked for.
    /// [`Message`](super::Message) has an example.
    #[cfg_attr(target_pointer_width = "64", inline)]
    pub fn give_back(&mut self) {
        match core::mem::replace(&mut self.lent, Lent::Nothing) {
            Lent::Nothing => {}
            Lent::Unconnected(_) => {
                if let Some(unconnected) = self.state.pop_unconnected() {
                    self.tables.pool.free_common(unconnected.data);
                }
            }
            Lent::Injected(message) => self.tables.pool.free_common(message),
            Lent::Message { message, id } => {
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

    /// The bytes that the last event lent: of a message, or of what a peer without a connection said. They stay until
    /// the next event is asked for or they are [given back](Self::give_back), whatever else happens meanwhile. Empty
    /// when nothing is lent.
    #[must_use]
    pub const fn lent(&self) -> Message<'_, P> {
        match self.lent {
            Lent::Nothing => Message::empty(&self.tables.pool),
            Lent::Message { message, .. } | Lent::Unconnected(message) | Lent::Injected(message) => {
                Message::new(&self.tables.pool, message)
            }
        }
    }

    /// Takes the bytes that the last event lent, as [`lent`](Self::lent) shows them, in a vector of their own. A large message
    /// of RakNet was put together in this vector as it arrived, so that nothing is copied now.
    ///
    /// ```
    /// use rakwire::endpoint::{Event, Peer, Protocol};
    ///
    /// /// The next message that arrived.
    /// fn next_message<P: Protocol>(peer: &mut Peer<'_, P>) -> Option<Vec<u8>> {
    ///     while let Some(event) = peer.poll_event() {
    ///         if matches!(event, Event::Message { .. }) {
    ///             return Some(peer.take_lent());
    ///         }
    ///     }
    ///     None
    /// }
    /// ```
    #[cfg(feature = "hand-over")]
    pub fn take_lent(&mut self) -> alloc::vec::Vec<u8> {
        let outside = match self.lent {
            Lent::Message { message, .. } => self.tables.pool.take_outside(message),
            Lent::Nothing | Lent::Unconnected(_) | Lent::Injected(_) => None,
        };
        let bytes = outside.unwrap_or_else(|| self.lent().to_vec());
        self.give_back();
        bytes
    }

    /// Puts what is next into the words of an event.
    #[cfg_attr(target_pointer_width = "64", inline)]
    fn tell(&self, next: Next<P>) -> Option<Event<'_, P>> {
        let pool = &self.tables.pool;
        let (id, event) = match next {
            Next::Of(id, event) => (id, event),
            Next::Unconnected => return self.tell_unconnected(),
        };
        if let ConnectionEvent::Message(message) = event {
            return Some(match P::delivery(pool.header(message)) {
                Ok(delivery) => Event::Message { id, delivery, message: Message::new(pool, message) },
                Err((receipt, outcome)) => Event::Receipt { id, receipt, outcome },
            });
        }
        let slot = self.slot(id.slot)?;
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

    #[cold]
    fn tell_unconnected(&self) -> Option<Event<'_, P>> {
        let &Unconnected { from, identity, kind, data } = self.state.unconnected()?;
        let data = Message::new(&self.tables.pool, data);
        Some(match kind {
            UnconnectedKind::Pong(latency) => Event::Pong { from, identity, latency, data },
            UnconnectedKind::OutOfBand => Event::OutOfBand { from, identity, data },
            UnconnectedKind::Advertisement => Event::Advertisement { from, identity, data },
        })
    }
}

/// What is told next.
#[derive(Clone, Copy)]
pub(super) enum Next<P: Protocol> {
    /// Something of a connection.
    Of(ConnectionId, ConnectionEvent<P>),
    /// What a peer without a connection said first.
    Unconnected,
}

/// Blocked connections that are looked at for each call that asks for a writable one.
const AT_A_TIME: usize = 16;

impl<P: Protocol> Peer<'_, P> {
    /// The next connection that has room for the smallest message which it refused with
    /// [`QuotaExceeded`](super::SendError::QuotaExceeded) or [`PoolExhausted`](super::SendError::PoolExhausted). It is
    /// named once for all messages that it refused before; if it refuses another one it is named again when there is
    /// room for that.
    ///
    /// Connections that wait for what others hold are named in turns, and no more at once than there is room for. Each
    /// call looks at 16 of them at the most; [`poll_timeout`](Self::poll_timeout) tells when there are more to look at. So
    /// a driver that asks a few times a turn does bounded work, however many wait.
    ///
    /// ```
    /// use rakwire::Instant;
    /// use rakwire::endpoint::{ConnectionId, Peer, Protocol, SendError};
    ///
    /// /// Sends `message` again on each connection that refused it and has room now.
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
        if SEVERAL && self.tables.writable.is_empty() {
            self.examine_blocked();
        }
        let at = self.tables.writable.front()?;
        self.tables.writable.pop();
        if let Some(slot) = self.slot_mut(at) {
            slot.in_writable = false;
        }
        Some(self.id(at))
    }

    /// A message was refused.
    #[cold]
    pub(crate) fn note_refused(&mut self, at: u16) {
        let shares = &self.tables.pool.shares;
        let refused = u32::try_from(shares.refused()).unwrap_or(u32::MAX).max(1);
        let Some(slot) = self.tables.slots.get_mut(usize::from(at)) else { return };
        slot.wanted = if slot.wanted == 0 { refused } else { slot.wanted.min(refused) };
        let (share, wanted) = (slot.connection.send_share(), slot.wanted as usize);
        if SEVERAL && shares.depends_on_others(share, wanted, Claim::Send) {
            self.blocked.needed = self.blocked.needed.min(shares.needed(share, wanted));
            if !core::mem::replace(&mut slot.in_blocked, true) {
                self.tables.blocked.push(at);
            }
        }
    }

    /// Lists a connection that refused a message and has changed, if it has room now.
    #[inline]
    pub(crate) fn list_writable(&mut self, at: u16) {
        let Some(slot) = self.tables.slots.get_mut(usize::from(at)) else { return };
        if slot.wanted == 0 {
            return;
        }
        if slot.connection.is_over() {
            slot.wanted = 0;
            return;
        }
        let (share, wanted) = (slot.connection.send_share(), slot.wanted as usize);
        if self.tables.pool.shares.check(share, wanted, Claim::Send).is_err() {
            return;
        }
        slot.wanted = 0;
        if !core::mem::replace(&mut slot.in_writable, true) {
            self.tables.writable.push(at);
        }
    }

    /// Lists some of the connections that wait for what others hold, if so much is free that it may be enough for one.
    fn examine_blocked(&mut self) {
        self.begin_round();
        let mut shares = self.tables.pool.shares.bounded(self.blocked.room);
        for _ in 0..AT_A_TIME.min(self.blocked.unexamined) {
            self.blocked.unexamined -= 1;
            let Some(at) = self.tables.blocked.front() else { return };
            self.tables.blocked.pop();
            let Some(slot) = self.tables.slots.get_mut(usize::from(at)) else { return };
            let (mut share, wanted) = (*slot.connection.send_share(), slot.wanted as usize);
            // Each one that is named takes its room here, so that not all are named for the same blocks.
            if wanted > 0 && shares.charge(&mut share, wanted, Claim::Send).is_err() {
                self.blocked.needed = self.blocked.needed.min(shares.needed(&share, wanted));
                self.tables.blocked.push(at);
                continue;
            }
            slot.in_blocked = false;
            if core::mem::take(&mut slot.wanted) > 0 && !core::mem::replace(&mut slot.in_writable, true) {
                self.tables.writable.push(at);
            }
        }
        self.blocked.room = shares.free();
        // Those that were named need not take their room: then it is for others.
        self.begin_round();
    }

    /// Begins to look at all that wait for room of others, if it may be enough for one of them.
    fn begin_round(&mut self) {
        let free = self.tables.pool.shares.free();
        if self.blocked.unexamined == 0 && free >= self.blocked.needed {
            let unexamined = self.tables.blocked.len();
            self.blocked = Blocked { unexamined, room: free, needed: usize::MAX };
        }
    }
}
