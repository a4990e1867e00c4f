//! What both protocols say of a connection, why a peer does not do what its application asks, and the counters of a peer, which
//! only grow and at 64 bits never wrap in practice.

use core::net::SocketAddr;

/// Names a connection of one peer. A name is never used again: a slot that was given away 2^32 - 1 times is given away
/// no more. Peers of one server have different ones if they [partition them](crate::endpoint::Peer::partition_ids).
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
    /// A name for a connection that no peer has, such as one over TCP, or one in the test of a plugin. Peers may have
    /// connections of the same name.
    ///
    /// ```
    /// # use rakwire::endpoint::ConnectionId;
    /// assert_eq!(ConnectionId::without_peer(3).slot(), 3);
    /// ```
    #[must_use]
    pub const fn without_peer(slot: u16) -> Self {
        Self { slot, generation: 0 }
    }

    /// The slot of the connection: from 0 to the number of connections that the peer can have, less one. Connections that
    /// follow each other may have the same one.
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

/// Who opened a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Side {
    /// This peer. If both dialled each other at once, each of them is a client.
    #[default]
    Client,
    /// The other peer.
    Server,
}

/// A client that a server has refused by its password, its identity or its connect token: what drivers keep of
/// [`Event::Refused`](super::Event::Refused).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct RefusedClient<I> {
    /// The address that the client says is its own.
    pub remote: SocketAddr,
    /// The identity that the client claims: in RakNet its GUID.
    pub identity: I,
    /// Why it was refused.
    pub reason: RefuseReason,
    /// Whether the client has shown that it receives what is sent to `remote`, by a cookie or a pong. If not the address may be
    /// forged, so it is no reason for a ban. A server that always asks for cookies refuses validated clients alone.
    pub is_validated: bool,
}

error_enum! {
    /// Why a server has refused a client that had shown its address. The client learns less: a token that has expired and one
    /// that was used before look alike to it.
    #[non_exhaustive]
    pub enum RefuseReason {
        /// The password is another one.
        WrongPassword => "wrong password",
        /// The server wants to know an identity, and the client has shown none.
        NoIdentity => "no identity was shown",
        /// The identity does not belong to the handshake.
        InvalidIdentity => "the identity is not right",
        /// The connect token does not open under any key of the server, or is none.
        NoToken => "no connect token of this backend",
        /// The time of the connect token is over, or the server was not given the time.
        TokenExpired => "the connect token has expired, or the server does not know the time",
        /// The connect token is for other servers.
        TokenForOtherServer => "the connect token is for another server",
        /// The client has not shown the identity that the connect token is for.
        TokenOfOtherClient => "the connect token belongs to another client",
        /// The connect token was used before.
        TokenUsed => "the connect token was used before",
        /// There is no room to remember that the connect token was used.
        TokenStoreFull => "too many connect tokens are in use at once",
    }
}

/// What carries the datagrams of a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carrier {
    /// UDP, or what loses, delays and reorders as UDP does.
    #[default]
    Datagrams,
    /// A stream, such as a WebSocket to a relay: it repeats what is lost itself, and everything behind a loss waits for it.
    /// A timeout is at least a second (RFC 6298 section 2.4) and only probes, so that little travels twice; in RakNet a
    /// queue is as long as such a wait before it counts as congestion. What is lost behind the stream is still sent again
    /// without that wait, once something later is acknowledged or the other peer says so.
    Stream,
}

/// The shortest timeout over a stream, in microseconds, so that its own timeout comes first (RFC 6298 section 2.4).
pub(crate) const MIN_STREAM_TIMEOUT: u32 = 1_000_000;

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ConnectionState {
    /// The handshake is under way.
    Connecting,
    /// Messages may be sent.
    Connected,
    /// Ended by this peer; what was sent before is still being delivered, and nothing more may be sent.
    Disconnecting,
    /// It is over.
    Disconnected,
}

/// Names a message of one connection whose sender wants to know what becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Receipt(pub u32);

/// What became of a message that was sent with a receipt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Outcome {
    /// The other peer has it, all its parts.
    #[default]
    Acknowledged,
    /// It was sent unreliably and no acknowledgement came, or it waited too long to be sent. It may have arrived all
    /// the same.
    Lost,
}

/// Which way a datagram, or a message in parts, goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Direction {
    /// To the other peer.
    Sending,
    /// From the other peer.
    Receiving,
}

/// How far a message in parts has come.
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
    /// Which way it goes.
    pub direction: Direction,
    /// Tells it from the others that are under way in the same direction.
    pub message: u16,
    /// Parts that have arrived or were acknowledged.
    pub done: u32,
    /// Parts in all.
    pub parts: u32,
}

#[cfg(feature = "defmt")]
impl defmt::Format for ConnectionId {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{=u16}.{=u32}", self.slot, self.generation);
    }
}

