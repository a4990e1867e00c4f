//! One other peer: everything between its address and the application.
//!
//! ```text
//!   connect()                                request 2 with a valid cookie
//!      |                                                  |
//!   Opening --- reply 2 ---> Requested               Unverified
//!                               |                         | connection request
//!                               | accepted                v
//!                               |                      Handling
//!                               v                         | new incoming connection
//!                           Connected <-------------------+
//!                            |      |
//!               disconnect() |      | disconnection notification
//!                            v      v
//!                        Closing   Draining (acknowledges what is resent for a while)
//!                            |      |
//!                            v      v
//!                              Gone -- its last event is taken --> the slot is free
//! ```
//! Silence and refusals lead from every state to `Gone`. What only this end can know, such as memory that ran out, leads
//! an open connection there by way of `Dismissing`, in which the other peer is told that it is over.

#[cfg(feature = "adaptive")]
mod adaptive;
mod arrivals;
mod block_header;
mod channels;
mod classic;
mod clock;
mod congestion;
mod flight;
mod handshake;
mod metrics;
mod mode;
mod order;
mod outbox;
mod pacing;
mod protocol;
mod receive;
mod round_trip;
mod sizes;
mod split;
mod stall;
mod timer;
mod transmit;

use core::time::Duration;

use arrivals::Arrivals;
pub(crate) use block_header::BlockHeader;
use channels::Channels;
use clock::Clock;
use congestion::INITIAL_DATAGRAMS;
use flight::Flight;
use handshake::{Farewell, Opening};
use metrics::{Metric, Metrics};
use mode::Mode;
pub(crate) use mode::Security;
use order::Incoming;
use outbox::Outbox;
use pacing::Pacer;
use receive::Inbox;
use sizes::Sizes;
use timer::Times;

use super::delivery::Delivery;
use super::reason::{ConnectFailure, DisconnectReason};
use super::stats::{Amount, ConnectionStats};
use super::types::{ConnectOptions, RakNet};
use super::wire::Guid;
use super::wire::control::{Control, MAX_PASSWORD};
use crate::cursor::Writer;
use crate::endpoint::Receipt;
use crate::endpoint::{self, ConnectError, ConnectionState, SendError, Side};
use crate::raknet::wire::Wire;
use crate::serial::U24;
use crate::storage::{Link, Purpose, SparseWindow};
use crate::time::Instant;

/// What a connection borrows from its peer for the time of one call.
pub(crate) type Context<'x, 'a> = endpoint::Context<'x, 'a, RakNet>;

/// What the application is told at the end.
type Ending = endpoint::Ending<RakNet>;

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Free,
    Opening(Opening),
    Requested,
    Unverified,
    Handling,
    /// The client gave a wrong password and is being told so.
    Refusing,
    Connected,
    Closing,
    Draining,
    /// This end gave up, and says so to the other peer as long as that does not seem to know.
    Dismissing,
    Gone,
}

/// Events that are counted and not measured in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    messages_sent: u64,
    messages_received: u64,
    datagrams_sent: u64,
    datagrams_received: u64,
}

/// One other peer.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    guid: Guid,
    side: Side,
    state: State,
    /// The connection opened, and nobody was told yet.
    opened: bool,
    ending: Option<Ending>,
    farewell: Farewell,
    mode: Mode,
    sizes: Sizes,
    times: Times,
    /// How long the other peer may stay silent, in microseconds.
    timeout: u64,
    /// What a client says to be let in, until it was said.
    password: Link,
    arrivals: Arrivals,
    reliable: SparseWindow,
    channels: Channels<Incoming>,
    inbox: Inbox,
    outbox: Outbox,
    flight: Flight,
    clock: Clock,
    metrics: Metrics,
    counters: Counters,
    /// What the path carries, and what the application allows.
    pacer: Pacer,
    limiter: Pacer,
}

impl Connection {
    /// Begins to open a connection.
    pub(crate) fn open(
        &mut self,
        cx: &mut Context<'_, '_>,
        options: &ConnectOptions<'_>,
    ) -> Result<(), ConnectError> {
        if options.password.len() > MAX_PASSWORD {
            return Err(ConnectError::PasswordTooLong);
        }
        self.begin(cx, Guid::UNASSIGNED, cx.config.mtu, Side::Client);
        if !options.password.is_empty() {
            self.password = cx.pool.store(options.password, Purpose::Send, &BlockHeader::default());
            if self.password.is_none() {
                self.state = State::Free;
                return Err(ConnectError::NoMemory);
            }
        }
        self.set_timeout(options.timeout.unwrap_or(cx.config.timeout));
        self.state = State::Opening(Opening::new(cx, options));
        Ok(())
    }

