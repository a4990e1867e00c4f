//! The interface between a protocol and the endpoint, and the peer itself.

use core::fmt::{self, Debug};
use core::hash::Hash;
use core::net::SocketAddr;
use core::time::Duration;

use super::member::AdmissionMember;
use super::tables::{Occupant, Tables};
use super::types::{
    ConnectError, ConnectionId, DropReasons, Outcome, PeerStats, Progress, Receipt, RefuseReason, SendError,
    Side,
};
use crate::storage::{Block, Index, OwnedId, Pool};
use crate::time::Instant;

/// A protocol that a [`Peer`] can use: [`RakNet`](crate::raknet::RakNet) or the
/// [`GameProtocol`](crate::game_protocol::GameProtocol).
///
/// Drivers are generic over this trait:
///
/// ```
/// use core::time::Duration;
/// use rakwire::endpoint::{Capacity, Event, Peer, Protocol};
/// use rakwire::game_protocol::GameProtocol;
/// use rakwire::raknet::RakNet;
/// use rakwire::Instant;
///
/// /// Measures how long a peer tries to connect to a server that does not answer, in either protocol.
/// fn connect_timeout<P: Protocol>() -> Option<Duration> {
///     let mut peer = Peer::<P>::with_capacity(Capacity::default(), P::config([7; 32]));
///     let (mut now, mut buffer) = (Instant::ZERO, vec![0; P::MAX_DATAGRAM]);
///     peer.connect(now, "192.0.2.1:19132".parse().ok()?).ok()?;
///     loop {
///         while peer.poll_transmit(now, &mut buffer).is_some() {}
///         if let Some(Event::ConnectFailed { .. }) = peer.poll_event() {
///             return Some(now.saturating_since(Instant::ZERO));
///         }
///         now = peer.poll_timeout()?;
///         peer.handle_timeout(now);
///     }
/// }
///
/// assert_eq!(connect_timeout::<RakNet>(), Some(Duration::from_millis(6_500)));
/// assert_eq!(connect_timeout::<GameProtocol>(), Some(Duration::from_secs(15)));
/// ```
///
/// The trait is sealed. All associated types are `Send`, so a driver need not require that.
#[expect(private_bounds, reason = "the internals of a protocol are private to this crate")]
pub trait Protocol: Internals {
    /// The name for humans: "RakNet" or "Game Protocol".
    const NAME: &'static str;
    /// The maximum size of a datagram in bytes, without IP and UDP headers.
    ///
    /// A buffer for [`Peer::poll_transmit`] must be at least that large.
    const MAX_DATAGRAM: usize;
    /// True if a client should use a new local UDP port for each connection to a server.
    ///
    /// The original implementation of the Game Protocol ignores a second connection from the same port.
    const FRESH_PORT: bool;
    /// True if a client sends messages directly after its last handshake request, without waiting for a response.
    ///
    /// A driver that delays requests must then also delay the datagrams that follow them.
    const EARLY_DATA: bool;

    /// The configuration of a peer.
    type Config: Clone + Debug + Send + Sync;
    /// The options of a single connection, in addition to the configuration.
    type ConnectOptions<'o>: Copy + Debug + Default + Send + Sync;
    /// The identity of a remote peer, independent of its address.
    type Identity: Copy + Debug + Eq + Format + Hash + Send + Sync;
    /// The delivery options of a message: in RakNet reliability, channel and priority.
    type Delivery: Copy + Debug + Default + Format + PartialEq + Send + Sync;
    /// The reason why an attempt to connect failed.
    type ConnectFailure: Copy + core::error::Error + Eq + Format + Send + Sync;
    /// The reason why a connection closed.
    type DisconnectReason: Copy + fmt::Display + Debug + Eq + Format + Send + Sync;
    /// The reason why received data was dropped.
    type DropReason: DropReasons + Debug + Format + Send + Sync;
    /// Counters and measurements of one connection.
    type ConnectionStats: Copy + Debug + Default + Send + Sync;

    /// Creates the configuration of a client from 32 unpredictable random bytes.
    fn config(entropy: [u8; 32]) -> Self::Config;

    /// Returns a mutable reference to the maximum number of incoming connections; 0 makes the peer a pure client.
    fn max_incoming(config: &mut Self::Config) -> &mut u16;

    /// Mixes `entropy` into the keys of a configuration, so that peers created from copies of it have different keys.
    ///
    /// Each copy needs different random bytes. The GUID that clients see does not change.
    fn mix_entropy(config: &mut Self::Config, entropy: &[u8; 32]) {
        let _ = (config, entropy);
    }