error_enum! {
    /// Why a connection cannot be opened from here.
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
        /// The address is that of nobody: its port or its IP address is zero.
        UnassignedAddress => "an address to connect to has a port and an IP address other than zero",
        /// The largest MTU of the configuration is not one of 576 to 1492 bytes; only in RakNet.
        InvalidMtu => "the largest MTU must be 576 to 1492 bytes",
        /// Every connection slot is taken.
        Full => "every connection slot is taken",
        /// The password is longer than 255 bytes; only in RakNet.
        PasswordTooLong => "a password has at most 255 bytes",
        /// A secure connection is wanted, and the configuration has no security; only in RakNet.
        NoSecurity => "a secure connection needs a configuration with security",
        /// The client has an identity, which only a secure connection shows, and is not told which server to trust; only in
        /// RakNet. Give `ConnectOptions::trust`, or leave out the identity for a plain connection.
        IdentityWithoutTrust => "an identity is for secure connections: say which server to trust, or leave it out",
        /// The data of an identity is longer than 95 bytes, or there is no identity to send it with; only in RakNet.
        InvalidIdentityData => "the data of an identity has at most 95 bytes, and needs an identity",
        /// There is no memory to keep the password until it is sent; only in RakNet.
        NoMemory => "there is no memory for the password",
    }
}

error_enum! {
    /// Why a peer does not become one of several that partition the ids of connections.
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
        /// The number is not below that of the peers.
        NoSuchPeer => "the number of a peer must be below that of all peers",
        /// An id was given to a connection already, or a part was set before. Partition ids before there are connections.
        InUse => "ids are in use; partition them before there are connections",
    }
}

error_enum! {
    /// Why a message was not accepted for sending. Nothing of it was kept.
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
        /// A message has at least one byte; in RakNet that is its id.
        Empty => "a message must have at least one byte",
        /// RakNet: the first byte is below 0x1B and belongs to RakNet itself.
        ReservedId => "the first byte is below 0x1B and belongs to RakNet itself",
        /// The Game Protocol: the message is longer than 129,024 bytes, which is 256 chunks. Send it in several.
        TooLong => "a message has at most 129,024 bytes; send it in several",
        /// The message takes more memory than one connection may ever hold. Send it in pieces, or give the peer more
        /// blocks. In RakNet the memory that a channel takes when it is first used counts too: the channels 0 to 3 take
        /// none.
        NeverFits => "the message is larger than one connection may hold; send it in pieces",
        /// This connection holds as much as it may beside others; try again when some of it was acknowledged.
        /// [`Peer::poll_writable`](super::Peer::poll_writable) tells when.
        QuotaExceeded => "the connection holds as much as it may; try again later",
        /// The message needs more than what is guaranteed to a connection, and all connections together have left less;
        /// try again when [`Peer::poll_writable`](super::Peer::poll_writable) names this one.
        PoolExhausted => "the peer holds as much as it can; try again later",
        /// RakNet: what the message needs was left out of the build: the feature `splitting` for one that is longer than a
        /// datagram, `sequencing` for one of which only the newest counts, `channels` for one on a channel from 4 on.
        LeftOut => "this build leaves out what the message needs",
        /// A hook does not let this message through.
        Filtered => "a hook does not let this message through",
    }
}

/// Whether anything is counted (feature `statistics`); if not, every counter stays 0.
const STATISTICS: bool = cfg!(feature = "statistics");

/// The reasons of a protocol for dropping what arrived.
pub trait DropReasons: Copy + 'static {
    /// Every reason, in the order of [`index`](Self::index).
    const REASONS: &'static [Self];
    /// One counter a reason.
    type Counts: Copy + core::fmt::Debug + Default + AsRef<[u64]> + AsMut<[u64]> + Send + Sync;

    /// Where the counter of this reason stands.
    fn index(self) -> usize;
}

/// Counters of a whole peer. Without the feature `statistics` all of them are 0.
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
    /// Datagrams that arrived.
    pub datagrams_received: u64,
    /// Bytes of them, without IP and UDP headers.
    pub bytes_received: u64,
    /// Datagrams of messages that were dropped for connections that [refuse](super::Peer::refuse_data) them.
    pub datagrams_refused: u64,
    /// Datagrams given to be sent.
    pub datagrams_sent: u64,
    /// Bytes of them, without IP and UDP headers.
    pub bytes_sent: u64,
    drops: R::Counts,
}

/// Names the reasons for which something was dropped, and leaves out those for which nothing was.
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
    /// How often something was dropped for `reason`.
    #[must_use]
    pub fn dropped(&self, reason: R) -> u64 {
        self.drops.as_ref().get(reason.index()).copied().unwrap_or(0)
    }

    /// Every reason with its count.
    pub fn drops(&self) -> impl Iterator<Item = (R, u64)> {
        R::REASONS.iter().copied().zip(self.drops.as_ref().iter().copied())
    }

    /// Counts something that is dropped.
    #[cfg(feature = "statistics")]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) fn drop(&mut self, reason: R) {
        let Some(count) = self.drops.as_mut().get_mut(reason.index()) else {
            debug_assert!(false, "a reason without a counter");
            return;
        };
        *count += 1;
    }

    /// Counts nothing: the feature `statistics` is left out.
    #[cfg(not(feature = "statistics"))]
    #[inline(always)]
    pub(crate) const fn drop(&mut self, _: R) {}

    /// Counts a datagram that arrived.
    #[inline]
    pub(crate) const fn on_received(&mut self, bytes: usize) {
        if STATISTICS {
            self.datagrams_received += 1;
            self.bytes_received += bytes as u64;
        }
    }

    /// Counts a datagram that is sent.
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
