//! What a peer tells its application.

use core::net::SocketAddr;

use super::connection::{BlockHeader, Side};
use super::wire::Reliability;
use crate::chunks::{Chunks, Piece};
use crate::storage::{Block, Link, Pool};

/// Names a connection of one peer. A name is not used again until its slot was given away 65,536 times.
///
/// ```
/// fn is_small(id: rakwire::game_protocol::ConnectionId) -> bool {
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
/// use rakwire::game_protocol::Event;
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
    /// A connection is open: messages may be sent. A client knows that the server has challenged it; that the server
    /// took its answer is not on the wire and shows only when something comes back.
    Connected {
        /// The connection.
        id: ConnectionId,
        /// Where the other peer is.
        remote: SocketAddr,
        /// Which side this peer is on.
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
    /// A message arrived.
    Message {
        /// The connection.
        id: ConnectionId,
        /// How it travelled.
        reliability: Reliability,
        /// Its bytes.
        message: Message<'p>,
    },
}

/// The bytes of a message, in one piece or several.
///
/// ```
/// use rakwire::game_protocol::Message;
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

    /// The length in bytes, 0 to 129,024.
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
        let pool = self.pool;
        let mut at = self.first;
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
/// use rakwire::game_protocol::ConnectFailure;
///
/// assert_eq!(ConnectFailure::NoAnswer.to_string(), "the server does not answer");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConnectFailure {
    /// No challenge came.
    NoAnswer,
    /// The application gave up.
    Cancelled,
}

impl core::fmt::Display for ConnectFailure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::NoAnswer => "the server does not answer",
            Self::Cancelled => "the attempt was cancelled",
        })
    }
}

impl core::error::Error for ConnectFailure {}

/// Why a connection ended.
///
/// ```
/// use rakwire::game_protocol::DisconnectReason;
///
/// assert_eq!(DisconnectReason::Remote.to_string(), "the other peer disconnected");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DisconnectReason {
    /// This application asked for it.
    Local,
    /// The other peer sent END. A client that is told so before anything else came was not let in.
    Remote,
    /// The other peer fell silent.
    Lost,
    /// A reliable message of the other peer can never fit into the memory that one connection may take.
    MessageTooLarge,
    /// The other peer began a reliable message and never finished it.
    MessageUnfinished,
}

impl core::fmt::Display for DisconnectReason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Local => "this side disconnected",
            Self::Remote => "the other peer disconnected",
            Self::Lost => "the other peer fell silent",
            Self::MessageTooLarge => "a message of the other peer is larger than a connection may hold",
            Self::MessageUnfinished => "the other peer began a message and never finished it",
        })
    }
}
