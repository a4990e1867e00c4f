//! What a peer tells its application.

use core::net::SocketAddr;
use core::time::Duration;

use super::connection::{BlockHeader, Side};
use super::delivery::Delivery;
use super::wire::Guid;
use super::wire::offline::Refusal;
use crate::chunks::{Chunks, Piece};
use crate::storage::{Block, Link, Pool};

/// Names a connection of one peer. A name is never used again, so an old one finds nothing.
///
/// ```
/// fn is_small(id: rakwire::raknet::ConnectionId) -> bool {
///     size_of_val(&id) == 4
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId {
    pub(crate) slot: u16,
    pub(crate) generation: u16,
}

impl core::fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}.{}", self.slot, self.generation)
    }
}

/// Something that happened. It lends what it carries until the next call that changes the peer.
///
/// ```
/// use rakwire::raknet::Event;
///
/// fn describe(event: &Event<'_>) -> &'static str {
///     match event {
///         Event::Connected { .. } => "a connection is open",
///         Event::Message { .. } => "a message arrived",
///         _ => "something else",
///     }
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'p> {
    /// A connection is open: messages may be sent.
    Connected {
        /// The connection.
        id: ConnectionId,
        /// Where the other peer is.
        remote: SocketAddr,
        /// Who the other peer is.
        guid: Guid,
        /// Who opened it.
        side: Side,
    },
    /// A connection that this peer wanted could not be opened.
    ConnectFailed {
        /// The name that `connect` gave.
        id: ConnectionId,
        /// Where the other peer should be.
        remote: SocketAddr,
        /// Why.
        reason: ConnectFailure,
    },
    /// A connection ended. Every message that arrived before was told before.
    Disconnected {
        /// The connection.
        id: ConnectionId,
        /// Where the other peer was.
        remote: SocketAddr,
        /// Why.
        reason: DisconnectReason,
    },
    /// A message of the application arrived.
    Message {
        /// The connection.
        id: ConnectionId,
        /// How it travelled. The priority is not on the wire and reads as the default.
        delivery: Delivery,
        /// Its bytes.
        message: Message<'p>,
    },
    /// It is known what became of a message sent with a receipt. Of messages whose fate was open when the connection
    /// ended, nothing is told.
    Receipt {
        /// The connection.
        id: ConnectionId,
        /// What `send` returned.
        receipt: Receipt,
        /// What became of the message.
        outcome: Outcome,
    },
    /// A message in parts has come further ([`Config::progress_interval`](super::Config)). Of several such messages
    /// the last news of each direction are told.
    Progress {
        /// The connection.
        id: ConnectionId,
        /// How far.
        progress: Progress,
    },
    /// A server answered a ping.
    Pong {
        /// The server's address.
        from: SocketAddr,
        /// The server's identity.
        guid: Guid,
        /// From the ping to the pong.
        latency: Duration,
        /// What the server says of itself, 0 to 399 bytes.
        data: Message<'p>,
    },
    /// A peer without a connection sent a message ([`OutOfBand::Accept`](super::OutOfBand::Accept)).
    OutOfBand {
        /// Where it came from; may be forged.
        from: SocketAddr,
        /// Who sent it; may be forged.
        guid: Guid,
        /// What it says, 1 to 399 bytes.
        data: Message<'p>,
    },
    /// A peer without a connection makes itself known ([`OutOfBand::Accept`](super::OutOfBand::Accept)).
    Advertisement {
        /// Where it came from; may be forged.
        from: SocketAddr,
        /// Who sent it; may be forged.
        guid: Guid,
        /// What it says of itself, 0 to 398 bytes.
        data: Message<'p>,
    },
}

/// Names a message of one connection whose sender wants to know what becomes of it.
///
/// ```
/// assert_ne!(rakwire::raknet::Receipt(1), rakwire::raknet::Receipt(2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Receipt(pub u32);

/// What became of a message that was sent with a receipt.
///
/// ```
/// assert_eq!(rakwire::raknet::Outcome::default(), rakwire::raknet::Outcome::Acknowledged);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The other peer has it, all its parts.
    #[default]
    Acknowledged,
    /// It was sent unreliably and no acknowledgement came, or it waited too long to be sent. It may have arrived all
    /// the same.
    Lost,
}

/// Which way a message in parts goes.
///
/// ```
/// assert_ne!(rakwire::raknet::Direction::Sending, rakwire::raknet::Direction::Receiving);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// To the other peer.
    Sending,
    /// From the other peer.
    Receiving,
}

/// How far a message in parts has come.
///
/// ```
/// use rakwire::raknet::{Direction, Progress};
///
/// let progress = Progress { direction: Direction::Sending, message: 7, done: 32, parts: 128 };
/// assert_eq!(progress.done * 100 / progress.parts, 25);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

/// What a stranger said.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Said {
    Pong(Duration),
    OutOfBand,
    Advertisement,
}

