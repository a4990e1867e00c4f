//! One other peer: everything between its address and the application.
//!
//! ```text
//!   connect()                                request 2 with a valid cookie
//!      |                                                  |
//!   Opening --- reply 2 ---> Requested               Unverified
//!                               |                         | connection request
//!                               | accepted                v
//!                               |                      AwaitingNewIncoming
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
//! an open connection there by way of `Aborting`, in which the other peer is told that it is over.

mod ack_tracker;
mod block_header;
mod blocked_receiver;
mod channels;
mod congestion;
#[cfg(feature = "delay-based")]
mod delay_based;
mod handshake;
mod metrics;
mod new_reno;
mod pacing;
mod ping_stats;
mod protection;
mod receive;
mod recovery;
mod reorder_buffer;
mod rtt;
mod send_queue;
mod sizes;
mod split;
mod timer;
mod transmit;

use core::net::SocketAddr;
use core::time::Duration;

use ack_tracker::AckTracker;
pub(crate) use block_header::BlockHeader;
use channels::Channels;
use congestion::INITIAL_DATAGRAMS;
use handshake::{ClosingNotification, Opening};
use metrics::{Metric, Metrics};
use pacing::Pacer;
use ping_stats::PingStats;
use protection::ConnectionProtection;
pub(crate) use protection::Security;
use receive::Inbox;
use recovery::LossRecovery;
use reorder_buffer::ReorderBuffer;
use send_queue::SendQueue;
use sizes::Sizes;
use timer::Times;

use super::config::Config;
use super::delivery::Delivery;
use super::event::{ConnectFailure, DisconnectReason, Receipt};
use super::peer::ConnectOptions;
use super::stats::{Amount, ConnectionStats, PeerStats};
use super::wire::Guid;
use super::wire::control::Control;
use crate::cursor::Writer;
use crate::raknet::wire::Wire;
use crate::serial::U24;
use crate::storage::{Index, Link, Pool, Purpose, SparseWindow};
use crate::time::Instant;

/// What a connection borrows from its peer for the time of one call.
pub(crate) struct Context<'x, 'a> {
    pub(crate) now: Instant,
    pub(crate) slot: u16,
    pub(crate) config: &'x Config,
    pub(crate) pool: &'x mut Pool<'a, BlockHeader>,
    pub(crate) index: &'x mut Index<'a>,
    pub(crate) stats: &'x mut PeerStats,
    /// What clients must say to be let in.
    pub(crate) password: &'x [u8],
    /// Blocks that one connection may use for what it sends, and for what it receives.
    pub(crate) send_quota: usize,
    pub(crate) receive_quota: usize,
}

/// Who opened a connection.
///
/// ```
/// assert_ne!(rakwire::raknet::Side::Client, rakwire::raknet::Side::Server);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Side {
    /// This peer.
    #[default]
    Client,
    /// The other peer.
    Server,
}

/// How far a connection has come.
///
/// ```
/// use rakwire::raknet::ConnectionState;
///
/// assert_ne!(ConnectionState::Connecting, ConnectionState::Connected);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConnectionState {
    /// The handshake is under way.
    Connecting,
    /// Messages may be sent.
    Connected,
    /// What was sent before is still being delivered; nothing more may be sent.
    Disconnecting,
    /// It is over.
    Disconnected,
}

/// Why a message was not accepted for sending. Nothing of it was kept.
///
/// ```
/// use rakwire::raknet::SendError;
///
/// assert_eq!(SendError::Empty.to_string(), "a message must have at least one byte");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SendError {
    /// The connection does not exist, is not open yet or is ending.
    NotConnected,
    /// A message must have at least one byte: its id.
    Empty,
    /// The first byte is below 0x1B and belongs to RakNet itself.
    ReservedId,
    /// The message takes more than one connection may ever hold, with the memory that its channel takes when it is used
    /// for the first time; send it in pieces, on one of the channels 0 to 3, or give the peer more blocks.
    TooLong,
    /// This connection holds as much as it may; try again when some of it was acknowledged.
    QuotaExceeded,
    /// All connections together hold as much as there is; try again when some of it was acknowledged.
    PoolExhausted,
    /// A hook does not let this message through.
    Filtered,
}

impl core::fmt::Display for SendError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::NotConnected => "the connection is not open",
            Self::Empty => "a message must have at least one byte",
            Self::ReservedId => "the first byte is below 0x1B and belongs to RakNet itself",
            Self::TooLong => "the message is larger than one connection may hold; send it in pieces",
            Self::QuotaExceeded => "the connection holds as much as it may; try again later",
            Self::PoolExhausted => "the peer holds as much as it can; try again later",
            Self::Filtered => "a hook does not let this message through",
        })
    }
}

impl core::error::Error for SendError {}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Free,
    Opening(Opening),
    Requested,
    Unverified,
    AwaitingNewIncoming,
    /// The client gave a wrong password and is being told so.
    Refusing,
    Connected,
    Closing,
    Draining,
    /// This end gave up, and says so to the other peer as long as that does not seem to know.
    Aborting,
    Gone,
}

