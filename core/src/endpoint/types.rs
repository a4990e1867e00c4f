//! What both protocols say of a connection.

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