/// The bytes of a message, in one piece or several.
///
/// ```
/// use rakwire::raknet::Message;
///
/// fn first_byte(message: &Message<'_>) -> Option<u8> {
///     message.chunks().flatten().next().copied()
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Message<'p> {
    pool: &'p Pool<'p, BlockHeader>,
    first: Link,
}

impl<'p> Message<'p> {
    pub(crate) const fn new(pool: &'p Pool<'p, BlockHeader>, first: Block) -> Self {
        Self { pool, first: Some(first) }
    }

    pub(crate) const fn empty(pool: &'p Pool<'p, BlockHeader>) -> Self {
        Self { pool, first: None }
    }

    /// The length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.first.map_or(0, |first| self.pool.size(first))
    }

    /// Whether there are no bytes at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pieces, in order.
    pub fn chunks(&self) -> impl Iterator<Item = &'p [u8]> + use<'p> {
        let (pool, mut at) = (self.pool, self.first);
        core::iter::from_fn(move || {
            let block = at?;
            at = pool.next(block);
            Some(pool.bytes(block))
        })
    }

    /// All bytes at once, if they are in one piece.
    #[must_use]
    pub fn as_slice(&self) -> Option<&'p [u8]> {
        let mut chunks = self.chunks();
        let first = chunks.next().unwrap_or(&[]);
        if chunks.next().is_none() { Some(first) } else { None }
    }

    /// Copies the bytes to the front of `buffer` and returns them there; nothing when they do not fit.
    #[must_use]
    pub fn copy_to<'b>(&self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        match self.first {
            Some(first) => self.pool.copy(first, buffer),
            None => Some(&[]),
        }
    }

    /// The bytes in a vector.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn to_vec(&self) -> alloc::vec::Vec<u8> {
        let mut bytes = alloc::vec::Vec::with_capacity(self.len());
        self.chunks().for_each(|chunk| bytes.extend_from_slice(chunk));
        bytes
    }
}

impl Chunks for Message<'_> {
    fn total(&self) -> usize {
        self.len()
    }

    fn piece(&self, at: Piece) -> (&[u8], Option<Piece>) {
        self.pool.piece(self.first, at)
    }
}

/// Why a connection could not be opened.
///
/// ```
/// use rakwire::raknet::ConnectFailure;
///
/// assert_eq!(ConnectFailure::NoAnswer.to_string(), "the server does not answer");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConnectFailure {
    /// Nothing came back.
    NoAnswer,
    /// The server refused.
    Refused(Refusal),
    /// The server speaks another version of the protocol.
    IncompatibleProtocol {
        /// The version that the server named.
        server: u8,
    },
    /// The server wants an encrypted connection.
    SecurityRequired,
    /// The server wants another password.
    InvalidPassword,
    /// The server ended the connection before it was open.
    Closed,
    /// The application gave up.
    Cancelled,
}

impl core::fmt::Display for ConnectFailure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let text = match self {
            Self::NoAnswer => "the server does not answer",
            Self::Refused(Refusal::AttemptFailed) => "the server gave the attempt up",
            Self::Refused(Refusal::AlreadyConnected) => {
                "the server has a connection of this address or GUID already"
            }
            Self::Refused(Refusal::NoFreeIncomingConnections) => "the server is full",
            Self::Refused(Refusal::Banned) => "the server has banned this address",
            Self::Refused(Refusal::RecentlyConnected) => {
                "this address connected a moment ago; try again later"
            }
            Self::IncompatibleProtocol { server } => {
                return write!(f, "the server speaks protocol version {server}");
            }
            Self::SecurityRequired => "the server wants an encrypted connection",
            Self::InvalidPassword => "the server wants another password",
            Self::Closed => "the server ended the connection before it was open",
            Self::Cancelled => "the attempt was cancelled",
        };
        f.write_str(text)
    }
}

impl core::error::Error for ConnectFailure {}

/// Why a connection ended.
///
/// ```
/// use rakwire::raknet::DisconnectReason;
///
/// assert_eq!(DisconnectReason::Remote.to_string(), "the other peer disconnected");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DisconnectReason {
    /// This application asked for it.
    Local,
    /// The other peer said goodbye.
    Remote,
    /// The other peer fell silent.
    Lost,
    /// A message of the other peer can never fit into the memory that one connection may take.
    MessageTooLarge,
    /// The other peer leaves gaps that hold more memory than one connection may take.
    ReceiveMemory,
}

impl core::fmt::Display for DisconnectReason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Local => "this side disconnected",
            Self::Remote => "the other peer disconnected",
            Self::Lost => "the other peer fell silent",
            Self::MessageTooLarge => "a message of the other peer is larger than a connection may hold",
            Self::ReceiveMemory => "the other peer left gaps that hold too much memory",
        })
    }
}
