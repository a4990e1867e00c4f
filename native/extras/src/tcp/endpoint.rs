//! Endpoints that open and accept connections over TCP, and broadcast to them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rakwire::endpoint::{SendError, Side};
use rakwire::raknet::Delivery;
use rakwire_native::BindError;
use rakwire_native::endpoint::TryAcceptError;
use tokio::net::{TcpListener, ToSocketAddrs, lookup_host};
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio::task::JoinHandle;

use super::connection::{Connection, Opened, Shared};
use super::listener::{EndpointState, EndpointStats, Places, Unaccepted, listen};
use super::options::{ConnectOptions, Options};
use super::stream::{ConnectError, ConnectFailure, configure, dial, failure, start};

/// Default time limit for connecting to a server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Opens and accepts connections over TCP.
///
/// A clone is another handle of the same endpoint. Dropping the last handle keeps the endpoint's connections open, but
/// stops accepting connections. [`close`](Self::close) shuts everything down in order.
///
/// ```
/// use rakwire_extras::tcp::{Endpoint, Options};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let endpoint = Endpoint::bind("127.0.0.1:0", Options::server(8)).await?;
/// let address = endpoint.local_addr();
/// assert_ne!(address.port(), 0);
/// endpoint.close().await;
/// assert!(endpoint.accept().await.is_none());
/// std::net::TcpListener::bind(address)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Endpoint {
    handles: Arc<Handles>,
}

/// State shared by all handles of an endpoint. It is dropped with the last of them.
#[derive(Debug)]
struct Handles {
    state: Arc<EndpointState>,
    local: SocketAddr,
    accepted: AsyncMutex<mpsc::UnboundedReceiver<Unaccepted>>,
    places: Arc<Places>,
    listener: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for Handles {
    fn drop(&mut self) {
        self.state.stop();
    }
}

impl Endpoint {
    /// Listens on the first address that works; port 0 picks a free port.
    ///
    /// An endpoint that accepts no connections ([`Options::client`]) does not listen, and `address` is the source of
    /// its connections.
    ///
    /// # Errors
    /// Returns a [`BindError`] with the address.
    pub async fn bind(address: impl ToSocketAddrs, options: Options) -> Result<Self, BindError> {
        let (queue, accepted) = mpsc::unbounded_channel();
        let places = Places::new(&options);
        let listens = options.max_incoming > 0;
        let state = Arc::new(EndpointState::new(options));
        let (listener, local) = if listens {
            let (listener, local) = bind_first(address).await?;
            state.span.bound(local);
            (Some(tokio::spawn(listen(listener, places.clone(), queue, state.clone()))), local)
        } else {
            (None, first_address(address).await?)
        };
        let (accepted, listener) = (AsyncMutex::new(accepted), Mutex::new(listener));
        Ok(Self { handles: Arc::new(Handles { state, local, accepted, places, listener }) })
    }

    /// Connects to a server, without TLS.
    ///
    /// # Errors
    /// Returns a [`ConnectError`]; most are [`ConnectError::Failed`] with a [`ConnectFailure`].
    pub async fn connect(&self, address: SocketAddr) -> Result<Connection, ConnectError> {
        self.connect_with(address, &ConnectOptions::default()).await
    }

    /// Connects to a server. Dropping the future cancels the attempt.
    ///
    /// # Errors
    /// Returns a [`ConnectError`]; most are [`ConnectError::Failed`] with a [`ConnectFailure`].
    pub async fn connect_with(
        &self,
        address: SocketAddr,
        options: &ConnectOptions,
    ) -> Result<Connection, ConnectError> {
        let state = &self.handles.state;
        if address.port() == 0 || address.ip().is_unspecified() {
            return Err(ConnectError::UnassignedAddress);
        }
        let limit = options.connect_timeout.unwrap_or(CONNECT_TIMEOUT);
        let span = state.span.connection(address, Side::Client);
        span.connecting();
        let opened = Opened { remote: address, span: span.clone(), first_message_timeout: Duration::MAX };
        let shared = tokio::select! {
            biased;
            () = state.closed() => return Err(ConnectError::EndpointClosed),
            shared = tokio::time::timeout(limit, self.open(opened, options)) => shared,
        };
        let shared = shared.unwrap_or(Err(ConnectFailure::NoAnswer));
        let shared = shared.inspect_err(|failure| span.failed(failure)).map_err(ConnectError::Failed)?;
        state.register(&shared);
        Ok(Connection::new(shared))
    }

    /// Connects to the first address at which a server answers.
    ///
    /// The addresses are usually those of a host name, as [`lookup`](rakwire_native::lookup) returns them. The next
    /// address is tried if a server refuses the connection, is unreachable, or does not answer within
    /// [`connect_timeout`](ConnectOptions::connect_timeout), which applies to each address.
    ///
    /// # Errors
    /// The same errors as [`connect_with`](Self::connect_with), for the last address tried;
    /// [`ConnectError::UnassignedAddress`] if there are no addresses.
    ///
    /// ```
    /// use rakwire_extras::tcp::{ConnectOptions, Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Endpoint::bind("127.0.0.1:0", Options::server(8)).await?;
    /// let client = Endpoint::bind("127.0.0.1:0", Options::client()).await?;
    /// let closed = "127.0.0.1:1".parse()?;
    /// let connection = client.connect_any(&[closed, server.local_addr()], &ConnectOptions::default()).await?;
    /// assert_eq!(connection.remote(), server.local_addr());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn connect_any(
        &self,
        addresses: &[SocketAddr],
        options: &ConnectOptions,
    ) -> Result<Connection, ConnectError> {
        let mut failed = ConnectError::UnassignedAddress;
        for address in addresses {
            match self.connect_with(*address, options).await {
                Err(error @ ConnectError::Failed(ConnectFailure::NoAnswer | ConnectFailure::Socket(_))) => {
                    failed = error;
                }
                result => return result,
            }
        }
        Err(failed)
    }

