//! What the handles and the runner share: the peer, the connections that tasks refer to, and who waits.

use core::cell::RefCell;
use core::net::SocketAddr;
use core::task::{Context, Poll};

use embassy_sync::waitqueue::{MultiWakerRegistration, WakerRegistration};
use rakwire::Instant;
use rakwire::endpoint::{
    ConnectError, ConnectionId, Event, Outcome, Peer, Progress, Protocol, Receipt, Side,
};

use crate::clock;
use crate::slots::{Slot, SlotState, Slots};

/// Tasks that can wait for a peer at once without waking each other.
const WAITERS: usize = 8;

/// What happened on an open connection. The bytes of a message are lent by the peer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Notice<P: Protocol> {
    Message(P::Delivery),
    Receipt(Receipt, Outcome),
    Progress(Progress),
}

/// Everything but the socket and the timer.
#[derive(Debug)]
pub(crate) struct Inner<'d, P: Protocol> {
    pub(crate) peer: Peer<'d, P>,
    pub(crate) slots: Slots<'d, P>,
    /// Whether a task reads bytes that the peer lends.
    pub(crate) is_lending: bool,
    /// Whether the socket is to be bound to another port.
    wants_fresh_port: bool,
    /// How many tasks wait for pongs.
    pub(crate) pingers: u8,
    runner: WakerRegistration,
    waiters: MultiWakerRegistration<WAITERS>,
}

/// What the handles and the runner share.
#[derive(Debug)]
pub(crate) struct Shared<'d, P: Protocol> {
    inner: RefCell<Inner<'d, P>>,
}

impl<'d, P: Protocol> Shared<'d, P> {
    pub(crate) const fn new(peer: Peer<'d, P>, slots: &'d mut [Option<Slot<P>>]) -> Self {
        let inner = Inner {
            peer,
            slots: Slots(slots),
            is_lending: false,
            wants_fresh_port: false,
            pingers: 0,
            runner: WakerRegistration::new(),
            waiters: MultiWakerRegistration::new(),
        };
        Self { inner: RefCell::new(inner) }
    }

