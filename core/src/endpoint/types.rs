//! Types shared by both protocols: ids, sides, states, receipts, errors, and the counters of a peer.
//!
//! Counters never decrease, and with 64 bits they do not wrap in practice.

use core::net::SocketAddr;

/// The id of a connection, unique within its peer.
///
/// Ids are never reused: a slot is retired after 2^32 - 1 connections. To make ids unique across the peers of one
/// server, [partition them](crate::endpoint::Peer::partition_ids).
///
/// ```
/// use rakwire::Instant;
/// use rakwire::raknet::{Config, Peer, Resources};
///
/// let mut resources = Resources::<1, 32, 128>::new();
/// let mut peer = Peer::new(&mut resources, Config::new([7; 32]));
/// let first = peer.connect(Instant::ZERO, "127.0.0.1:19132".parse()?)?;
/// peer.disconnect(Instant::ZERO, first);
/// while peer.poll_event().is_some() || peer.poll_transmit(Instant::ZERO, &mut [0; 1_500]).is_some() {}
/// let second = peer.connect(Instant::ZERO, "127.0.0.1:19132".parse()?)?;
/// assert_ne!(first, second); // although there is only one slot
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId {
    pub(crate) slot: u16,
    pub(crate) generation: u32,
}

impl ConnectionId {
    /// Creates an id for a connection outside any peer, for example over TCP or in a test.
    ///
    /// The id is not unique: a peer may assign an equal id to one of its connections.
    ///
    /// ```
    /// # use rakwire::endpoint::ConnectionId;
    /// assert_eq!(ConnectionId::without_peer(3).slot(), 3);
    /// ```
    #[must_use]
    pub const fn without_peer(slot: u16) -> Self {
        Self { slot, generation: 0 }
    }

    /// Returns the slot of the connection, which is below the maximum number of connections of the peer.
    ///
    /// Successive connections may use the same slot.
    #[must_use]
    pub const fn slot(self) -> u16 {
        self.slot
    }
}

impl core::fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}.{}", self.slot, self.generation)
    }
}

/// The side that opened a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Side {
    /// This peer opened the connection. After a simultaneous open, both peers are clients.
    #[default]
    Client,
    /// The remote peer opened the connection.
    Server,
}

/// A client that this peer, as a server, refused because of its password, its identity or its connect token.
///
/// Drivers copy it from [`Event::Refused`](super::Event::Refused).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct RefusedClient<I> {
    /// The source address of the client, possibly forged: see `is_validated`.
    pub remote: SocketAddr,
    /// The identity that the client claims: in RakNet its GUID.
    pub identity: I,
    /// The reason for the refusal.
    pub reason: RefuseReason,
    /// True if the client has proved by a cookie or a pong that it receives datagrams at `remote`.
    ///
    /// If false, the address may be forged: do not ban it. A server that always requires cookies refuses only
    /// validated clients.
    pub is_validated: bool,
}

error_enum! {
    /// The reason why a server refused a client.
    ///
    /// The client receives less detail: it cannot tell an expired token from a used one.
    #[non_exhaustive]
    pub enum RefuseReason {
        /// The password is wrong.
        WrongPassword => "wrong password",
        /// The server requires an identity, and the client presented none.
        NoIdentity => "the client presented no identity",
        /// The proof of the identity does not match the handshake.
        InvalidIdentity => "the identity is invalid",
        /// The connect token is missing, malformed, or sealed with a key that the server does not have.
        NoToken => "the client presented no connect token of this backend",
        /// The connect token has expired, or the server's Unix time is not set.
        TokenExpired => "the connect token has expired, or the time of the server is not set",
        /// The connect token names other servers.
        TokenForOtherServer => "the connect token is for another server",
        /// The client did not prove that it has the identity named in the connect token.
        TokenOfOtherClient => "the connect token belongs to another client",
        /// The connect token was used before.
        TokenUsed => "the connect token was used before",
        /// The server's memory for used connect tokens is full.
        TokenStoreFull => "too many connect tokens are in use at once",
    }
}

