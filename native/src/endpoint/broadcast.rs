//! One message to all connections of an endpoint, and its outcome.

use rakwire::endpoint::{ConnectionId, Protocol, SendError};

use super::Endpoint;

/// The connections that a message was sent to, and those that did not take it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Broadcast {
    /// How many connections the message was sent to.
    pub sent: usize,
    /// The connections that did not take it, most often because they have no room ([`SendError::QuotaExceeded`]).
    pub refused: Vec<(ConnectionId, SendError)>,
}

impl<P: Protocol> Endpoint<P> {
    /// Sends a message to every open connection of this endpoint, as [`try_send`](super::Connection::try_send) does: those
    /// without room do not get it. Of a server with shards each endpoint has its own connections.
    ///
    /// ```
    /// use rakwire_native::{Delivery, Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Endpoint::bind("127.0.0.1:0", Options::server(8)?).await?;
    /// let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// let here = client.connect(server.local_addr()).await?;
    /// let there = server.accept().await.ok_or("the server is closed")?;
    /// assert_eq!(server.broadcast(b"\x90the game begins", Delivery::RELIABLE_ORDERED).sent, 1);
    /// assert_eq!(server.broadcast_except(there.id(), b"\x90moved", Delivery::UNRELIABLE).sent, 0);
    /// assert_eq!(here.recv().await.ok_or("the server is gone")?.bytes, b"\x90the game begins");
    /// # Ok(())
    /// # }
    /// ```
    pub fn broadcast(&self, message: &[u8], delivery: P::Delivery) -> Broadcast {
        self.send_to_all(None, message, delivery)
    }

    /// As [`broadcast`](Self::broadcast), to all connections but one: whose message it was, for example.
    pub fn broadcast_except(&self, except: ConnectionId, message: &[u8], delivery: P::Delivery) -> Broadcast {
        self.send_to_all(Some(except), message, delivery)
    }

    fn send_to_all(&self, except: Option<ConnectionId>, message: &[u8], delivery: P::Delivery) -> Broadcast {
        self.shared.act(|state, now| {
            let mut refused = Vec::new();
            let count = |id, error| refused.push((id, error));
            let sent = state.hooked.broadcast(now, message, delivery, except, count);
            Broadcast { sent, refused }
        })
    }
}