    /// Reads without changing anything.
    pub(crate) fn read<R>(&self, read: impl FnOnce(&Inner<'d, P>) -> R) -> R {
        read(&self.inner.borrow())
    }

    /// Changes something, and wakes the runner for what follows from it.
    pub(crate) fn update<R>(&self, update: impl FnOnce(&mut Inner<'d, P>, Instant) -> R) -> R {
        let mut inner = self.inner.borrow_mut();
        let result = update(&mut inner, clock::now());
        inner.runner.wake();
        result
    }

    /// Has the task woken if `attempt` is pending, and the runner if it took or sent something.
    pub(crate) fn poll<R>(
        &self,
        cx: &Context<'_>,
        attempt: impl FnOnce(&mut Inner<'d, P>, Instant) -> Poll<R>,
    ) -> Poll<R> {
        let mut inner = self.inner.borrow_mut();
        let result = attempt(&mut inner, clock::now());
        match result {
            Poll::Pending => inner.waiters.register(cx.waker()),
            Poll::Ready(_) => inner.runner.wake(),
        }
        result
    }

    /// Gives the bytes that a task has read back to the peer.
    pub(crate) fn give_back(&self) {
        self.update(|inner, _| {
            inner.is_lending = false;
            inner.peer.give_back();
            inner.waiters.wake();
        });
    }
}

/// What the runner does.
impl<P: Protocol> Shared<'_, P> {
    /// Takes a datagram.
    pub(crate) fn handle_datagram(&self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        self.inner.borrow_mut().peer.handle_datagram(now, from, datagram);
    }

    /// Does what is due, and wakes all tasks that wait.
    pub(crate) fn handle_timeout(&self, now: Instant) {
        let mut inner = self.inner.borrow_mut();
        inner.peer.handle_timeout(now);
        inner.take_unclaimed(now);
        inner.waiters.wake();
    }

    /// Composes the next datagram.
    pub(crate) fn poll_transmit(&self, now: Instant, buffer: &mut [u8]) -> Option<(SocketAddr, usize)> {
        let mut inner = self.inner.borrow_mut();
        let transmit = inner.peer.poll_transmit(now, buffer)?;
        Some((transmit.to, transmit.payload.len()))
    }

    /// Whether the socket is to be bound to another port; says so once.
    pub(crate) fn takes_fresh_port(&self) -> bool {
        core::mem::take(&mut self.inner.borrow_mut().wants_fresh_port)
    }

    /// Has the runner woken when a task changes anything, and says when there is something to do without that.
    pub(crate) fn poll_timeout(&self, cx: &Context<'_>) -> Option<Instant> {
        let mut inner = self.inner.borrow_mut();
        inner.runner.register(cx.waker());
        inner.peer.poll_timeout()
    }
}

impl<P: Protocol> Inner<'_, P> {
    /// Begins to open a connection and returns the index of its slot.
    pub(crate) fn connect(
        &mut self,
        now: Instant,
        to: SocketAddr,
        options: &P::ConnectOptions<'_>,
    ) -> Result<usize, ConnectError> {
        // A connection that is over may have a slot until its last events were taken.
        self.take_unclaimed(now);
        // Another connection, even one that is ending, may still have something to send from the port that it has.
        let is_alone = self.peer.connections().next().is_none();
        let id = self.peer.connect_with(now, to, options)?;
        self.wants_fresh_port |= P::FRESH_PORT && is_alone;
        self.slots.insert(Slot { id, state: SlotState::Connecting, references: 1 }).ok_or_else(|| {
            self.peer.disconnect(now, id);
            ConnectError::Full
        })
    }

    /// Takes the events that no task will take.
    fn take_unclaimed(&mut self, now: Instant) {
        if self.is_lending {
            return;
        }
        while let Some(id) = self.peer.poll_readable() {
            if !self.slots.contains(id) {
                self.take_unclaimed_of(now, id);
            }
        }
        if self.pingers == 0 {
            while self.peer.poll_unconnected().is_some() {}
        }
    }

    /// Takes the events of a connection that no task refers to. One that another peer has opened gets a slot, where it
    /// waits to be accepted.
    fn take_unclaimed_of(&mut self, now: Instant, id: ConnectionId) {
        while let Some(event) = self.peer.poll_event_of(id) {
            if let Event::Connected { side: Side::Server, remote, identity, .. } = event {
                let state = SlotState::Incoming { remote, identity };
                if self.slots.insert(Slot { id, state, references: 0 }).is_none() {
                    self.peer.disconnect(now, id);
                }
                // The next events are for the task that accepts it.
                return;
            }
        }
    }

    /// Ends a connection if this was the last reference to it.
    pub(crate) fn release(&mut self, now: Instant, at: usize) {
        let Some(Slot { id, state, .. }) = self.slots.release(at) else { return };
        if !matches!(state, SlotState::Ended(_)) {
            self.peer.disconnect(now, id);
        }
        if !self.is_lending {
            self.take_unclaimed_of(now, id);
        }
    }

    /// Whether a connection that a task asked for is open now, and with whom.
    pub(crate) fn poll_connected(&mut self, at: usize) -> Poll<Result<P::Identity, P::ConnectFailure>> {
        if self.is_lending {
            return Poll::Pending;
        }
        let Some(slot) = self.slots.get_mut(at) else { return Poll::Pending };
        while let Some(event) = self.peer.poll_event_of(slot.id) {
            match event {
                Event::Connected { identity, .. } => {
                    slot.state = SlotState::Connected;
                    return Poll::Ready(Ok(identity));
                }
                Event::ConnectFailed { reason, .. } => {
                    slot.state = SlotState::Ended(None);
                    return Poll::Ready(Err(reason));
                }
                // What a later core may tell before a connection is open. Whoever waits is woken only for what comes
                // after the last event, so none may be left.
                _ => {}
            }
        }
        Poll::Pending
    }

    /// What happened next on an open connection; pending while nothing did, nothing once it is over and every event was
    /// taken.
    pub(crate) fn poll_event(&mut self, at: usize) -> Poll<Option<Notice<P>>> {
        if self.is_lending {
            return Poll::Pending;
        }
        loop {
            let Some(slot) = self.slots.get_mut(at) else { return Poll::Ready(None) };
            let Some(event) = self.peer.poll_event_of(slot.id) else {
                return if matches!(slot.state, SlotState::Ended(_)) {
                    Poll::Ready(None)
                } else {
                    Poll::Pending
                };
            };
            let notice = match event {
                Event::Message { delivery, .. } => {
                    self.is_lending = true;
                    Notice::Message(delivery)
                }
                Event::Receipt { receipt, outcome, .. } => Notice::Receipt(receipt, outcome),
                Event::Progress { progress, .. } => Notice::Progress(progress),
                Event::Disconnected { reason, .. } => {
                    slot.state = SlotState::Ended(Some(reason));
                    continue;
                }
                // These come before a connection is open, or belong to none.
                Event::Connected { .. }
                | Event::ConnectFailed { .. }
                | Event::Pong { .. }
                | Event::OutOfBand { .. }
                | Event::Advertisement { .. }
                | _ => continue,
            };
            return Poll::Ready(Some(notice));
        }
    }
}
