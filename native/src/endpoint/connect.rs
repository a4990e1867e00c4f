//! Opening and accepting connections.
//!
//! A connection is opened to one address, or to the first of several addresses at which a server answers. Attempts and
//! pings fail as soon as the network reports their address unreachable. Incoming connections are accepted, optionally
//! after a decision of the application.

use std::net::SocketAddr;
use std::sync::Arc;

use rakwire::endpoint::{self, Client, Decision, Protocol, RefusedClient};
use rakwire::raknet::{Guid, RakNet};
use rakwire_udp::canonical;

use super::Endpoint;
use super::connection::{Connection, ConnectionRef};
use super::shared::Shared;
use super::wakes::retry;
use crate::socket::Socket;

impl<P: Protocol> Endpoint<P> {
    /// Opens a connection to `address` and waits until it is open.
    ///
    /// Dropping the future cancels the attempt. If a RakNet server requires another protocol version, the attempt
    /// continues with that version.
    ///
    /// # Errors
    /// Returns [`ConnectError::Failed`] if the server refuses or does not answer, or immediately if the address is
    /// [reported unreachable](super::Options::fail_on_unreachable). By default, an attempt times out after 6.5 seconds
    /// in RakNet (21 seconds if the server requires another version), and after 15 seconds in the Game Protocol. All
    /// other errors are returned immediately.
    pub async fn connect(
        &self,
        address: SocketAddr,
    ) -> Result<Connection<P>, ConnectError<P::ConnectFailure>> {
        self.connect_with(address, &P::ConnectOptions::default()).await
    }

    /// Opens a connection like [`connect`](Self::connect), with options.
    ///
    /// In RakNet the options are a password, a fixed protocol version, and timeouts that override the configuration.
    ///
    /// # Errors
    /// The same errors as [`connect`](Self::connect), and [`ConnectError::PasswordTooLong`].
    ///
    /// ```
    /// use rakwire_native::{ConnectError, ConnectFailure, ConnectOptions, Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut options = Options::server(1)?;
    /// options.config.accepted_versions = [11].into_iter().collect();
    /// let server = Endpoint::bind("127.0.0.1:0", options).await?;
    /// let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// let fixed = ConnectOptions { protocol_version: Some(6), ..Default::default() };
    /// let failed = client.connect_with(server.local_addr(), &fixed).await;
    /// let failure = ConnectFailure::IncompatibleProtocol { server: 11 };
    /// assert_eq!(failed.err(), Some(ConnectError::Failed(failure)));
    /// assert!(client.connect(server.local_addr()).await.is_ok());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn connect_with(
        &self,
        address: SocketAddr,
        options: &P::ConnectOptions<'_>,
    ) -> Result<Connection<P>, ConnectError<P::ConnectFailure>> {
        let watch = Watch::new(&self.shared);
        let attempt = self.begin_to_connect(address, options)?;
        watch.during(Connection::open(attempt)).await
    }

    fn begin_to_connect(
        &self,
        address: SocketAddr,
        options: &P::ConnectOptions<'_>,
    ) -> Result<ConnectionRef<P>, ConnectError<P::ConnectFailure>> {
        let address = canonical(address);
        if !self.reaches(address) {
            return Err(ConnectError::AddressFamily);
        }
        let (id, inbox) = self.shared.act(|state, now| {
            if state.is_open() {
                Ok(state.connect(now, address, options)?)
            } else {
                Err(ConnectError::EndpointClosed)
            }
        })?;
        Ok(ConnectionRef::new(Arc::clone(&self.shared), id, inbox))
    }

    /// Opens a connection to the first address at which a server answers, and waits until it is open.
    ///
    /// The addresses are usually those of a host name, as [`lookup`](crate::lookup) returns them. The next address is
    /// tried when an attempt gets no answer. That happens immediately if the address is [reported
    /// unreachable](super::Options::fail_on_unreachable) or the socket has another address family, and otherwise after
    /// the timeouts of [`connect`](Self::connect). A refusal counts as an answer.
    ///
    /// A socket bound to `[::]:0` reaches both IPv4 and IPv6.
    ///
    /// # Errors
    /// The same errors as [`connect_with`](Self::connect_with), for the last address tried;
    /// [`ConnectError::UnassignedAddress`] if there are no addresses.
    ///
    /// ```
    /// use rakwire_native::{ConnectOptions, Endpoint, Options, lookup};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Endpoint::bind("127.0.0.1:0", Options::server(8)?).await?;
    /// let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// let addresses = lookup(&format!("localhost:{}", server.local_addr().port())).await?;
    /// let connection = client.connect_any(&addresses, &ConnectOptions::default()).await?;
    /// assert_eq!(connection.remote(), server.local_addr());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn connect_any(
        &self,
        addresses: &[SocketAddr],
        options: &P::ConnectOptions<'_>,
    ) -> Result<Connection<P>, ConnectError<P::ConnectFailure>> {
        let mut failed = ConnectError::UnassignedAddress;
        for address in addresses {
            match self.connect_with(*address, options).await {
                Err(error) if was_unanswered::<P>(&error) => failed = error,
                result => return result,
            }
        }
        Err(failed)
    }
}