/// The transport that carries a peer's datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carrier {
    /// UDP, or another transport that loses, delays and reorders datagrams.
    #[default]
    Datagrams,
    /// A reliable stream, such as a WebSocket to a relay: a loss delays all data after it (head-of-line blocking).
    ///
    /// The retransmission timeout is at least one second (RFC 6298 section 2.4), and its expiry sends only a probe, so
    /// little is sent twice. A retransmission in the stream delays all data by one RTT, so RakNet treats a queueing
    /// delay as congestion only if it exceeds the RTT (clamped to 30 to 200 ms). Datagrams can still be lost between
    /// the relay and the remote peer. They are retransmitted before the timeout, once a later datagram is acknowledged
    /// or the remote peer sends a NACK.
    Stream,
}

/// The minimum retransmission timeout over a stream, in microseconds.
///
/// The stream retransmits first, by its own timeout of at least one second (RFC 6298 section 2.4).
pub(crate) const MIN_STREAM_TIMEOUT: u32 = 1_000_000;

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ConnectionState {
    /// The handshake is in progress.
    Connecting,
    /// The connection is open and accepts messages.
    Connected,
    /// This peer is closing the connection: queued messages are still delivered, and no more are accepted.
    Disconnecting,
    /// The connection has closed.
    Disconnected,
}

/// Identifies a message of one connection that was sent with a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Receipt(pub u32);

/// The outcome of a message that was sent with a receipt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Outcome {
    /// The remote peer acknowledged the whole message.
    #[default]
    Acknowledged,
    /// The message was unreliable and not acknowledged, or expired in the send queue.
    ///
    /// It may have been received nevertheless.
    Lost,
}

/// The direction of a datagram or of a split message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Direction {
    /// From this peer to the remote peer.
    Sending,
    /// From the remote peer to this peer.
    Receiving,
}

/// The progress of a split message.
///
/// ```
/// use rakwire::endpoint::{Direction, Progress};
///
/// let progress = Progress { direction: Direction::Sending, message: 7, done: 32, parts: 128 };
/// assert_eq!(progress.done * 100 / progress.parts, 25);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Progress {
    /// The direction of the message.
    pub direction: Direction,
    /// Distinguishes split messages in progress in the same direction.
    pub message: u16,
    /// The number of parts received or acknowledged so far.
    pub done: u32,
    /// The total number of parts.
    pub parts: u32,
}

#[cfg(feature = "defmt")]
impl defmt::Format for ConnectionId {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{=u16}.{=u32}", self.slot, self.generation);
    }
}

error_enum! {
    /// The reason why `connect` failed immediately.
    ///
    /// ```
    /// use rakwire::Instant;
    /// use rakwire::game_protocol::{Config, ConnectError, Peer, Resources};
    ///
    /// let mut resources = Resources::<1, 32, 128>::new();
    /// let mut peer = Peer::new(&mut resources, Config::new([7; 32]));
    /// peer.connect(Instant::ZERO, "127.0.0.1:8999".parse()?)?;
    /// assert_eq!(peer.connect(Instant::ZERO, "127.0.0.1:9000".parse()?), Err(ConnectError::Full));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[non_exhaustive]
    pub enum ConnectError {
        /// A connection with this address exists.
        AlreadyConnected => "a connection with this address exists already",
        /// The IP address or the port is zero.
        UnassignedAddress => "the port or the IP address is zero; connect to a specific address",
        /// The configured MTU is not within 576 to 1492 bytes; RakNet only.
        InvalidMtu => "the MTU must be 576 to 1492 bytes",
        /// All connection slots are in use.
        Full => "every connection slot is taken; disconnect some, or configure more",
        /// The password is longer than 255 bytes; RakNet only.
        PasswordTooLong => "a password has at most 255 bytes",
        /// A secure connection was requested, but the configuration has no `security`; RakNet only.
        NoSecurity => "a secure connection requires `security` in the configuration",
        /// An identity was given without `trust`, which a secure connection requires; RakNet only.
        ///
        /// Set `ConnectOptions::trust`, or omit the identity for a plain connection.
        IdentityWithoutTrust => "an identity requires a secure connection: set `trust`, or leave the identity out",
        /// The identity data is longer than 95 bytes, or was given without an identity; RakNet only.
        InvalidIdentityData => "the data of an identity has at most 95 bytes, and needs an identity",
        /// There is no free memory to store the password until it is sent; RakNet only.
        NoMemory => "there is no memory for the password",
    }
}

