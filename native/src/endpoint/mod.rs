//! A single endpoint type for both protocols: a UDP socket and its connections.
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

mod admission;
mod connection;
mod driver;
mod hooks;
mod inbox;
mod options;
mod shared;
mod state;
mod telemetry;
mod unconnected;
mod wakes;

use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rakwire::Instant;
use rakwire::endpoint::SendError;
use tokio::net::ToSocketAddrs;

use crate::host::{BindError, Clock, own_addresses};
use crate::simulation::Simulation;
use crate::socket::Socket;

pub use self::connect::{ConnectError, Incoming, TryAcceptError};
pub use self::connection::{Connection, MessageSink, Messages, TryRecvError};
pub use self::hooks::SharedHook;
pub use self::inbox::Message;
pub use self::options::Options;
pub use self::telemetry::EndpointStats;
pub use self::unconnected::{Pong, Unconnected, UnconnectedKind};

pub use rakwire::endpoint::{
    ConnectionId, Event, Hook, Injected, MessageIds, MessageSender, Outcome, Plugin, PluginHost, PluginKey,
    Protocol, Receipt, RefuseReason, RefusedClient, Side, Verdict,
};

pub(crate) use self::connect::Watch;
pub(crate) use self::hooks::BoxedHook;
pub(crate) use self::options::{config_of_one, entropy};
pub(crate) use self::shared::Shared;
pub(crate) use self::state::State;
pub(crate) use self::wakes::retry;

/// A UDP socket with a protocol, which opens and accepts connections.
///
/// With RakNet it also pings servers, and exchanges messages with peers without a connection.
///
/// A clone is another handle of the same endpoint. Dropping the last handle keeps the endpoint's connections open, but
/// stops accepting connections; the socket is closed with the last connection. [`close`](Self::close) shuts everything
/// down in order, even if other handles exist.
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
    /// All endpoints of the server, including this one.
    pub(crate) shards: Arc<Shards<P>>,
}

impl<P: Protocol> Endpoint<P> {
    /// Binds a socket to the first address that works; port 0 picks a free port.
    ///
    /// The tasks of the endpoint run in the current tokio runtime, which needs its IO and time drivers.
    ///
    /// # Errors
    /// Returns a [`BindError`] with the address.
    pub async fn bind(address: impl ToSocketAddrs, options: Options<P>) -> Result<Self, BindError> {
        let socket = Socket::open(address).await?;
        Ok(Self::start(socket, options, BoxedHook::NONE))
    }

    /// Uses a socket that is already bound, for example with custom socket options or inherited from a service manager.
    ///
    /// The socket becomes non-blocking. Its buffers are enlarged and broadcasts are enabled, if the system permits
    /// that.
    ///
    /// # Errors
    /// Returns an error if the system refuses to make the socket non-blocking, or cannot return its address.
    ///
    /// # Panics
    /// If called outside of a tokio runtime.
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

    /// Binds like [`bind`](Self::bind), with a hook that observes, filters and injects datagrams, messages and events.
    ///
    /// `hook` creates the hook from the address of the socket. The hook runs in the tasks of the endpoint and must not
    /// block. A simulated network is between the hook and the socket.
    ///
    /// # Errors
    /// Returns a [`BindError`] with the address.
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

    /// Wakes the driver. Call it after changing a [`SharedHook`] or a plugin that may have queued messages.
    pub fn wake(&self) {
        self.shared.io.wake.notify();
    }

    fn start(socket: Socket, options: Options<P>, hook: BoxedHook<P>) -> Self {
        let simulation = options.simulation();
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
        P::set_internal_addresses(&mut shared.lock().hooked.peer, &own_addresses(local));
        shared.io.span.bound(local);
        let socket = Arc::new(socket);
        shared.io.reader().use_socket(Some(Arc::clone(&socket)));
        tokio::spawn(driver::run(Arc::clone(&shared), socket, simulation));
        let handles = Arc::new(Handles { shared: Arc::clone(&shared), local: Mutex::new(local) });
        Self { shared, handles, shards: Arc::clone(shards) }
    }

    /// Returns true if the socket can reach this address.
    pub(crate) fn reaches(&self, address: SocketAddr) -> bool {
        self.local_addr().is_ipv6() || address.is_ipv4()
    }

