//! The events of a peer, and the bytes of a message.

use core::net::SocketAddr;
use core::time::Duration;

use super::protocol::Protocol;
use super::types::{
    ConnectionId, ConnectionState, Outcome, Progress, Receipt, RefuseReason, RefusedClient, Side,
};
use crate::cursor::{Chunks, Piece};
use crate::storage::{Block, BlockLink, Pool};

/// An event. It lends its data until the next call that changes the peer.
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
    /// A connection is open, so messages may be sent.
    ///
    /// In the Game Protocol, a client then knows that the server has challenged it. The acceptance of its answer is not
    /// on the wire; it shows only when the server sends something.
    Connected {
        /// The connection.
        id: ConnectionId,
        /// The address of the remote peer.
        remote: SocketAddr,
        /// The identity of the remote peer: in RakNet its GUID.
        identity: P::Identity,
        /// The side that opened it.
        side: Side,
    },
    /// A connection could not be opened by this peer.
    ConnectFailed {
        /// The id that `connect` returned.
        id: ConnectionId,
        /// The address of the remote peer.
        remote: SocketAddr,
        /// The reason.
        reason: P::ConnectFailure,
    },
    /// A connection ended. Every message that arrived earlier was reported earlier.
    Disconnected {
        /// The connection.
        id: ConnectionId,
        /// The address of the remote peer.
        remote: SocketAddr,
        /// The reason.
        reason: P::DisconnectReason,
    },
    /// This peer, as a server, refused a client; only in RakNet.
    ///
    /// The reason is its password, its identity or its connect token. No other event concerns that connection, unless
    /// this peer dials the client at the same time: then its own attempt fails.
    Refused {
        /// The connection that did not open.
        id: ConnectionId,
        /// The address that the client claims.
        remote: SocketAddr,
        /// The identity that the client claims.
        identity: P::Identity,
        /// The reason.
        reason: RefuseReason,
        /// Set if the client has shown, by a cookie or a pong, that it receives datagrams sent to `remote`.
        ///
        /// If not, the address may be forged and is not a reason for a ban.
        is_validated: bool,
    },
    /// A message of the application arrived.
    Message {
        /// The connection.
        id: ConnectionId,
        /// Its delivery. RakNet's priority is not on the wire and reads as the default.
        delivery: P::Delivery,
        /// Its bytes.
        message: Message<'p, P>,
    },
    /// The outcome of a message sent with a receipt; only in RakNet.
    ///
    /// Receipts that are still open when the connection ends are not reported.
    Receipt {
        /// The connection.
        id: ConnectionId,
        /// The receipt that `send` returned.
        receipt: Receipt,
        /// The outcome of the message.
        outcome: Outcome,
    },
    /// The progress of a message in parts; only in RakNet, at the configuration's `progress_interval`.
    ///
    /// If there are several such messages, only the latest one of each direction is reported.
    Progress {
        /// The connection.
        id: ConnectionId,
        /// The progress.
        progress: Progress,
    },
    /// The MTU has been reduced; only in RakNet.
    ///
    /// Large datagrams were lost while smaller ones arrived, or the system refused one. New datagrams are smaller from
    /// now on.
    MtuChanged {
        /// The connection.
        id: ConnectionId,
        /// The new MTU of the connection, including 28 bytes of IP and UDP headers.
        mtu: u16,
    },
    /// A server answered a ping; only in RakNet.
    Pong {
        /// The server's address.
        from: SocketAddr,
        /// The identity of the server.
        identity: P::Identity,
        /// The time from the ping to the pong.
        latency: Duration,
        /// The server's advertisement, 0 to 399 bytes.
        data: Message<'p, P>,
    },
    /// A peer without a connection sent a message; only in RakNet, if the configuration accepts them.
    OutOfBand {
        /// The sender's address, which may be forged.
        from: SocketAddr,
        /// The identity of the sender, which may be forged.
        identity: P::Identity,
        /// The data, 1 to 399 bytes.
        data: Message<'p, P>,
    },
    /// A peer without a connection announced itself; only in RakNet, if the configuration accepts that.
    Advertisement {
        /// The sender's address, which may be forged.
        from: SocketAddr,
        /// The identity of the sender, which may be forged.
        identity: P::Identity,
        /// The advertisement, 0 to 398 bytes.
        data: Message<'p, P>,
    },
}

/// The addresses, the side and the state of a connection.
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
    /// Returns the client that was refused, if this is such an event.
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

/// The bytes of a message, in one or more pieces.
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

    /// Returns true if there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the pieces, in order.
    pub fn chunks(&self) -> impl Iterator<Item = &'p [u8]> + use<'p, P> {
        let (pool, mut at) = (self.pool, self.first);
        core::iter::from_fn(move || {
            let block = at?;
            at = pool.next(block);
            Some(pool.contents(block))
        })
    }

    /// Returns all bytes, if they are in one piece.
    #[must_use]
    pub fn as_slice(&self) -> Option<&'p [u8]> {
        let mut chunks = self.chunks();
        let first = chunks.next().unwrap_or(&[]);
        if chunks.next().is_none() { Some(first) } else { None }
    }

    /// Copies the bytes to the front of `buffer` and returns them there; `None` if they do not fit.
    #[must_use]
    pub fn copy_to<'b>(&self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        match self.first {
            Some(first) => self.pool.copy(first, buffer),
            None => Some(&[]),
        }
    }

    /// Returns the bytes in a vector.
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

/// Formats the length, since the bytes belong to the application.
#[cfg(feature = "defmt")]
impl<P: Protocol> defmt::Format for Message<'_, P> {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{=usize} bytes", self.len());
    }
}