error_enum! {
    /// The reason why connection ids could not be partitioned.
    ///
    /// ```
    /// use rakwire::endpoint::PartitionError;
    /// use rakwire::raknet::{Config, Peer, Resources};
    ///
    /// let mut resources = Resources::<1, 32, 128>::new();
    /// let mut peer = Peer::new(&mut resources, Config::new([7; 32]));
    /// assert_eq!(peer.partition_ids(2, 2), Err(PartitionError::NoSuchPeer)); // the second of two peers has number 1
    /// ```
    #[non_exhaustive]
    pub enum PartitionError {
        /// `number` is not below the number of peers.
        NoSuchPeer => "the index of a peer must be less than the number of peers",
        /// A connection already has an id, or ids are already partitioned.
        ///
        /// Partition ids before there are connections.
        InUse => "ids are in use; partition them before there are connections",
    }
}

error_enum! {
    /// The reason why a message was not queued. No part of it was kept.
    ///
    /// ```
    /// use rakwire::Instant;
    /// use rakwire::raknet::{Config, Delivery, Peer, Resources, SendError};
    ///
    /// let mut resources = Resources::<1, 32, 128>::new();
    /// let mut peer = Peer::new(&mut resources, Config::new([7; 32]));
    /// let id = peer.connect(Instant::ZERO, "127.0.0.1:19132".parse()?)?;
    /// let sent = peer.send(Instant::ZERO, id, b"\xFEhello", Delivery::RELIABLE);
    /// assert_eq!(sent, Err(SendError::NotConnected)); // the server has not answered yet
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[non_exhaustive]
    pub enum SendError {
        /// The connection does not exist, is not open yet or is closing.
        NotConnected => "the connection is not open",
        /// The message is empty. It needs at least one byte; in RakNet that is the message ID.
        Empty => "a message must have at least one byte",
        /// The first byte is below 0x1B, which RakNet reserves; RakNet only.
        ReservedId => "the first byte is below 0x1B, which RakNet reserves",
        /// The message is longer than 129,024 bytes (256 chunks); the Game Protocol only.
        ///
        /// Split it into several messages.
        TooLong => "a message has at most 129,024 bytes; send it in several",
        /// The message needs more memory than one connection may ever hold.
        ///
        /// Split it, or give the peer more blocks. In RakNet the state of a channel from 4 up counts too when the
        /// channel is first used.
        NeverFits => "the message exceeds the memory of a connection; send it in pieces",
        /// The connection has used up its share of memory. Retry after the remote peer has acknowledged some messages.
        ///
        /// [`Peer::poll_writable`](super::Peer::poll_writable) returns the connection then.
        QuotaExceeded => "the send queue of the connection is full; try again later",
        /// The message exceeds the connection's guaranteed memory, and too little of the shared memory is free.
        ///
        /// Retry when [`Peer::poll_writable`](super::Peer::poll_writable) returns this connection.
        PoolExhausted => "the memory for messages is full; try again later",
        /// The build has the small profile (no feature `full`), which cannot send this message; RakNet only.
        ///
        /// The message is longer than a datagram, or uses an ordering channel from 4 up.
        FeatureDisabled => "the message requires the full profile; enable the feature `full` of `rakwire` in Cargo.toml",
        /// A hook dropped the message.
        Filtered => "a hook dropped the message",
    }
}

/// True if events are counted (feature `full`); otherwise every counter stays 0.
pub(crate) const STATISTICS: bool = cfg!(feature = "full");

/// The enum of a protocol's reasons for dropping received data.
pub trait DropReasons: Copy + 'static {
    /// All reasons, in the order of [`index`](Self::index).
    const REASONS: &'static [Self];
    /// An array of counters, one for each reason.
    type Counts: Copy + core::fmt::Debug + Default + AsRef<[u64]> + AsMut<[u64]> + Send + Sync;

    /// Returns the index of the counter for this reason.
    fn index(self) -> usize;
}

