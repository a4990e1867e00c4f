//! One endpoint for both protocols: a UDP socket, everything that runs over it, and the connections of the application.
//!
//! The types here are generic over the [`Protocol`]. [`raknet`](crate::raknet) and
//! [`game_protocol`](crate::game_protocol) name them for their own: `raknet::Endpoint` is `Endpoint<RakNet>`.
//!
//! ```
//! use std::error::Error;
//!
//! use rakwire::endpoint::Protocol;
//! use rakwire_native::endpoint::{Endpoint, Options};
//! use rakwire_native::{game_protocol, raknet};
//!
//! /// Sends every message back as it came, whatever the protocol.
//! async fn echo<P: Protocol>(endpoint: Endpoint<P>) {
//!     while let Some(connection) = endpoint.accept().await {
//!         tokio::spawn(async move {
//!             while let Some(message) = connection.recv().await {
//!                 connection.send(&message.bytes, message.delivery).await?;
//!             }
//!             Ok::<(), rakwire::endpoint::SendError>(())
//!         });
//!     }
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn Error>> {
//! tokio::spawn(echo(raknet::Endpoint::bind("127.0.0.1:0", Options::server(64)?).await?));
//! tokio::spawn(echo(game_protocol::Endpoint::bind("127.0.0.1:0", Options::server(64)?).await?));
//! # Ok(())
//! # }
//! ```

mod accept_queue;
mod blocked_senders;
mod connection;
mod driver;
mod error;
mod inbox;
mod io;
mod message;
mod options;
mod pending_wake;
mod plugin;
mod requests;
mod shards;
mod shared;
mod state;
mod stats;
mod unconnected;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rakwire::endpoint::Hook;
use tokio::net::ToSocketAddrs;

use self::plugin::Plugin;
use self::shards::{LockedAdmission, Shards};
use self::shared::ConnectionRef;
use crate::bind_error::BindError;
use crate::clock::Clock;
use crate::simulation::Simulation;
use crate::socket::{Socket, canonical};

pub use self::connection::Connection;
pub use self::error::ConnectError;
pub use self::message::Incoming;
pub use self::options::Options;
pub use self::stats::EndpointStats;
pub use self::unconnected::{Pong, Unconnected, UnconnectedKind};

pub use rakwire::endpoint::Protocol;

pub(crate) use self::shared::Shared;
pub(crate) use self::state::State;

/// A UDP socket with a protocol on it: opens connections and accepts them. With RakNet it also pings servers, and talks
/// to peers without a connection.
///
/// When it is dropped, connections that were accepted or opened live on; no new ones come, and the socket is closed
/// with the last of them. [`close`](Self::close) ends everything in order.
///
/// ```
/// use rakwire_native::{Endpoint, Options};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let endpoint = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
/// println!("bound to {}", endpoint.local_addr());
/// endpoint.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Endpoint<P: Protocol> {
    pub(crate) shared: Arc<Shared<P>>,
    /// All endpoints of the same server, of which this is one.
    pub(crate) shards: Arc<Shards<P>>,
    local: SocketAddr,
    has_ipv6: bool,
}

impl<P: Protocol> Endpoint<P> {
    /// Binds a socket to the first of the addresses that works; port 0 is a free one. The tasks of the endpoint run in
    /// the current tokio runtime, which needs its network and time drivers.
    ///
    /// # Errors
    /// A [`BindError`] that names the address.
    pub async fn bind(address: impl ToSocketAddrs, options: Options<P>) -> Result<Self, BindError> {
        let socket = Socket::open(address).await?;
        Ok(Self::start(socket, options, Plugin::NONE))
    }