/// Returns true if no server answered, so that another address may work.
fn was_unanswered<P: Protocol>(error: &ConnectError<P::ConnectFailure>) -> bool {
    match error {
        ConnectError::AddressFamily => true,
        ConnectError::Failed(failure) => P::was_unanswered(failure),
        ConnectError::AlreadyConnected
        | ConnectError::Full
        | ConnectError::UnassignedAddress
        | ConnectError::InvalidMtu
        | ConnectError::PasswordTooLong
        | ConnectError::NoSecurity
        | ConnectError::IdentityWithoutTrust
        | ConnectError::InvalidIdentityData
        | ConnectError::EndpointClosed
        | ConnectError::Disconnected => false,
    }
}

impl<P: Protocol> Connection<P> {
    /// Waits until the connection is open.
    async fn open(reference: ConnectionRef<P>) -> Result<Self, ConnectError<P::ConnectFailure>> {
        let opened = reference.inbox.opened().await;
        opened.map_err(|failure| failure.map_or(ConnectError::Disconnected, ConnectError::Failed))?;
        let identity = reference.identity().ok_or(ConnectError::Disconnected)?;
        Ok(Self { reference, identity })
    }
}

/// The reason why a connection could not be opened. `F` is the protocol's reason for a failed attempt.
///
/// ```
/// use rakwire_native::raknet::{ConnectError, ConnectFailure, Endpoint, Options, Refusal};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Endpoint::bind("127.0.0.1:0", Options::server(1)?).await?;
/// let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
/// let connection = client.connect(server.local_addr()).await?;
/// let second = client.connect(server.local_addr()).await;
/// assert_eq!(second.err(), Some(ConnectError::AlreadyConnected));
///
/// let other = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
/// let full = ConnectFailure::Refused(Refusal::NoFreeIncomingConnections);
/// assert_eq!(other.connect(server.local_addr()).await.err(), Some(ConnectError::Failed(full)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError<F> {
    /// This endpoint already has a connection to the address.
    #[error("a connection with this address exists already")]
    AlreadyConnected,
    /// All connection slots are in use, or there is no memory for another connection.
    #[error("every connection slot is taken; disconnect some, or raise `capacity.connections`")]
    Full,
    /// The socket belongs to another address family.
    #[error("an IPv4 socket cannot reach an IPv6 address; bind the endpoint to [::]:0")]
    AddressFamily,
    /// The port or the IP address is zero.
    #[error("the port or the IP address is zero; connect to a specific address")]
    UnassignedAddress,
    /// RakNet: the largest MTU of the configuration is not in the range of 576 to 1492 bytes.
    #[error("the MTU must be 576 to 1492 bytes")]
    InvalidMtu,
    /// RakNet: the password is longer than 255 bytes.
    #[error("a password has at most 255 bytes")]
    PasswordTooLong,
    /// RakNet: a secure connection is requested, but the options of the endpoint have no security.
    #[error("a secure connection requires an endpoint with security; call `Options::secure`")]
    NoSecurity,
    /// RakNet: the client has an identity, which only a secure connection sends, but no server to trust.
    #[error("an identity requires a secure connection: set `trust`, or leave the identity out")]
    IdentityWithoutTrust,
    /// RakNet: the data of an identity is longer than 95 bytes, or there is no identity to send it with.
    #[error("the data of an identity has at most 95 bytes, and needs an identity")]
    InvalidIdentityData,
    /// The endpoint is closed.
    #[error("the endpoint is closed")]
    EndpointClosed,
    /// The server closed the connection immediately, as a full Game Protocol server does.
    #[error("the server closed the connection immediately; it may be full")]
    Disconnected,
    /// The attempt failed for this reason.
    #[error(transparent)]
    Failed(F),
}