    /// Sets the peer's Unix time in seconds at `now`, if the protocol has tokens that expire at a calendar time.
    fn set_unix_time(peer: &mut Peer<'_, Self>, now: Instant, seconds: u64) {
        let _ = (peer, now, seconds);
    }

    /// Returns advice for the operator if the counters indicate a problem, for example that some clients cannot
    /// connect.
    fn advice(peer: &Peer<'_, Self>) -> Option<&'static str> {
        let _ = peer;
        None
    }

    /// Returns the GUID of an identity, if the protocol has GUIDs.
    fn guid(identity: Self::Identity) -> Option<u64> {
        let _ = identity;
        None
    }

    /// Sets the local addresses that the peer announces in handshakes, if the protocol supports that.
    fn set_internal_addresses(peer: &mut Peer<'_, Self>, addresses: &[SocketAddr]) {
        let _ = (peer, addresses);
    }

    /// Returns the local addresses that the remote peer announced, if the protocol supports that.
    ///
    /// They are available from [`Event::Connected`](super::Event::Connected) until the next event of the connection
    /// is polled.
    fn internal_addresses(peer: &Peer<'_, Self>, id: ConnectionId) -> impl Iterator<Item = SocketAddr> {
        let _ = (peer, id);
        core::iter::empty()
    }

    /// Returns true if an attempt failed because no server responded, so another address may work.
    fn was_unanswered(failure: &Self::ConnectFailure) -> bool;

    /// Returns true if messages with this delivery are retransmitted until they are acknowledged.
    fn is_reliable(delivery: Self::Delivery) -> bool;

    /// Returns true if an unconnected datagram looks like one that requires a response: a handshake packet or a ping.
    ///
    /// A peer buffers only a few responses, so under load a driver should pass it a few requests at a time.
    fn is_request(datagram: &[u8]) -> bool;

    /// Returns true if a datagram looks like one that carries messages.
    ///
    /// It is meant for hooks and tools that inspect plain connections: encryption hides the kind of a datagram.
    fn is_data(datagram: &[u8]) -> bool;

    /// Returns the kind of a datagram in a few words without numbers, as a key for grouping.
    fn kind(datagram: &[u8]) -> &'static str;

    /// Writes a short description of a datagram.
    ///
    /// # Errors
    ///
    /// Errors of the formatter.
    fn describe(datagram: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// The part of a protocol that applications do not see.
pub(crate) trait Internals: Copy + Debug + Send + Sized + Sync + 'static {
    /// The maximum number of datagrams that one connection sends in a row while others wait.
    const BURST: u8;
    /// The state machine of a connection; its default fills a vacant slot.
    type Connection: Connection<Self> + Send + Sync
    where
        Self: Protocol;
    /// The header that the pool stores with each message.
    type BlockHeader: Copy + Debug + Default + Send + Sync;
    /// The state of a peer outside its connections.
    type State<'a>: State<Self> + Send + Sync
    where
        Self: Protocol;
    /// The tables that the state borrows.
    type StateTables<'a>
    where
        Self: Protocol;
    /// The memory of a peer for these tables.
    type Storage<const CONNECTIONS: usize, const BLOCKS: usize>: Storage<Self> + Debug
    where
        Self: Protocol;

    /// Creates the state of a new peer, and removes secrets from the configuration.
    ///
    /// It is constructed in place, because it is large.
    fn state<'a>(tables: Self::StateTables<'a>, config: &mut Self::Config) -> Self::State<'a>
    where
        Self: Protocol;

    /// Returns the key of hash tables.
    fn secret(config: &Self::Config) -> [u8; 16]
    where
        Self: Protocol;

    /// Returns the maximum number of blocks that one connection may hold in each direction.
    fn connection_blocks(config: &Self::Config) -> Option<u32>
    where
        Self: Protocol;

    /// Routes a datagram to its connection or handler.
    fn route(peer: &mut Peer<'_, Self>, from: SocketAddr, datagram: &[u8])
    where
        Self: Protocol;

    /// Writes the next datagram that belongs to no connection.
    fn poll_transmit(peer: &mut Peer<'_, Self>, buffer: &mut [u8]) -> Option<(SocketAddr, usize)>
    where
        Self: Protocol;

    /// Returns the delivery of the message in a block, or the contents of a receipt if the block holds one.
    fn delivery(header: &Self::BlockHeader) -> Result<Self::Delivery, (Receipt, Outcome)>
    where
        Self: Protocol;
}

/// The memory of a peer that only one protocol needs.
pub(crate) trait Storage<P: Protocol> {
    /// Unused memory.
    const EMPTY: Self;

    /// Clears the tables and lends them.
    fn lend(&mut self) -> P::StateTables<'_>;

    /// Allocates the tables.
    #[cfg(feature = "alloc")]
    fn allocate(connections: usize, blocks: usize) -> P::StateTables<'static>;
}

/// The state of a peer outside its connections.
pub(crate) trait State<P: Protocol>: Debug {
    /// Returns true if only connections can have something to send.
    fn is_idle(&self) -> bool;

    /// Called when the remote identity of the connection in `slot` changed from `before` to `identity`.
    fn on_identity(&mut self, slot: u16, before: Option<P::Identity>, identity: Option<P::Identity>) {
        let _ = (slot, before, identity);
    }

    /// Returns the first unconnected message that has not been reported.
    fn unconnected(&self) -> Option<&Unconnected<P>> {
        None
    }

    /// Moves the first unconnected message of a `wanted` kind to the front; returns false if there is none.
    fn bring_forward(&mut self, wanted: UnconnectedEvents) -> bool {
        let _ = wanted;
        false
    }

    /// Removes the message that [`unconnected`](Self::unconnected) returns.
    fn pop_unconnected(&mut self) -> Option<Unconnected<P>> {
        None
    }
}

/// The state of the peer that a connection borrows for one call.
pub(crate) struct Context<'x, 'a, P: Protocol> {
    pub(crate) now: Instant,
    pub(crate) slot: u16,
    pub(crate) generation: u32,
    /// The address of the remote peer.
    pub(crate) remote: &'x Option<SocketAddr>,
    pub(crate) config: &'x P::Config,
    pub(crate) pool: &'x mut Pool<'a, P::BlockHeader>,
    pub(crate) index: &'x mut Index<'a>,
    pub(crate) stats: &'x mut PeerStats<P::DropReason>,
    pub(crate) state: &'x mut P::State<'a>,
}

/// The connection with one remote peer.
pub(crate) trait Connection<P: Protocol>: Debug + Default + Occupant {
    /// Starts connecting.
    fn open(
        &mut self,
        cx: &mut Context<'_, '_, P>,
        options: &P::ConnectOptions<'_>,
    ) -> Result<(), ConnectError>;

    /// Turns a connection that the remote peer has begun into one that both peers open (simultaneous open).
    ///
    /// The application has not been notified of the connection yet.
    ///
    /// Returns false if the handshake is past the point where this is possible, or if either side uses a secure
    /// connection.
    fn open_simultaneously(
        &mut self,
        cx: &mut Context<'_, '_, P>,
        options: &P::ConnectOptions<'_>,
    ) -> Result<bool, ConnectError> {
        let _ = (cx, options);
        Ok(false)
    }

    /// Queues a message from the application.
    fn send(
        &mut self,
        cx: &mut Context<'_, '_, P>,
        message: MessageToSend<'_>,
        delivery: P::Delivery,
    ) -> Result<Option<Receipt>, SendError>;

    /// Checks whether a message of `length` bytes would be accepted.
    fn can_send(
        &self,
        cx: &Context<'_, '_, P>,
        length: usize,
        delivery: P::Delivery,
    ) -> Result<(), SendError>;

    /// Returns the maximum length of a message; a peer with the same configuration and memory can receive it.
    fn max_message_len(&self, cx: &Context<'_, '_, P>) -> usize;

    /// Sets whether incoming data is dropped as if the network had lost it.
    fn refuse_data(&mut self, refuses: bool);

    /// Closes the connection on behalf of the application.
    fn disconnect(&mut self, cx: &mut Context<'_, '_, P>);

    /// Performs the work that is due.
    fn handle_timeout(&mut self, cx: &mut Context<'_, '_, P>);

    /// Writes the next datagram into `buffer` and returns its length.
    fn poll_transmit(&mut self, cx: &mut Context<'_, '_, P>, buffer: &mut [u8]) -> Option<usize>;

    /// Called when the operating system refused a datagram of `length` bytes as too large for the path.
    fn on_too_large(&mut self, cx: &mut Context<'_, '_, P>, length: usize) {
        let _ = (cx, length);
    }

    /// Handles a report that the remote address is unreachable.
    fn on_unreachable(&mut self, cx: &mut Context<'_, '_, P>);

    /// Returns the next deadline.
    fn deadline(&self, cx: &Context<'_, '_, P>) -> Option<Instant>;

    /// Takes the next event.
    fn poll_event(&mut self, cx: &mut Context<'_, '_, P>) -> Option<ConnectionEvent<P>>;

    /// Called when the application has read a receipt that took `blocks` blocks.
    fn on_receipt_read(&mut self, cx: &mut Context<'_, '_, P>, blocks: usize) {
        let _ = (cx, blocks);
    }

    /// Called when the application has read a message that took `blocks` blocks.
    ///
    /// Returns true if deferred data may fit now, so that [`resume_deferred`](Self::resume_deferred) should be
    /// called.
    fn on_read(&mut self, cx: &mut Context<'_, '_, P>, blocks: usize) -> bool;

    /// Delivers messages that did not fit, or requests their retransmission.
    fn resume_deferred(&mut self, cx: &mut Context<'_, '_, P>) {
        let _ = cx;
    }

    /// Frees all blocks, including those of messages that the application has not read.
    fn release(&mut self, cx: &mut Context<'_, '_, P>);

    fn side(&self) -> Side;

    fn identity(&self) -> P::Identity;

    fn stats(&self, now: Instant) -> P::ConnectionStats;
}

/// A message to send.
#[derive(Clone, Copy)]
pub(crate) struct MessageToSend<'m> {
    pub(crate) bytes: &'m [u8],
    /// The vector that owns the bytes, if they need not be copied.
    pub(crate) owned: Option<OwnedId>,
}

impl<'m> MessageToSend<'m> {
    /// Creates a message from bytes that are copied.
    pub(crate) const fn copied(bytes: &'m [u8]) -> Self {
        Self { bytes, owned: None }
    }
}

/// An event of a connection.
#[derive(Clone, Copy)]
pub(crate) enum ConnectionEvent<P: Protocol> {
    Opened,
    /// This peer refused the client.
    Refused {
        reason: RefuseReason,
        is_validated: bool,
    },
    /// A message or a receipt, as recorded in the block header.
    Message(Block),
    Progress(Progress),
    MtuChanged(u16),
    Ended(Ending<P>),
}

/// The last event of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ending<P: Protocol> {
    Failed(P::ConnectFailure),
    Disconnected(P::DisconnectReason),
}

/// The kind of an unconnected message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum UnconnectedKind {
    Pong(Duration),
    OutOfBand,
    Advertisement,
}

