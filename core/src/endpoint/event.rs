//! The events of a peer, and the messages that they lend.

use core::net::SocketAddr;
use core::time::Duration;

use super::protocol::Protocol;
use super::types::{
    ConnectionId, ConnectionState, Outcome, Progress, Receipt, RefuseReason, RefusedClient, Side,
};
use crate::cursor::{Chunks, Piece};
use crate::storage::{Block, BlockLink, Pool};

/// An event. It borrows its data from the peer until the next call that changes the peer.
///
/// ```
/// use rakwire::Instant;
/// use rakwire::raknet::{Config, Event, Peer, Resources};
///
/// let mut resources = Resources::<1, 32, 128>::new();
/// let mut peer = Peer::new(&mut resources, Config::new([7; 32]));
/// let id = peer.connect(Instant::ZERO, "127.0.0.1:19132".parse()?)?;
/// peer.disconnect(Instant::ZERO, id);
/// let text = match peer.poll_event() {
///     Some(Event::Connected { identity, .. }) => format!("a connection with {identity} is open"),
///     Some(Event::Message { message, .. }) => format!("a message of {} bytes arrived", message.len()),
///     Some(Event::ConnectFailed { reason, .. }) => format!("no connection: {reason}"),
///     _ => "something else".to_owned(),
/// };
/// assert_eq!(text, "no connection: the attempt was cancelled");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'p, P: Protocol> {
    /// A connection is open and accepts messages.
    ///
    /// In the Game Protocol, a client reports this once it has received the server's challenge. The protocol has no
    /// packet that confirms the client's response: the first data from the server is the first sign that it has
    /// accepted the client.
    Connected {
        /// The connection.
        id: ConnectionId,
        /// The address of the remote peer.
        remote: SocketAddr,
        /// The identity of the remote peer: in RakNet its GUID.
        identity: P::Identity,
        /// The side that opened the connection.
        side: Side,
    },
    /// An attempt of this peer to connect failed.
    ConnectFailed {
        /// The id that `connect` returned.
        id: ConnectionId,
        /// The address of the remote peer.
        remote: SocketAddr,
        /// The reason for the failure.
        reason: P::ConnectFailure,
    },
    /// A connection closed. All messages received before it have already been reported.
    Disconnected {
        /// The connection.
        id: ConnectionId,
        /// The address of the remote peer.
        remote: SocketAddr,
        /// The reason why it closed.
        reason: P::DisconnectReason,
    },
    /// This peer, as a server, refused a client; RakNet only.
    ///
    /// The cause is the client's password, identity or connect token. No other event refers to this connection,
    /// except if this peer was connecting to the client at the same time: then `ConnectFailed` follows.
    Refused {
        /// The connection that was not opened.
        id: ConnectionId,
        /// The source address of the client, possibly forged: see `is_validated`.
        remote: SocketAddr,
        /// The identity that the client claims.
        identity: P::Identity,
        /// The reason for the refusal.
        reason: RefuseReason,
        /// True if the client has proved by a cookie or a pong that it receives datagrams at `remote`.
        ///
        /// If false, the address may be forged: do not ban it.
        is_validated: bool,
    },
    /// A message for the application was received.
    Message {
        /// The connection.
        id: ConnectionId,
        /// The delivery options of the message. RakNet does not transmit the priority, so it is the default.
        delivery: P::Delivery,
        /// The message, borrowed from the peer.
        message: Message<'p, P>,
    },
    /// The outcome of a message that was sent with a receipt; RakNet only.
    ///
    /// When the connection closes, outstanding receipts are not reported.
    Receipt {
        /// The connection.
        id: ConnectionId,
        /// The receipt that `send` returned for the message.
        receipt: Receipt,
        /// The outcome of the message: acknowledged or lost.
        outcome: Outcome,
    },
    /// The progress of a split message, reported after every `progress_interval` parts; RakNet only.
    ///
    /// Of several concurrent split messages, only the latest in each direction is reported.
    Progress {
        /// The connection.
        id: ConnectionId,
        /// The progress.
        progress: Progress,
    },
    /// The MTU of a connection was reduced; RakNet only.
    ///
    /// Either large datagrams were lost while smaller ones arrived, or the operating system refused a datagram as too
    /// large.
    MtuChanged {
        /// The connection.
        id: ConnectionId,
        /// The new MTU, including 28 bytes of IP and UDP headers.
        mtu: u16,
    },
    /// A server answered an unconnected ping; RakNet only.
    Pong {
        /// The server's address.
        from: SocketAddr,
        /// The identity of the server.
        identity: P::Identity,
        /// The time from sending the ping to receiving the pong.
        latency: Duration,
        /// The server's advertisement, 0 to 399 bytes.
        data: Message<'p, P>,
    },
    /// An unconnected peer sent an out-of-band message; RakNet only, if the configuration enables it.
    OutOfBand {
        /// The sender's address, which may be forged.
        from: SocketAddr,
        /// The identity of the sender, which may be forged.
        identity: P::Identity,
        /// The payload, 1 to 399 bytes.
        data: Message<'p, P>,
    },
    /// An unconnected peer advertised itself; RakNet only, if the configuration enables it.
    Advertisement {
        /// The sender's address, which may be forged.
        from: SocketAddr,
        /// The identity of the sender, which may be forged.
        identity: P::Identity,
        /// The advertised text, 0 to 398 bytes.
        data: Message<'p, P>,
    },
}

