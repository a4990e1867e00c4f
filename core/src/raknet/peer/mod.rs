//! A peer: its connections, and which datagram belongs to which.

mod errors;
#[cfg(feature = "server")]
mod listening;
mod news;
mod output;
mod roster;
mod routing;
#[cfg(feature = "unconnected")]
mod unconnected;

use core::net::SocketAddr;
use core::time::Duration;

pub use errors::{ConnectError, OutOfBandError, PingError, SetError};

use super::bans::BanList;
use super::config::Config;
use super::connection::{Connection, ConnectionState, SendError, Side};
use super::delivery::Delivery;
use super::event::{ConnectionId, Receipt, Said};
use super::features::{SERVER, UNCONNECTED, room};
use super::offline::Desk;
use super::resources::{Resources, Tables};
use super::stats::{ConnectionStats, PeerStats};
use super::wire::Guid;
use super::wire::control::MAX_PASSWORD;
use crate::machine::{Machine, Transmit};
use crate::serial::U24;
use crate::storage::Block;
use crate::time::Instant;

/// How one connection is opened, where that differs from the configuration.
///
/// ```
/// use core::time::Duration;
/// use rakwire::raknet::ConnectOptions;
///
/// let options = ConnectOptions { password: b"secret", timeout: Some(Duration::from_secs(3)), ..Default::default() };
/// assert_eq!(options.attempts, None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectOptions<'p> {
    /// What the server asks for, 0 to 255 bytes. It crosses the network in the clear.
    pub password: &'p [u8],
    /// The protocol version to announce.
    pub protocol_version: Option<u8>,
    /// How often the first request is repeated, at least 3.
    pub attempts: Option<u8>,
    /// The time between two first requests, at most 71 minutes; more counts as that.
    pub interval: Option<Duration>,
    /// How long the other peer may stay silent once the connection is open.
    pub timeout: Option<Duration>,
}

/// What is known of a connection.
///
/// ```
/// use rakwire::raknet::{ConnectionInfo, ConnectionState};
///
/// fn is_open(info: &ConnectionInfo) -> bool {
///     info.state == ConnectionState::Connected
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionInfo {
    /// Where the other peer is.
    pub remote: SocketAddr,
    /// Who the other peer is.
    pub guid: Guid,
    /// Who opened the connection.
    pub side: Side,
    /// How far it has come.
    pub state: ConnectionState,
    /// The MTU, with 28 bytes of IP and UDP headers.
    pub mtu: u16,
}

/// What was lent by the last event and goes back with the next.
#[derive(Clone, Copy, Debug)]
enum Lent {
    Nothing,
    Message {
        message: Block,
        id: ConnectionId,
    },
    /// The bytes of the first stranger in the queue.
    Stranger,
}

/// Where the ban list stands.
#[derive(Debug)]
enum Bans<'a> {
    None,
    Lent(&'a mut BanList),
    #[cfg(feature = "alloc")]
    Owned(alloc::boxed::Box<BanList>),
}

impl Bans<'_> {
    fn list(&self) -> Option<&BanList> {
        match self {
            Self::None => None,
            Self::Lent(bans) => Some(bans),
            #[cfg(feature = "alloc")]
            Self::Owned(bans) => Some(bans),
        }
    }
}

/// What a stranger said and nobody was told of yet; its bytes stand in the pool.
#[derive(Clone, Copy, Debug)]
struct Stranger {
    from: SocketAddr,
    guid: Guid,
    said: Said,
    data: Block,
}

/// A RakNet peer: any number of connections over one socket that it does not know.
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
#[derive(Debug)]
pub struct Peer<'a> {
    config: Config,
    tables: Tables<'a>,
    desk: Desk,
    bans: Bans<'a>,
    password: heapless::Vec<u8, { room(SERVER, MAX_PASSWORD) }>,
    strangers: heapless::Deque<Stranger, { room(UNCONNECTED, 8) }>,
    stats: PeerStats,
    lent: Lent,
    last_now: Instant,
    /// The slot that the last datagram was for: often the next one's, too.
    last_slot: u16,
    /// Where the counters of new connections start.
    first_number: U24,
    incoming: u16,
}

