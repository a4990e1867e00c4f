//! An endpoint: one UDP socket and everything that runs over it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rakwire::raknet::{ConnectFailure, ConnectOptions, Guid, Hook, SetError};
use tokio::net::ToSocketAddrs;

use crate::connection::Connection;
use crate::driver;
use crate::error::{BindError, ConnectError};
use crate::options::Options;
use crate::plugin::Plugin;
use crate::shared::{Link, Shared};
use crate::socket::{Socket, canonical};
use crate::state::Door;
use crate::stats::EndpointStats;

/// A UDP socket with RakNet on it: opens connections, accepts them, pings servers.
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
pub struct Endpoint {
    pub(crate) shared: Arc<Shared>,
    local: SocketAddr,
    has_ipv6: bool,
}

impl Endpoint {
    /// Binds a socket to the first of the addresses that works; port 0 is a free one. The tasks of the endpoint run in
    /// the current tokio runtime, which needs its network and time drivers.
    ///
    /// # Errors
    /// A [`BindError`] that names the address.
    pub async fn bind(address: impl ToSocketAddrs, options: Options) -> Result<Self, BindError> {
        let socket = Socket::open(address).await?;
        Ok(Self::start(socket, options, Plugin::NONE))
    }

    /// Binds several endpoints to one address, for a server that one core is too little for. Each has its own socket,
    /// tasks and memory, as large as `options` say, so that no datagram waits for a lock of another one; the system
    /// gives all datagrams of one client to the same endpoint. They have the same identity; accept on each.
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
        options: &Options,
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
        Ok(sockets.into_iter().map(|socket| Self::start(socket, options.clone(), Plugin::NONE)).collect())
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
    pub async fn bind_with_hook<H: Hook + Send + 'static>(
        address: impl ToSocketAddrs,
        options: Options,
        hook: impl FnOnce(SocketAddr) -> H,
    ) -> Result<Self, BindError> {
        let socket = Socket::open(address).await?;
        let plugin = Plugin::new(hook(socket.local_addr()));
        Ok(Self::start(socket, options, plugin))
    }

    fn start(socket: Socket, options: Options, plugin: Plugin) -> Self {
        let simulation = options.simulate;
        let shared = Arc::new(Shared::new(options, plugin));
        let local = socket.local_addr();
        let has_ipv6 = socket.has_ipv6();
        tokio::spawn(driver::run(Arc::clone(&shared), Arc::new(socket), simulation));
        Self { shared, local, has_ipv6 }
    }

    /// Opens a connection to `address` and waits until it is open. The attempt ends when the future is dropped.
    ///
    /// # Errors
    /// [`ConnectError::Failed`] with the reason when the server refuses or does not answer, which takes 6.5 seconds
    /// unless the configuration says otherwise; others at once.
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
    pub async fn connect(&self, address: SocketAddr) -> Result<Connection, ConnectError> {
        self.connect_with(address, &ConnectOptions::default()).await
    }

    /// As [`connect`](Self::connect), with a password, another protocol version or other times than the configuration
    /// says.
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
        options: &ConnectOptions<'_>,
    ) -> Result<Connection, ConnectError> {
        let address = canonical(address);
        if !self.reaches(address) {
            return Err(ConnectError::AddressFamily);
        }
        let opened = self.shared.act(|state, now| {
            if state.tables.door == Door::Shut {
                return Err(ConnectError::EndpointClosed);
            }
            let id = state.hooked.peer.connect_with(now, address, options)?;
            Ok((id, state.tables.expect(id, address)))
        });
        let (id, inbox) = opened?;
        let link = Link { shared: Arc::clone(&self.shared), id, inbox };
        let opened = link.inbox.opened().await;
        let guid = opened.map_err(|failure| failure.unwrap_or(ConnectFailure::Closed))?;
        Ok(Connection { link, guid })
    }

    /// The next connection that another peer opened; waits until there is one. Nothing once the endpoint was closed.
    pub async fn accept(&self) -> Option<Connection> {
        loop {
            let mut newcomers = std::pin::pin!(self.shared.newcomers.notified());
            // From here on no newcomer is missed.
            newcomers.as_mut().enable();
            let newcomer = {
                let mut state = self.shared.lock();
                let newcomer = state.tables.backlog.pop_front();
                if newcomer.is_none() && state.tables.door == Door::Shut {
                    return None;
                }
                newcomer
            };
            match newcomer {
                None => newcomers.await,
                Some(newcomer) => {
                    let guid = newcomer.guid;
                    let link =
                        Link { shared: Arc::clone(&self.shared), id: newcomer.id, inbox: newcomer.inbox };
                    return Some(Connection { link, guid });
                }
            }
        }
    }

    pub(crate) fn reaches(&self, address: SocketAddr) -> bool {
        self.has_ipv6 || address.is_ipv4()
    }

    /// The address of the socket, with the port that it got.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The identity of this endpoint.
    #[must_use]
    pub fn guid(&self) -> Guid {
        self.shared.lock().hooked.peer.config().guid
    }

    /// Sets what the answers to pings say, 0 to 399 bytes.
    ///
    /// # Errors
    /// [`SetError::AdvertisementTooLong`]; nothing changed then.
    ///
    /// ```
    /// use rakwire_native::{Endpoint, Options, SetError};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Endpoint::bind("127.0.0.1:0", Options::server(8)?).await?;
    /// assert_eq!(server.set_advertisement(&[b'x'; 399]), Ok(()));
    /// assert_eq!(server.set_advertisement(&[b'x'; 400]), Err(SetError::AdvertisementTooLong));
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_advertisement(&self, data: &[u8]) -> Result<(), SetError> {
        self.shared.act(|state, _| state.hooked.peer.set_advertisement(data))
    }

    /// The counters of the endpoint.
    #[must_use]
    pub fn stats(&self) -> EndpointStats {
        let counters = &self.shared.io.counters;
        let state = self.shared.lock();
        EndpointStats {
            peer: *state.hooked.peer.stats(),
            connections: state.hooked.peer.connections().count(),
            blocks: state.hooked.peer.blocks(),
            blocks_available: state.hooked.peer.blocks_available(),
            arrivals_dropped: self.shared.io.arrivals.dropped() + state.requests.dropped(),
            too_long: counters.too_long.load(Ordering::Relaxed),
            unread: state.tables.unread,
            backlog_full: state.tables.backlog_full,
            strangers_dropped: state.tables.strangers.dropped(),
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
        self.shared.act(|state, now| state.shut(now));
        self.shared.newcomers.notify_waiters();
        self.shared.heard.notify_waiters();
        // The sender lives as long as this endpoint.
        let _ = ended.wait_for(|ended| *ended).await;
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.shared.act(|state, now| state.shut_door(now));
    }
}

#[cfg(test)]
#[path = "endpoint_tests.rs"]
mod tests;