    /// Binds several endpoints to one address, for a server that one core is too little for. Each has its own socket,
    /// tasks and memory, as large as `options` say, so that no datagram waits for a lock of another one; the system
    /// gives all datagrams of one client to the same endpoint. Accept on each.
    ///
    /// They are one server to its clients. Shared are:
    /// - the identity and the keys of the configuration;
    /// - `max_incoming`, which counts the connections of all; in RakNet the GUIDs, so that nobody comes in twice;
    /// - in RakNet the password, the bans and what pongs say: whoever is asked to change them changes them for all;
    /// - the rations: pongs and challenges a second, in all and for each network, the time between two connections of an
    ///   address, and the half-open connections of a network where cookies are off.
    ///
    /// Not shared are the memory and the queues; the statistics; connections that an endpoint opens itself, whose GUIDs it
    /// alone knows; and the half-open connections that a full RakNet server ends for the sake of a newcomer, which must be
    /// of the endpoint that the newcomer comes to. A place is counted until its connection has ended or its endpoint is
    /// gone.
    ///
    /// # Errors
    /// A [`BindError`] that names the address; on systems other than Linux always, since theirs do not tell clients
    /// apart.
    ///
    /// ```
    /// use rakwire_native::{Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # if cfg!(not(target_os = "linux")) { return Ok(()) }
    /// let shards = Endpoint::bind_shards("127.0.0.1:0", &Options::server(500)?, 4).await?;
    /// for shard in shards {
    ///     tokio::spawn(async move {
    ///         while let Some(connection) = shard.accept().await {
    ///             println!("{} is here", connection.remote());
    ///         }
    ///     });
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn bind_shards(
        address: impl ToSocketAddrs,
        options: &Options<P>,
        shards: usize,
    ) -> Result<Vec<Self>, BindError> {
        let first = Socket::open_with(address, Socket::bind_shared).await?;
        let address = first.local_addr();
        let mut sockets = vec![first];
        while sockets.len() < shards {
            let socket = Socket::bind_shared(address);
            sockets.push(socket.map_err(|source| BindError::Socket { address, source })?);
        }
        // Clients come only now: a socket more would send some of them elsewhere.
        let (clock, admission) = (Clock::start(), LockedAdmission::default());
        let shared = || {
            let shared = Shared::new(options.clone(), Plugin::NONE, clock);
            shared.lock().hooked.peer.share_admission(Box::new(admission.clone()));
            Arc::new(shared)
        };
        let all: Vec<_> = sockets.iter().map(|_| shared()).collect();
        let shards = Shards::of(&all);
        let pairs = sockets.into_iter().zip(all);
        Ok(pairs.map(|(socket, shared)| Self::run(socket, shared, &shards, options.simulate)).collect())
    }