impl<'a> Peer<'a> {
    /// A peer in memory that the caller lends.
    #[must_use]
    pub fn new<const CONNECTIONS: usize, const BLOCKS: usize, const BLOCK_SIZE: usize>(
        resources: &'a mut Resources<CONNECTIONS, BLOCKS, BLOCK_SIZE>,
        config: Config,
    ) -> Self {
        let tables = resources.lend(config.secret);
        Self::over(tables, config)
    }

    /// A peer in memory of the allocator.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn with_capacity(capacity: super::Capacity, config: Config) -> Peer<'static> {
        let tables = capacity.allocate(config.secret);
        Peer::over(tables, config)
    }

    fn over(tables: Tables<'a>, config: Config) -> Self {
        Self {
            config,
            tables,
            desk: Desk::default(),
            bans: Bans::None,
            password: heapless::Vec::new(),
            strangers: heapless::Deque::new(),
            stats: PeerStats::default(),
            lent: Lent::Nothing,
            last_now: Instant::ZERO,
            last_slot: 0,
            first_number: U24::new(0),
            incoming: 0,
        }
    }

    /// How this peer behaves.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The counters of this peer.
    #[must_use]
    pub const fn stats(&self) -> &PeerStats {
        &self.stats
    }

    /// Blocks that hold nothing now.
    #[must_use]
    pub fn blocks_available(&self) -> usize {
        self.tables.pool.available()
    }

    /// Blocks in all.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.tables.pool.capacity()
    }

    /// Whether the memory has always been consistent. If not, that is a bug of this crate, at which a build with debug
    /// assertions panics.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.tables.pool.is_intact()
    }

    /// Lets the counters of connections made from now on start at `number` instead of 0, to test what happens when
    /// they wrap. The other peer must do the same.
    pub fn start_numbers_at(&mut self, number: U24) {
        self.first_number = number;
    }

    /// Begins to open a connection as the configuration says. [`Event::Connected`](super::Event::Connected) or
    /// [`Event::ConnectFailed`](super::Event::ConnectFailed) says what became of it.
    ///
    /// # Errors
    /// [`ConnectError::AlreadyConnected`] or [`ConnectError::Full`].
    pub fn connect(&mut self, now: Instant, to: SocketAddr) -> Result<ConnectionId, ConnectError> {
        self.connect_with(now, to, &ConnectOptions::default())
    }

    /// Begins to open a connection with a password, another protocol version or other times than the configuration
    /// says.
    ///
    /// # Errors
    /// A [`ConnectError`]; nothing changed then.
    pub fn connect_with(
        &mut self,
        now: Instant,
        to: SocketAddr,
        options: &ConnectOptions<'_>,
    ) -> Result<ConnectionId, ConnectError> {
        self.advance(now);
        if options.password.len() > MAX_PASSWORD {
            return Err(ConnectError::PasswordTooLong);
        }
        if self.find_living(&to).is_some() {
            return Err(ConnectError::AlreadyConnected);
        }
        let slot = self.tables.vacant.pop().ok_or(ConnectError::Full)?;
        let opened = self.with(slot, |connection, cx| connection.open(cx, to, options));
        if opened != Some(true) {
            self.tables.vacant.push(slot);
            return Err(ConnectError::NoMemory);
        }
        self.settle_in(slot, to);
        Ok(self.id(slot))
    }

    /// The connection with the peer at `address`, if there is one.
    #[must_use]
    pub fn connection_at(&self, address: SocketAddr) -> Option<ConnectionId> {
        self.slot_at(&address).map(|slot| self.id(slot))
    }

    /// The connection with the peer of this GUID, if there is one.
    #[must_use]
    pub fn connection_of(&self, guid: Guid) -> Option<ConnectionId> {
        self.slot_of(guid).map(|slot| self.id(slot))
    }

    /// Sets how long the other peer of one connection may stay silent.
    ///
    /// # Errors
    /// [`SetError::NoConnection`].
    pub fn set_timeout(&mut self, id: ConnectionId, timeout: Duration) -> Result<(), SetError> {
        self.get(id).ok_or(SetError::NoConnection)?;
        self.with(id.slot, |connection, _| connection.set_timeout(timeout));
        Ok(())
    }

    /// Ends a connection. What was sent before is delivered first, and then the other peer is told;
    /// [`Event::Disconnected`](super::Event::Disconnected) says when it is over. A connection that is not open yet
    /// ends at once.
    pub fn disconnect(&mut self, now: Instant, id: ConnectionId) {
        self.advance(now);
        if self.get(id).is_some() {
            self.with(id.slot, Connection::disconnect);
        }
    }

    /// Takes a message for sending. It is copied; `message` is free at once.
    ///
    /// The first byte is the id of the message: 0x86 and above are free for applications. With a receipt reliability the
    /// name of the receipt comes back, and [`Event::Receipt`](super::Event::Receipt) tells what became of the message.
    ///
    /// # Errors
    /// A [`SendError`] that says what to do; nothing of the message was kept then.
    pub fn send(
        &mut self,
        now: Instant,
        id: ConnectionId,
        message: &[u8],
        delivery: Delivery,
    ) -> Result<Option<Receipt>, SendError> {
        self.advance(now);
        self.get(id).ok_or(SendError::NotConnected)?;
        self.with_quietly(id.slot, |connection, cx| connection.send(cx, message, delivery))
            .unwrap_or(Err(SendError::NotConnected))
    }

    /// Keeps everything that happens on a connection, its end too, until [`resume`](Self::resume): for an application
    /// that cannot take more of its messages now and does not want to stop those of others. What arrives meanwhile
    /// stays here as long as there is room, and is refused to its sender beyond. False if there is no such connection.
    pub fn pause(&mut self, id: ConnectionId) -> bool {
        self.set_paused(id, true)
    }

    /// Ends a [`pause`](Self::pause). False if there is no such connection.
    pub fn resume(&mut self, id: ConnectionId) -> bool {
        self.set_paused(id, false)
    }

    fn set_paused(&mut self, id: ConnectionId, paused: bool) -> bool {
        let known = self.get(id).is_some();
        if known {
            self.with(id.slot, |connection, _| connection.set_paused(paused));
        }
        known
    }

    /// What is known of a connection, while it exists.
    #[must_use]
    pub fn connection(&self, id: ConnectionId) -> Option<ConnectionInfo> {
        let connection = self.get(id)?;
        Some(ConnectionInfo {
            remote: connection.remote()?,
            guid: connection.guid(),
            side: connection.side(),
            state: connection.public_state(),
            mtu: connection.mtu(),
        })
    }

    /// The counters of a connection, while it exists.
    #[must_use]
    pub fn connection_stats(&self, id: ConnectionId) -> Option<ConnectionStats> {
        self.get(id).map(|connection| connection.stats(self.last_now))
    }

    /// Every connection that exists.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> {
        let used = (0..).zip(&*self.tables.connections).filter(|(_, connection)| !connection.is_free());
        used.map(|(slot, connection)| ConnectionId { slot, generation: connection.generation })
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        while let Some((at, slot)) = self.tables.deadlines.first() {
            if at > self.last_now {
                return;
            }
            self.tables.deadlines.set(slot, None);
            self.with(slot, Connection::on_timeout);
        }
    }

    /// When this peer wants [`handle_timeout`](Self::handle_timeout) and [`poll_transmit`](Self::poll_transmit) to be
    /// called next; a time gone by means now, nothing means that only a datagram or the application can change
    /// anything.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        if !self.tables.ready.is_empty() || !self.desk.is_idle() {
            return Some(self.last_now);
        }
        self.tables.deadlines.first().map(|(at, _)| at)
    }

    /// Moves the clock; it never steps back.
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn advance(&mut self, now: Instant) {
        self.last_now = self.last_now.max(now);
    }
}

impl Machine for Peer<'_> {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        Peer::handle_datagram(self, now, from, datagram);
    }

    fn handle_timeout(&mut self, now: Instant) {
        Peer::handle_timeout(self, now);
    }

    fn poll_transmit<'b>(&mut self, now: Instant, buffer: &'b mut [u8]) -> Option<Transmit<'b>> {
        Peer::poll_transmit(self, now, buffer)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Peer::poll_timeout(self)
    }
}
