//! One endpoint for both protocols: a UDP socket and its connections.
//!
//! The types are generic over the [`Protocol`]. [`raknet`](crate::raknet) and [`game_protocol`](crate::game_protocol) have
//! aliases for them: `raknet::Endpoint` is `Endpoint<RakNet>`.
//!
//! ```
//! use rakwire_native::endpoint::{Endpoint, Options, Protocol};
//! use rakwire_native::game_protocol::GameProtocol;
//! use rakwire_native::raknet::RakNet;
//!
//! /// Echoes all messages with their delivery.
//! async fn echo<P: Protocol>(server: Endpoint<P>) {
//!     while let Some(connection) = server.accept().await {
//!         tokio::spawn(async move {
//!             while let Some(message) = connection.recv().await {
//!                 let _ = connection.send(&message.bytes, message.delivery).await;
//!             }
//!         });
//!     }
//! }
//!
//! async fn round_trip<P: Protocol>() -> Result<(), Box<dyn std::error::Error>> {
//!     let server = Endpoint::<P>::bind("127.0.0.1:0", Options::server(64)?).await?;
//!     let client = Endpoint::<P>::bind("127.0.0.1:0", Options::client()?).await?;
//!     let address = server.local_addr();
//!     tokio::spawn(echo(server));
//!     let connection = client.connect(address).await?;
//!     connection.send(b"\x86hello", P::Delivery::default()).await?;
//!     let message = connection.recv().await.ok_or("the server is gone")?;
//!     assert_eq!(message.bytes, b"\x86hello");
//!     Ok(())
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! round_trip::<RakNet>().await?;
//! round_trip::<GameProtocol>().await?;
//! # Ok(())
//! # }
//! ```

mod accept_queue;
mod admission;
mod blocked_senders;
mod boxed_hook;
mod connection;
mod direct_send;
mod driver;
mod error;
mod inbox;
mod inboxes;
mod incoming;
mod io;
mod message;
#[cfg(feature = "metrics")]
mod meters;
#[cfg(not(feature = "metrics"))]
#[path = "no_meters.rs"]
mod meters;
mod options;
mod pending_wake;
mod postponed;
mod reader;
mod refused;
mod requests;
mod shards;
mod shared;
mod shared_hook;
mod signal;
#[cfg(feature = "tracing")]
pub(crate) mod spans;
#[cfg(not(feature = "tracing"))]
#[path = "no_spans.rs"]
pub(crate) mod spans;
mod state;
mod stats;
mod streams;
mod timer;
mod unconnected;
mod watch;

use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};

use rakwire_udp::canonical;
use tokio::net::ToSocketAddrs;

use self::shards::Shards;
use self::shared::ConnectionRef;
use crate::bind_error::BindError;
use crate::clock::Clock;
use crate::interfaces;
use crate::simulation::Simulation;
use crate::socket::Socket;

pub use self::broadcast::Broadcast;
pub use self::connection::Connection;
pub use self::error::{ConnectError, TryAcceptError, TryRecvError};
pub use self::incoming::Incoming;
pub use self::message::Message;
pub use self::options::Options;
pub use self::shared_hook::SharedHook;
pub use self::stats::EndpointStats;
pub use self::streams::{MessageSink, Messages};
pub use self::unconnected::{Pong, Unconnected, UnconnectedKind};

pub use rakwire::endpoint::{
    ConnectionId, Event, Hook, Injected, MessageIds, MessageSender, Outcome, Plugin, PluginHost, PluginKey,
    Protocol, Receipt, RefuseReason, RefusedClient, Side, Verdict,
};

pub(crate) use self::boxed_hook::BoxedHook;
pub(crate) use self::options::config_of_one;
pub(crate) use self::shared::{Shared, retry};
pub(crate) use self::state::State;
pub(crate) use self::watch::Watch;

/// A UDP socket with a protocol: opens and accepts connections. With RakNet it also pings servers, and exchanges messages
/// with peers without a connection.
///
/// A clone is another handle of the same endpoint. Dropping the last one keeps its connections open, but accepts no new
/// ones; the socket is closed with the last connection. [`close`](Self::close) closes everything in order, whatever
/// handles there are.
///
/// ```
/// use rakwire_native::{Endpoint, Options};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let endpoint = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
/// let address = endpoint.local_addr();
/// assert_ne!(address.port(), 0);
/// endpoint.close().await;
/// assert!(endpoint.accept().await.is_none());
/// std::net::UdpSocket::bind(address)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Endpoint<P: Protocol> {
    pub(crate) shared: Arc<Shared<P>>,
    handles: Arc<Handles<P>>,
    /// All endpoints of the same server, of which this is one.
    pub(crate) shards: Arc<Shards<P>>,
}