    async fn open(&self, opened: Opened, options: &ConnectOptions) -> Result<Arc<Shared>, ConnectFailure> {
        let state = &self.handles.state;
        let from = if state.options.max_incoming > 0 {
            SocketAddr::new(self.handles.local.ip(), 0)
        } else {
            self.handles.local
        };
        let stream = dial(from, opened.remote).await.map_err(|error| failure(&error))?;
        configure(&stream, state.options.timeout);
        #[cfg(feature = "tls")]
        if let Some((config, name)) = options.tls.clone() {
            let stream = tokio_rustls::TlsConnector::from(config).connect(name, stream).await;
            let stream = stream.map_err(|error| failure(&error))?;
            return Ok(start(stream, opened, &state.options, ()));
        }
        #[cfg(not(feature = "tls"))]
        let _ = options;
        Ok(start(stream, opened, &state.options, ()))
    }

    /// Waits for the next incoming connection.
    ///
    /// Returns `None` once the endpoint is closed. If the future is dropped earlier, no connection is lost.
    pub async fn accept(&self) -> Option<Connection> {
        let mut accepted = self.handles.accepted.lock().await;
        tokio::select! {
            biased;
            () = self.handles.state.closed() => None,
            unaccepted = accepted.recv() => unaccepted.map(|unaccepted| unaccepted.connection),
        }
    }

    /// Returns the next connection, if one is waiting.
    ///
    /// # Errors
    /// [`TryAcceptError::Empty`] if no connection is waiting, or while another handle is waiting in
    /// [`accept`](Self::accept); [`TryAcceptError::Closed`] once the endpoint is closed.
    pub fn try_accept(&self) -> Result<Connection, TryAcceptError> {
        if self.handles.state.is_closed() {
            return Err(TryAcceptError::Closed);
        }
        let mut accepted = self.handles.accepted.try_lock().map_err(|_| TryAcceptError::Empty)?;
        let unaccepted = accepted.try_recv().map_err(|_| TryAcceptError::Empty)?;
        Ok(unaccepted.connection)
    }

    /// Returns the address of the listening socket, with its actual port. An endpoint that does not listen returns the
    /// address that was passed to [`bind`](Self::bind).
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.handles.local
    }

    /// Returns the connections that are not closed.
    fn connections(&self) -> Vec<Arc<Shared>> {
        self.handles.state.connections()
    }

    /// Returns the counters of the endpoint since it was bound.
    #[must_use]
    pub fn stats(&self) -> EndpointStats {
        let Handles { state, places, .. } = &*self.handles;
        EndpointStats {
            incoming: places.taken(),
            refused: state.counters.refused.get(),
            refused_by_address: state.counters.refused_by_address.get(),
            refused_by_network: state.counters.refused_by_network.get(),
            #[cfg(feature = "tls")]
            handshakes_failed: state.counters.handshakes_failed.get(),
            #[cfg(not(feature = "tls"))]
            handshakes_failed: 0,
            accept_failures: state.counters.accept_failures.get(),
        }
    }

    /// Closes all connections like [`Connection::disconnect`], and then the endpoint. Returns once the address is free
    /// again.
    pub async fn close(&self) {
        let Handles { state, listener, accepted, .. } = &*self.handles;
        state.stop();
        let listener = listener.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(listener) = listener {
            // The task ends without a result only if it panicked; the listener is then closed, too.
            let _ = listener.await;
        }
        // Dropping the only handles of connections that have not been accepted closes them.
        let mut accepted = accepted.lock().await;
        while accepted.try_recv().is_ok() {}
        drop(accepted);
        let connections = state.connections();
        connections.iter().for_each(|connection| connection.close());
        for connection in connections {
            connection.ended().await;
        }
    }
}

/// The result of a broadcast.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Broadcast {
    /// Number of connections that the message was sent to.
    pub sent: usize,
    /// Peers that did not get the message, most often because the send queue of their connection is full
    /// ([`SendError::QuotaExceeded`]).
    pub refused: Vec<(SocketAddr, SendError)>,
}

impl Endpoint {
    /// Sends a message to every open connection of this endpoint like [`Connection::try_send`], and skips those with a
    /// full send queue.
    ///
    /// The message bypasses the plugins of a [`PluginConnection`](super::PluginConnection).
    ///
    /// ```
    /// use rakwire_native::Delivery;
    /// use rakwire_extras::tcp::{Endpoint, Options};
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

    /// Broadcasts like [`broadcast`](Self::broadcast), to all connections but one, such as the sender of the message.
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

/// Listens on the first address that works.
async fn bind_first(address: impl ToSocketAddrs) -> Result<(TcpListener, SocketAddr), BindError> {
    let mut refused = BindError::NoAddress;
    for address in lookup_host(address).await.map_err(BindError::Resolve)? {
        let bound = TcpListener::bind(address).await;
        match bound.and_then(|listener| listener.local_addr().map(|local| (listener, local))) {
            Ok(bound) => return Ok(bound),
            Err(source) => refused = BindError::Socket { address, source },
        }
    }
    Err(refused)
}

async fn first_address(address: impl ToSocketAddrs) -> Result<SocketAddr, BindError> {
    let mut addresses = lookup_host(address).await.map_err(BindError::Resolve)?;
    addresses.next().ok_or(BindError::NoAddress)
}
