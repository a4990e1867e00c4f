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
/// It cannot be implemented outside of this crate. The types of a protocol may be sent to other threads, so a driver
/// need not require that.
#[expect(private_bounds, reason = "the internals of a protocol are private to this crate")]
pub trait Protocol: Internals {
    /// The human-readable name: "RakNet", "Game Protocol".
    const NAME: &'static str;
    /// The size of the longest datagram in bytes, without IP and UDP headers.
    ///
    /// A buffer for [`Peer::poll_transmit`] must have this size.
    const MAX_DATAGRAM: usize;
    /// True if a client should open each connection to a server from a new UDP port.
    ///
    /// The original of the Game Protocol ignores a second connection from the same port.
    const FRESH_PORT: bool;
    /// True if a client sends messages directly after its last request, without waiting for an answer.
    ///
    /// A driver that delays requests must then also delay what follows them.
    const EARLY_DATA: bool;

    /// The configuration of a peer.
    type Config: Clone + Debug + Send + Sync;
    /// The options of a single connection, where they differ from the configuration.
    type ConnectOptions<'o>: Copy + Debug + Default + Send + Sync;
    /// The identity of a peer apart from its address.
    type Identity: Copy + Debug + Eq + Format + Hash + Send + Sync;
    /// The delivery options of a message.
    type Delivery: Copy + Debug + Default + Format + PartialEq + Send + Sync;
    /// The reason why a connection could not be opened.
    type ConnectFailure: Copy + core::error::Error + Eq + Format + Send + Sync;
    /// The reason why a connection ended.
    type DisconnectReason: Copy + fmt::Display + Debug + Eq + Format + Send + Sync;
    /// The reason why received data was dropped.
    type DropReason: DropReasons + Debug + Format + Send + Sync;
    /// Counters and measurements of one connection.
    type ConnectionStats: Copy + Debug + Default + Send + Sync;

    /// Creates a configuration for a peer that opens connections, from 32 unpredictable random bytes.
    fn config(entropy: [u8; 32]) -> Self::Config;

    /// Returns the most incoming connections at a time; 0 makes a pure client.
    fn max_incoming(config: &mut Self::Config) -> &mut u16;

    /// Mixes these bytes into the keys of a configuration, to create several peers from copies of it.
    ///
    /// No two of them may draw the same random bytes. The identity that clients see does not change.
    fn mix_entropy(config: &mut Self::Config, entropy: &[u8; 32]) {
        let _ = (config, entropy);
    }

    /// Sets the Unix time of a peer at `now` in seconds, if the protocol has calendar expiries.
    fn set_unix_time(peer: &mut Peer<'_, Self>, now: Instant, seconds: u64) {
        let _ = (peer, now, seconds);
    }

