//! RakNet over UDP sockets. Most items are also re-exported at the root of the crate.
//!
//! The types are aliases of those in [`endpoint`](crate::endpoint). Only RakNet has pings, messages without a
//! connection, passwords, bans, receipts, and the progress of large messages.

#[cfg(feature = "secure")]
pub(crate) mod security;
mod unconnected;

use std::net::SocketAddr;
use std::time::Duration;

pub use rakwire::raknet::{
    AddressPattern, Amount, BanListFull, Capacity, Channel, Config, ConnectFailure, ConnectOptions,
    ConnectionId, ConnectionStats, CookiePolicy, Delivery, Direction, DisconnectReason, DropReason,
    FilterGroup, Guid, Hook, LineWriter, LogSink, MessageFilter, NetworkId, NetworkIdGenerator, OutOfBand,
    Outcome, PacketLogger, PcapWriter, PeerStats, PingScope, PongFraming, Priority, Progress, RakNet,
    Receipt, Refusal, Reliability, SendError, SetError, Verdict, Waiting,
};
#[cfg(feature = "secure")]
pub use rakwire::raknet::{SecurePeer, Security};
pub use rakwire::wire::id;

#[cfg(feature = "ring")]
pub use self::security::RingCipher;
#[cfg(feature = "secure")]
pub use self::security::UsedTokenTable;
pub use self::unconnected::{OutOfBandError, PingError};
pub use crate::endpoint::UnconnectedKind;
pub use crate::host::BindError;

/// A UDP socket with RakNet.
pub type Endpoint = crate::endpoint::Endpoint<RakNet>;
/// An open connection to a peer.
pub type Connection = crate::endpoint::Connection<RakNet>;
/// A connection request that awaits the application's decision.
pub type Incoming = crate::endpoint::Incoming<RakNet>;
/// The options of an endpoint.
pub type Options = crate::endpoint::Options<RakNet>;
/// A received message.
pub type Message = crate::endpoint::Message<Delivery>;
/// The reason why a connection could not be opened.
pub type ConnectError = crate::endpoint::ConnectError<ConnectFailure>;
/// The counters of an endpoint.
pub type EndpointStats = crate::endpoint::EndpointStats<RakNet>;
/// The reply of a server to a ping.
pub type Pong = crate::endpoint::Pong<Guid>;
/// A message from a peer without a connection.
pub type Unconnected = crate::endpoint::Unconnected<Guid>;

// The identity and advertisement of an endpoint, and access control by password and bans. All of these are shared by
// the shards of a server.
impl crate::endpoint::Endpoint<RakNet> {
    /// Returns the GUID of this endpoint.
    #[must_use]
    pub fn guid(&self) -> Guid {
        self.shared.lock().hooked.peer.config().guid
    }

