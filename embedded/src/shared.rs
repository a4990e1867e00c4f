//! The state that the handles and the runner share: the peer, the slots of its connections, and the wakers.

use core::cell::RefCell;
use core::net::SocketAddr;
use core::task::{Context, Poll};

use embassy_sync::waitqueue::{MultiWakerRegistration, WakerRegistration};

use rakwire::endpoint::{
    ConnectError, ConnectionId, Event, Hook, Hooked, Outcome, Progress, Protocol, Receipt, Side,
    UnconnectedEvents,
};
use rakwire::{Instant, Machine as _};

use crate::clock;
use crate::refused::RefusedClients;
use crate::slots::{Phase, Slot, Slots};
use crate::unsent::{UnsentDatagrams, UnsentReason};

/// The maximum number of waiting tasks. A further task wakes the others, which then register again.
const WAKERS: usize = 8;

/// An event of an open connection. The bytes of a message stay in the peer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EventInfo<P: Protocol> {
    Message(P::Delivery),
    Receipt(Receipt, Outcome),
    Progress(Progress),
    MtuChanged(u16),
}

/// The state without the socket and the timer.
#[derive(Debug)]
pub(crate) struct Inner<'d, P: Protocol, H: Hook<P>> {
    pub(crate) hooked: Hooked<'d, P, H>,
    pub(crate) slots: Slots<'d, P>,
    /// Set while a task is reading bytes of the peer.
    pub(crate) is_lending: bool,
    /// Set if the socket must change its port.
    needs_fresh_port: bool,
    /// The number of tasks that wait for pongs.
    pub(crate) pending_pings: u8,
    /// Set if messages from peers without a connection are kept, because a task reads them.
    pub(crate) keeps_messages: bool,
    pub(crate) unsent: UnsentDatagrams,
    pub(crate) refused: RefusedClients<P::Identity>,
    runner: WakerRegistration,
    wakers: MultiWakerRegistration<WAKERS>,
}

/// The state that the handles and the runner share.
#[derive(Debug)]
pub(crate) struct Shared<'d, P: Protocol, H: Hook<P>> {
    inner: RefCell<Inner<'d, P, H>>,
}

impl<'d, P: Protocol, H: Hook<P>> Shared<'d, P, H> {
    pub(crate) const fn new(hooked: Hooked<'d, P, H>, slots: &'d mut [Option<Slot<P>>]) -> Self {
        let inner = Inner {
            hooked,
            slots: Slots(slots),
            is_lending: false,
            needs_fresh_port: false,
            pending_pings: 0,
            keeps_messages: false,
            unsent: UnsentDatagrams::new(),
            refused: RefusedClients::new(),
            runner: WakerRegistration::new(),
            wakers: MultiWakerRegistration::new(),
        };
        Self { inner: RefCell::new(inner) }
    }

