//! RakNet as a protocol of the endpoint, with the operations that only RakNet peers have.
//!
//! - [`routing`]: dispatch of datagrams to connections.
//! - [`admission`]: the decision about which clients get a slot.
//! - [`responder`]: responses to unconnected peers.
//! - [`state`]: the state of a peer outside its connections.

mod admission;
mod bans;
mod message_filter;
mod responder;
mod routing;
mod state;

use core::fmt;
use core::net::SocketAddr;
use core::time::Duration;

pub use bans::{AddressPattern, BanList, BanListFull, MAX_BANS, PatternSyntaxError};
pub use message_filter::{FILTER_GROUPS, FilterGroup, MessageFilter};
#[cfg(feature = "unconnected")]
use responder::Answerers;
#[cfg(feature = "server")]
use state::Bans;

use super::config::{Config, ConnectOptions, RakNet};
#[cfg(feature = "unconnected")]
use super::connection::BlockHeader;
use super::connection::handshake::internal_addresses::{InternalAddresses, most_addresses};
use super::delivery::Delivery;
use super::reason::{ConnectFailure, DisconnectReason, SetError};
#[cfg(feature = "unconnected")]
use super::reason::{OutOfBandError, PingError};
use super::stats::{ConnectionStats, DropReason};
use super::wire::datagram::DatagramHeader;
#[cfg(feature = "unconnected")]
use super::wire::offline::{MAX_OUT_OF_BAND_DATA, PingScope};
use super::wire::{FirstByte, Guid, MAX_DATAGRAM, Wire, id};
use crate::cursor::Reader;
use crate::endpoint::{Carrier, ConnectionId, Peer, Protocol};
use crate::serial::U24;
#[cfg(any(feature = "secure", feature = "unconnected"))]
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
    fn mix_entropy(config: &mut Config, entropy: &[u8; 32]) {
        if let Some(security) = &mut config.security {
            security.mix_entropy(entropy);
        }
    }

    #[cfg(feature = "secure")]
    fn set_unix_time(peer: &mut Peer<'_, Self>, now: Instant, seconds: u64) {
        peer.set_unix_time(now, seconds);
    }

    fn advice(peer: &Peer<'_, Self>) -> Option<&'static str> {
        let is_due = peer.stats.dropped(DropReason::MissingCookie) > 0;
        is_due.then_some("a client requests a connection but does not return its cookie: it is forged, or does not support cookies")
    }

    fn guid(identity: Guid) -> Option<u64> {
        Some(identity.0)
    }

    fn set_internal_addresses(peer: &mut Peer<'_, Self>, addresses: &[SocketAddr]) {
        // Addresses beyond the limit are not announced.
        let most = addresses.len().min(most_addresses(&peer.config));
        let _ = peer.set_internal_addresses(addresses.get(..most).unwrap_or(addresses));
    }

    fn internal_addresses(peer: &Peer<'_, Self>, id: ConnectionId) -> impl Iterator<Item = SocketAddr> {
        peer.internal_addresses(id).into_iter()
    }

    fn was_unanswered(failure: &ConnectFailure) -> bool {
        matches!(failure, ConnectFailure::NoAnswer | ConnectFailure::Unreachable)
    }

    fn is_reliable(delivery: Delivery) -> bool {
        delivery.reliability.is_reliable()
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

impl Peer<'_, RakNet> {
    /// Sets the initial value of all sequence numbers in future connections, to test their wrap-around.
    ///
    /// The remote peer must use the same value.
    #[doc(hidden)]
    pub fn start_numbers_at(&mut self, number: U24) {
        self.state.first_number = number;
    }

    /// Sets the transport that carries the datagrams of all connections.
    ///
    /// Call it when the transport changes, for example when a web page falls back to a WebSocket because UDP is
    /// blocked.
    pub fn set_carrier(&mut self, carrier: Carrier) {
        self.config.carrier = carrier;
        // Deadlines depend on the carrier.
        self.with_all(|_, _| ());
    }

    /// Sets the local addresses that this peer announces in future handshakes.
    ///
    /// Pass the addresses of its network interfaces with the port of its socket. The default is none. Each address
    /// takes 7 (IPv4) or 29 (IPv6) bytes of the message memory. Remote peers with protocol version 8 or lower receive
    /// only the first ten.
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
    ///
    /// [`SetError::TooManyAddresses`] if there are more addresses than the configuration's `address_count`, or more
    /// than 20. [`SetError::NoMemory`] if the message memory is too small for them; this peer then announces none.
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

    /// Returns the local addresses that the remote peer announced, without unassigned ones.
    ///
    /// They are not authenticated. To save memory they are available only from
    /// [`Event::Connected`](crate::endpoint::Event::Connected) until the next event of the connection is polled, so
    /// copy them. The result is empty at any other time, and if there was no memory for them.
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
        let stored = self.tables.connections.get(id).map(|slot| slot.connection.internal_addresses());
        stored.unwrap_or_default().get(&self.tables.pool)
    }

    /// Sets the timeout of one connection ([`Config::timeout`](crate::raknet::Config::timeout)).
    ///
    /// It is rounded up to milliseconds and clamped to 49 days.
    ///
    /// # Errors
    ///
    /// [`SetError::NoConnection`] if the connection does not exist.
    pub fn set_timeout(&mut self, id: ConnectionId, timeout: Duration) -> Result<(), SetError> {
        self.tables.connections.get(id).ok_or(SetError::NoConnection)?;
        self.with(id.slot, |connection, _| connection.set_timeout(timeout));
        Ok(())
    }
}