/// The address, identity, side and state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionInfo<P: Protocol> {
    /// The address of the remote peer.
    pub remote: SocketAddr,
    /// The identity of the remote peer: in RakNet its GUID.
    pub identity: P::Identity,
    /// The side that opened the connection.
    pub side: Side,
    /// The state of the connection.
    pub state: ConnectionState,
}

// A derived implementation would require `P: Format`.
#[cfg(feature = "defmt")]
impl<P: Protocol> defmt::Format for ConnectionInfo<P> {
    fn format(&self, f: defmt::Formatter<'_>) {
        let Self { remote, identity, side, state } = self;
        defmt::write!(f, "{} ({}), {}, {}", remote, identity, side, state);
    }
}

impl<P: Protocol> Event<'_, P> {
    /// Returns the details of the refusal if this is [`Event::Refused`], and `None` otherwise.
    #[must_use]
    pub const fn refused_client(&self) -> Option<RefusedClient<P::Identity>> {
        let &Self::Refused { remote, identity, reason, is_validated, .. } = self else { return None };
        Some(RefusedClient { remote, identity, reason, is_validated })
    }
}

// A derived implementation would require `P: Format`.
#[cfg(feature = "defmt")]
impl<P: Protocol> defmt::Format for Event<'_, P> {
    fn format(&self, f: defmt::Formatter<'_>) {
        match self {
            Self::Connected { id, remote, identity, side } => {
                defmt::write!(f, "Connected({}, {}, {}, {})", id, remote, identity, side);
            }
            Self::ConnectFailed { id, remote, reason } => {
                defmt::write!(f, "ConnectFailed({}, {}, {})", id, remote, reason);
            }
            Self::Disconnected { id, remote, reason } => {
                defmt::write!(f, "Disconnected({}, {}, {})", id, remote, reason);
            }
            Self::Refused { id, remote, identity, reason, is_validated } => {
                defmt::write!(f, "Refused({}, {}, {}, {}, {})", id, remote, identity, reason, is_validated);
            }
            Self::Message { id, delivery, message } => {
                defmt::write!(f, "Message({}, {}, {})", id, delivery, message);
            }
            Self::Receipt { id, receipt, outcome } => {
                defmt::write!(f, "Receipt({}, {}, {})", id, receipt, outcome);
            }
            Self::Progress { id, progress } => defmt::write!(f, "Progress({}, {})", id, progress),
            Self::MtuChanged { id, mtu } => defmt::write!(f, "MtuChanged({}, {})", id, mtu),
            Self::Pong { from, identity, latency, data } => {
                defmt::write!(f, "Pong({}, {}, {}, {})", from, identity, latency, data);
            }
            Self::OutOfBand { from, identity, data } => {
                defmt::write!(f, "OutOfBand({}, {}, {})", from, identity, data);
            }
            Self::Advertisement { from, identity, data } => {
                defmt::write!(f, "Advertisement({}, {}, {})", from, identity, data);
            }
        }
    }
}

