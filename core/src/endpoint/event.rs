//! What a peer tells its application.

use core::net::SocketAddr;

use super::message::Message;
use super::protocol::Protocol;
use super::types::{ConnectionId, ConnectionState, Side};

/// Something that happened. It lends what it carries until the next call that changes the peer.
///
/// ```
/// use rakwire::raknet::{Event, RakNetEvent};
///
/// fn describe(event: &Event<'_>) -> String {
///     match event {
///         Event::Connected { identity, .. } => format!("a connection with {identity} is open"),
///         Event::Message { message, .. } => format!("a message of {} bytes arrived", message.len()),
///         Event::Protocol(RakNetEvent::Pong { latency, .. }) => format!("a server is {latency:?} away"),
///         _ => "something else".to_owned(),
///     }
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'p, P: Protocol> {
    /// A connection is open: messages may be sent. In the Game Protocol a client knows that the server has challenged
    /// it; that the server took its answer is not on the wire and shows only when something comes back.
    Connected {
        /// The connection.
        id: ConnectionId,
        /// Where the other peer is.
        remote: SocketAddr,
        /// Who the other peer is: in RakNet its GUID.
        identity: P::Identity,
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
        reason: P::ConnectFailure,
    },
    /// A connection ended. Every message that arrived before was told before.
    Disconnected {
        /// The connection.
        id: ConnectionId,
        /// Where the other peer was.
        remote: SocketAddr,
        /// Why.
        reason: P::DisconnectReason,
    },
    /// A message of the application arrived.
    Message {
        /// The connection.
        id: ConnectionId,
        /// How it travelled. RakNet's priority is not on the wire and reads as the default.
        delivery: P::Delivery,
        /// Its bytes.
        message: Message<'p, P>,
    },
    /// Something that only this protocol has.
    Protocol(P::Event<'p>),
}

/// What is known of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionInfo<P: Protocol> {
    /// Where the other peer is.
    pub remote: SocketAddr,
    /// Who the other peer is: in RakNet its GUID.
    pub identity: P::Identity,
    /// Who opened the connection.
    pub side: Side,
    /// How far it has come.
    pub state: ConnectionState,
}
