//! RakNet as the endpoint knows it, and what only RakNet's peers can do.

use core::fmt;
use core::net::SocketAddr;
use core::time::Duration;

use super::config::Config;
use super::connection::{BlockHeader, Connection};
use super::delivery::Delivery;
use super::error::SetError;
use super::internal_addresses::{InternalAddresses, most_addresses};
use super::reason::{ConnectFailure, DisconnectReason};
use super::state::{State, StateTables, Storage};
use super::stats::{ConnectionStats, DropReason};
use super::types::{ConnectOptions, RakNet};
use super::wire::datagram::DatagramHeader;
use super::wire::{FirstByte, Guid, MAX_DATAGRAM, Wire, id};
use crate::cursor::Reader;
use crate::endpoint::{Carrier, ConnectionId, Internals, Outcome, Peer, Protocol, Receipt};
use crate::serial::U24;
#[cfg(feature = "secure")]
use crate::time::Instant;

impl Protocol for RakNet {
    const NAME: &'static str = "RakNet";
    const MAX_DATAGRAM: usize = MAX_DATAGRAM;
    const FRESH_PORT: bool = false;
    const EARLY_DATA: bool = false;

    type Config = Config;
    type ConnectOptions<'o> = ConnectOptions<'o>;
    type Identity = Guid;
    type Delivery = Delivery;
    type ConnectFailure = ConnectFailure;
    type DisconnectReason = DisconnectReason;
    type DropReason = DropReason;
    type ConnectionStats = ConnectionStats;

    fn config(entropy: [u8; 32]) -> Config {
        Config { learn_version: true, ..Config::new(entropy) }
    }

    fn max_incoming(config: &mut Config) -> &mut u16 {
        &mut config.max_incoming
    }

    #[cfg(feature = "secure")]
    fn diversify(config: &mut Config, entropy: &[u8; 32]) {
        if let Some(security) = &mut config.security {
            security.diversify(entropy);
        }
    }

    #[cfg(feature = "secure")]
    fn tell_unix_time(peer: &mut Peer<'_, Self>, now: Instant, seconds: u64) {
        peer.set_unix_time(now, seconds);
    }

    fn advice(peer: &Peer<'_, Self>) -> Option<&'static str> {
        let is_due = peer.stats.dropped(DropReason::MissingCookie) > 0;
        is_due.then_some("a client asks for a connection and does not return its cookie: it is forged, or knows no cookies")
    }

    fn guid(identity: Guid) -> Option<u64> {
        Some(identity.0)
    }

    fn tell_addresses(peer: &mut Peer<'_, Self>, addresses: &[SocketAddr]) {
        // What does not fit is not said.
        let most = addresses.len().min(most_addresses(&peer.config));
        let _ = peer.set_internal_addresses(addresses.get(..most).unwrap_or(addresses));
    }

    fn told_addresses(peer: &Peer<'_, Self>, id: ConnectionId) -> impl Iterator<Item = SocketAddr> {
        peer.internal_addresses(id).into_iter()
    }

    fn was_unanswered(failure: &ConnectFailure) -> bool {
        matches!(failure, ConnectFailure::NoAnswer | ConnectFailure::Unreachable)
    }

    fn is_request(datagram: &[u8]) -> bool {
        matches!(
            datagram.first(),
            Some(
                &(id::UNCONNECTED_PING
                    | id::UNCONNECTED_PING_OPEN_CONNECTIONS
                    | id::OPEN_CONNECTION_REQUEST_1
                    | id::OPEN_CONNECTION_REQUEST_2)
            )
        )
    }

    fn is_data(datagram: &[u8]) -> bool {
        matches!(DatagramHeader::read(&mut Reader::new(datagram)), Ok(DatagramHeader::Data { .. }))
    }

    fn kind(datagram: &[u8]) -> &'static str {
        match FirstByte::classify(datagram) {
            None => "too short",
            Some(FirstByte::Offline) => id::name(datagram.first().copied().unwrap_or(0)),
            Some(FirstByte::Connected) => match DatagramHeader::read(&mut Reader::new(datagram)) {
                Ok(DatagramHeader::Data { .. }) => "data",
                Ok(DatagramHeader::Ack { .. }) => "acknowledgement",
                Ok(DatagramHeader::Nack { .. }) => "negative acknowledgement",
                Err(_) => "malformed",
            },
        }
    }

    fn describe(datagram: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::kind(datagram))?;
        if FirstByte::classify(datagram) != Some(FirstByte::Connected) {
            return Ok(());
        }
        match DatagramHeader::read(&mut Reader::new(datagram)) {
            Ok(DatagramHeader::Data { number, .. }) => write!(f, " {}", number.get()),
            Ok(DatagramHeader::Ack { records, .. } | DatagramHeader::Nack { records }) => {
                write!(f, ", {records} records")
            }
            Err(error) => write!(f, ": {error}"),
        }
    }
}

impl Internals for RakNet {
    const BURST: u8 = 1;

    type Connection = Connection;
    type BlockHeader = BlockHeader;
    type State<'a> = State<'a>;
    type StateTables<'a> = StateTables<'a>;
    type Storage<const CONNECTIONS: usize, const BLOCKS: usize> = Storage<CONNECTIONS>;