/// A message that an event lends, in one or more pieces.
///
/// ```
/// use rakwire::raknet::{Capacity, Config, Delivery, Event, Peer};
/// use rakwire::sim::{Conditions, Pair};
///
/// # let mut config = Config::new([1; 32]);
/// # config.max_incoming = 1;
/// # let server = Peer::with_capacity(Capacity::default(), config);
/// # let client = Peer::with_capacity(Capacity::default(), Config::new([2; 32]));
/// let mut pair = Pair::new(client, server, Conditions::default(), 7);
/// let id = pair.a.connect(pair.now, pair.b_address)?;
/// while !matches!(pair.a.poll_event(), Some(Event::Connected { .. })) {
///     assert!(pair.step());
/// }
/// pair.a.send(pair.now, id, b"\xFEhello", Delivery::RELIABLE)?;
/// loop {
///     assert!(pair.step());
///     if let Some(Event::Message { message, .. }) = pair.b.poll_event() {
///         assert!(message.chunks().flatten().eq(b"\xFEhello"));
///         assert_eq!(message.copy_to(&mut [0; 8]), Some(&b"\xFEhello"[..]));
///         break;
///     }
/// }
/// let before = pair.b.blocks_available();
/// pair.b.release_event_data();
/// assert!(pair.b.blocks_available() > before);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Message<'p, P: Protocol> {
    pool: &'p Pool<'p, P::BlockHeader>,
    first: BlockLink,
}

impl<P: Protocol> Clone for Message<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Protocol> Copy for Message<'_, P> {}

impl<'p, P: Protocol> Message<'p, P> {
    pub(crate) const fn new(pool: &'p Pool<'p, P::BlockHeader>, first: Block) -> Self {
        Self { pool, first: Some(first) }
    }

    pub(crate) const fn empty(pool: &'p Pool<'p, P::BlockHeader>) -> Self {
        Self { pool, first: None }
    }

    /// Returns the length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.first.map_or(0, |first| self.pool.size(first))
    }

    /// Returns true if the message has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the pieces in order.
    pub fn chunks(&self) -> impl Iterator<Item = &'p [u8]> + use<'p, P> {
        let (pool, mut at) = (self.pool, self.first);
        core::iter::from_fn(move || {
            let block = at?;
            at = pool.next(block);
            Some(pool.contents(block))
        })
    }

    /// Returns the message as one slice, or `None` if it is in several pieces.
    #[must_use]
    pub fn as_slice(&self) -> Option<&'p [u8]> {
        let mut chunks = self.chunks();
        let first = chunks.next().unwrap_or(&[]);
        if chunks.next().is_none() { Some(first) } else { None }
    }

    /// Copies the message into `buffer` and returns the copy, or `None` if the buffer is too short.
    #[must_use]
    pub fn copy_to<'b>(&self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        match self.first {
            Some(first) => self.pool.copy(first, buffer),
            None => Some(&[]),
        }
    }

    /// Returns a copy of the message.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn to_vec(&self) -> alloc::vec::Vec<u8> {
        let mut bytes = alloc::vec::Vec::with_capacity(self.len());
        self.chunks().for_each(|chunk| bytes.extend_from_slice(chunk));
        bytes
    }
}

impl<P: Protocol> Chunks for Message<'_, P> {
    fn total(&self) -> usize {
        self.len()
    }

    fn piece(&self, at: Piece) -> (&[u8], Option<Piece>) {
        self.pool.piece(self.first, at)
    }
}

/// Formats only the length: the bytes belong to the application.
#[cfg(feature = "defmt")]
impl<P: Protocol> defmt::Format for Message<'_, P> {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{=usize} bytes", self.len());
    }
}