    /// Returns the address of the connected peer with this GUID, if there is one. Each shard knows only its own
    /// connections.
    ///
    /// ```
    /// use rakwire_native::{Endpoint, Guid, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Endpoint::bind("127.0.0.1:0", Options::server(8)?).await?;
    /// let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// let connection = client.connect(server.local_addr()).await?;
    /// assert_eq!(client.remote_of(connection.guid()), Some(server.local_addr()));
    /// assert_eq!(client.remote_of(client.guid()), None);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn remote_of(&self, guid: Guid) -> Option<SocketAddr> {
        let state = self.shared.lock();
        let peer = &state.hooked.peer;
        peer.connection(peer.connection_of(guid)?).map(|connection| connection.remote)
    }

    /// Sets the data of pongs, 0 to 399 bytes.
    ///
    /// The limit is 397 if the configuration's [`pong_framing`](rakwire::raknet::Config::pong_framing) adds a length
    /// prefix. By default it does so where Minecraft Bedrock clients expect it: if the data begin with `MCPE;` or
    /// `MCEE;`, or only their protocol versions are accepted.
    ///
    /// # Errors
    /// Returns [`SetError::AdvertisementTooLong`] and leaves the data unchanged.
    ///
    /// ```
    /// use rakwire_native::{Endpoint, Options, SetError};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Endpoint::bind("127.0.0.1:0", Options::server(8)?).await?;
    /// assert_eq!(server.set_advertisement(&[b'x'; 399]), Ok(()));
    /// assert_eq!(server.set_advertisement(&[b'x'; 400]), Err(SetError::AdvertisementTooLong));
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_advertisement(&self, data: &[u8]) -> Result<(), SetError> {
        self.shards.act(|state, _| state.hooked.peer.set_advertisement(data)).unwrap_or(Ok(()))
    }

    /// Sets the addresses that this endpoint announces as its own in further connections.
    ///
    /// An empty list announces none. The default is the address of its socket or, if that is bound to all addresses,
    /// the source addresses that the system uses for outgoing datagrams.
    ///
    /// # Errors
    /// Returns [`SetError::TooManyAddresses`] if there are more than [`address_count`](crate::Config::address_count),
    /// and leaves the addresses unchanged.
    ///
    /// ```
    /// use rakwire_native::{Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Endpoint::bind("127.0.0.1:0", Options::server(8)?).await?;
    /// let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// client.set_internal_addresses(&[])?;
    /// let connection = client.connect(server.local_addr()).await?;
    /// assert_eq!(connection.internal_addresses(), [server.local_addr()]);
    /// let accepted = server.accept().await.ok_or("the endpoint is open")?;
    /// assert_eq!(accepted.internal_addresses(), []);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_internal_addresses(&self, addresses: &[SocketAddr]) -> Result<(), SetError> {
        self.shared.act(|state, _| state.hooked.peer.set_internal_addresses(addresses))
    }

    /// Sets the password that new clients need, 0 to 255 bytes; empty means none. It is not encrypted on the network.
    ///
    /// # Errors
    /// Returns [`SetError::PasswordTooLong`] and leaves the password unchanged.
    ///
    /// ```
    /// use rakwire_native::{ConnectError, ConnectFailure, ConnectOptions, Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Endpoint::bind("127.0.0.1:0", Options::server(8)?).await?;
    /// server.set_password(b"friends")?;
    /// let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// let failed = client.connect(server.local_addr()).await.err();
    /// assert_eq!(failed, Some(ConnectError::Failed(ConnectFailure::InvalidPassword)));
    /// let options = ConnectOptions { password: b"friends", ..Default::default() };
    /// assert!(client.connect_with(server.local_addr(), &options).await.is_ok());
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_password(&self, password: &[u8]) -> Result<(), SetError> {
        self.shards.act(|state, _| state.hooked.peer.set_password(password)).unwrap_or(Ok(()))
    }

    /// Bans the addresses that match `pattern`, for some time or forever.
    ///
    /// This replaces an earlier ban of the same pattern, and does not close existing connections.
    ///
    /// # Errors
    /// Returns [`BanListFull`] if 64 other patterns are banned.
    ///
    /// ```
    /// use std::time::Duration;
    /// use rakwire_native::raknet::{AddressPattern, ConnectError, ConnectFailure, Endpoint, Options, Refusal};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Endpoint::bind("127.0.0.1:0", Options::server(8)?).await?;
    /// let loopback: AddressPattern = "127.*".parse()?;
    /// server.ban(loopback, Some(Duration::from_secs(3_600)))?;
    /// let (pattern, left) = server.bans()[0];
    /// assert!(pattern == loopback && left.is_some_and(|left| left <= Duration::from_secs(3_600)));
    ///
    /// let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// let failed = client.connect(server.local_addr()).await.err();
    /// assert_eq!(failed, Some(ConnectError::Failed(ConnectFailure::Refused(Refusal::Banned))));
    ///
    /// assert!(server.unban(loopback) && server.bans().is_empty());
    /// assert!(client.connect(server.local_addr()).await.is_ok());
    /// # Ok(())
    /// # }
    /// ```
    pub fn ban(&self, pattern: AddressPattern, time: Option<Duration>) -> Result<(), BanListFull> {
        let banned = self.shards.act(|state, now| {
            let bans = state.hooked.peer.bans_mut().ok_or(BanListFull)?;
            bans.expire(now);
            bans.add(pattern, time.map(|time| now + time))
        });
        banned.unwrap_or(Ok(()))
    }

    /// Removes the ban of exactly this pattern. Returns false if there is none.
    pub fn unban(&self, pattern: AddressPattern) -> bool {
        let lifted = self.shards.act(|state, now| {
            state.hooked.peer.bans_mut().is_some_and(|bans| {
                bans.expire(now);
                bans.remove(pattern)
            })
        });
        lifted.unwrap_or(false)
    }

    /// Returns the bans, each with its remaining time; `None` means forever.
    #[must_use]
    pub fn bans(&self) -> Vec<(AddressPattern, Option<Duration>)> {
        self.shared.act(|state, now| {
            let Some(bans) = state.hooked.peer.bans_mut() else { return Vec::new() };
            bans.expire(now);
            let left = |until: rakwire::Instant| until.saturating_since(now);
            bans.iter().map(|(pattern, until)| (pattern, until.map(left))).collect()
        })
    }
}