    #[inline(always)] // or it is copied
    fn state<'a>(tables: Self::StateTables<'a>, config: &mut Config) -> Self::State<'a> {
        State::new(tables, config)
    }

    fn secret(config: &Config) -> [u8; 16] {
        config.secret
    }

    fn connection_blocks(config: &Config) -> Option<u32> {
        config.connection_blocks
    }

    fn route(peer: &mut Peer<'_, Self>, from: SocketAddr, datagram: &[u8]) {
        peer.route(from, datagram);
    }

    fn poll_transmit(peer: &mut Peer<'_, Self>, buffer: &mut [u8]) -> Option<(SocketAddr, usize)> {
        peer.state.responder.poll_transmit(&peer.config, &mut peer.tables.pool, peer.last_now, buffer)
    }

    #[inline]
    fn delivery(header: &BlockHeader) -> Result<Delivery, (Receipt, Outcome)> {
        header.receipt().map_or_else(|| Ok(header.delivery()), Err)
    }
}

impl Peer<'_, RakNet> {
    /// Lets the counters of connections made from now on start at `number` instead of 0, to test what happens when
    /// they wrap. The other peer must do the same.
    #[doc(hidden)]
    pub fn start_numbers_at(&mut self, number: U24) {
        self.state.first_number = number;
    }

    /// Says what carries the datagrams from now on, for all connections: whoever moves from one carrier to another, as a page
    /// does whose network begins to block UDP, says so.
    pub fn set_carrier(&mut self, carrier: Carrier) {
        self.config.carrier = carrier;
        // Their deadlines depend on it.
        self.with_all(|_, _| ());
    }

    /// Sets the addresses that this peer says are its own in the handshake of every connection from now on: those of its
    /// interfaces with the port of its socket. Without any, which is the default, it says none. They take memory of the
    /// pool, 7 or 29 bytes each. Peers that speak protocol version 8 or an older one are told the first ten.
    ///
    /// ```
    /// use rakwire::raknet::{Config, Peer, Resources, SetError};
    ///
    /// let mut resources = Resources::<1, 32, 128>::new();
    /// let mut peer = Peer::new(&mut resources, Config::new([7; 32]));
    /// peer.set_internal_addresses(&["192.0.2.7:19132".parse()?])?;
    /// let many = ["192.0.2.7:19132".parse()?; 21];
    /// assert_eq!(peer.set_internal_addresses(&many), Err(SetError::TooManyAddresses));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`SetError::TooManyAddresses`] if there are more than the configuration's `address_count`, or than 20, and
    /// [`SetError::NoMemory`], after which this peer says none.
    pub fn set_internal_addresses(&mut self, addresses: &[SocketAddr]) -> Result<(), SetError> {
        if addresses.len() > most_addresses(&self.config) {
            return Err(SetError::TooManyAddresses);
        }
        let (stored, pool) = (&mut self.state.internal_addresses, &mut self.tables.pool);
        stored.forget(pool);
        let is_kept = addresses.is_empty() || stored.keep(pool, addresses.iter().copied());
        pool.shares.set_permanent(stored.blocks(pool));
        if is_kept { Ok(()) } else { Err(SetError::NoMemory) }
    }

    /// The addresses that the other peer of a connection has said are its own, without those that it left unassigned.
    /// Nobody has proved them. They are known from [`Event::Connected`](crate::endpoint::Event::Connected) until the next
    /// event of the connection is asked for, so that an idle connection takes no memory for them; whoever wants them later
    /// copies them. Empty at any other time, and if there was no memory for them.
    ///
    /// ```
    /// use rakwire::raknet::{Capacity, Config, Event, Peer};
    /// use rakwire::sim::{Conditions, Pair};
    ///
    /// # let mut config = Config::new([1; 32]);
    /// # config.max_incoming = 1;
    /// # let server = Peer::with_capacity(Capacity::default(), config);
    /// # let client = Peer::with_capacity(Capacity::default(), Config::new([2; 32]));
    /// let mut pair = Pair::new(client, server, Conditions::default(), 7);
    /// let own = ["192.0.2.7:19132".parse()?];
    /// pair.b.set_internal_addresses(&own)?;
    /// pair.a.connect(pair.now, pair.b_address)?;
    /// let id = loop {
    ///     if let Some(Event::Connected { id, .. }) = pair.a.poll_event() {
    ///         break id;
    ///     }
    ///     pair.step();
    /// };
    /// assert_eq!(pair.a.internal_addresses(id)[..], own);
    /// assert!(pair.a.poll_event().is_none() && pair.a.internal_addresses(id).is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn internal_addresses(&self, id: ConnectionId) -> InternalAddresses {
        let stored = self.get(id).map(|slot| slot.connection.internal_addresses());
        stored.unwrap_or_default().get(&self.tables.pool)
    }

    /// Sets how long the other peer of one connection may stay silent: whole milliseconds, rounded up, and at most 49 days.
    ///
    /// # Errors
    /// [`SetError::NoConnection`].
    pub fn set_timeout(&mut self, id: ConnectionId, timeout: Duration) -> Result<(), SetError> {
        self.get(id).ok_or(SetError::NoConnection)?;
        self.with(id.slot, |connection, _| connection.set_timeout(timeout));
        Ok(())
    }
}
