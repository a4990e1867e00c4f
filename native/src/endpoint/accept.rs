//! How connections of others are accepted: those that have opened, clients for which the application decides, and what becomes known of
//! those that were refused.

use std::net::SocketAddr;
use std::sync::Arc;

use rakwire::endpoint::{Client, Decision, Protocol, RefusedClient};
use rakwire::raknet::{Guid, RakNet};

use super::Endpoint;
use super::connection::Connection;
use super::shared::Shared;
use super::wakes::retry;

impl<P: Protocol> Endpoint<P> {
    /// Waits for the next incoming connection. Returns `None` once the endpoint is closed.
    pub async fn accept(&self) -> Option<Connection<P>> {
        let accept = || match self.try_accept() {
            Ok(connection) => Some(Some(connection)),
            Err(TryAcceptError::Empty) => None,
            Err(TryAcceptError::Closed) => Some(None),
        };
        retry(&self.shared.unaccepted, accept).await
    }

    /// The next incoming connection, if one is open now.
    ///
    /// # Errors
    /// [`TryAcceptError::Empty`] while nobody waits to be accepted; [`TryAcceptError::Closed`] once the endpoint is closed.
    ///
    /// ```
    /// use rakwire_native::endpoint::TryAcceptError;
    /// use rakwire_native::{Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Endpoint::bind("127.0.0.1:0", Options::server(8)?).await?;
    /// assert_eq!(server.try_accept().err(), Some(TryAcceptError::Empty));
    /// server.close().await;
    /// assert_eq!(server.try_accept().err(), Some(TryAcceptError::Closed));
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_accept(&self) -> Result<Connection<P>, TryAcceptError> {
        let mut state = self.shared.lock();
        let accepted = state.dispatcher.accept_queue.pop();
        let is_open = state.is_open();
        drop(state);
        match accepted {
            Some(accepted) => Ok(Connection::accepted(Arc::clone(&self.shared), accepted)),
            None if is_open => Err(TryAcceptError::Empty),
            None => Err(TryAcceptError::Closed),
        }
    }

    /// Waits for the next client that asks for a connection, if the endpoint [defers](super::Options::defer_incoming) what becomes
    /// of them; never returns one otherwise. Returns `None` once the endpoint is closed.
    pub async fn incoming(&self) -> Option<Incoming<P>> {
        let next = || {
            let state = self.shared.lock();
            let client = state.deferred.as_ref().and_then(|deferred| deferred.pop());
            let is_open = state.is_open();
            drop(state);
            let incoming = client.map(|client| Incoming::new(Arc::clone(&self.shared), client));
            (incoming.is_some() || !is_open).then_some(incoming)
        };
        retry(&self.shared.incoming, next).await
    }

    /// Waits for the next client that this server refuses by its password, its identity or its connect token, and returns the
    /// reason with it; only in RakNet. Returns `None` once the endpoint is closed. The last 64 that no task has asked for are
    /// kept; [`EndpointStats::refused_clients`](super::EndpointStats::refused_clients) counts all. Of a server with shards each
    /// endpoint has its own.
    ///
    /// ```
    /// use rakwire_native::endpoint::RefuseReason;
    /// use rakwire_native::raknet::{Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Endpoint::bind("127.0.0.1:0", Options::server(8)?).await?;
    /// server.set_password(b"snow")?;
    /// let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// assert!(client.connect(server.local_addr()).await.is_err());
    /// let refused = server.refused_client().await.ok_or("the server is closed")?;
    /// assert_eq!((refused.reason, server.stats().refused_clients), (RefuseReason::WrongPassword, 1));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn refused_client(&self) -> Option<RefusedClient<P::Identity>> {
        let take = || {
            let mut state = self.shared.lock();
            let client = state.dispatcher.refused_clients.pop();
            (client.is_some() || !state.is_open()).then_some(client)
        };
        retry(&self.shared.refused, take).await
    }
}

/// Why [`Endpoint::try_accept`](super::Endpoint::try_accept) returned no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TryAcceptError {
    /// No connection is waiting to be accepted.
    #[error("no connection is waiting")]
    Empty,
    /// The endpoint is closed.
    #[error("the endpoint is closed")]
    Closed,
}

/// A client that asks for a connection, and has got none yet. [`Endpoint::incoming`](super::Endpoint::incoming) returns it
/// if the endpoint [defers](super::Options::defer_incoming) what becomes of clients.
///
/// Nothing of a connection exists until [`accept`](Self::accept) is called. Dropping it is to [`refuse`](Self::refuse).
///
/// ```
/// use rakwire_native::raknet::{ConnectError, ConnectFailure, Endpoint, Options, Refusal};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut options = Options::server(8)?;
/// options.defer_incoming = true;
/// let server = Endpoint::bind("127.0.0.1:0", options).await?;
/// let address = server.local_addr();
/// let bouncer = server.clone();
/// tokio::spawn(async move {
///     let mut asked = 0;
///     while let Some(incoming) = bouncer.incoming().await {
///         asked += 1;
///         if asked == 1 { incoming.refuse() } else { incoming.accept() }
///     }
/// });
///
/// let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
/// let refused = ConnectFailure::Refused(Refusal::NoFreeIncomingConnections);
/// assert_eq!(client.connect(address).await.err(), Some(ConnectError::Failed(refused)));
/// let here = client.connect(address).await?;
/// let there = server.accept().await.ok_or("the server is closed")?;
/// assert_eq!(there.remote(), client.local_addr());
/// # drop(here);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Incoming<P: Protocol> {
    shared: Arc<Shared<P>>,
    client: Client,
    is_decided: bool,
}

impl<P: Protocol> Incoming<P> {
    const fn new(shared: Arc<Shared<P>>, client: Client) -> Self {
        Self { shared, client, is_decided: false }
    }

    /// The address of the client. It has proved it, unless the cookies of RakNet are off.
    #[must_use]
    pub const fn remote(&self) -> SocketAddr {
        self.client.remote
    }

    /// Lets the client in. Its handshake continues, and [`accept`](super::Endpoint::accept) returns the connection once it
    /// is open. A RakNet client without the password is still turned away, and one that is gone by
    /// now is not returned.
    pub fn accept(self) {
        self.decide(Decision::Accept);
    }

    /// Tells the client that it gets no connection: in RakNet that there are no free incoming connections (0x14), and in
    /// the Game Protocol END, as a full server does. The client may ask again.
    pub fn refuse(self) {
        self.decide(Decision::Refuse);
    }

    /// Says nothing to the client. It may repeat its request, and comes as another `Incoming` then.
    pub fn ignore(self) {
        self.decide(Decision::Ignore);
    }

    fn decide(mut self, decision: Decision) {
        self.apply(decision);
    }

    fn apply(&mut self, decision: Decision) {
        self.is_decided = true;
        let remote = self.client.remote;
        self.shared.act_on_drop(move |state, now| state.decide(now, remote, decision));
    }
}

impl Incoming<RakNet> {
    /// The GUID of the client, which it chose itself. The protocol's version is not known here: it is in the client's first
    /// request, of which a server keeps nothing.
    #[must_use]
    pub fn guid(&self) -> Guid {
        Guid(self.client.guid.unwrap_or_default())
    }
}

impl<P: Protocol> Drop for Incoming<P> {
    fn drop(&mut self) {
        if !self.is_decided {
            self.apply(Decision::Refuse);
        }
    }
}
