//! What an endpoint, its connections and its tasks have in common.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rakwire::Instant;
use rakwire::raknet::{ConnectionId, Receipt, SendError};
use tokio::sync::{Notify, watch};

use crate::arrivals::Arrivals;
use crate::clock::Clock;
use crate::inbox::Inbox;
use crate::options::Options;
use crate::outgoing::Outgoing;
use crate::plugin::Plugin;
use crate::simulation::Simulation;
use crate::state::{Next, State};

/// The protocol behind its lock, and the bells that tasks wait for.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    pub(crate) io: Io,
    /// Rings for those that wait until more fits.
    pub(crate) room: Notify,
    /// Rings for those that accept connections.
    pub(crate) newcomers: Notify,
    /// Rings for those that wait for messages without a connection.
    pub(crate) heard: Notify,
}

/// What the tasks of an endpoint need of it, whatever its protocol is.
#[derive(Debug)]
pub(crate) struct Io {
    pub(crate) arrivals: Arrivals,
    pub(crate) clock: Clock,
    /// Rings for the driver when the application did something.
    pub(crate) wake: Notify,
    /// Rings when the driver has nothing more to send for now.
    pub(crate) idle: Notify,
    pub(crate) ended: watch::Sender<bool>,
    pub(crate) counters: Counters,
}

impl Io {
    pub(crate) fn new(arrival_queue: usize, simulation: Option<Simulation>) -> Self {
        Self {
            arrivals: Arrivals::new(arrival_queue, simulation),
            clock: Clock::start(),
            wake: Notify::new(),
            idle: Notify::new(),
            ended: watch::Sender::new(false),
            counters: Counters::default(),
        }
    }

    /// Rings for those that wait until all is sent, if it is. Only who holds the lock knows that nobody asked for more.
    pub(crate) fn ring_if_idle(&self, next: Next) {
        if matches!(next, Next::Sleep(_)) {
            self.idle.notify_waiters();
        }
    }

    /// Rings for the driver if something was taken for sending. Who was refused waits for the driver; ringing for it would
    /// let the two wake each other for ever.
    pub(crate) fn ring_if_taken<T, E>(&self, sent: &Result<T, E>) {
        if sent.is_ok() {
            self.wake.notify_one();
        }
    }

    /// Waits until the driver has sent what there was to send, or has ended.
    pub(crate) async fn flush(&self) {
        let mut idle = std::pin::pin!(self.idle.notified());
        // From here on no ring is missed.
        idle.as_mut().enable();
        if !*self.ended.borrow() {
            self.wake.notify_one();
            idle.await;
        }
    }
}

/// An endpoint as its driver sees it.
pub(crate) trait Driven: Send + Sync + 'static {
    fn io(&self) -> &Io;

    /// Does what is due and composes what is to be sent. Where that is nothing, it rings `idle` before anybody else can
    /// ask for more.
    fn turn(&self, outgoing: &mut Outgoing) -> Next;
}

/// What the tasks count outside of the protocol.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) too_long: AtomicU64,
    pub(crate) send_failures: AtomicU64,
    pub(crate) receive_failures: AtomicU64,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }
}

impl Shared {
    pub(crate) fn new(options: Options, plugin: Plugin) -> Self {
        Self {
            io: Io::new(options.arrival_queue, options.simulate),
            state: Mutex::new(State::new(options, plugin)),
            room: Notify::new(),
            newcomers: Notify::new(),
            heard: Notify::new(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the application act on the protocol, after everything that arrived before.
    pub(crate) fn act<R>(&self, act: impl FnOnce(&mut State, Instant) -> R) -> R {
        let mut state = self.lock();
        let now = state.catch_up(&self.io.arrivals, &self.io.clock);
        let result = act(&mut state, now);
        drop(state);
        self.io.wake.notify_one();
        result
    }
}

impl Driven for Shared {
    fn io(&self) -> &Io {
        &self.io
    }

    fn turn(&self, outgoing: &mut Outgoing) -> Next {
        let mut state = self.lock();
        let now = state.catch_up(&self.io.arrivals, &self.io.clock);
        let next = state.turn(now, outgoing);
        let has_newcomers = !state.tables.backlog.is_empty() || next == Next::End;
        let has_heard = !state.tables.strangers.is_empty() || next == Next::End;
        self.io.ring_if_idle(next);
        drop(state);
        self.room.notify_waiters();
        if has_newcomers {
            self.newcomers.notify_waiters();
        }
        if has_heard {
            self.heard.notify_waiters();
        }
        next
    }
}

/// The driver was rung for, and has not come yet. Until it comes, neither the bell nor the clock tells a sender anything
/// new; only a sender that goes on for long looks at the clock again.
#[derive(Debug)]
pub(crate) struct Ring {
    at: Instant,
    messages: u16,
}

/// Messages that are sent on one look at the clock.
const MESSAGES_A_RING: u16 = 64;

impl Ring {
    const fn new(at: Instant) -> Self {
        Self { at, messages: MESSAGES_A_RING }
    }

    /// When it rang, unless much was sent since.
    fn answer(&mut self) -> Option<Instant> {
        self.messages = self.messages.checked_sub(1)?;
        Some(self.at)
    }
}

/// The hold of the application on a connection: when it is dropped, the connection ends.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) shared: Arc<Shared>,
    pub(crate) id: ConnectionId,
    pub(crate) inbox: Arc<Inbox>,
}

impl Link {
    pub(crate) fn try_send(
        &self,
        message: &[u8],
        delivery: rakwire::raknet::Delivery,
    ) -> Result<Option<Receipt>, SendError> {
        let io = &self.shared.io;
        let mut state = self.shared.lock();
        if let Some(rung_at) = state.ring.as_mut().and_then(Ring::answer) {
            let sent = state.hooked.send(rung_at, self.id, message, delivery);
            if !matches!(sent, Err(SendError::QuotaExceeded | SendError::PoolExhausted)) {
                return sent;
            }
        }
        let now = state.catch_up(&io.arrivals, &io.clock);
        let sent = state.hooked.send(now, self.id, message, delivery);
        if sent.is_ok() {
            state.ring = Some(Ring::new(now));
        }
        drop(state);
        io.ring_if_taken(&sent);
        sent
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.shared.act(|state, now| state.abandon(now, self.id));
    }
}
