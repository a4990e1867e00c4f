//! The peer, as tasks use it.

use core::future::poll_fn;
use core::net::SocketAddr;
use core::task::Poll;

use rakwire::endpoint::{PeerStats, Protocol};

use crate::connection::Connection;
use crate::error::ConnectError;
use crate::reference::ConnectionRef;
use crate::shared::Shared;

/// A peer: opens and accepts connections. It is small and may be copied to every task of its executor.
///
/// Every future may be dropped at any point: then nothing was taken, and what it had begun is ended.
///
/// ```
/// use core::net::SocketAddr;
/// use rakwire_embassy::raknet::Handle;
///
/// /// Joins as soon as the server lets us.
/// async fn join(handle: Handle<'static>, server: SocketAddr) {
///     while handle.connect(server).await.is_err() {
///         embassy_time::Timer::after_secs(1).await;
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Handle<'d, P: Protocol> {
    pub(crate) shared: &'d Shared<'d, P>,
}

impl<'d, P: Protocol> Handle<'d, P> {
    /// Opens a connection as the configuration says, and waits until it is open. When the future is dropped before, the
    /// attempt ends.
    ///
    /// In the Game Protocol a connection is open when the server has challenged this client and got its answer on the
    /// way; whether it lets it in shows when something comes back. A peer without another connection that has any port
    /// takes a fresh one each time: servers of the original do not hear a second attempt from the same port.
    ///
    /// # Errors
    /// A [`ConnectError`].
    pub async fn connect(&self, to: SocketAddr) -> Result<Connection<'d, P>, ConnectError<P>> {
        self.connect_with(to, &P::ConnectOptions::default()).await
    }

    /// Opens a connection, in RakNet with a password, another protocol version or other times than the configuration
    /// says.
    ///
    /// # Errors
    /// A [`ConnectError`].
    pub async fn connect_with(
        &self,
        to: SocketAddr,
        options: &P::ConnectOptions<'_>,
    ) -> Result<Connection<'d, P>, ConnectError<P>> {
        let slot = self.shared.update(|inner, now| inner.connect(now, to, options));
        let reference = ConnectionRef::new(self.shared, slot.map_err(ConnectError::NotTried)?);
        let identity = reference.connected().await.map_err(ConnectError::Failed)?;
        Ok(Connection::new(reference, to, identity))
    }

    /// The next connection that another peer opened: for a small server (feature `server`), with `max_incoming` of the
    /// configuration above 0.
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
    pub async fn accept(&self) -> Connection<'d, P> {
        let accepted = poll_fn(|cx| {
            self.shared.poll(cx, |inner, _| inner.slots.accept().map_or(Poll::Pending, Poll::Ready))
        });
        self.accepted(accepted.await)
    }

    /// A connection that another peer opened, if there is one now.
    #[must_use]
    pub fn try_accept(&self) -> Option<Connection<'d, P>> {
        let accepted = self.shared.update(|inner, _| inner.slots.accept())?;
        Some(self.accepted(accepted))
    }

    const fn accepted(
        &self,
        (slot, remote, identity): (usize, SocketAddr, P::Identity),
    ) -> Connection<'d, P> {
        Connection::new(ConnectionRef::new(self.shared, slot), remote, identity)
    }

    /// The counters of the peer.
    #[must_use]
    pub fn stats(&self) -> PeerStats<P::DropReason> {
        self.shared.read(|inner| *inner.peer.stats())
    }

    /// Blocks that hold nothing now.
    #[must_use]
    pub fn blocks_available(&self) -> usize {
        self.shared.read(|inner| inner.peer.blocks_available())
    }
}