/// Counters of a peer. Without the feature `full` all of them are 0.
///
/// ```
/// use rakwire::raknet::{Config, DropReason, Peer, Resources};
///
/// let mut resources = Resources::<1, 32, 128>::new();
/// let mut peer = Peer::new(&mut resources, Config::new([7; 32]));
/// peer.handle_datagram(rakwire::Instant::ZERO, "192.0.2.1:9".parse()?, &[0]);
/// assert_eq!(peer.stats().datagrams_received, 1);
/// assert_eq!(peer.stats().dropped(DropReason::TooShort), 1);
/// assert!(format!("{:?}", peer.stats()).ends_with("drops: {TooShort: 1} }"));
/// # Ok::<(), core::net::AddrParseError>(())
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct PeerStats<R: DropReasons> {
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Bytes received, without IP and UDP headers.
    pub bytes_received: u64,
    /// Datagrams with messages that connections dropped because of [`refuse_data`](super::Peer::refuse_data).
    pub datagrams_refused: u64,
    /// Datagrams passed to the driver for sending.
    pub datagrams_sent: u64,
    /// Bytes passed to the driver for sending, without IP and UDP headers.
    pub bytes_sent: u64,
    drops: R::Counts,
}

/// Omits reasons with a count of 0.
impl<R: DropReasons + core::fmt::Debug> core::fmt::Debug for PeerStats<R> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        struct Drops<'s, R: DropReasons>(&'s PeerStats<R>);

        impl<R: DropReasons + core::fmt::Debug> core::fmt::Debug for Drops<'_, R> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_map().entries(self.0.drops().filter(|(_, count)| *count > 0)).finish()
            }
        }

        f.debug_struct("PeerStats")
            .field("datagrams_received", &self.datagrams_received)
            .field("bytes_received", &self.bytes_received)
            .field("datagrams_refused", &self.datagrams_refused)
            .field("datagrams_sent", &self.datagrams_sent)
            .field("bytes_sent", &self.bytes_sent)
            .field("drops", &Drops(self))
            .finish()
    }
}

impl<R: DropReasons> Default for PeerStats<R> {
    fn default() -> Self {
        Self {
            datagrams_received: 0,
            bytes_received: 0,
            datagrams_refused: 0,
            datagrams_sent: 0,
            bytes_sent: 0,
            drops: R::Counts::default(),
        }
    }
}

impl<R: DropReasons> PeerStats<R> {
    /// Returns how often received data was dropped for `reason`.
    #[must_use]
    pub fn dropped(&self, reason: R) -> u64 {
        self.drops.as_ref().get(reason.index()).copied().unwrap_or(0)
    }

    /// Returns every reason and its count.
    pub fn drops(&self) -> impl Iterator<Item = (R, u64)> {
        R::REASONS.iter().copied().zip(self.drops.as_ref().iter().copied())
    }

    /// Counts data dropped for `reason`.
    #[inline]
    pub(crate) fn drop(&mut self, reason: R) {
        if STATISTICS {
            self.count_drop(reason);
        }
    }

    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn count_drop(&mut self, reason: R) {
        let Some(count) = self.drops.as_mut().get_mut(reason.index()) else {
            debug_assert!(false, "a reason without a counter");
            return;
        };
        *count += 1;
    }

    /// Counts a received datagram.
    #[inline]
    pub(crate) const fn on_received(&mut self, bytes: usize) {
        if STATISTICS {
            self.datagrams_received += 1;
            self.bytes_received += bytes as u64;
        }
    }

    /// Counts a sent datagram.
    #[inline]
    pub(crate) const fn on_sent(&mut self, bytes: usize) {
        if STATISTICS {
            self.datagrams_sent += 1;
            self.bytes_sent += bytes as u64;
        }
    }

    /// Counts a datagram dropped because its connection refuses data.
    #[inline]
    pub(crate) const fn on_refused(&mut self) {
        if STATISTICS {
            self.datagrams_refused += 1;
        }
    }
}