/// The events that [`Peer::poll_unconnected`] returns; others remain queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum UnconnectedEvents {
    /// Every event, in the order of arrival.
    All,
    /// Only pongs.
    Pongs,
    /// Only out-of-band messages and advertisements.
    Messages,
}

impl UnconnectedEvents {
    /// Returns true if an event of this kind is wanted.
    pub(crate) const fn contains(self, kind: &UnconnectedKind) -> bool {
        match self {
            Self::All => true,
            Self::Pongs => matches!(kind, UnconnectedKind::Pong(_)),
            Self::Messages => !matches!(kind, UnconnectedKind::Pong(_)),
        }
    }
}

/// A message from an unconnected peer; its bytes are in the pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unconnected<P: Protocol> {
    pub(crate) from: SocketAddr,
    pub(crate) identity: P::Identity,
    pub(crate) kind: UnconnectedKind,
    pub(crate) data: Block,
}

/// A peer: a sans-IO endpoint with any number of connections over one socket.
///
/// ```
/// use rakwire::Instant;
/// use rakwire::raknet::{Config, Peer, Resources};
///
/// let mut resources = Resources::<1, 32, 128>::new();
/// let mut peer = Peer::new(&mut resources, Config::new([7; 32]));
/// let server = "127.0.0.1:19132".parse()?;
/// peer.connect(Instant::ZERO, server)?;
/// let mut buffer = [0; rakwire::wire::MAX_DATAGRAM];
/// let request = peer.poll_transmit(Instant::ZERO, &mut buffer).ok_or("a request is due")?;
/// assert_eq!((request.to, request.payload.len()), (server, 1464));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Peer<'a, P: Protocol> {
    pub(crate) config: P::Config,
    pub(crate) tables: Tables<'a, P::Connection, P::BlockHeader>,
    pub(crate) state: P::State<'a>,
    pub(crate) stats: PeerStats<P::DropReason>,
    pub(crate) last_now: Instant,
    pub(crate) admission: AdmissionMember,
}

/// Omits the message memory, which contains payloads and secrets.
impl<P: Protocol> Debug for Peer<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { config, stats, admission, .. } = self;
        let mut debug = f.debug_struct("Peer");
        debug
            .field("config", config)
            .field("stats", stats)
            .field("incoming", &admission.incoming())
            .finish_non_exhaustive()
    }
}

/// `defmt::Format`, if the feature `defmt` is enabled.
#[cfg(feature = "defmt")]
pub(crate) trait Format: defmt::Format {}
#[cfg(feature = "defmt")]
impl<T: defmt::Format> Format for T {}

/// A trait that every type implements, because the feature `defmt` is disabled.
#[cfg(not(feature = "defmt"))]
pub(crate) trait Format {}
#[cfg(not(feature = "defmt"))]
impl<T> Format for T {}