// Server settings.
#[cfg(feature = "server")]
impl<'a> Peer<'a, RakNet> {
    /// Sets the data of pongs, 0 to 399 bytes.
    ///
    /// The maximum is 397 bytes if the length of the data is sent too
    /// ([`pong_framing`](crate::raknet::Config::pong_framing)).
    ///
    /// # Errors
    ///
    /// [`SetError::AdvertisementTooLong`] if the data is longer.
    pub fn set_advertisement(&mut self, data: &[u8]) -> Result<(), SetError> {
        if self.state.responder.advertise(&self.config, data) {
            Ok(())
        } else {
            Err(SetError::AdvertisementTooLong)
        }
    }

    /// Sets the password that clients must present, 0 to 255 bytes; empty means none.
    ///
    /// # Errors
    ///
    /// [`SetError::PasswordTooLong`] if it is longer than 255 bytes.
    pub fn set_password(&mut self, password: &[u8]) -> Result<(), SetError> {
        self.state.password = heapless::Vec::from_slice(password).map_err(|_| SetError::PasswordTooLong)?;
        Ok(())
    }

    /// Lends the peer a ban list. Without one, no address is banned.
    pub fn set_ban_list(&mut self, bans: &'a mut BanList) {
        self.state.bans = Bans::Borrowed(bans);
    }

    /// Returns a mutable reference to the ban list.
    ///
    /// With the feature `alloc` the first call creates an empty list if none was set. Without `alloc` the result is
    /// `None` unless a list was set.
    pub fn bans_mut(&mut self) -> Option<&mut BanList> {
        #[cfg(feature = "alloc")]
        if matches!(self.state.bans, Bans::None) {
            self.state.bans = Bans::Owned(alloc::boxed::Box::default());
        }
        match &mut self.state.bans {
            Bans::None => None,
            Bans::Borrowed(bans) => Some(bans),
            #[cfg(feature = "alloc")]
            Bans::Owned(bans) => Some(bans),
        }
    }
}

// Communication with unconnected peers.
#[cfg(feature = "unconnected")]
impl Peer<'_, RakNet> {
    /// Sends an unconnected ping to `to`; [`Event::Pong`](crate::endpoint::Event::Pong) reports the answer with the
    /// server's advertisement.
    ///
    /// A lost ping is not retransmitted.
    ///
    /// # Errors
    ///
    /// [`PingError::TooMany`] if eight pings await their pongs.
    pub fn ping(&mut self, now: Instant, to: SocketAddr) -> Result<(), PingError> {
        self.ping_as(now, to, Answerers::One, PingScope::Any)
    }

    /// Sends an unconnected ping to a broadcast or multicast address.
    ///
    /// Each pong received within five seconds is reported as [`Event::Pong`](crate::endpoint::Event::Pong).
    ///
    /// # Errors
    ///
    /// [`PingError::TooMany`] if eight pings await their pongs.
    pub fn discover(&mut self, now: Instant, to: SocketAddr, scope: PingScope) -> Result<(), PingError> {
        self.ping_as(now, to, Answerers::Many, scope)
    }

    fn ping_as(
        &mut self,
        now: Instant,
        to: SocketAddr,
        answerers: Answerers,
        scope: PingScope,
    ) -> Result<(), PingError> {
        self.advance(now);
        if self.state.responder.ping(to, answerers, scope, self.last_now) {
            Ok(())
        } else {
            Err(PingError::TooMany)
        }
    }

    /// Sends `data`, 1 to 399 bytes, to an unconnected peer once, as an out-of-band message.
    ///
    /// The remote peer drops it unless its configuration [accepts](crate::raknet::OutOfBand::Accept) such messages.
    ///
    /// # Errors
    ///
    /// An [`OutOfBandError`]; nothing was queued.
    pub fn send_out_of_band(
        &mut self,
        now: Instant,
        to: SocketAddr,
        data: &[u8],
    ) -> Result<(), OutOfBandError> {
        self.advance(now);
        if data.is_empty() || data.len() > MAX_OUT_OF_BAND_DATA {
            return Err(OutOfBandError::BadLength);
        }
        let stored = self.tables.pool.store_common(data, &BlockHeader::default());
        let stored = stored.ok_or(OutOfBandError::TooMany)?;
        if self.state.responder.out_of_band(to, stored) {
            return Ok(());
        }
        self.tables.pool.free_common(stored);
        Err(OutOfBandError::TooMany)
    }

    /// Advertises this peer to an unconnected peer, with 0 to 398 bytes of application data.
    ///
    /// # Errors
    ///
    /// An [`OutOfBandError`]; nothing was queued.
    pub fn advertise(&mut self, now: Instant, to: SocketAddr, data: &[u8]) -> Result<(), OutOfBandError> {
        let mut message = [id::ADVERTISE_SYSTEM; MAX_OUT_OF_BAND_DATA];
        let rest = message.get_mut(1..=data.len()).ok_or(OutOfBandError::BadLength)?;
        rest.copy_from_slice(data);
        let message = message.get(..=data.len()).ok_or(OutOfBandError::BadLength)?;
        self.send_out_of_band(now, to, message)
    }

    /// Discards the pending ping to `to`, so that its pong is ignored.
    pub fn forget_ping(&mut self, to: SocketAddr) {
        self.state.responder.forget_ping(to);
    }
}
