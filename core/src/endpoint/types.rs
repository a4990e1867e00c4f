//! Types that both protocols share: ids, sides, states, receipts, errors and the counters of a peer.
//!
//! Counters never decrease and at 64 bits never wrap in practice.

use core::net::SocketAddr;

/// The id of a connection of one peer.
///
/// An id is never reused: a slot that was assigned 2^32 - 1 times is retired. The peers of one server have different
/// ids if they [partition them](crate::endpoint::Peer::partition_ids).
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
    /// Creates an id for a connection that belongs to no peer, such as one over TCP or in a test.
    ///
    /// Peers may have connections with the same id.
    ///
    /// ```
    /// # use rakwire::endpoint::ConnectionId;
    /// assert_eq!(ConnectionId::without_peer(3).slot(), 3);
    /// ```
    #[must_use]
    pub const fn without_peer(slot: u16) -> Self {
        Self { slot, generation: 0 }
    }

    /// Returns the slot of the connection, which is below the number of connections that the peer can have.
    ///
    /// Successive connections may have the same slot.
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
    /// This peer. If both peers dialled each other at the same time, each of them is a client.
    #[default]
    Client,
    /// The remote peer.
    Server,
}

/// A client that a server has refused because of its password, its identity or its connect token.
///
/// Drivers keep it from [`Event::Refused`](super::Event::Refused).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct RefusedClient<I> {
    /// The address that the client claims.
    pub remote: SocketAddr,
    /// The identity that the client claims: in RakNet its GUID.
    pub identity: I,
    /// The reason for the refusal.
    pub reason: RefuseReason,
    /// Set if the client has shown, by a cookie or a pong, that it receives datagrams sent to `remote`.
    ///
    /// If not, the address may be forged and is not a reason for a ban. A server that always requires cookies only
    /// refuses validated clients.
    pub is_validated: bool,
}

error_enum! {
    /// The reason why a server refused a client.
    ///
    /// The client receives less detail: it cannot distinguish an expired token from one that was used before.
    #[non_exhaustive]
    pub enum RefuseReason {
        /// The password is wrong.
        WrongPassword => "wrong password",
        /// The server requires an identity, and the client has presented none.
        NoIdentity => "the client presented no identity",
        /// The identity does not belong to the handshake.
        InvalidIdentity => "the identity is invalid",
        /// The connect token is malformed, or does not open with any key of the server.
        NoToken => "the client presented no connect token of this backend",
        /// The connect token has expired, or the server does not know the time.
        TokenExpired => "the connect token has expired, or the time of the server is not set",
        /// The connect token is for other servers.
        TokenForOtherServer => "the connect token is for another server",
        /// The client has not proved the identity that the connect token is for.
        TokenOfOtherClient => "the connect token belongs to another client",
        /// The connect token was used before.
        TokenUsed => "the connect token was used before",
        /// There is no room to record that the connect token was used.
        TokenStoreFull => "too many connect tokens are in use at once",
    }
}

/// The carrier of a peer's datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carrier {
    /// UDP, or another carrier that loses, delays and reorders datagrams.
    #[default]
    Datagrams,
    /// A stream, such as a WebSocket to a relay, which retransmits losses itself while all later data wait.
    ///
    /// A timeout is at least a second (RFC 6298 section 2.4) and only probes, so that little is sent twice. In RakNet a
    /// queue only counts as congestion once it is as long as such a wait. Datagrams lost beyond the stream are still
    /// retransmitted without that wait, once a later one is acknowledged or the remote peer reports the loss.
    Stream,
}

/// The minimum timeout over a stream, in microseconds.
///
/// The stream's own timeout comes first (RFC 6298 section 2.4).
pub(crate) const MIN_STREAM_TIMEOUT: u32 = 1_000_000;

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ConnectionState {
    /// The handshake is in progress.
    Connecting,
    /// Messages may be sent.
    Connected,
    /// Ended by this peer: earlier messages are still being delivered, and no more may be sent.
    Disconnecting,
    /// It is over.
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
    /// The remote peer has received all of it.
    #[default]
    Acknowledged,
    /// It was sent unreliably and not acknowledged, or it waited too long to be sent.
    ///
    /// It may nevertheless have arrived.
    Lost,
}

/// The direction of a datagram, or of a message in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Direction {
    /// To the remote peer.
    Sending,
    /// From the remote peer.
    Receiving,
}

/// The progress of a message in parts.
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
    /// The direction.
    pub direction: Direction,
    /// Distinguishes the message from others in progress in the same direction.
    pub message: u16,
    /// The number of parts received or acknowledged.
    pub done: u32,
    /// The number of parts in total.
    pub parts: u32,
}

#[cfg(feature = "defmt")]
impl defmt::Format for ConnectionId {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{=u16}.{=u32}", self.slot, self.generation);
    }
}

error_enum! {
    /// The reason why a connection cannot be opened by this peer.
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
        /// A connection with this address exists already.
        AlreadyConnected => "a connection with this address exists already",
        /// The address is unassigned: its port or its IP address is zero.
        UnassignedAddress => "the port or the IP address is zero; connect to a specific address",
        /// The largest MTU of the configuration is not within 576 to 1492 bytes; only in RakNet.
        InvalidMtu => "the MTU must be 576 to 1492 bytes",
        /// Every connection slot is taken.
        Full => "every connection slot is taken; disconnect some, or configure more",
        /// The password is longer than 255 bytes; only in RakNet.
        PasswordTooLong => "a password has at most 255 bytes",
        /// A secure connection is requested, but the configuration has no security; only in RakNet.
        NoSecurity => "a secure connection requires `security` in the configuration",
        /// The client has an identity, which requires a secure connection, but no server to trust; only in RakNet.
        ///
        /// Set `ConnectOptions::trust`, or leave out the identity for a plain connection.
        IdentityWithoutTrust => "an identity requires a secure connection: set `trust`, or leave the identity out",
        /// The data of an identity is longer than 95 bytes, or there is no identity to send it with; only in RakNet.
        InvalidIdentityData => "the data of an identity has at most 95 bytes, and needs an identity",
        /// There is no memory to store the password until it is sent; only in RakNet.
        NoMemory => "there is no memory for the password",
    }
}