/// What the application is still to be told of the connection itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Failed(ConnectFailure),
    Disconnected(DisconnectReason),
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
    remote: Option<SocketAddr>,
    guid: Guid,
    pub(crate) generation: u16,
    side: Side,
    state: State,
    /// Whether the application takes no news for now.
    paused: bool,
    /// The connection opened, and nobody was told yet.
    opened: bool,
    ending: Option<Ending>,
    closing_notification: ClosingNotification,
    pub(crate) ready: bool,
    pub(crate) noticed: bool,
    pub(crate) counted: bool,
    /// Whether the tables of the peer lead here.
    attached: bool,
    mode: ConnectionProtection,
    sizes: Sizes,
    times: Times,
    /// How long the other peer may stay silent, in microseconds.
    timeout: u64,
    /// What a client says to be let in, until it was said.
    password: Link,
    ack_tracker: AckTracker,
    reliable: SparseWindow,
    channels: Channels<ReorderBuffer>,
    inbox: Inbox,
    send_queue: SendQueue,
    recovery: LossRecovery,
    ping_stats: PingStats,
    metrics: Metrics,
    counters: Counters,
    /// What the path carries, and what the application allows.
    pacer: Pacer,
    limiter: Pacer,
}

impl Connection {
    /// A connection to `remote` that begins to open; false when there is no memory for the password.
    pub(crate) fn open(
        &mut self,
        cx: &mut Context<'_, '_>,
        remote: SocketAddr,
        options: &ConnectOptions<'_>,
    ) -> bool {
        self.begin(cx, remote, Guid::UNASSIGNED, cx.config.mtu, Side::Client);
        if !options.password.is_empty() {
            self.password = cx.pool.store(options.password, Purpose::Send, &BlockHeader::default());
            if self.password.is_none() {
                self.state = State::Free;
                self.attached = false;
                self.remote = None;
                return false;
            }
        }
        self.set_timeout(options.timeout.unwrap_or(cx.config.timeout));
        self.state = State::Opening(Opening::new(cx, options));
        true
    }

    /// A connection that `remote`, whose address is proved, wants.
    pub(crate) fn accept(&mut self, cx: &Context<'_, '_>, remote: SocketAddr, guid: Guid, mtu: u16) {
        self.begin(cx, remote, guid, mtu, Side::Server);
        self.state = State::Unverified;
    }

    fn begin(&mut self, cx: &Context<'_, '_>, remote: SocketAddr, guid: Guid, mtu: u16, side: Side) {
        let mode = ConnectionProtection::new(cx.config.security);
        let sizes = Sizes::new(mtu, mode.overhead());
        *self = Self {
            remote: Some(remote),
            guid,
            generation: self.generation.wrapping_add(1),
            side,
            ready: self.ready,
            noticed: self.noticed,
            counted: self.counted,
            attached: true,
            mode,
            sizes,
            times: Times::new(cx.now),
            send_queue: SendQueue::new(),
            recovery: LossRecovery::new(cx.config.congestion_control, sizes.data_datagram()),
            pacer: Pacer::new(INITIAL_DATAGRAMS * u32::from(mtu)),
            ..Self::default()
        };
        self.set_timeout(cx.config.timeout);
    }

    /// Starts all counters just before they wrap, as a long life of the connection would.
    pub(crate) fn skip_to(&mut self, start: U24) {
        self.ack_tracker = AckTracker::starting_at(start);
        self.reliable = SparseWindow::new(start);
        self.send_queue = SendQueue::starting_at(start);
        self.recovery = self.recovery.starting_at(start);
    }