    /// Calls `read` with the state.
    pub(crate) fn read<R>(&self, read: impl FnOnce(&Inner<'d, P, H>) -> R) -> R {
        read(&self.inner.borrow())
    }

    /// Calls `update` with the state, and wakes the runner.
    pub(crate) fn update<R>(&self, update: impl FnOnce(&mut Inner<'d, P, H>, Instant) -> R) -> R {
        let mut inner = self.inner.borrow_mut();
        let result = update(&mut inner, clock::now());
        inner.runner.wake();
        result
    }

    /// Registers the task to be woken if `attempt` is pending, and wakes the runner otherwise.
    pub(crate) fn poll<R>(
        &self,
        cx: &Context<'_>,
        attempt: impl FnOnce(&mut Inner<'d, P, H>, Instant) -> Poll<R>,
    ) -> Poll<R> {
        let mut inner = self.inner.borrow_mut();
        let now = clock::now();
        let result = attempt(&mut inner, now);
        match result {
            Poll::Pending => {
                inner.wakers.register(cx.waker());
                // The hook has consumed the message that was read, and may have queued a reply.
                if inner.hooked.hook.poll_timeout().is_some_and(|due| due <= now) {
                    inner.runner.wake();
                }
            }
            Poll::Ready(_) => inner.runner.wake(),
        }
        result
    }

    /// Releases the data of the last event.
    pub(crate) fn release_event_data(&self) {
        self.update(|inner, _| {
            inner.is_lending = false;
            inner.hooked.peer.release_event_data();
            inner.wakers.wake();
        });
    }
}

/// Called by the runner.
impl<P: Protocol, H: Hook<P>> Shared<'_, P, H> {
    /// Handles a received datagram.
    pub(crate) fn handle_datagram(&self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        self.inner.borrow_mut().hooked.handle_datagram(now, from, datagram);
    }

    /// Handles expired timers of the protocol.
    pub(crate) fn handle_timeout(&self, now: Instant) {
        self.inner.borrow_mut().hooked.handle_timeout(now);
    }

    /// Takes the events of connections without a task, and wakes all waiting tasks.
    pub(crate) fn wake(&self, now: Instant) {
        let mut inner = self.inner.borrow_mut();
        inner.take_unclaimed(now);
        inner.wakers.wake();
    }

    /// Composes the next datagram.
    pub(crate) fn poll_transmit(&self, now: Instant, buffer: &mut [u8]) -> Option<(SocketAddr, usize)> {
        let mut inner = self.inner.borrow_mut();
        let transmit = inner.hooked.poll_transmit(now, buffer)?;
        Some((transmit.to, transmit.payload.len()))
    }

    /// Returns whether a task has a connection with the peer at `address` or waits for one. Returns `None` if there is
    /// no connection.
    pub(crate) fn has_task(&self, address: SocketAddr) -> Option<bool> {
        let inner = self.inner.borrow();
        inner.hooked.peer.connection_at(address).map(|id| inner.slots.contains(id))
    }

    /// Counts composed datagrams that were not sent.
    pub(crate) fn count_unsent(&self, reason: UnsentReason, datagrams: u32) {
        self.inner.borrow_mut().unsent.add(reason, datagrams);
    }

    /// Takes the request for a change of the port.
    pub(crate) fn takes_fresh_port(&self) -> bool {
        core::mem::take(&mut self.inner.borrow_mut().needs_fresh_port)
    }

    /// Registers the runner, and returns the time of the next timeout.
    pub(crate) fn poll_timeout(&self, cx: &Context<'_>) -> Option<Instant> {
        let mut inner = self.inner.borrow_mut();
        inner.runner.register(cx.waker());
        inner.hooked.poll_timeout()
    }
}

impl<P: Protocol, H: Hook<P>> Inner<'_, P, H> {
    /// Starts a connection attempt, and returns the index of its slot.
    pub(crate) fn connect(
        &mut self,
        now: Instant,
        to: SocketAddr,
        options: &P::ConnectOptions<'_>,
    ) -> Result<usize, ConnectError> {
        // A closed connection occupies its slot until its last events are taken.
        self.take_unclaimed(now);
        // Other connections, including closing ones, still need the current port.
        let is_alone = self.hooked.peer.connections().next().is_none();
        let id = self.hooked.peer.connect_with(now, to, options)?;
        self.needs_fresh_port |= P::FRESH_PORT && is_alone;
        self.slots.insert(Slot { id, phase: Phase::Connecting, references: 1 }).ok_or_else(|| {
            self.hooked.peer.disconnect(now, id);
            ConnectError::Full
        })
    }

    /// Takes the events of connections without a task.
    fn take_unclaimed(&mut self, now: Instant) {
        if self.is_lending {
            return;
        }
        while let Some(id) = self.hooked.poll_readable() {
            if !self.slots.contains(id) {
                self.take_unclaimed_of(now, id);
            }
        }
        if self.pending_pings == 0 {
            while self.hooked.poll_unconnected(UnconnectedEvents::Pongs).is_some() {}
        }
        if !self.keeps_messages {
            while self.hooked.poll_unconnected(UnconnectedEvents::Messages).is_some() {}
        }
    }

    /// Takes the events of a connection without references. A new incoming connection is assigned a slot, where it
    /// waits to be accepted.
    fn take_unclaimed_of(&mut self, now: Instant, id: ConnectionId) {
        while let Some(event) = self.hooked.poll_event_of(id) {
            if let Some(client) = event.refused_client() {
                self.refused.push(client);
            }
            if let Event::Connected { side: Side::Server, remote, identity, .. } = event {
                let phase = Phase::Incoming { remote, identity };
                if self.slots.insert(Slot { id, phase, references: 0 }).is_none() {
                    self.hooked.peer.disconnect(now, id);
                }
                // The remaining events are left for the task that accepts the connection.
                return;
            }
        }
    }

    /// Releases a reference. The connection is closed if it was the last reference.
    pub(crate) fn release(&mut self, now: Instant, at: usize) {
        let Some(Slot { id, phase, .. }) = self.slots.release(at) else { return };
        if !matches!(phase, Phase::Ended(_)) {
            self.hooked.peer.disconnect(now, id);
        }
        if !self.is_lending {
            self.take_unclaimed_of(now, id);
        }
    }

    /// Returns the result of a connection attempt: the identity of the remote peer if the attempt succeeded.
    pub(crate) fn poll_connected(&mut self, at: usize) -> Poll<Result<P::Identity, P::ConnectFailure>> {
        if self.is_lending {
            return Poll::Pending;
        }
        let Some(slot) = self.slots.get_mut(at) else { return Poll::Pending };
        // A waiting task is woken only by later events, so events of other kinds must be taken too.
        while let Some(event) = self.hooked.poll_event_of(slot.id) {
            if let Some(client) = event.refused_client() {
                self.refused.push(client);
            }
            if let Event::Connected { identity, .. } = event {
                slot.phase = Phase::Connected;
                return Poll::Ready(Ok(identity));
            }
            if let Event::ConnectFailed { reason, .. } = event {
                slot.phase = Phase::Ended(None);
                return Poll::Ready(Err(reason));
            }
        }
        Poll::Pending
    }

    /// Returns the next event of an open connection, or `None` once it is closed and all events have been taken.
    pub(crate) fn poll_event(&mut self, at: usize) -> Poll<Option<EventInfo<P>>> {
        if self.is_lending {
            return Poll::Pending;
        }
        loop {
            let Some(slot) = self.slots.get_mut(at) else { return Poll::Ready(None) };
            let Some(event) = self.hooked.poll_event_of(slot.id) else {
                return if matches!(slot.phase, Phase::Ended(_)) { Poll::Ready(None) } else { Poll::Pending };
            };
            let info = match event {
                Event::Message { delivery, .. } => {
                    self.is_lending = true;
                    EventInfo::Message(delivery)
                }
                Event::Receipt { receipt, outcome, .. } => EventInfo::Receipt(receipt, outcome),
                Event::Progress { progress, .. } => EventInfo::Progress(progress),
                Event::MtuChanged { mtu, .. } => EventInfo::MtuChanged(mtu),
                Event::Disconnected { reason, .. } => {
                    slot.phase = Phase::Ended(Some(reason));
                    continue;
                }
                // Events of connections that are not open, and events without a connection.
                Event::Connected { .. }
                | Event::ConnectFailed { .. }
                | Event::Refused { .. }
                | Event::Pong { .. }
                | Event::OutOfBand { .. }
                | Event::Advertisement { .. }
                | _ => continue,
            };
            return Poll::Ready(Some(info));
        }
    }
}