impl<P: Protocol> Endpoint<P> {
    /// Binds a socket to the first address that works; port 0 picks a free one. The tasks of the endpoint run in the
    /// current tokio runtime, which needs its IO and time drivers.
    ///
    /// # Errors
    /// A [`BindError`] with the address.
    pub async fn bind(address: impl ToSocketAddrs, options: Options<P>) -> Result<Self, BindError> {
        let socket = Socket::open(address).await?;
        Ok(Self::start(socket, options, BoxedHook::NONE))
    }

    /// Uses a socket that is bound already, for example one with options of its own or one that a service manager has
    /// passed on. It becomes non-blocking, and gets larger buffers and the permission to broadcast if the system allows
    /// it.
    ///
    /// # Errors
    /// If the system refuses to make it non-blocking, or cannot tell its address.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    ///
    /// ```
    /// use std::net::UdpSocket;
    /// use rakwire_native::{Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let socket = UdpSocket::bind("127.0.0.1:0")?;
    /// let address = socket.local_addr()?;
    /// let server = Endpoint::from_std(socket, Options::server(8)?)?;
    /// assert_eq!(server.local_addr(), address);
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_std(socket: UdpSocket, options: Options<P>) -> std::io::Result<Self> {
        Ok(Self::start(Socket::over(socket)?, options, BoxedHook::NONE))
    }