    pub(crate) fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = u64::try_from(timeout.as_micros()).unwrap_or(u64::MAX);
    }

    const fn timeout(&self) -> Duration {
        Duration::from_micros(self.timeout)
    }

    pub(crate) const fn remote(&self) -> Option<SocketAddr> {
        self.remote
    }

    pub(crate) const fn guid(&self) -> Guid {
        self.guid
    }

    pub(crate) const fn side(&self) -> Side {
        self.side
    }

    pub(crate) const fn mtu(&self) -> u16 {
        self.sizes.mtu()
    }

    pub(crate) const fn is_free(&self) -> bool {
        matches!(self.state, State::Free)
    }

    /// Whether the connection has ended, and at most acknowledges what the other peer resends.
    pub(crate) const fn is_over(&self) -> bool {
        matches!(self.state, State::Draining | State::Aborting | State::Gone)
    }

    /// Lets another connection with the same peer take its place in the tables.
    pub(crate) const fn detach(&mut self) {
        self.attached = false;
    }

    /// Whether this is the connection with the peer at `address`.
    pub(crate) fn is_at(&self, address: &SocketAddr) -> bool {
        self.attached && self.remote.as_ref() == Some(address)
    }

    /// Whether this is the connection with the peer of this GUID.
    pub(crate) fn is_with(&self, guid: Guid) -> bool {
        self.attached && self.guid == guid
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
            && matches!(
                self.state,
                State::Unverified | State::AwaitingNewIncoming | State::Connected | State::Closing
            )
    }

    pub(crate) const fn public_state(&self) -> ConnectionState {
        match self.state {
            State::Opening(_) | State::Requested | State::Unverified | State::AwaitingNewIncoming => {
                ConnectionState::Connecting
            }
            State::Connected => ConnectionState::Connected,
            State::Closing | State::Refusing => ConnectionState::Disconnecting,
            State::Free | State::Draining | State::Aborting | State::Gone => ConnectionState::Disconnected,
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
            datagrams_lost: self.recovery.datagrams_lost,
            datagrams_late: self.recovery.datagrams_late,
            datagrams_acknowledged: self.recovery.datagrams_acknowledged,
            bytes_pushed: amount(Metric::Pushed),
            bytes_sent: amount(Metric::Sent),
            bytes_resent: amount(Metric::Resent),
            bytes_processed: amount(Metric::Processed),
            bytes_ignored: amount(Metric::Ignored),
            actual_bytes_sent: amount(Metric::ActualSent),
            actual_bytes_received: amount(Metric::ActualReceived),
            waiting: self.send_queue.waiting_new(),
            waiting_resends: self.send_queue.waiting_resends(),
            round_trip: Duration::from_micros(self.recovery.rtt.srtt().into()),
            last_ping: self.ping_stats.last(),
            average_ping: self.ping_stats.average(),
            lowest_ping: self.ping_stats.lowest(),
            clock_difference: self.ping_stats.difference(),
            congestion_window: self.recovery.congestion.window(),
            in_flight: self.recovery.bytes(),
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
        let receipt = self.send_queue.push(cx, self.sizes, payload, delivery, Purpose::Send)?;
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
        self.send_queue.push(cx, self.sizes, writer.finish(), delivery, Purpose::Receive).is_ok()
    }

    fn forget_password(&mut self, cx: &mut Context<'_, '_>) {
        if let Some(password) = self.password.take() {
            cx.pool.free(password);
        }
    }

    /// Whether everything sent was acknowledged.
    fn is_delivered(&self) -> bool {
        self.send_queue.is_empty() && self.recovery.is_empty()
    }

    /// Ends the connection: nothing is sent any more, and the application is told `ending` if it knew of it.
    fn end(&mut self, cx: &mut Context<'_, '_>, state: State, ending: Ending) {
        let known = match (self.side, &self.state) {
            (_, State::Free | State::Gone | State::Draining | State::Aborting) => return,
            (Side::Client, _) | (Side::Server, State::Connected | State::Closing) => true,
            (
                Side::Server,
                State::Opening(_)
                | State::Requested
                | State::Unverified
                | State::AwaitingNewIncoming
                | State::Refusing,
            ) => false,
        };
        self.state = state;
        if known {
            self.ending = Some(ending);
        }
        self.times.state_since = cx.now;
        self.times.owed_since = None;
        self.recovery.clear(cx, &mut self.send_queue);
        self.send_queue.clear(cx);
        self.clear_received(cx);
    }

    /// Ends the connection at once, for this reason or, before it was open, for that one.
    fn abort(&mut self, cx: &mut Context<'_, '_>, reason: DisconnectReason, failure: ConnectFailure) {
        let was_open = matches!(self.state, State::Connected | State::Closing);
        if !was_open {
            return self.end(cx, State::Gone, Ending::Failed(failure));
        }
        // A peer that is silent would not hear a closing_notification either.
        let state = if reason == DisconnectReason::Lost { State::Gone } else { State::Aborting };
        self.closing_notification = ClosingNotification::Due;
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
        let may_read = !matches!(
            self.state,
            State::AwaitingNewIncoming | State::Requested | State::Unverified | State::Refusing
        );
        !self.paused && (self.has_own_news() || may_read && !self.inbox.is_empty())
    }

    fn has_own_news(&self) -> bool {
        self.opened
            || self.ending.is_some()
            || self.inbox.progress.is_some()
            || self.send_queue.has_progress()
    }

    /// Sets whether the application takes news.
    pub(crate) const fn set_paused(&mut self, paused: bool) {
        self.paused = paused;
    }

    /// Whether the slot can be given to another connection.
    pub(crate) fn is_finished(&self) -> bool {
        matches!(self.state, State::Gone) && !self.has_own_news() && self.inbox.is_empty()
    }

    /// Frees the slot. What the application did not read is lost with it.
    pub(crate) fn release(&mut self, cx: &mut Context<'_, '_>) {
        self.recovery.clear(cx, &mut self.send_queue);
        self.send_queue.clear(cx);
        self.clear_received(cx);
        self.inbox.clear(cx);
        self.forget_password(cx);
        self.state = State::Free;
        self.attached = false;
        self.remote = None;
    }
}