    /// Returns advice for an operator that the counters suggest, such as clients of a kind that cannot connect.
    fn advice(peer: &Peer<'_, Self>) -> Option<&'static str> {
        let _ = peer;
        None
    }

    /// Returns the GUID of a peer, if the protocol has one.
    fn guid(identity: Self::Identity) -> Option<u64> {
        let _ = identity;
        None
    }

    /// Makes a peer announce these addresses as its own in handshakes, if the protocol supports that.
    fn set_internal_addresses(peer: &mut Peer<'_, Self>, addresses: &[SocketAddr]) {
        let _ = (peer, addresses);
    }

    /// Returns the addresses that the remote peer announced as its own, if the protocol supports that.
    ///
    /// They are available from [`Event::Connected`](super::Event::Connected) until the next event of the connection is
    /// polled.
    fn internal_addresses(peer: &Peer<'_, Self>, id: ConnectionId) -> impl Iterator<Item = SocketAddr> {
        let _ = (peer, id);
        core::iter::empty()
    }

    /// Returns true if an attempt failed because no server answered, so that another address may work.
    fn was_unanswered(failure: &Self::ConnectFailure) -> bool;

    /// Returns true if an unconnected datagram requires an answer, judging by its bytes.
    ///
    /// It is then part of a handshake, or a ping. A peer keeps only a few answers until they are sent, so under load a
    /// driver passes it a few requests at a time.
    fn is_request(datagram: &[u8]) -> bool;

    /// Returns true if a datagram carries messages, judging by its bytes.
    ///
    /// The bytes do not show that in a protected connection. It is for hooks and tools that inspect the datagrams of
    /// plain connections.
    fn is_data(datagram: &[u8]) -> bool;

    /// Returns the kind of a datagram, judging by its bytes: a few words without numbers, by which tools group.
    fn kind(datagram: &[u8]) -> &'static str;

    /// Writes a description of a datagram in a few words.
    ///
    /// # Errors
    ///
    /// Those of the formatter.
    fn describe(datagram: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// The parts of a protocol that applications do not see.
pub(crate) trait Internals: Copy + Debug + Send + Sized + Sync + 'static {
    /// The maximum number of consecutive datagrams of one connection while others wait.
    const BURST: u8;
    /// A connection, or the content of a vacant slot.
    type Connection: Connection<Self> + Send + Sync
    where
        Self: Protocol;
    /// The header that the pool stores with a message.
    type BlockHeader: Copy + Debug + Default + Send + Sync;
    /// The state of a peer apart from its connections.
    type State<'a>: State<Self> + Send + Sync
    where
        Self: Protocol;
    /// The tables of the state.
    type StateTables<'a>
    where
        Self: Protocol;
    /// The memory of a peer for these tables.
    type Storage<const CONNECTIONS: usize, const BLOCKS: usize>: Storage<Self> + Debug
    where
        Self: Protocol;

    /// Creates the state of a new peer, and takes secrets that must not stay in the configuration.
    ///
    /// The state is large if memory is plentiful, so it is created in place.
    fn state<'a>(tables: Self::StateTables<'a>, config: &mut Self::Config) -> Self::State<'a>
    where
        Self: Protocol;

    /// Returns the key of hash tables.
    fn secret(config: &Self::Config) -> [u8; 16]
    where
        Self: Protocol;

    /// Returns the most blocks that one connection may hold in each direction.
    fn connection_blocks(config: &Self::Config) -> Option<u32>
    where
        Self: Protocol;

    /// Routes a datagram to its connection or handler.
    fn route(peer: &mut Peer<'_, Self>, from: SocketAddr, datagram: &[u8])
    where
        Self: Protocol;

    /// Writes the next datagram that belongs to no particular connection.
    fn poll_transmit(peer: &mut Peer<'_, Self>, buffer: &mut [u8]) -> Option<(SocketAddr, usize)>
    where
        Self: Protocol;

    /// Returns the delivery of the message in a block; or, if the block is a receipt, its contents.
    fn delivery(header: &Self::BlockHeader) -> Result<Self::Delivery, (Receipt, Outcome)>
    where
        Self: Protocol;
}

/// The part of a peer's memory that only one protocol needs.
pub(crate) trait Storage<P: Protocol> {
    /// Unused memory.
    const EMPTY: Self;

    /// Resets and lends the tables, whatever an earlier peer left in them.
    fn lend(&mut self) -> P::StateTables<'_>;

    /// Allocates the tables.
    #[cfg(feature = "alloc")]
    fn allocate(connections: usize, blocks: usize) -> P::StateTables<'static>;
}

/// The state of a peer apart from its connections.
pub(crate) trait State<P: Protocol>: Debug {
    /// Returns true if only connections may have something to send.
    fn is_idle(&self) -> bool;

    /// Called when the remote identity of a slot changed from `before` to `identity`.
    fn on_identity(&mut self, slot: u16, before: Option<P::Identity>, identity: Option<P::Identity>) {
        let _ = (slot, before, identity);
    }

    /// Returns the first message of a peer without a connection that has not been reported.
    fn unconnected(&self) -> Option<&Unconnected<P>> {
        None
    }

    /// Moves the first such message of a `wanted` kind to the front; returns false if there is none.
    fn bring_forward(&mut self, wanted: fn(&UnconnectedKind) -> bool) -> bool {
        let _ = wanted;
        false
    }

    /// Removes the message that [`unconnected`](Self::unconnected) returns.
    fn pop_unconnected(&mut self) -> Option<Unconnected<P>> {
        None
    }
}

/// The state that a connection borrows from its peer for the duration of one call.
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
    /// Starts to open a connection.
    fn open(
        &mut self,
        cx: &mut Context<'_, '_, P>,
        options: &P::ConnectOptions<'_>,
    ) -> Result<(), ConnectError>;

    /// Starts to open a connection that the remote peer is opening at the same time.
    ///
    /// The application does not know that connection yet.
    ///
    /// Returns false if the connection is not in that state.
    fn open_simultaneously(
        &mut self,
        cx: &mut Context<'_, '_, P>,
        options: &P::ConnectOptions<'_>,
    ) -> Result<bool, ConnectError> {
        let _ = (cx, options);
        Ok(false)
    }

    /// Accepts a message of the application.
    fn send(
        &mut self,
        cx: &mut Context<'_, '_, P>,
        message: MessageToSend<'_>,
        delivery: P::Delivery,
    ) -> Result<Option<Receipt>, SendError>;

    /// Checks that a message of the application would be accepted now, judging by its length.
    fn can_send(
        &self,
        cx: &Context<'_, '_, P>,
        length: usize,
        delivery: P::Delivery,
    ) -> Result<(), SendError>;

    /// Returns the longest message that the connection accepts and that an equal peer can receive.
    fn max_message_len(&self, cx: &Context<'_, '_, P>) -> usize;

    /// Sets whether data datagrams are dropped as if they had not arrived.
    fn refuse_data(&mut self, refuses: bool);

    /// Ends the connection at the request of the application.
    fn disconnect(&mut self, cx: &mut Context<'_, '_, P>);

    /// Does the work that is due.
    fn handle_timeout(&mut self, cx: &mut Context<'_, '_, P>);

    /// Writes the next datagram at the front of `buffer` and returns its length.
    fn poll_transmit(&mut self, cx: &mut Context<'_, '_, P>, buffer: &mut [u8]) -> Option<usize>;

    /// Called when the system refused a datagram of this length as too large for the path.
    fn on_too_large(&mut self, cx: &mut Context<'_, '_, P>, length: usize) {
        let _ = (cx, length);
    }

    /// Handles a report that the address of the peer is unreachable.
    fn on_unreachable(&mut self, cx: &mut Context<'_, '_, P>);

    /// Returns when something is due next.
    fn deadline(&self, cx: &Context<'_, '_, P>) -> Option<Instant>;

    /// Takes the next event.
    fn poll_event(&mut self, cx: &mut Context<'_, '_, P>) -> Option<ConnectionEvent<P>>;

    /// Called when the application has read a receipt of `blocks` blocks.
    fn on_receipt_read(&mut self, cx: &mut Context<'_, '_, P>, blocks: usize) {
        let _ = (cx, blocks);
    }

    /// Called when the application has read a message of `blocks` blocks.
    ///
    /// Returns true if there may now be room for deferred data, so that [`resume_deferred`](Self::resume_deferred)
    /// should be called.
    fn on_read(&mut self, cx: &mut Context<'_, '_, P>, blocks: usize) -> bool;

    /// Delivers messages that had no room, or requests their retransmission.
    fn resume_deferred(&mut self, cx: &mut Context<'_, '_, P>) {
        let _ = cx;
    }

    /// Frees everything, including data that the application did not read.
    fn release(&mut self, cx: &mut Context<'_, '_, P>);

    fn side(&self) -> Side;

    fn identity(&self) -> P::Identity;

    fn stats(&self, now: Instant) -> P::ConnectionStats;
}

/// A message to send.
#[derive(Clone, Copy)]
pub(crate) struct MessageToSend<'m> {
    pub(crate) bytes: &'m [u8],
    /// The vector for the bytes, if the connection need not copy them.
    pub(crate) owned: Option<OwnedId>,
}

impl<'m> MessageToSend<'m> {
    /// Creates a message that is copied.
    pub(crate) const fn copied(bytes: &'m [u8]) -> Self {
        Self { bytes, owned: None }
    }
}

/// An event of a connection.
#[derive(Clone, Copy)]
pub(crate) enum ConnectionEvent<P: Protocol> {
    Opened,
    /// The client was refused.
    Refused {
        reason: RefuseReason,
        is_validated: bool,
    },
    /// A message or a receipt, depending on the block's header.
    Message(Block),
    Progress(Progress),
    MtuChanged(u16),
    Ended(Ending<P>),
}

/// The final event of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ending<P: Protocol> {
    Failed(P::ConnectFailure),
    Disconnected(P::DisconnectReason),
}

/// The kind of a message from a peer without a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum UnconnectedKind {
    Pong(Duration),
    OutOfBand,
    Advertisement,
}

impl UnconnectedKind {
    pub(crate) const fn is_pong(&self) -> bool {
        matches!(self, Self::Pong(_))
    }

    pub(crate) const fn is_message(&self) -> bool {
        !self.is_pong()
    }
}

/// A message of a peer without a connection; its bytes are in the pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unconnected<P: Protocol> {
    pub(crate) from: SocketAddr,
    pub(crate) identity: P::Identity,
    pub(crate) kind: UnconnectedKind,
    pub(crate) data: Block,
}

/// A peer: any number of connections over one socket, which the peer does not access itself.
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

/// Omits the contents of its memory, which are messages and secrets.
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

/// Types that defmt can print, if it is built in.
#[cfg(feature = "defmt")]
pub(crate) trait Format: defmt::Format {}
#[cfg(feature = "defmt")]
impl<T: defmt::Format> Format for T {}

/// Types that defmt could print, if it were built in.
#[cfg(not(feature = "defmt"))]
pub(crate) trait Format {}
#[cfg(not(feature = "defmt"))]
impl<T> Format for T {}
