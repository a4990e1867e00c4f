//! What a protocol brings, and the peer that it brings it to.

use core::fmt::{self, Debug};
use core::hash::Hash;
use core::net::SocketAddr;
use core::time::Duration;

use super::connection_table::Occupant;
use super::member::AdmissionMember;
use super::tables::Tables;
use super::types::{
    ConnectError, ConnectionId, DropReasons, Outcome, PeerStats, Progress, Receipt, RefuseReason, SendError,
    Side,
};
use crate::storage::{Block, HandOverId, Index, Pool};
use crate::time::Instant;

/// A protocol that a [`Peer`] can speak: [`RakNet`](crate::raknet::RakNet) or the
/// [`GameProtocol`](crate::game_protocol::GameProtocol).
///
/// Drivers are written once over this trait:
///
/// ```
/// use core::time::Duration;
/// use rakwire::endpoint::{Capacity, Event, Peer, Protocol};
/// use rakwire::game_protocol::GameProtocol;
/// use rakwire::raknet::RakNet;
/// use rakwire::Instant;
///
/// /// How long a peer tries to connect to a server that does not answer, in either protocol.
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
/// It cannot be implemented outside of this crate. What belongs to a protocol may go to other threads, so a driver need
/// not ask for it.
#[expect(private_bounds, reason = "what a protocol brings is known in this crate alone")]
pub trait Protocol: Internals {
    /// The name that people know: "RakNet", "Game Protocol".
    const NAME: &'static str;
    /// Bytes of the longest datagram, without IP and UDP headers: what a buffer for
    /// [`Peer::poll_transmit`] must hold.
    const MAX_DATAGRAM: usize;
    /// Whether a client should open each connection from a UDP port that it has not used with this server before:
    /// the original of the Game Protocol does not hear a client twice from the same port.
    const FRESH_PORT: bool;
    /// Whether a client sends messages right behind its last request, without waiting for an answer. A driver that lets
    /// requests wait must then let what comes behind them wait too.
    const EARLY_DATA: bool;

    /// How a peer behaves.
    type Config: Clone + Debug + Send + Sync;
    /// How one connection is opened, where that differs from the configuration.
    type ConnectOptions<'o>: Copy + Debug + Default + Send + Sync;
    /// Who a peer is beside its address.
    type Identity: Copy + Debug + Eq + Format + Hash + Send + Sync;
    /// How a message travels.
    type Delivery: Copy + Debug + Default + Format + PartialEq + Send + Sync;
    /// Why a connection could not be opened.
    type ConnectFailure: Copy + core::error::Error + Eq + Format + Send + Sync;
    /// Why a connection ended.
    type DisconnectReason: Copy + fmt::Display + Debug + Eq + Format + Send + Sync;
    /// Why something that arrived was dropped.
    type DropReason: DropReasons + Debug + Format + Send + Sync;
    /// Counters and measurements of one connection.
    type ConnectionStats: Copy + Debug + Default + Send + Sync;

    /// A configuration from 32 random bytes that nobody can guess, for a peer that opens connections.
    fn config(entropy: [u8; 32]) -> Self::Config;

    /// How many connections others may open at once; 0 makes a pure client.
    fn max_incoming(config: &mut Self::Config) -> &mut u16;

    /// Makes the keys of a configuration depend on these bytes too, so that several peers can be made of copies of one: none
    /// of them may draw the same random bytes. What clients know the peers by stays the same.
    fn diversify(config: &mut Self::Config, entropy: &[u8; 32]) {
        let _ = (config, entropy);
    }

    /// Tells a peer how many seconds since 1970 it is `now`, where something of the protocol expires by the calendar.
    fn tell_unix_time(peer: &mut Peer<'_, Self>, now: Instant, seconds: u64) {
        let _ = (peer, now, seconds);
    }