    /// Begins a connection that another peer, whose address is proved, wants.
    pub(crate) fn accept(&mut self, cx: &Context<'_, '_>, guid: Guid, mtu: u16) {
        self.begin(cx, guid, mtu, Side::Server);
        self.state = State::Unverified;
    }

    fn begin(&mut self, cx: &Context<'_, '_>, guid: Guid, mtu: u16, side: Side) {
        let mode = Mode::new(cx.config.security);
        let sizes = Sizes::new(mtu, mode.overhead());
        *self = Self {
            guid,
            side,
            mode,
            sizes,
            times: Times::new(cx.now),
            outbox: Outbox::new(),
            flight: Flight::new(cx.config.congestion_control, sizes.data_datagram()),
            pacer: Pacer::new(INITIAL_DATAGRAMS * u32::from(mtu)),
            ..Self::default()
        };
        self.set_timeout(cx.config.timeout);
        self.skip_to(cx.state.first_number);
    }

    /// Starts all counters just before they wrap, as a long life of the connection would.
    fn skip_to(&mut self, start: U24) {
        self.arrivals = Arrivals::starting_at(start);
        self.reliable = SparseWindow::new(start);
        self.outbox = Outbox::starting_at(start);
        self.flight = self.flight.starting_at(start);
    }

    pub(crate) fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = u64::try_from(timeout.as_micros()).unwrap_or(u64::MAX);
    }

    const fn timeout(&self) -> Duration {
        Duration::from_micros(self.timeout)
    }

    pub(crate) const fn guid(&self) -> Guid {
        self.guid
    }

    pub(crate) const fn mtu(&self) -> u16 {
        self.sizes.mtu()
    }

    /// Since when an incoming connection has been half open.
    pub(crate) fn half_open_since(&self) -> Option<Instant> {
        self.is_unverified().then_some(self.times.state_since)
    }

    /// When the connection was made.
    pub(crate) const fn made_at(&self) -> Instant {
        self.times.made_at
    }

    pub(crate) const fn is_unverified(&self) -> bool {
        matches!(self.state, State::Unverified)
    }

    /// Whether the connection counts against the limit of incoming ones.
    pub(crate) const fn is_incoming(&self) -> bool {
        matches!(self.side, Side::Server)
            && matches!(self.state, State::Unverified | State::Handling | State::Connected | State::Closing)
    }

    pub(crate) const fn public_state(&self) -> ConnectionState {
        match self.state {
            State::Opening(_) | State::Requested | State::Unverified | State::Handling => {
                ConnectionState::Connecting
            }
            State::Connected => ConnectionState::Connected,
            State::Closing | State::Refusing => ConnectionState::Disconnecting,
            State::Free | State::Draining | State::Dismissing | State::Gone => ConnectionState::Disconnected,
        }
    }

    pub(crate) fn stats(&self, now: Instant) -> ConnectionStats {
        let amount = |metric| Amount {
            total: self.metrics.total(metric),
            last_second: self.metrics.last_second(now, metric),
        };
        ConnectionStats {
            messages_sent: self.counters.messages_sent,
            messages_received: self.counters.messages_received,
            datagrams_sent: self.counters.datagrams_sent,
            datagrams_received: self.counters.datagrams_received,
            datagrams_lost: self.flight.lost,
            datagrams_late: self.flight.late,
            datagrams_acknowledged: self.flight.acknowledged,
            bytes_pushed: amount(Metric::Pushed),
            bytes_sent: amount(Metric::Sent),
            bytes_resent: amount(Metric::Resent),
            bytes_processed: amount(Metric::Processed),
            bytes_ignored: amount(Metric::Ignored),
            actual_bytes_sent: amount(Metric::ActualSent),
            actual_bytes_received: amount(Metric::ActualReceived),
            waiting: self.outbox.waiting_new(),
            waiting_resends: self.outbox.waiting_resends(),
            round_trip: Duration::from_micros(self.flight.round_trip.smoothed().into()),
            last_ping: self.clock.last(),
            average_ping: self.clock.average(),
            lowest_ping: self.clock.lowest(),
            clock_difference: self.clock.difference(),
            congestion_window: self.flight.congestion.window(),
            in_flight: self.flight.bytes(),
            mtu: self.sizes.mtu(),
        }
    }

    /// Accepts a message of the application.
    pub(crate) fn send(
        &mut self,
        cx: &mut Context<'_, '_>,
        payload: &[u8],
        delivery: Delivery,
    ) -> Result<Option<Receipt>, SendError> {
        if !matches!(self.state, State::Connected) {
            return Err(SendError::NotConnected);
        }
        let first = payload.first().ok_or(SendError::Empty)?;
        if *first < crate::wire::id::TIMESTAMP {
            return Err(SendError::ReservedId);
        }
        let receipt = self.outbox.push(cx, self.sizes, payload, delivery, Purpose::Send)?;
        self.counters.messages_sent += 1;
        self.metrics.add(cx.now, Metric::Pushed, payload.len());
        Ok(receipt)
    }

    /// Queues a message of RakNet itself; false when there is no memory for it.
    fn send_control(&mut self, cx: &mut Context<'_, '_>, control: &Control<'_>, delivery: Delivery) -> bool {
        let mut buffer = [0; crate::wire::control::MAX_CONTROL];
        let mut writer = Writer::new(&mut buffer);
        if control.write(&mut writer).is_err() {
            return false;
        }
        self.outbox.push(cx, self.sizes, writer.finish(), delivery, Purpose::Receive).is_ok()
    }

    fn forget_password(&mut self, cx: &mut Context<'_, '_>) {
        if let Some(password) = self.password.take() {
            cx.pool.free(password);
        }
    }

    /// Whether everything sent was acknowledged.
    fn is_delivered(&self) -> bool {
        self.outbox.is_empty() && self.flight.is_empty()
    }

    /// Ends the connection: nothing is sent any more, and the application is told `ending` if it knew of it.
    fn end(&mut self, cx: &mut Context<'_, '_>, state: State, ending: Ending) {
        let known = match (self.side, &self.state) {
            (_, State::Free | State::Gone | State::Draining | State::Dismissing) => return,
            (Side::Client, _) | (Side::Server, State::Connected | State::Closing) => true,
            (
                Side::Server,
                State::Opening(_) | State::Requested | State::Unverified | State::Handling | State::Refusing,
            ) => false,
        };
        self.state = state;
        if known {
            self.ending = Some(ending);
        }
        self.times.state_since = cx.now;
        self.times.owed_since = None;
        self.flight.clear(cx, &mut self.outbox);
        self.outbox.clear(cx);
        self.clear_received(cx);
    }

    /// Ends the connection at once, for this reason or, before it was open, for that one.
    fn break_off(&mut self, cx: &mut Context<'_, '_>, reason: DisconnectReason, failure: ConnectFailure) {
        let was_open = matches!(self.state, State::Connected | State::Closing);
        if !was_open {
            return self.end(cx, State::Gone, Ending::Failed(failure));
        }
        // A peer that is silent would not hear a farewell either.
        let state = if reason == DisconnectReason::Lost { State::Gone } else { State::Dismissing };
        self.farewell = Farewell::Due;
        self.end(cx, state, Ending::Disconnected(reason));
    }

    /// Takes the news that the connection is open.
    pub(crate) fn take_opened(&mut self) -> bool {
        core::mem::take(&mut self.opened)
    }

    /// Takes the news that the connection is over.
    pub(crate) const fn take_ending(&mut self) -> Option<Ending> {
        self.ending.take()
    }

    /// Whether the application has something to be told now.
    pub(crate) fn has_news(&self) -> bool {
        let may_read =
            !matches!(self.state, State::Handling | State::Requested | State::Unverified | State::Refusing);
        self.has_own_news() || may_read && !self.inbox.is_empty()
    }

    fn has_own_news(&self) -> bool {
        self.opened || self.ending.is_some() || self.inbox.progress.is_some() || self.outbox.has_progress()
    }

    /// Frees the slot. What the application did not read is lost with it.
    pub(crate) fn release(&mut self, cx: &mut Context<'_, '_>) {
        self.flight.clear(cx, &mut self.outbox);
        self.outbox.clear(cx);
        self.clear_received(cx);
        self.inbox.clear(cx);
        self.forget_password(cx);
        self.state = State::Free;
    }
}
