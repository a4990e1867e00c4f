//! A connection by which messages are sent and echoed: over UDP by either protocol, or over TCP.

use std::net::SocketAddr;

use rakwire::endpoint::Protocol;
use rakwire_native::SendError;
use rakwire_native::endpoint::{self, Message};
use rakwire_native::{game_protocol, raknet, tcp};

/// The longest message over TCP, in bytes: more than `send` sends.
pub(crate) const MAX_TCP_MESSAGE: u32 = 8 << 20;

/// What all connections do.
pub(crate) trait Connection: Send + Sync + 'static {
    type Delivery: Copy + Send + Sync;

    fn remote(&self) -> SocketAddr;

    /// The MTU of the connection now; `None` for a protocol that has none, and once the connection has ended.
    fn mtu(&self) -> Option<u16>;

    /// Sends a message once there is room for it.
    fn send(
        &self,
        message: &[u8],
        delivery: Self::Delivery,
    ) -> impl Future<Output = Result<(), SendError>> + Send;

    /// The next message; `None` once the connection has ended.
    fn recv(&self) -> impl Future<Output = Option<Message<Self::Delivery>>> + Send;

    /// Why it ended, if it has.
    fn closed_reason(&self) -> Option<String>;

    /// Lets what was sent arrive, and ends the connection.
    fn disconnect(&self) -> impl Future<Output = ()> + Send;
}

/// Measurements of a connection that may have an MTU.
pub(crate) trait PathMtu {
    /// The MTU of new datagrams with IP and UDP headers, in bytes.
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
