//! A connection for sending and echoing messages, over UDP with either protocol or over TCP.

use std::net::SocketAddr;

use rakwire::endpoint::Protocol;
use rakwire_extras::tcp;
use rakwire_native::SendError;
use rakwire_native::endpoint::{self, Message};
use rakwire_native::{game_protocol, raknet};

/// The longest message over TCP in bytes, longer than `send` ever sends.
pub(crate) const MAX_TCP_MESSAGE: u32 = 8 << 20;

/// The operations that all kinds of connections share.
pub(crate) trait Connection: Send + Sync + 'static {
    type Delivery: Copy + Send + Sync;

    fn remote(&self) -> SocketAddr;

    /// Returns the current MTU, or `None` once the connection is closed or if the transport has no MTU.
    fn mtu(&self) -> Option<u16>;

    /// Sends a message once the send memory has space for it.
    fn send(
        &self,
        message: &[u8],
        delivery: Self::Delivery,
    ) -> impl Future<Output = Result<(), SendError>> + Send;

    /// Receives the next message, or `None` once the connection is closed.
    fn recv(&self) -> impl Future<Output = Option<Message<Self::Delivery>>> + Send;

    /// Returns why the connection was closed, if it was.
    fn closed_reason(&self) -> Option<String>;

    /// Flushes sent messages and closes the connection.
    fn disconnect(&self) -> impl Future<Output = ()> + Send;
}

/// Statistics of a connection that may have an MTU.
pub(crate) trait PathMtu {
    /// Returns the MTU for new datagrams in bytes, including IP and UDP headers.
    fn mtu(&self) -> Option<u16>;
}

impl PathMtu for raknet::ConnectionStats {
    fn mtu(&self) -> Option<u16> {
        Some(self.mtu)
    }
}

impl PathMtu for game_protocol::ConnectionStats {
    fn mtu(&self) -> Option<u16> {
        None
    }
}

impl<P: Protocol<ConnectionStats: PathMtu>> Connection for endpoint::Connection<P> {
    type Delivery = P::Delivery;

    fn remote(&self) -> SocketAddr {
        self.remote()
    }

    fn mtu(&self) -> Option<u16> {
        self.stats().and_then(|stats| stats.mtu())
    }

    async fn send(&self, message: &[u8], delivery: P::Delivery) -> Result<(), SendError> {
        self.send(message, delivery).await.map(drop)
    }

    async fn recv(&self) -> Option<Message<P::Delivery>> {
        self.recv().await
    }

    fn closed_reason(&self) -> Option<String> {
        self.closed_reason().map(|reason| reason.to_string())
    }

    async fn disconnect(&self) {
        self.disconnect().await;
    }
}

impl Connection for tcp::Connection {
    type Delivery = tcp::Delivery;

    fn remote(&self) -> SocketAddr {
        self.remote()
    }

    fn mtu(&self) -> Option<u16> {
        None
    }

    async fn send(&self, message: &[u8], delivery: tcp::Delivery) -> Result<(), SendError> {
        self.send(message, delivery).await.map(drop)
    }

    async fn recv(&self) -> Option<tcp::Message> {
        self.recv().await
    }

    fn closed_reason(&self) -> Option<String> {
        self.closed_reason().map(|reason| reason.to_string())
    }

    async fn disconnect(&self) {
        self.disconnect().await;
    }
}