    /// As [`bind`](Self::bind), with a hook that sees, filters and injects what passes through the endpoint. The hook is
    /// made from the address that the socket got. It runs in the tasks of the endpoint, so it must not wait. A simulated
    /// network stands between it and the socket.
    ///
    /// # Errors
    /// A [`BindError`] that names the address.
    ///
    /// ```
    /// use rakwire::raknet::{PacketLogger, PcapWriter};
    /// use rakwire_native::{Endpoint, Options};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut file = Vec::new(); // a file in a real program
    /// let endpoint = Endpoint::bind_with_hook("127.0.0.1:0", Options::client()?, |local| {
    ///     PacketLogger(PcapWriter::new(local, move |bytes: &[u8]| file.extend_from_slice(bytes)))
    /// });
    /// endpoint.await?.close().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn bind_with_hook<H: Hook<P> + Send + 'static>(
        address: impl ToSocketAddrs,
        options: Options<P>,
        hook: impl FnOnce(SocketAddr) -> H,
    ) -> Result<Self, BindError> {
        let socket = Socket::open(address).await?;
        let plugin = Plugin::new(hook(socket.local_addr()));
        Ok(Self::start(socket, options, plugin))
    }

    fn start(socket: Socket, options: Options<P>, plugin: Plugin<P>) -> Self {
        let simulation = options.simulate;
        let shared = Arc::new(Shared::new(options, plugin, Clock::start()));
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
        let has_ipv6 = socket.has_ipv6();
        tokio::spawn(driver::run(Arc::clone(&shared), Arc::new(socket), simulation));
        Self { shared, shards: Arc::clone(shards), local, has_ipv6 }
    }

    /// Opens a connection to `address` and waits until it is open. The attempt ends when the future is dropped.
    ///
    /// # Errors
    /// [`ConnectError::Failed`] with the reason when the server refuses or does not answer, which takes RakNet 6.5 seconds
    /// and the Game Protocol 15 unless the configuration says otherwise; others at once.
    ///
    /// ```
    /// use rakwire_native::{ConnectError, ConnectFailure, Endpoint};
    ///
    /// /// Tells whether the server at this address is full.
    /// async fn is_full(endpoint: &Endpoint, server: std::net::SocketAddr) -> bool {
    ///     use rakwire::raknet::Refusal::NoFreeIncomingConnections;
    ///     endpoint.connect(server).await.err()
    ///         == Some(ConnectError::Failed(ConnectFailure::Refused(NoFreeIncomingConnections)))
    /// }
    /// ```
    pub async fn connect(
        &self,
        address: SocketAddr,
    ) -> Result<Connection<P>, ConnectError<P::ConnectFailure>> {
        let attempt = self.begin_to_connect(address, &P::ConnectOptions::default())?;
        Connection::open(attempt).await
    }

    /// As [`connect`](Self::connect), in RakNet with a password, another protocol version or other times than the
    /// configuration says.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), and [`ConnectError::PasswordTooLong`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use rakwire_native::{ConnectError, ConnectOptions, Connection, Endpoint};
    ///
    /// async fn join(endpoint: &Endpoint, server: std::net::SocketAddr) -> Result<Connection, ConnectError> {
    ///     let options = ConnectOptions {
    ///         password: b"friends",
    ///         protocol_version: Some(11),
    ///         timeout: Some(Duration::from_secs(30)),
    ///         ..Default::default()
    ///     };
    ///     endpoint.connect_with(server, &options).await
    /// }
    /// ```
    pub async fn connect_with(
        &self,
        address: SocketAddr,
        options: &P::ConnectOptions<'_>,
    ) -> Result<Connection<P>, ConnectError<P::ConnectFailure>> {
        let attempt = self.begin_to_connect(address, options)?;
        Connection::open(attempt).await
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
        Ok(ConnectionRef { shared: Arc::clone(&self.shared), id, inbox })
    }

    /// The next connection that another peer opened; waits until there is one. Nothing once the endpoint was closed.
    pub async fn accept(&self) -> Option<Connection<P>> {
        loop {
            let mut unaccepted = std::pin::pin!(self.shared.unaccepted.notified());
            // From here on no connection is missed.
            unaccepted.as_mut().enable();
            let accepted = {
                let mut state = self.shared.lock();
                let accepted = state.receivers.accept_queue.pop();
                if accepted.is_none() && !state.is_open() {
                    return None;
                }
                accepted
            };
            match accepted {
                None => unaccepted.await,
                Some(accepted) => return Some(Connection::accepted(Arc::clone(&self.shared), accepted)),
            }
        }
    }

    /// Whether the socket can reach this address.
    pub(crate) fn reaches(&self, address: SocketAddr) -> bool {
        self.has_ipv6 || address.is_ipv4()
    }

    /// The address of the socket, with the port that it got.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The counters of the endpoint.
    #[must_use]
    pub fn stats(&self) -> EndpointStats<P> {
        let counters = &self.shared.io.counters;
        let state = self.shared.lock();
        EndpointStats {
            peer: *state.hooked.peer.stats(),
            connections: state.hooked.peer.connections().count(),
            blocks: state.hooked.peer.blocks(),
            blocks_available: state.hooked.peer.blocks_available(),
            arrival_queue_full: self.shared.io.arrived.dropped() + state.requests.dropped(),
            too_long: counters.too_long.load(Ordering::Relaxed),
            unread: state.receivers.unread,
            backlog_full: state.receivers.accept_queue.overflows(),
            unconnected_dropped: state.receivers.unconnected.dropped(),
            sender_wakes: state.receivers.blocked_senders.wakes(),
            send_failures: counters.send_failures.load(Ordering::Relaxed),
            receive_failures: counters.receive_failures.load(Ordering::Relaxed),
        }
    }

    /// Waits until the socket has taken everything that could be sent so far; what has to wait for acknowledgements or for
    /// its time is not waited for.
    pub async fn flush(&self) {
        self.shared.io.flush().await;
    }

    /// Ends every connection in order, as with [`Connection::disconnect`], and then the endpoint; waits until that is
    /// done and the address is free again. The end goes on when the future is dropped.
    pub async fn close(&self) {
        let mut ended = self.shared.io.ended.subscribe();
        self.shared.act(|state, now| state.close(now));
        self.shared.unaccepted.notify_waiters();
        self.shared.unconnected.notify_waiters();
        // The sender lives as long as this endpoint.
        let _ = ended.wait_for(|ended| *ended).await;
    }
}

impl<P: Protocol> Drop for Endpoint<P> {
    fn drop(&mut self) {
        self.shared.act(|state, now| state.stop_accepting(now));
    }
}
