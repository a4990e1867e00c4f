//! The application's view of a peer.

use core::future::poll_fn;
use core::net::SocketAddr;
use core::task::Poll;

use rakwire::endpoint::{ConnectionId, Hook, PeerStats, Protocol, SendError};

use crate::connection::Connection;
use crate::error::ConnectError;
use crate::reference::ConnectionRef;
use crate::shared::Shared;
use crate::unsent::UnsentDatagrams;

/// A handle of a peer, which opens and accepts connections. Each task of the executor can have a copy.
///
/// All futures are cancel safe. Dropping an attempt to connect cancels it.
///
/// ```
/// use embassy_futures::join::join;
/// use rakwire::raknet::RakNet;
///
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/loopback.rs"));
/// # fn main() -> Result<(), Box<dyn std::error::Error>> { loopback::run(async |stack| {
/// # let (client, server) = loopback::peers::<RakNet>(stack);
/// assert!(server.try_accept().is_none());
/// let (opened, accepted) = join(client.connect(loopback::SERVER), server.accept()).await;
/// let opened = opened?;
/// assert_eq!(opened.remote(), loopback::SERVER);
/// assert_ne!(opened.identity(), accepted.identity(), "each has the GUID of the other");
/// assert!(server.stats().datagrams_received > 0);
/// # Ok(()) }) }
/// ```
#[derive(Debug)]
pub struct Handle<'d, P: Protocol, H: Hook<P> = ()> {
    pub(crate) shared: &'d Shared<'d, P, H>,
}

// Derived implementations would require `H: Clone` and `H: Copy`.
impl<P: Protocol, H: Hook<P>> Clone for Handle<'_, P, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Protocol, H: Hook<P>> Copy for Handle<'_, P, H> {}

