//! One message to all connections of an endpoint, and its outcome.

use std::net::SocketAddr;

use rakwire::endpoint::SendError;
use rakwire::raknet::Delivery;

use super::connection::Connection;
use super::endpoint::Endpoint;

/// How many connections a message was sent to, and those that did not take it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Broadcast {
    /// How many connections the message was sent to.
    pub sent: usize,
    /// The other sides of the connections that did not take it, most often because they have no room
    /// ([`SendError::QuotaExceeded`]).
    pub refused: Vec<(SocketAddr, SendError)>,
}

impl Endpoint {
    /// Sends a message to every open connection of this endpoint, as [`Connection::try_send`] does: those without room do not get
    /// it. Plugins of a [`PluginConnection`](super::PluginConnection) do not see it.
    ///
    /// ```
    /// use rakwire_native::Delivery;
    /// use rakwire_native::tcp::{Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Endpoint::bind("127.0.0.1:0", Options::server(8)).await?;
    /// let client = Endpoint::bind("127.0.0.1:0", Options::client()).await?;
    /// let here = client.connect(server.local_addr()).await?;
    /// let there = server.accept().await.ok_or("the server is closed")?;
    /// assert_eq!(server.broadcast(b"the game begins", Delivery::default()).sent, 1);
    /// assert_eq!(server.broadcast_except(&there, b"moved", Delivery::default()).sent, 0);
    /// assert_eq!(here.recv().await.ok_or("the server is gone")?.bytes, b"the game begins");
    /// # Ok(())
    /// # }
    /// ```
    pub fn broadcast(&self, message: &[u8], delivery: Delivery) -> Broadcast {
        self.send_to_all(None, message, delivery)
    }

    /// As [`broadcast`](Self::broadcast), to all connections but one: whose message it was, for example.
    pub fn broadcast_except(&self, except: &Connection, message: &[u8], delivery: Delivery) -> Broadcast {
        self.send_to_all(Some(except), message, delivery)
    }

    fn send_to_all(&self, except: Option<&Connection>, message: &[u8], _delivery: Delivery) -> Broadcast {
        let mut broadcast = Broadcast::default();
        for connection in self.connections() {
            if except.is_some_and(|except| except.is(&connection)) || !connection.is_open() {
                continue;
            }
            match connection.try_send(message) {
                Ok(()) => broadcast.sent += 1,
                Err(error) => broadcast.refused.push((connection.remote, error)),
            }
        }
        broadcast
    }
}