    /// Returns the address of the socket, with its actual port.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        *self.handles.local.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the addresses at which other machines reach the endpoint.
    ///
    /// The result is the address of the socket. If the socket is bound to all interfaces, the result is the source
    /// addresses that the system uses for outgoing datagrams.
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
        own_addresses(self.local_addr())
    }

    /// Replaces the socket, for example after a mobile device has changed networks or closed the sockets of a suspended
    /// app.
    ///
    /// Datagrams that this endpoint has not read from the old socket are lost; peers resend reliable messages. The old
    /// socket is closed soon after.
    ///
    /// Both protocols identify a peer by its address. A connection therefore survives only if the peer still receives
    /// from the same address and port. That is the case if a server is bound to its old port again, or if a client is
    /// behind a NAT that keeps the mapping. Otherwise the connection times out on both sides, and the application has
    /// to connect again. RakNet connections opened later announce the addresses of the new socket.
    ///
    /// # Errors
    /// Returns an error if the system refuses to make the socket non-blocking, or the endpoint has shut down.
    ///
    /// # Panics
    /// If called outside of a tokio runtime.
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
        P::set_internal_addresses(&mut self.shared.lock().hooked.peer, &own_addresses(local));
        *self.handles.local.lock().unwrap_or_else(PoisonError::into_inner) = local;
        self.shared.io.span.bound(local);
        self.shared.replace_socket(socket);
        Ok(())
    }

    /// Returns the time of the endpoint's clock, which its hooks and plugins receive.
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
    pub fn now(&self) -> Instant {
        self.shared.io.clock.now()
    }

    /// Returns the counters of the endpoint.
    #[must_use]
    pub fn stats(&self) -> EndpointStats<P> {
        self.shared.stats(&self.shared.lock())
    }

    /// Waits until all datagrams that can be sent now have been passed to the socket.
    ///
    /// Messages that are held back by congestion control or pacing are not included.
    pub async fn flush(&self) {
        self.shared.io.flush().await;
    }

    /// Closes all connections like [`Connection::disconnect`], and then the endpoint.
    ///
    /// Returns once the address is free again. The shutdown continues if the future is dropped.
    pub async fn close(&self) {
        self.shared.act(|state, now| state.close(now));
        self.shared.unaccepted.notify_waiters();
        self.shared.incoming.notify_waiters();
        self.shared.unconnected.notify_waiters();
        self.shared.refused.notify_waiters();
        self.closed().await;
    }

    /// Waits until the endpoint has shut down, after [`close`](Self::close) by any of its handles.
    pub async fn closed(&self) {
        let mut ended = self.shared.io.ended.subscribe();
        // This cannot fail: the sender lives as long as this endpoint.
        let _ = ended.wait_for(|ended| *ended).await;
    }
}

/// State shared by all handles of an endpoint, and dropped with the last of them.
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

impl<P: Protocol> Endpoint<P> {
    /// Sends a message to every open connection of this endpoint, and skips those with full send memory.
    ///
    /// Each connection sends like [`try_send`](Connection::try_send). A shard reaches only its own connections.
    ///
    /// ```
    /// use rakwire_native::{Delivery, Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Endpoint::bind("127.0.0.1:0", Options::server(8)?).await?;
    /// let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// let here = client.connect(server.local_addr()).await?;
    /// let there = server.accept().await.ok_or("the server is closed")?;
    /// assert_eq!(server.broadcast(b"\x90the game begins", Delivery::RELIABLE_ORDERED).sent, 1);
    /// assert_eq!(server.broadcast_except(there.id(), b"\x90moved", Delivery::UNRELIABLE).sent, 0);
    /// assert_eq!(here.recv().await.ok_or("the server is gone")?.bytes, b"\x90the game begins");
    /// # Ok(())
    /// # }
    /// ```
    pub fn broadcast(&self, message: &[u8], delivery: P::Delivery) -> Broadcast {
        self.send_to_all(None, message, delivery)
    }

    /// Broadcasts like [`broadcast`](Self::broadcast), to all connections but one, such as the sender of the message.
    pub fn broadcast_except(&self, except: ConnectionId, message: &[u8], delivery: P::Delivery) -> Broadcast {
        self.send_to_all(Some(except), message, delivery)
    }

    fn send_to_all(&self, except: Option<ConnectionId>, message: &[u8], delivery: P::Delivery) -> Broadcast {
        self.shared.act(|state, now| {
            let mut refused = Vec::new();
            let count = |id, error| refused.push((id, error));
            let sent = state.hooked.broadcast(now, message, delivery, except, count);
            Broadcast { sent, refused }
        })
    }
}

/// The result of a broadcast.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Broadcast {
    /// Number of connections that the message was sent to.
    pub sent: usize,
    /// Connections that did not accept the message, most often because their send memory is full
    /// ([`SendError::QuotaExceeded`]).
    pub refused: Vec<(ConnectionId, SendError)>,
}

/// All endpoints of a server: a single endpoint, or its shards.
#[derive(Debug)]
pub(crate) struct Shards<P: Protocol> {
    all: Vec<Weak<Shared<P>>>,
    /// Held during a change, so that changes apply in the same order at all shards.
    changes: Mutex<()>,
}

impl<P: Protocol> Shards<P> {
    pub(crate) fn of(all: &[Arc<Shared<P>>]) -> Arc<Self> {
        Arc::new(Self { all: all.iter().map(Arc::downgrade).collect(), changes: Mutex::new(()) })
    }

    fn begin_change(&self) -> MutexGuard<'_, ()> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies a change at each endpoint of the server, and returns the last result. All results are the same, because
    /// the endpoints have the same configuration and history.
    pub(crate) fn act<R>(&self, mut act: impl FnMut(&mut State<P>, Instant) -> R) -> Option<R> {
        let _change = self.begin_change();
        self.all.iter().filter_map(Weak::upgrade).map(|shared| shared.act(&mut act)).last()
    }
}

// Declared after the methods above, so that the documentation of `Endpoint` begins with `bind`.
mod bind_shards;
mod connect;