// Features that only RakNet connections have: receipts, progress, a GUID and a timeout per connection.
impl crate::endpoint::Connection<RakNet> {
    /// Returns the smoothed round-trip time, or `None` before the first measurement and after the connection is closed.
    ///
    /// The measurements include the peer's acknowledgement delay.
    ///
    /// ```
    /// use rakwire_native::{Delivery, Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = Endpoint::bind("127.0.0.1:0", Options::server(1)?).await?;
    /// # let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// let connection = client.connect(server.local_addr()).await?;
    /// println!("{:?}", connection.rtt());
    /// connection.disconnect().await;
    /// assert_eq!(connection.rtt(), None);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn rtt(&self) -> Option<Duration> {
        self.stats().map(|stats| stats.round_trip).filter(|rtt| !rtt.is_zero())
    }

    /// Returns the MTU of new datagrams, including 28 bytes of IP and UDP headers, or `None` once the connection is
    /// closed.
    ///
    /// ```
    /// use rakwire_native::{Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = Endpoint::bind("127.0.0.1:0", Options::server(1)?).await?;
    /// # let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// let connection = client.connect(server.local_addr()).await?;
    /// assert_eq!(connection.mtu(), Some(1_492));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn mtu(&self) -> Option<u16> {
        self.stats().map(|stats| stats.mtu)
    }

    /// Waits for the next outcome of a message sent with a receipt.
    ///
    /// Returns `None` once the connection is closed and all receipts have been received; a message without an outcome
    /// may or may not have arrived. Unread receipts use memory until the connection is dropped.
    ///
    /// ```
    /// use rakwire_native::{Delivery, Endpoint, Options, Outcome, Reliability};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = Endpoint::bind("127.0.0.1:0", Options::server(1)?).await?;
    /// # let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// let connection = client.connect(server.local_addr()).await?;
    /// let delivery = Delivery::new(Reliability::ReliableWithReceipt);
    /// let receipt = connection.send(b"\x90state", delivery).await?.ok_or("it has a receipt")?;
    /// assert_eq!(connection.recv_receipt().await, Some((receipt, Outcome::Acknowledged)));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn recv_receipt(&self) -> Option<(Receipt, Outcome)> {
        self.reference.inbox.recv_receipt().await
    }

    /// Waits for the progress of a large message in either direction.
    ///
    /// Returns `None` once the connection is closed and all progress has been received.
    ///
    /// Progress is reported every [`progress_interval`](crate::Config::progress_interval) fragments, and not at all
    /// if that is 0, the default. Only the latest progress of each message is kept, for at most 64 messages.
    ///
    /// ```
    /// use rakwire_native::{Delivery, Direction, Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = Endpoint::bind("127.0.0.1:0", Options::server(1)?).await?;
    /// let mut options = Options::client()?;
    /// options.config.progress_interval = 16;
    /// let client = Endpoint::bind("127.0.0.1:0", options).await?;
    /// let connection = client.connect(server.local_addr()).await?;
    /// connection.send(&[0x90; 100_000], Delivery::RELIABLE).await?;
    /// let progress = connection.recv_progress().await.ok_or("the connection has ended")?;
    /// assert_eq!(progress.direction, Direction::Sending);
    /// assert!(progress.done >= 16 && progress.done <= progress.parts);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn recv_progress(&self) -> Option<Progress> {
        self.reference.inbox.recv_progress().await
    }

    /// Waits until the MTU of the connection has changed, and returns the latest one.
    ///
    /// The MTU changes if the path MTU is smaller than the negotiated one. It includes 28 bytes of IP and UDP headers.
    /// Returns `None` once the connection is closed.
    ///
    /// [`mtu`](Self::mtu) returns the current MTU.
    ///
    /// ```
    /// use rakwire_native::Connection;
    ///
    /// /// Logs each change of the MTU of a connection.
    /// async fn log_mtu(connection: &Connection) {
    ///     while let Some(mtu) = connection.mtu_changed().await {
    ///         println!("{}: MTU {mtu}", connection.remote());
    ///     }
    /// }
    /// ```
    pub async fn mtu_changed(&self) -> Option<u16> {
        self.reference.inbox.new_mtu().await
    }

    /// Sets how long the peer of this connection may be silent while acknowledgements are outstanding.
    ///
    /// It replaces the `timeout` of the configuration for this connection.
    ///
    /// # Errors
    /// Returns [`SetError::NoConnection`] if the connection is closed.
    pub fn set_timeout(&self, timeout: Duration) -> Result<(), SetError> {
        self.reference.shared.act(|state, _| state.hooked.peer.set_timeout(self.reference.id, timeout))
    }

    /// Returns the addresses that the peer announced as its own, without unassigned ones.
    ///
    /// The addresses are not validated. They remain available until the last handle of the connection is dropped.
    ///
    /// ```
    /// use rakwire_native::Connection;
    ///
    /// /// Whether the other peer is behind an address translator.
    /// fn is_translated(connection: &Connection) -> bool {
    ///     !connection.internal_addresses().contains(&connection.remote())
    /// }
    /// ```
    #[must_use]
    pub fn internal_addresses(&self) -> Vec<SocketAddr> {
        self.reference.inbox.internal_addresses()
    }

    /// Returns the GUID that the peer chose for itself. It is not verified.
    #[must_use]
    pub const fn guid(&self) -> Guid {
        self.identity
    }
}