    /// Like [`bind`](Self::bind), with a hook that sees, filters and injects datagrams, messages and events. `hook` makes it
    /// from the address of the socket. It runs in the tasks of the endpoint and must not block. A simulated network is
    /// between the hook and the socket.
    ///
    /// # Errors
    /// A [`BindError`] with the address.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use rakwire::raknet::{PacketLogger, PcapWriter};
    /// use rakwire_native::{Endpoint, Options};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (written, file) = mpsc::channel();
    /// let client = Endpoint::bind_with_hook("127.0.0.1:0", Options::client()?, |local| {
    ///     PacketLogger(PcapWriter::new(local, move |bytes: &[u8]| {
    ///         let _ = written.send(bytes.to_vec());
    ///     }))
    /// })
    /// .await?;
    /// assert_eq!(file.recv()?.len(), 24, "the header of the capture file");
    /// let server = Endpoint::bind("127.0.0.1:0", Options::server(1)?).await?;
    /// client.connect(server.local_addr()).await?;
    /// assert!(file.recv()?.len() > 16, "a record");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn bind_with_hook<H: Hook<P> + Send + 'static>(
        address: impl ToSocketAddrs,
        options: Options<P>,
        hook: impl FnOnce(SocketAddr) -> H,
    ) -> Result<Self, BindError> {
        let socket = Socket::open(address).await?;
        let hook = BoxedHook::new(hook(socket.local_addr()));
        Ok(Self::start(socket, options, hook))
    }

    /// Has the driver run now: after a [`SharedHook`] or a plugin was changed from outside and may have something to send.
    pub fn wake(&self) {
        self.shared.io.wake.notify();
    }

    fn start(socket: Socket, options: Options<P>, hook: BoxedHook<P>) -> Self {
        let simulation = options.simulate;
        let shared = Arc::new(Shared::new(options, hook, Clock::start()));
        let shards = Shards::of(std::slice::from_ref(&shared));
        Self::run(socket, shared, &shards, simulation)
    }

    fn run(
        socket: Socket,
        shared: Arc<Shared<P>>,
        shards: &Arc<Shards<P>>,
        simulation: Option<Simulation>,
    ) -> Self {
        let local = socket.local_addr();
        P::tell_addresses(&mut shared.lock().hooked.peer, &interfaces::own_addresses(local));
        shared.io.span.bound(local);
        let socket = Arc::new(socket);
        shared.io.reader().use_socket(Some(Arc::clone(&socket)));
        tokio::spawn(driver::run(Arc::clone(&shared), socket, simulation));
        let handles = Arc::new(Handles { shared: Arc::clone(&shared), local: Mutex::new(local) });
        Self { shared, handles, shards: Arc::clone(shards) }
    }

    /// Opens a connection to `address` and waits until it is open. Dropping the future cancels the attempt. If a RakNet server
    /// names another protocol version, the attempt continues with that version.
    ///
    /// # Errors
    /// [`ConnectError::Failed`] if the server refuses or does not answer, or
    /// [nothing can be reached](Options::hears_unreachable) at its address, which is known at once. By default it takes 6.5 seconds in RakNet, or 21 after
    /// the server named another version, and 15 in the Game Protocol until a server counts as not answering. Other errors
    /// are immediate.
    pub async fn connect(
        &self,
        address: SocketAddr,
    ) -> Result<Connection<P>, ConnectError<P::ConnectFailure>> {
        self.connect_with(address, &P::ConnectOptions::default()).await
    }

    /// Like [`connect`](Self::connect), with options: in RakNet a password, a fixed protocol version, and timeouts instead of
    /// those of the configuration.
    ///
    /// # Errors
    /// Those of [`connect`](Self::connect), and [`ConnectError::PasswordTooLong`].
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

    /// Waits for the next client that asks for a connection, if the endpoint [defers](Options::defer_incoming) what becomes
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
    /// kept; [`EndpointStats::refused_clients`] counts all. Of a server with shards each
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

    /// Whether the socket can reach this address.
    pub(crate) fn reaches(&self, address: SocketAddr) -> bool {
        self.local_addr().is_ipv6() || address.is_ipv4()
    }

    /// The address of the socket, with its actual port.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        *self.handles.local.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where others in the same network reach the endpoint: the address of the socket, or if that is none of an interface, those
    /// from which the system sends elsewhere.
    ///
    /// ```
    /// use rakwire_native::{Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let endpoint = Endpoint::bind("0.0.0.0:0", Options::client()?).await?;
    /// assert!(endpoint.interface_addrs().iter().all(|address| !address.ip().is_unspecified()));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn interface_addrs(&self) -> Vec<SocketAddr> {
        interfaces::own_addresses(self.local_addr())
    }

    /// Replaces the socket, for example after a mobile device has changed its network, or has closed the sockets of a
    /// program that was in the background. What the old socket has received and this endpoint has not is lost, and
    /// the other peers resend what is reliable. The old socket is closed soon after.
    ///
    /// Both protocols know a peer by its address. A connection therefore survives only if the other peer still sees the
    /// same address and port: a server that is bound to its old port again, a client whose address translator keeps
    /// the port. Otherwise the other peer hears nothing any more, the connection ends as lost on both sides after the
    /// `timeout` of the configuration, and the application has to connect again. In RakNet the endpoint says the addresses
    /// of the new socket to whomever it connects with from now on, as if it was bound to it.
    ///
    /// # Errors
    /// If the system refuses to make the socket non-blocking, or the endpoint has ended.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    ///
    /// ```
    /// use std::net::UdpSocket;
    /// use rakwire_native::{Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let endpoint = Endpoint::from_std(UdpSocket::bind("127.0.0.1:0")?, Options::client()?)?;
    /// let socket = UdpSocket::bind("127.0.0.1:0")?;
    /// let address = socket.local_addr()?;
    /// endpoint.rebind(socket)?;
    /// assert_eq!(endpoint.local_addr(), address);
    /// # Ok(())
    /// # }
    /// ```
    pub fn rebind(&self, socket: UdpSocket) -> std::io::Result<()> {
        if *self.shared.io.ended.borrow() {
            return Err(std::io::Error::new(std::io::ErrorKind::NotConnected, "the endpoint has ended"));
        }
        let socket = Socket::over(socket)?;
        let local = socket.local_addr();
        P::tell_addresses(&mut self.shared.lock().hooked.peer, &interfaces::own_addresses(local));
        *self.handles.local.lock().unwrap_or_else(PoisonError::into_inner) = local;
        self.shared.io.span.bound(local);
        self.shared.replace_socket(socket);
        Ok(())
    }

    /// The time of the endpoint's clock, which its hooks and plugins are told.
    ///
    /// ```
    /// use rakwire_native::{Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let endpoint = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// let before = endpoint.now();
    /// assert!(endpoint.now() >= before);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn now(&self) -> rakwire::Instant {
        self.shared.io.clock.now()
    }

    /// The counters of the endpoint.
    #[must_use]
    pub fn stats(&self) -> EndpointStats<P> {
        self.shared.stats(&self.shared.lock())
    }

    /// Waits until everything that can be sent now has been passed to the socket. Messages that wait for acknowledgements or
    /// for pacing are not included.
    pub async fn flush(&self) {
        self.shared.io.flush().await;
    }

    /// Closes all connections like [`Connection::disconnect`], and then the endpoint. Waits until the address is free
    /// again. This continues if the future is dropped.
    pub async fn close(&self) {
        self.shared.act(|state, now| state.close(now));
        self.shared.unaccepted.notify_waiters();
        self.shared.incoming.notify_waiters();
        self.shared.unconnected.notify_waiters();
        self.shared.refused.notify_waiters();
        self.closed().await;
    }

    /// Waits until the endpoint has ended, after [`close`](Self::close) by any of its handles.
    pub async fn closed(&self) {
        let mut ended = self.shared.io.ended.subscribe();
        // It cannot fail: the sender lives as long as this endpoint.
        let _ = ended.wait_for(|ended| *ended).await;
    }
}

/// What all handles of an endpoint share. It is dropped with the last of them.
#[derive(Debug)]
struct Handles<P: Protocol> {
    shared: Arc<Shared<P>>,
    /// The address of the socket.
    local: Mutex<SocketAddr>,
}

impl<P: Protocol> Drop for Handles<P> {
    fn drop(&mut self) {
        self.shared.act_on_drop(|state, now| state.stop_accepting(now));
    }
}

// Behind the methods above, so that the page of `Endpoint` begins with `bind`.
mod any_address;
mod bind_shards;
mod broadcast;
