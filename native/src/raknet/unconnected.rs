//! Messages from and to peers without a connection.

use std::net::SocketAddr;

use rakwire::Instant;
use rakwire::raknet::{self, Guid, RakNet};

use super::error::OutOfBandError;
use crate::endpoint::{Endpoint, State, Unconnected};
use crate::socket::canonical;

impl Endpoint<RakNet> {
    /// Sends `data`, 1 to 399 bytes, once to a peer without a connection, which is told only if it accepts such
    /// messages. Waits while too many others wait to be sent.
    ///
    /// # Errors
    /// An [`OutOfBandError`]; nothing was sent then.
    ///
    /// ```
    /// use rakwire_native::{Endpoint, Options, OutOfBand};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut options = Options::server(8)?;
    /// options.config.out_of_band = OutOfBand::Accept;
    /// let server = Endpoint::bind("127.0.0.1:0", options).await?;
    /// let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// client.send_out_of_band(server.local_addr(), b"\x86 is a place free?").await?;
    /// let message = server.recv_unconnected().await.ok_or("the server is closed")?;
    /// assert_eq!((message.from, message.identity), (client.local_addr(), client.guid()));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn send_out_of_band(&self, to: SocketAddr, data: &[u8]) -> Result<(), OutOfBandError> {
        self.send_unconnected(to, |state, now, to| state.hooked.peer.send_out_of_band(now, to, data)).await
    }

    /// Makes this endpoint known to a peer without a connection, with `data`, 0 to 398 bytes, of the application.
    ///
    /// # Errors
    /// An [`OutOfBandError`]; nothing was sent then.
    ///
    /// ```
    /// use rakwire_native::{Endpoint, OutOfBandError};
    ///
    /// async fn invite(server: &Endpoint, player: std::net::SocketAddr) -> Result<(), OutOfBandError> {
    ///     server.advertise(player, b"come and play").await
    /// }
    /// ```
    pub async fn advertise(&self, to: SocketAddr, data: &[u8]) -> Result<(), OutOfBandError> {
        self.send_unconnected(to, |state, now, to| state.hooked.peer.advertise(now, to, data)).await
    }

    async fn send_unconnected(
        &self,
        to: SocketAddr,
        send: impl Fn(&mut State<RakNet>, Instant, SocketAddr) -> Result<(), raknet::OutOfBandError>,
    ) -> Result<(), OutOfBandError> {
        let to = canonical(to);
        if !self.reaches(to) {
            return Err(OutOfBandError::AddressFamily);
        }
        loop {
            let mut room = std::pin::pin!(self.shared.unconnected_room.notified());
            // From here on no room is missed.
            room.as_mut().enable();
            let is_sent = self.shared.act(|state, now| {
                if !state.is_open() {
                    return Err(OutOfBandError::EndpointClosed);
                }
                send(state, now, to).map(|()| true).or_else(|error| match error {
                    raknet::OutOfBandError::TooMany => Ok(false),
                    // Whatever else the core may report one day is about the message, too.
                    raknet::OutOfBandError::BadLength | _ => Err(OutOfBandError::BadLength),
                })
            })?;
            if is_sent {
                return Ok(());
            }
            room.await;
        }
    }

    /// The next message of a peer without a connection; waits until there is one. None come unless the configuration
    /// [accepts](rakwire::raknet::OutOfBand::Accept) them. Nothing once the endpoint was closed. When the future is
    /// dropped before, no message was taken.
    ///
    /// ```
    /// use rakwire_native::{Endpoint, UnconnectedKind};
    ///
    /// async fn first_invitation(endpoint: &Endpoint) -> Option<std::net::SocketAddr> {
    ///     loop {
    ///         let message = endpoint.recv_unconnected().await?;
    ///         if message.kind == UnconnectedKind::Advertisement {
    ///             return Some(message.from);
    ///         }
    ///     }
    /// }
    /// ```
    pub async fn recv_unconnected(&self) -> Option<Unconnected<Guid>> {
        loop {
            let mut arrived = std::pin::pin!(self.shared.unconnected.notified());
            // From here on nothing is missed.
            arrived.as_mut().enable();
            {
                let mut state = self.shared.lock();
                let message = state.receivers.unconnected.pop();
                if message.is_some() || !state.is_open() {
                    return message;
                }
            }
            arrived.await;
        }
    }
}
