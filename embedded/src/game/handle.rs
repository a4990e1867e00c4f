//! The peer, as its tasks hold it.

use core::future::poll_fn;
use core::net::SocketAddr;

use rakwire::game_protocol::{self, Peer, PeerStats};

use super::connection::Connection;
use super::error::ConnectError;
use super::protocol::Game;
use crate::shared::Shared;

/// A peer: opens and accepts connections. It is small and may be copied to every task of its executor.
///
/// Every future may be dropped at any point: then nothing was taken, and what it had begun is ended.
///
/// ```
/// use core::net::SocketAddr;
/// use rakwire_embassy::game::{Connection, Handle};
///
/// /// Joins as soon as the server lets us.
/// async fn join(handle: Handle<'static>, server: SocketAddr) -> Connection<'static> {
///     loop {
///         match handle.connect(server).await {
///             Ok(connection) => return connection,
///             Err(_) => embassy_time::Timer::after_secs(1).await,
///         }
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Handle<'d> {
    shared: &'d Shared<'d, Game>,
}

impl<'d> Handle<'d> {
    pub(crate) const fn new(shared: &'d Shared<'d, Game>) -> Self {
        Self { shared }
    }

    /// Opens a connection as the configuration says, and waits until the server has challenged this client and got its
    /// answer on the way; whether it lets it in shows when something comes back. When the future is dropped before, the
    /// attempt ends.
    ///
    /// A peer without another connection that has any port takes a fresh one each time: servers of the original do not
    /// hear a second attempt from the same port.
    ///
    /// # Errors
    /// A [`ConnectError`].
    pub async fn connect(&self, to: SocketAddr) -> Result<Connection<'d>, ConnectError> {
        let open = |peer: &mut Peer<'d>, now| peer.connect(now, to);
        let hold = self.shared.dial(to, game_protocol::ConnectError::Full, open);
        let hold = hold.map_err(ConnectError::NotTried)?;
        hold.opened().await.map_err(ConnectError::Failed)?;
        Ok(Connection::new(hold))
    }

    /// The next connection that somebody else opened: for a small server (feature `server`), with `max_incoming` of the
    /// configuration above 0.
    ///
    /// ```
    /// use rakwire_embassy::game::Handle;
    ///
    /// /// A server that sends everything back.
    /// async fn echo(handle: Handle<'static>) {
    ///     let mut buffer = [0; 256];
    ///     loop {
    ///         let connection = handle.accept().await;
    ///         while let Some(message) = connection.recv().await {
    ///             let reliability = message.reliability();
    ///             let length = message.copy_to(&mut buffer).map_or(0, <[u8]>::len);
    ///             drop(message);
    ///             if connection.send(&buffer[..length], reliability).await.is_err() {
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
