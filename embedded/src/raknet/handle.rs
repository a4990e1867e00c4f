//! The peer, as its tasks hold it.

use core::future::poll_fn;
use core::net::SocketAddr;

#[cfg(feature = "server")]
use rakwire::raknet::SetError;
use rakwire::raknet::{self, ConnectOptions, Peer, PeerStats};

use super::connection::Connection;
use super::error::ConnectError;
use super::protocol::RakNet;
use crate::shared::Shared;

/// A peer: opens and accepts connections. It is small and may be copied to every task of its executor.
///
/// Every future may be dropped at any point: then nothing was taken, and what it had begun is ended.
///
/// ```
/// use core::net::SocketAddr;
/// use rakwire_embassy::raknet::{ConnectError, Handle};
///
/// /// Joins as soon as the server lets us.
/// async fn join(handle: Handle<'static>, server: SocketAddr) {
///     while handle.connect(server).await.is_err() {
///         embassy_time::Timer::after_secs(1).await;
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Handle<'d> {
    pub(super) shared: &'d Shared<'d, RakNet>,
}

impl<'d> Handle<'d> {
    pub(crate) const fn new(shared: &'d Shared<'d, RakNet>) -> Self {
        Self { shared }
    }

    /// Opens a connection as the configuration says, and waits until it is open. When the future is dropped before, the
    /// attempt ends.
    ///
    /// # Errors
    /// A [`ConnectError`].
    pub async fn connect(&self, to: SocketAddr) -> Result<Connection<'d>, ConnectError> {
        self.connect_with(to, &ConnectOptions::default()).await
    }

    /// Opens a connection with a password, another protocol version or other times than the configuration says.
    ///
    /// # Errors
    /// A [`ConnectError`].
    pub async fn connect_with(
        &self,
        to: SocketAddr,
        options: &ConnectOptions<'_>,
    ) -> Result<Connection<'d>, ConnectError> {
        let open = |peer: &mut Peer<'d>, now| peer.connect_with(now, to, options);
        let hold = self.shared.dial(to, raknet::ConnectError::Full, open);
        let hold = hold.map_err(ConnectError::NotTried)?;
        hold.opened().await.map_err(ConnectError::Failed)?;
        Ok(Connection::new(hold))
    }

    /// The next connection that somebody else opened.
    ///
    /// ```
    /// use rakwire_embassy::raknet::Handle;
    ///
    /// /// A server that sends everything back.
    /// async fn echo(handle: Handle<'static>) {
    ///     let mut buffer = [0; 256];
    ///     loop {
    ///         let connection = handle.accept().await;
    ///         while let Some(message) = connection.recv().await {
    ///             let delivery = message.delivery();
    ///             let length = message.copy_to(&mut buffer).map_or(0, <[u8]>::len);
    ///             drop(message);
    ///             if connection.send(&buffer[..length], delivery).await.is_err() {
    ///                 break;
    ///             }
    ///         }
    ///     }
    /// }
    /// ```
    pub async fn accept(&self) -> Connection<'d> {
        let shared = self.shared;
        Connection::new(poll_fn(|cx| shared.poll_accept(cx)).await)
    }

    /// A connection that somebody else opened, if there is one now.
    #[must_use]
    pub fn try_accept(&self) -> Option<Connection<'d>> {
        self.shared.try_accept().map(Connection::new)
    }

    /// Sets what the answers to pings say, 0 to 399 bytes.
    ///
    /// # Errors
    /// [`SetError::AdvertisementTooLong`].
    #[cfg(feature = "server")]
    pub fn set_advertisement(&self, data: &[u8]) -> Result<(), SetError> {
        self.shared.act(|inner, _| inner.peer.set_advertisement(data))
    }

    /// The counters of the peer.
    #[must_use]
    pub fn stats(&self) -> PeerStats {
        self.shared.look(|inner| *inner.peer.stats())
    }

    /// Blocks that hold nothing now.
    #[must_use]
    pub fn blocks_available(&self) -> usize {
        self.shared.look(|inner| inner.peer.blocks_available())
    }
}