    /// What the counters show that an operator should hear of once: clients of a kind that cannot come in.
    fn advice(peer: &Peer<'_, Self>) -> Option<&'static str> {
        let _ = peer;
        None
    }

    /// The GUID of a peer, where the protocol has one.
    fn guid(identity: Self::Identity) -> Option<u64> {
        let _ = identity;
        None
    }

    /// Lets a peer say in its handshakes that these addresses are its own, where the protocol has a place for them.
    fn tell_addresses(peer: &mut Peer<'_, Self>, addresses: &[SocketAddr]) {
        let _ = (peer, addresses);
    }

    /// The addresses that the other peer of a connection has said are its own, where the protocol has a place for them:
    /// from [`Event::Connected`](super::Event::Connected) until the next event of the connection is asked for.
    fn told_addresses(peer: &Peer<'_, Self>, id: ConnectionId) -> impl Iterator<Item = SocketAddr> {
        let _ = (peer, id);
        core::iter::empty()
    }

    /// Whether an attempt failed because no server answered at its address, so that one may at another address.
    fn was_unanswered(failure: &Self::ConnectFailure) -> bool;

    /// Whether a datagram of a peer without a connection wants an answer, as far as its bytes tell: a handshake or a
    /// ping. A peer keeps only a few answers until they are sent, so where many ask at once a driver hands it a few of
    /// them at a time.
    fn is_request(datagram: &[u8]) -> bool;

    /// Whether a datagram carries messages, as far as its bytes tell: those of a protected connection do not. For hooks
    /// and tools that look at the datagrams of a plain one.
    fn is_data(datagram: &[u8]) -> bool;

    /// What kind of datagram this is, as far as its bytes tell: a few words without numbers, by which tools group.
    fn kind(datagram: &[u8]) -> &'static str;

    /// Writes what a datagram is, in a few words.
    ///
    /// # Errors
    /// Those of the formatter.
    fn describe(datagram: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// What a protocol brings beside what applications see.
pub(crate) trait Internals: Copy + Debug + Send + Sized + Sync + 'static {
    /// How many datagrams of one connection may leave in a row while others wait.
    const BURST: u8;
    /// One connection, or what stands in a vacant slot.
    type Connection: Connection<Self> + Send + Sync
    where
        Self: Protocol;
    /// What the pool keeps of a block beside its bytes.
    type BlockHeader: Copy + Debug + Default + Send + Sync;
    /// What the peer keeps beside its connections.
    type State<'a>: State<Self> + Send + Sync
    where
        Self: Protocol;
    /// The tables of the state.
    type StateTables<'a>
    where
        Self: Protocol;
    /// What these tables need of the memory of a peer.
    type Storage<const CONNECTIONS: usize, const BLOCKS: usize>: Storage<Self> + Debug
    where
        Self: Protocol;

    /// The state of a new peer, which takes over secrets that may not stay in the configuration. It is large where memory is at
    /// hand, so it is made where it stays.
    fn state<'a>(tables: Self::StateTables<'a>, config: &mut Self::Config) -> Self::State<'a>
    where
        Self: Protocol;

    /// The key of hash tables.
    fn secret(config: &Self::Config) -> [u8; 16]
    where
        Self: Protocol;

    /// The most blocks that one connection may hold in each direction.
    fn connection_blocks(config: &Self::Config) -> Option<u32>
    where
        Self: Protocol;

    /// Decides what a datagram is for.
    fn route(peer: &mut Peer<'_, Self>, from: SocketAddr, datagram: &[u8])
    where
        Self: Protocol;

    /// Writes the next datagram that belongs to no connection in particular.
    fn poll_transmit(peer: &mut Peer<'_, Self>, buffer: &mut [u8]) -> Option<(SocketAddr, usize)>
    where
        Self: Protocol;

    /// How the message in a block travelled; or, if the block stands for a receipt, what that says.
    fn delivery(header: &Self::BlockHeader) -> Result<Self::Delivery, (Receipt, Outcome)>
    where
        Self: Protocol;
}

/// The part of a peer's memory that only one protocol needs.
pub(crate) trait Storage<P: Protocol> {
    /// Memory that no peer uses yet.
    const EMPTY: Self;

    /// Empties the tables, whatever an earlier peer left in them, and lends them.
    fn lend(&mut self) -> P::StateTables<'_>;

    /// The same in memory of the allocator.
    #[cfg(feature = "alloc")]
    fn allocate(connections: usize, blocks: usize) -> P::StateTables<'static>;
}

/// What a peer keeps beside its connections.
pub(crate) trait State<P: Protocol>: Debug {
    /// Whether nothing but connections has anything to send.
    fn is_idle(&self) -> bool;

    /// The connection in a slot is with `identity` now; before, it was with `before`.
    fn on_identity(&mut self, slot: u16, before: Option<P::Identity>, identity: Option<P::Identity>) {
        let _ = (slot, before, identity);
    }

    /// The first message of a peer without a connection that the application was not told yet.
    fn unconnected(&self) -> Option<&Unconnected<P>> {
        None
    }

    /// Moves the first such message of a kind that is `wanted` before the others; false if there is none.
    fn bring_forward(&mut self, wanted: fn(&UnconnectedKind) -> bool) -> bool {
        let _ = wanted;
        false
    }

    /// Takes what [`unconnected`](Self::unconnected) shows out of its queue.
    fn pop_unconnected(&mut self) -> Option<Unconnected<P>> {
        None
    }
}

/// What a connection borrows from its peer for the time of one call.
pub(crate) struct Context<'x, 'a, P: Protocol> {
    pub(crate) now: Instant,
    pub(crate) slot: u16,
    pub(crate) generation: u32,
    /// Where the other peer is.
    pub(crate) remote: &'x Option<SocketAddr>,
    pub(crate) config: &'x P::Config,
    pub(crate) pool: &'x mut Pool<'a, P::BlockHeader>,
    pub(crate) index: &'x mut Index<'a>,
    pub(crate) stats: &'x mut PeerStats<P::DropReason>,
    pub(crate) state: &'x mut P::State<'a>,
}

/// One other peer, as the endpoint knows it.
pub(crate) trait Connection<P: Protocol>: Debug + Default + Occupant {
    /// Begins to open a connection.
    fn open(
        &mut self,
        cx: &mut Context<'_, '_, P>,
        options: &P::ConnectOptions<'_>,
    ) -> Result<(), ConnectError>;

    /// Begins to open, from this end too, a connection that the other peer has begun to open and that the application
    /// was not told of. False if the connection is not such a one.
    fn adopt(
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

    /// Whether a message of the application would be accepted now, as far as its length tells.
    fn can_send(
        &self,
        cx: &Context<'_, '_, P>,
        length: usize,
        delivery: P::Delivery,
    ) -> Result<(), SendError>;

    /// The longest message that the connection takes and that an equal peer can receive.
    fn max_message_len(&self, cx: &Context<'_, '_, P>) -> usize;

    /// Sets whether datagrams of messages are dropped as if they had not arrived.
    fn refuse_data(&mut self, refuses: bool);

    /// Ends the connection as its application wants.
    fn disconnect(&mut self, cx: &mut Context<'_, '_, P>);

    /// Does what is due.
    fn handle_timeout(&mut self, cx: &mut Context<'_, '_, P>);

    /// Writes the next datagram at the front of `buffer` and returns its length.
    fn poll_transmit(&mut self, cx: &mut Context<'_, '_, P>, buffer: &mut [u8]) -> Option<usize>;

    /// Handles that the system refused a datagram of this length because it is too large for the path.
    fn on_too_large(&mut self, cx: &mut Context<'_, '_, P>, length: usize) {
        let _ = (cx, length);
    }

    /// Handles the report that nothing can be reached at the address of the peer.
    fn on_unreachable(&mut self, cx: &mut Context<'_, '_, P>);

    /// When something is due next.
    fn deadline(&self, cx: &Context<'_, '_, P>) -> Option<Instant>;

    /// Takes the next event.
    fn poll_event(&mut self, cx: &mut Context<'_, '_, P>) -> Option<ConnectionEvent<P>>;

    /// The application has read a receipt of so many blocks.
    fn on_receipt_read(&mut self, cx: &mut Context<'_, '_, P>, blocks: usize) {
        let _ = (cx, blocks);
    }

    /// The application has read a message of so many blocks. True if the connection may now take what it had no room
    /// for, and wants [`resume_deferred`](Self::resume_deferred).
    fn on_read(&mut self, cx: &mut Context<'_, '_, P>, blocks: usize) -> bool;

    /// Delivers what found no room, or asks the other peer for it.
    fn resume_deferred(&mut self, cx: &mut Context<'_, '_, P>) {
        let _ = cx;
    }

    /// Gives back everything, also what the application did not read.
    fn release(&mut self, cx: &mut Context<'_, '_, P>);

    fn side(&self) -> Side;

    fn identity(&self) -> P::Identity;

    fn stats(&self, now: Instant) -> P::ConnectionStats;
}

/// A message to send.
#[derive(Clone, Copy)]
pub(crate) struct MessageToSend<'m> {
    pub(crate) bytes: &'m [u8],
    /// Where the bytes will stand, if the connection need not copy them.
    pub(crate) handed_over: Option<HandOverId>,
}

impl<'m> MessageToSend<'m> {
    /// A message that is copied.
    pub(crate) const fn copied(bytes: &'m [u8]) -> Self {
        Self { bytes, handed_over: None }
    }
}

/// What is to be told of a connection.
#[derive(Clone, Copy)]
pub(crate) enum ConnectionEvent<P: Protocol> {
    Opened,
    /// The client was not let in.
    Refused {
        reason: RefuseReason,
        is_validated: bool,
    },
    /// A message or a receipt, as the block's header says.
    Message(Block),
    Progress(Progress),
    MtuChanged(u16),
    Ended(Ending<P>),
}

/// What the application is told at the end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ending<P: Protocol> {
    Failed(P::ConnectFailure),
    Disconnected(P::DisconnectReason),
}

/// What kind of message a peer without a connection sent.
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

/// A message of a peer without a connection; its bytes stand in the pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unconnected<P: Protocol> {
    pub(crate) from: SocketAddr,
    pub(crate) identity: P::Identity,
    pub(crate) kind: UnconnectedKind,
    pub(crate) data: Block,
}

/// A peer: any number of connections over one socket that it does not know.
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

/// Without what its memory holds: messages, and secrets.
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

/// What defmt can print, if it is built in.
#[cfg(feature = "defmt")]
pub(crate) trait Format: defmt::Format {}
#[cfg(feature = "defmt")]
impl<T: defmt::Format> Format for T {}

/// What defmt could print, if it were built in.
#[cfg(not(feature = "defmt"))]
pub(crate) trait Format {}
#[cfg(not(feature = "defmt"))]
impl<T> Format for T {}
