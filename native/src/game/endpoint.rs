//! An endpoint: one UDP socket and everything that runs over it.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use rakwire::game_protocol::{ConnectFailure, Hook, PeerStats, Redial};
use tokio::net::ToSocketAddrs;

use super::connection::Connection;
use super::error::{ConnectError, DialError};
use super::options::Options;
use super::plugin::Plugin;
use super::state::{Link, Shared};
use crate::driver;
use crate::error::BindError;
use crate::socket::{Socket, canonical};
use crate::state::Door;

/// A UDP socket with the Game Protocol on it: opens connections and accepts them.
///
/// When it is dropped, connections that were accepted or opened live on; no new ones come, and the socket is closed
/// with the last of them. [`close`](Self::close) ends everything in order.
///
/// ```
/// use rakwire_native::game::{Endpoint, Options};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Endpoint::bind("127.0.0.1:0", Options::server(8)?).await?;
/// println!("bound to {}", server.local_addr());
/// server.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Endpoint {
    shared: Arc<Shared>,
    local: SocketAddr,
    has_ipv6: bool,
}

/// Opens a connection to `address`, from a socket of its own for each attempt: an original server that has heard a
/// client once does not hear it again from the same port. The last socket is closed with the connection.
///
/// # Errors
/// A [`DialError`]; with [`ConnectFailure::NoAnswer`] after as many attempts as the options say, each of which takes
/// the `handshake_timeout` of the configuration.
pub async fn connect(address: SocketAddr, mut options: Options) -> Result<Connection, DialError> {
    let here: SocketAddr = match canonical(address) {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let attempts = match options.config.redial {
        Redial::FreshPort => options.attempts.max(1),
        Redial::SamePort(_) => 1,
    };
    for _ in 1..attempts {
        let endpoint = Endpoint::bind(here, options.clone()).await?;
        options = options.fresh().map_err(DialError::Random)?;
        match endpoint.connect(address).await {
            Err(ConnectError::Failed(ConnectFailure::NoAnswer)) => {}
            result => return Ok(result?),
        }
    }
    let endpoint = Endpoint::bind(here, options).await?;
    Ok(endpoint.connect(address).await?)
}

impl Endpoint {
    /// Binds a socket to the first of the addresses that works; port 0 is a free one. The tasks of the endpoint run in
    /// the current tokio runtime, which needs its network and time drivers.
    ///
    /// # Errors
    /// A [`BindError`] that names the address.
    pub async fn bind(address: impl ToSocketAddrs, options: Options) -> Result<Self, BindError> {
        Ok(Self::over(Socket::open(address).await?, options, Plugin::NONE))
    }

    /// As [`bind`](Self::bind), with a hook that sees every datagram and may drop it. The hook is made from the address
    /// that was bound; it runs in the tasks of the endpoint and must not wait for anything.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    ///
    /// ```
    /// use rakwire::game_protocol::{PacketLogger, PcapWriter};
    /// use rakwire_native::game::{Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut file = Vec::new();
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
        Ok(Self::over(socket, options, plugin))
    }

    fn over(socket: Socket, options: Options, plugin: Plugin) -> Self {
        let simulation = options.simulate;
        let shared = Arc::new(Shared::new(options, plugin));
        let (local, has_ipv6) = (socket.local_addr(), socket.has_ipv6());
        tokio::spawn(driver::run(Arc::clone(&shared), Arc::new(socket), simulation));
        Self { shared, local, has_ipv6 }
    }

    /// Makes one attempt to open a connection to `address` from this socket, and waits until it is open. The attempt
    /// ends when the future is dropped. [`connect`] tries more than once.
    ///
    /// # Errors
    /// A [`ConnectError`].
    pub async fn connect(&self, address: SocketAddr) -> Result<Connection, ConnectError> {
        let address = canonical(address);
        if !self.has_ipv6 && address.is_ipv6() {
            return Err(ConnectError::AddressFamily);
        }
        let (id, inbox) = self.shared.act(|state, now| {
            if state.door == Door::Shut {
                return Err(ConnectError::EndpointClosed);
            }
            Ok(state.dial(now, address)?)
        })?;
        let link = Link { shared: Arc::clone(&self.shared), id, inbox };
        let opened = link.inbox.opened().await;
        opened.map_err(|failure| failure.map_or(ConnectError::TurnedAway, ConnectError::Failed))?;
        Ok(Connection { link })
    }

    /// The next connection that another peer opened; waits until there is one. Nothing once the endpoint was closed.
    pub async fn accept(&self) -> Option<Connection> {
        loop {
            let mut newcomers = std::pin::pin!(self.shared.newcomers.notified());
            // From here on no newcomer is missed.
            newcomers.as_mut().enable();
            {
                let mut state = self.shared.lock();
                if let Some((id, inbox)) = state.backlog.pop_front() {
                    let link = Link { shared: Arc::clone(&self.shared), id, inbox };
                    return Some(Connection { link });
                }
                if state.door == Door::Shut {
                    return None;
                }
            }
            newcomers.await;
        }
    }

    /// The address of the socket, with the port that it got.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The counters of the protocol.
    #[must_use]
    pub fn stats(&self) -> PeerStats {
        *self.shared.lock().hooked.peer.stats()
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
        // The sender lives as long as this endpoint.
        let _ = ended.wait_for(|ended| *ended).await;
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.shared.act(|state, now| state.shut_door(now));
    }
}