impl<F> From<endpoint::ConnectError> for ConnectError<F> {
    fn from(error: endpoint::ConnectError) -> Self {
        match error {
            endpoint::ConnectError::AlreadyConnected => Self::AlreadyConnected,
            endpoint::ConnectError::UnassignedAddress => Self::UnassignedAddress,
            endpoint::ConnectError::InvalidMtu => Self::InvalidMtu,
            endpoint::ConnectError::PasswordTooLong => Self::PasswordTooLong,
            endpoint::ConnectError::NoSecurity => Self::NoSecurity,
            endpoint::ConnectError::IdentityWithoutTrust => Self::IdentityWithoutTrust,
            endpoint::ConnectError::InvalidIdentityData => Self::InvalidIdentityData,
            // The error is non-exhaustive; any other variant would also mean exhausted memory.
            endpoint::ConnectError::Full | endpoint::ConnectError::NoMemory | _ => Self::Full,
        }
    }
}

/// Enables error reports on the socket for as long as this value exists. ICMP messages therefore cost a socket nothing
/// while it has no attempts and pings.
#[derive(Debug)]
pub(crate) struct Watch<'s, P: Protocol> {
    shared: &'s Shared<P>,
    /// `None` if the application has disabled error reports. After the socket is replaced, no more reports arrive.
    socket: Option<Arc<Socket>>,
}

impl<'s, P: Protocol> Watch<'s, P> {
    pub(crate) fn new(shared: &'s Shared<P>) -> Self {
        let socket = if shared.fail_on_unreachable { shared.io.reader().socket() } else { None };
        if let Some(socket) = &socket {
            socket.watch();
        }
        Self { shared, socket }
    }

    /// Runs a future to completion, and handles error reports meanwhile.
    pub(crate) async fn during<T>(&self, future: impl Future<Output = T>) -> T {
        let Some(socket) = &self.socket else { return future.await };
        let mut future = std::pin::pin!(future);
        loop {
            tokio::select! {
                biased;
                output = &mut future => return output,
                addresses = socket.unreachable() => self.shared.on_unreachable(&addresses),
            }
        }
    }
}

impl<P: Protocol> Drop for Watch<'_, P> {
    fn drop(&mut self) {
        if let Some(socket) = &self.socket {
            socket.unwatch();
        }
    }
}

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

    /// Returns the next incoming connection, if one is already open.
    ///
    /// # Errors
    /// [`TryAcceptError::Empty`] if no connection is waiting; [`TryAcceptError::Closed`] once the endpoint is closed.
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

    /// Waits for the next client that requests a connection.
    ///
    /// The endpoint must [defer](super::Options::defer_incoming) admission to the application. Without that option the
    /// future never completes. Returns `None` once the endpoint is closed.
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

    /// Waits for the next client that this server refuses, and returns it with the reason.
    ///
    /// A client is refused for its password, identity or connect token. Only RakNet refuses such clients. Returns
    /// `None` once the endpoint is closed. The last 64 refused clients are kept until a task takes them;
    /// [`EndpointStats::refused_clients`](super::EndpointStats::refused_clients) counts all. Each shard of a server has
    /// its own.
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

/// The reason why [`Endpoint::try_accept`](super::Endpoint::try_accept) returned no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TryAcceptError {
    /// No connection is waiting to be accepted.
    #[error("no connection is waiting")]
    Empty,
    /// The endpoint is closed.
    #[error("the endpoint is closed")]
    Closed,
}

/// A connection request that awaits the application's decision.
///
/// [`Endpoint::incoming`](super::Endpoint::incoming) returns it if the endpoint
/// [defers](super::Options::defer_incoming) admission.
///
/// No connection state exists until [`accept`](Self::accept) is called. Dropping an `Incoming` refuses the client, like
/// [`refuse`](Self::refuse).
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

    /// Returns the address of the client. It is validated, unless RakNet's cookies are off.
    #[must_use]
    pub const fn remote(&self) -> SocketAddr {
        self.client.remote
    }

    /// Admits the client, and returns before its connection is open.
    ///
    /// Its handshake continues, and [`accept`](super::Endpoint::accept) returns the connection once it is open. A
    /// RakNet client with a wrong password is still refused, and a client that has left by now is not returned.
    pub fn accept(self) {
        self.decide(Decision::Accept);
    }

    /// Refuses the client, which may try again.
    ///
    /// RakNet replies that there are no free incoming connections (0x14), and the Game Protocol sends END, as a full
    /// server does.
    pub fn refuse(self) {
        self.decide(Decision::Refuse);
    }

    /// Drops the request without a reply. If the client repeats it, it is returned as another `Incoming`.
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
    /// Returns the GUID that the client chose for itself. It is not verified.
    ///
    /// The protocol version is not available: it is in the client's first request, which the server does not store.
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