error_enum! {
    /// The reason why a peer cannot become one of several that partition the ids of connections.
    ///
    /// ```
    /// use rakwire::endpoint::PartitionError;
    /// use rakwire::raknet::{Config, Peer, Resources};
    ///
    /// let mut resources = Resources::<1, 32, 128>::new();
    /// let mut peer = Peer::new(&mut resources, Config::new([7; 32]));
    /// assert_eq!(peer.partition_ids(2, 2), Err(PartitionError::NoSuchPeer)); // the second one of two has number 1
    /// ```
    #[non_exhaustive]
    pub enum PartitionError {
        /// The number is not below the number of peers.
        NoSuchPeer => "the index of a peer must be less than the number of peers",
        /// An id was already assigned to a connection, or a partition was already set.
        ///
        /// Partition ids before there are connections.
        InUse => "ids are in use; partition them before there are connections",
    }
}

error_enum! {
    /// The reason why a message was not accepted for sending. Nothing of it was kept.
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
        /// The connection does not exist, is not open yet or is ending.
        NotConnected => "the connection is not open",
        /// The message is empty. It needs at least one byte, which in RakNet is its id.
        Empty => "a message must have at least one byte",
        /// RakNet: the first byte is below 0x1B and reserved for RakNet itself.
        ReservedId => "the first byte is below 0x1B, which RakNet reserves",
        /// The Game Protocol: the message is longer than 129,024 bytes, which is 256 chunks.
        ///
        /// Send it in several.
        TooLong => "a message has at most 129,024 bytes; send it in several",
        /// The message takes more memory than one connection may ever hold.
        ///
        /// Send it in pieces, or give the peer more blocks. In RakNet the memory that a channel takes when it is first
        /// used counts too; the channels 0 to 3 take none.
        NeverFits => "the message exceeds the memory of a connection; send it in pieces",
        /// This connection has used its share; try again when some messages were acknowledged.
        ///
        /// [`Peer::poll_writable`](super::Peer::poll_writable) then returns it.
        QuotaExceeded => "the send queue of the connection is full; try again later",
        /// The message exceeds the guaranteed part, and the other connections leave too little of the rest.
        ///
        /// Try again when [`Peer::poll_writable`](super::Peer::poll_writable) returns this connection.
        PoolExhausted => "the memory for messages is full; try again later",
        /// RakNet: the message needs a feature that was left out of the build.
        ///
        /// The features are `splitting` for a message longer than a datagram, `sequencing` for a sequenced one, and
        /// `channels` for one on a channel from 4 on.
        FeatureDisabled => "this build lacks a feature that the message requires; enable it in Cargo.toml",
        /// A hook dropped the message.
        Filtered => "a hook dropped the message",
    }
}

/// True if events are counted (feature `statistics`); otherwise every counter stays 0.
const STATISTICS: bool = cfg!(feature = "statistics");

/// The reasons of a protocol for dropping received data.
pub trait DropReasons: Copy + 'static {
    /// All reasons, in the order of [`index`](Self::index).
    const REASONS: &'static [Self];
    /// A set of counters, one for each reason.
    type Counts: Copy + core::fmt::Debug + Default + AsRef<[u64]> + AsMut<[u64]> + Send + Sync;

    /// Returns the index of this reason's counter.
    fn index(self) -> usize;
}

/// Counters of a peer. Without the feature `statistics` all of them are 0.
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
    /// Their bytes, without IP and UDP headers.
    pub bytes_received: u64,
    /// Data datagrams dropped by connections that [refuse](super::Peer::refuse_data) them.
    pub datagrams_refused: u64,
    /// Datagrams handed to the driver for sending.
    pub datagrams_sent: u64,
    /// Their bytes, without IP and UDP headers.
    pub bytes_sent: u64,
    drops: R::Counts,
}

/// Lists only the reasons for which something was dropped.
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
    /// Returns how often data was dropped for `reason`.
    #[must_use]
    pub fn dropped(&self, reason: R) -> u64 {
        self.drops.as_ref().get(reason.index()).copied().unwrap_or(0)
    }

    /// Returns every reason with its count.
    pub fn drops(&self) -> impl Iterator<Item = (R, u64)> {
        R::REASONS.iter().copied().zip(self.drops.as_ref().iter().copied())
    }

    /// Counts dropped data.
    #[cfg(feature = "statistics")]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) fn drop(&mut self, reason: R) {
        let Some(count) = self.drops.as_mut().get_mut(reason.index()) else {
            debug_assert!(false, "a reason without a counter");
            return;
        };
        *count += 1;
    }

    /// Counts nothing, because the feature `statistics` is left out.
    #[cfg(not(feature = "statistics"))]
    #[inline(always)]
    pub(crate) const fn drop(&mut self, _: R) {}

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

    /// Counts a datagram that its connection refuses.
    #[inline]
    pub(crate) const fn on_refused(&mut self) {
        if STATISTICS {
            self.datagrams_refused += 1;
        }
    }
}