impl<'d, P: Protocol, H: Hook<P>> Handle<'d, P, H> {
    /// Opens a connection and waits until it is open.
    ///
    /// In the Game Protocol, a connection counts as open when this client has answered the server's challenge. The
    /// server may still close it, for example because it is full. Original servers ignore a second attempt from the
    /// same port. A peer without a fixed port and without other connections therefore uses another port for each
    /// attempt.
    ///
    /// # Errors
    /// Returns a [`ConnectError`].
    pub async fn connect(&self, to: SocketAddr) -> Result<Connection<'d, P, H>, ConnectError<P>> {
        self.connect_with(to, &P::ConnectOptions::default()).await
    }

    /// Opens a connection like [`connect`](Self::connect), with options: in RakNet a password, a protocol version, and
    /// timeouts that override the configuration.
    ///
    /// # Errors
    /// Returns a [`ConnectError`].
    pub async fn connect_with(
        &self,
        to: SocketAddr,
        options: &P::ConnectOptions<'_>,
    ) -> Result<Connection<'d, P, H>, ConnectError<P>> {
        let slot = self.shared.update(|inner, now| inner.connect(now, to, options));
        let reference = ConnectionRef::new(self.shared, slot.map_err(ConnectError::NotStarted)?);
        let identity = reference.connected().await.map_err(ConnectError::Failed)?;
        Ok(Connection::new(reference, to, identity))
    }

    /// Waits for the next incoming connection. None arrives unless the feature `server` is enabled and `max_incoming`
    /// of the configuration is above 0.
    pub async fn accept(&self) -> Connection<'d, P, H> {
        let accepted = poll_fn(|cx| {
            self.shared.poll(cx, |inner, _| inner.slots.accept().map_or(Poll::Pending, Poll::Ready))
        });
        self.accepted(accepted.await)
    }

    /// Returns the next incoming connection, if there is one.
    #[must_use]
    pub fn try_accept(&self) -> Option<Connection<'d, P, H>> {
        let accepted = self.shared.update(|inner, _| inner.slots.accept())?;
        Some(self.accepted(accepted))
    }

    const fn accepted(
        &self,
        (slot, remote, identity): (usize, SocketAddr, P::Identity),
    ) -> Connection<'d, P, H> {
        Connection::new(ConnectionRef::new(self.shared, slot), remote, identity)
    }

    /// Returns the counters of the peer.
    #[must_use]
    pub fn stats(&self) -> PeerStats<P::DropReason> {
        self.shared.read(|inner| *inner.hooked.peer.stats())
    }

    /// Returns advice for the operator once the counters show clients that cannot connect, such as clients that return
    /// no cookie. Check and log it from time to time.
    ///
    /// ```
    /// use rakwire::raknet::RakNet;
    ///
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/loopback.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> { loopback::run(async |stack| {
    /// # let (_client, server) = loopback::peers::<RakNet>(stack);
    /// assert_eq!(server.advice(), None);
    /// # Ok(()) }) }
    /// ```
    #[must_use]
    pub fn advice(&self) -> Option<&'static str> {
        self.shared.read(|inner| P::advice(&inner.hooked.peer))
    }

    /// Returns the number of datagrams that the network did not accept, by reason.
    ///
    /// ```
    /// use rakwire::raknet::RakNet;
    /// use rakwire_embassy::UnsentDatagrams;
    ///
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/loopback.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> { loopback::run(async |stack| {
    /// # let (client, _server) = loopback::peers::<RakNet>(stack);
    /// client.connect(loopback::SERVER).await?;
    /// assert_eq!(client.unsent(), UnsentDatagrams::default());
    /// # Ok(()) }) }
    /// ```
    #[must_use]
    pub fn unsent(&self) -> UnsentDatagrams {
        self.shared.read(|inner| inner.unsent)
    }

    /// Sends a message to every open connection of the peer, like [`Connection::try_send`]. Returns the number of
    /// connections that accepted it. `refused` is called for each other connection; usually its send
    /// memory is full.
    ///
    /// ```
    /// use embassy_futures::join::join;
    /// use rakwire::raknet::{Delivery, RakNet};
    ///
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/loopback.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> { loopback::run(async |stack| {
    /// # let (client, server) = loopback::peers::<RakNet>(stack);
    /// let (opened, accepted) = join(client.connect(loopback::SERVER), server.accept()).await;
    /// let opened = opened?;
    /// assert_eq!(server.broadcast(b"\x90the game begins", Delivery::RELIABLE_ORDERED, |_, _| ()), 1);
    /// let author = accepted.id().ok_or("the connection has ended")?;
    /// assert_eq!(server.broadcast_except(author, b"\x90moved", Delivery::UNRELIABLE, |_, _| ()), 0);
    /// assert!(opened.recv().await.is_some());
    /// # Ok(()) }) }
    /// ```
    pub fn broadcast(
        &self,
        message: &[u8],
        delivery: P::Delivery,
        refused: impl FnMut(ConnectionId, SendError),
    ) -> usize {
        self.shared.update(|inner, now| inner.hooked.broadcast(now, message, delivery, None, refused))
    }

    /// Sends a message like [`broadcast`](Self::broadcast), to all connections but one, such as the sender of the
    /// message.
    pub fn broadcast_except(
        &self,
        except: ConnectionId,
        message: &[u8],
        delivery: P::Delivery,
        refused: impl FnMut(ConnectionId, SendError),
    ) -> usize {
        self.shared.update(|inner, now| inner.hooked.broadcast(now, message, delivery, Some(except), refused))
    }

    /// Returns the number of connections, including those that are being opened or closed.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.read(|inner| inner.hooked.peer.connections().count())
    }

    /// Returns the total number of blocks of memory.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.shared.read(|inner| inner.hooked.peer.blocks())
    }

    /// Returns the number of free blocks of memory.
    #[must_use]
    pub fn blocks_available(&self) -> usize {
        self.shared.read(|inner| inner.hooked.peer.blocks_available())
    }

    /// Reads or changes the hook of the peer. [`new_with_hook`](crate::new_with_hook) has an example.
    ///
    /// # Panics
    /// If `change` calls a method of the same peer.
    pub fn with_hook<R>(&self, change: impl FnOnce(&mut H) -> R) -> R {
        self.shared.update(|inner, _| change(&mut inner.hooked.hook))
    }
}
