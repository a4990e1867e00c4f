//! A peer: its connections, and which datagram belongs to which.

mod news;
mod output;
mod roster;
mod routing;

use core::net::SocketAddr;

use super::config::Config;
use super::connection::{Connection, ConnectionState, SendError, Side};
use super::desk::Desk;
use super::event::ConnectionId;
use super::resources::{Resources, Tables};
use super::stats::{ConnectionStats, PeerStats};
use super::wire::Reliability;
use crate::machine::{Machine, Transmit};
use crate::storage::Block;
use crate::time::Instant;

/// Why a connection cannot be opened from here.
///
/// ```
/// assert_eq!(rakwire::game_protocol::ConnectError::Full.to_string(), "every connection slot is taken");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConnectError {
    /// A connection with this address exists already.
    AlreadyConnected,
    /// Every connection slot is taken.
    Full,
}

impl core::fmt::Display for ConnectError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::AlreadyConnected => "a connection with this address exists already",
            Self::Full => "every connection slot is taken",
        })
    }
}

impl core::error::Error for ConnectError {}

/// What is known of a connection.
///
/// ```
/// use rakwire::game_protocol::{ConnectionInfo, ConnectionState};
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
    /// Who opened the connection.
    pub side: Side,
    /// How far it has come.
    pub state: ConnectionState,
}

/// What was lent by the last event and goes back with the next.
#[derive(Clone, Copy, Debug)]
enum Lent {
    Nothing,
    Message { message: Block, id: ConnectionId },
}

/// A peer of the Game Protocol: any number of connections over one socket that it does not know.
///
/// ```
/// use rakwire::Instant;
/// use rakwire::game_protocol::{Config, Peer, Resources, wire::MAX_PACKET};
///
/// let mut resources = Resources::<1, 32, 128>::new();
/// let mut peer = Peer::new(&mut resources, Config::new([7; 32]));
/// let server = "127.0.0.1:8999".parse()?;
/// peer.connect(Instant::ZERO, server)?;
/// let mut buffer = [0; MAX_PACKET];
/// let salt = peer.poll_transmit(Instant::ZERO, &mut buffer).ok_or("a salt is due")?;
/// assert_eq!((salt.to, salt.payload.len()), (server, 4));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Peer<'a> {
    config: Config,
    tables: Tables<'a>,
    desk: Desk,
    stats: PeerStats,
    lent: Lent,
    last_now: Instant,
    /// The slot that the last datagram was for: often the next one's, too.
    last_slot: u16,
    /// Where the sequences of new connections start.
    first_sequence: u16,
    incoming: u16,
    /// How many datagrams of the connection whose turn it is were composed one after the other.
    in_a_row: u8,
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
            stats: PeerStats::default(),
            lent: Lent::Nothing,
            last_now: Instant::ZERO,
            last_slot: 0,
            first_sequence: 0,
            incoming: 0,
            in_a_row: 0,
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

    /// Lets the sequences of connections made from now on start at `sequence` instead of 0, to test what happens when
    /// they wrap. The other peer need not know.
    pub const fn start_sequences_at(&mut self, sequence: u16) {
        self.first_sequence = sequence;
    }

    /// Begins to open a connection. [`Event::Connected`](super::Event::Connected) or
    /// [`Event::ConnectFailed`](super::Event::ConnectFailed) says what became of it.
    ///
    /// # Errors
    /// A [`ConnectError`]; nothing changed then.
    pub fn connect(&mut self, now: Instant, to: SocketAddr) -> Result<ConnectionId, ConnectError> {
        self.advance(now);
        if self.find_living(&to).is_some() {
            return Err(ConnectError::AlreadyConnected);
        }
        let slot = self.vacant_slot().ok_or(ConnectError::Full)?;
        let salt = self.desk.salt(&self.config);
        self.with(slot, |connection, cx| connection.open(cx, to, salt));
        self.settle_in(slot, to);
        Ok(self.id(slot))
    }

    /// The connection with the peer at `address`, if there is one.
    #[must_use]
    pub fn connection_at(&self, address: SocketAddr) -> Option<ConnectionId> {
        self.slot_at(&address).map(|slot| self.id(slot))
    }

    /// Ends a connection. What was sent reliably before is delivered first, for at most `close_timeout`, and then the
    /// other peer is told; [`Event::Disconnected`](super::Event::Disconnected) says when it is over. A connection that
    /// is not open yet ends at once.
    pub fn disconnect(&mut self, now: Instant, id: ConnectionId) {
        self.advance(now);
        if self.get(id).is_some() {
            self.with(id.slot, Connection::disconnect);
        }
    }

    /// Takes a message for sending, 1 to 129,024 bytes. It is copied; `message` is free at once.
    ///
    /// # Errors
    /// A [`SendError`] that says what to do; nothing of the message was kept then.
    pub fn send(
        &mut self,
        now: Instant,
        id: ConnectionId,
        message: &[u8],
        reliability: Reliability,
    ) -> Result<(), SendError> {
        self.advance(now);
        self.get(id).ok_or(SendError::NotConnected)?;
        self.with(id.slot, |connection, cx| connection.send(cx, message, reliability))
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
            side: connection.side(),
            state: connection.public_state(),
        })
    }

    /// The counters of a connection, while it exists.
    #[must_use]
    pub fn connection_stats(&self, id: ConnectionId) -> Option<ConnectionStats> {
        self.get(id).map(Connection::stats)
    }

    /// Every connection that has not ended.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> {
        let used = (0..).zip(&*self.tables.connections);
        let used = used.filter(|(_, connection)| !connection.is_free() && !connection.is_over());
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
        let is_idle =
            self.tables.ready.is_empty() && self.tables.acknowledgements.is_empty() && self.desk.is_idle();
        if !is_idle {
            return Some(self.last_now);
        }
        self.tables.deadlines.first().map(|(at, _)| at)
    }

    /// Moves the clock; it never steps back.
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
