//! Messages from and to peers without a connection.

use std::net::SocketAddr;

use rakwire::Instant;
use rakwire::raknet::{self, Guid, RakNet};
use rakwire_udp::canonical;

use super::error::OutOfBandError;
use crate::endpoint::{Endpoint, State, Unconnected, retry};

impl Endpoint<RakNet> {
    /// Sends `data`, 1 to 399 bytes, once to a peer without a connection, which ignores it unless it is configured to
    /// [accept](rakwire::raknet::OutOfBand::Accept) such messages. Waits while the send queue is full.
    ///
    /// # Errors
    /// An [`OutOfBandError`]; nothing is sent then.
    ///
    /// ```
    /// use rakwire_native::{Endpoint, Options, OutOfBand, OutOfBandError, UnconnectedKind};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut options = Options::server(8)?;
    /// options.config.out_of_band = OutOfBand::Accept;
    /// let server = Endpoint::bind("127.0.0.1:0", options).await?;
    /// let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// client.send_out_of_band(server.local_addr(), b"free?").await?;
    /// let message = server.recv_unconnected().await.ok_or("the server is closed")?;
    /// assert_eq!((message.from, message.identity), (client.local_addr(), client.guid()));
    /// assert_eq!((message.kind, &message.data[..]), (UnconnectedKind::OutOfBand, &b"free?"[..]));
    ///
    /// let too_long = client.send_out_of_band(server.local_addr(), &[0; 400]).await;
    /// assert_eq!(too_long, Err(OutOfBandError::BadLength));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn send_out_of_band(&self, to: SocketAddr, data: &[u8]) -> Result<(), OutOfBandError> {
        self.send_unconnected(to, |state, now, to| state.hooked.peer.send_out_of_band(now, to, data)).await
    }

    /// Advertises this endpoint once to a peer without a connection, with `data`, 0 to 398 bytes. Waits while the send
    /// queue is full.
    ///
    /// # Errors
    /// An [`OutOfBandError`]; nothing is sent then.
    ///
    /// ```
    /// use rakwire_native::{Endpoint, Options, OutOfBand, UnconnectedKind};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut options = Options::client()?;
    /// options.config.out_of_band = OutOfBand::Accept;
    /// let client = Endpoint::bind("127.0.0.1:0", options).await?;
    /// let server = Endpoint::bind("127.0.0.1:0", Options::server(8)?).await?;
    /// server.advertise(client.local_addr(), b"join us").await?;
    /// let message = client.recv_unconnected().await.ok_or("the client is closed")?;
    /// assert_eq!((message.kind, message.from), (UnconnectedKind::Advertisement, server.local_addr()));
    /// assert_eq!(message.data, b"join us");
    /// # Ok(())
    /// # }
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
        let attempt = |state: &mut State<RakNet>, now| {
            if !state.is_open() {
                return Some(Err(OutOfBandError::EndpointClosed));
            }
            match send(state, now, to) {
                Ok(()) => Some(Ok(())),
                Err(raknet::OutOfBandError::TooMany) => None,
                // The error is non-exhaustive; any other one is about the message, too.
                Err(raknet::OutOfBandError::BadLength | _) => Some(Err(OutOfBandError::BadLength)),
            }
        };
        retry(&self.shared.unconnected_room, || self.shared.act(attempt)).await
    }

    /// Waits for the next message from a peer without a connection. There is none unless the configuration
    /// [accepts](rakwire::raknet::OutOfBand::Accept) them. Returns `None` once the endpoint is closed. If the future is
    /// dropped earlier, no message is lost.
    pub async fn recv_unconnected(&self) -> Option<Unconnected<Guid>> {
        let take = || {
            let mut state = self.shared.lock();
            let message = state.dispatcher.unconnected.pop();
            (message.is_some() || !state.is_open()).then_some(message)
        };
        retry(&self.shared.unconnected, take).await
    }
}
