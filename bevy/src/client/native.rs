//! The driver for native programs: a connection over a UDP socket.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;
use std::vec::IntoIter;

use rakwire::endpoint::{ConnectionId, Event, Protocol as _};
#[cfg(feature = "secure")]
use rakwire_native::secure::ServerTrust;
use rakwire_native::{BindError, ConnectOptions, ConnectionStats, Options, RakNet, polled};
pub(super) use rakwire_native::{ConnectFailure as Failure, DisconnectReason as End};

use super::interface::{Driver, Happened};
use crate::closing::Owned;
use crate::endpoint::once_a_frame;
use crate::outbox::DEFAULT_BACKLOG;

/// The settings of a [`RakwireClient`](crate::RakwireClient).
///
/// ```
/// use std::time::Duration;
/// use rakwire_bevy::ClientSettings;
///
/// let mut settings = ClientSettings::new()?;
/// settings.password = b"snow".to_vec();
/// settings.connect_timeout = Some(Duration::from_secs(3));
/// settings.options.config.timeout = Duration::from_secs(5);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientSettings {
    /// The options of the endpoint: timeouts, memory, and the network simulator.
    ///
    /// Only the options listed at [`polled::Endpoint::bind`] apply.
    pub options: Options,
    /// The password for the server, 0 to 255 bytes. Default: empty.
    ///
    /// It is sent unencrypted, except in a secure connection.
    pub password: Vec<u8>,
    /// The server to trust. The connection is then secure, or the attempt fails. Default: none, for a plain connection.
    #[cfg(feature = "secure")]
    pub trust: Option<ServerTrust>,
    /// The timeout of the attempt at each address. Default: that of [`ConnectOptions::connect_timeout`], 6.5 s without an
    /// answer.
    pub connect_timeout: Option<Duration>,
    /// The maximum number of queued reliable bytes of the connection. Default: [`DEFAULT_BACKLOG`].
    ///
    /// Each message counts 64 bytes more than its length. The client disconnects if the limit is exceeded.
    pub backlog: usize,
}

impl ClientSettings {
    /// Creates the default settings.
    ///
    /// # Errors
    /// Returns an error if the system provides no random bytes.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            options: once_a_frame(Options::client()?),
            password: Vec::new(),
            #[cfg(feature = "secure")]
            trust: None,
            connect_timeout: None,
            backlog: DEFAULT_BACKLOG,
        })
    }
}

/// The error of [`RakwireClient::connect`](crate::RakwireClient::connect).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The name of the server could not be resolved, or it has no address.
    #[error("the address of the server cannot be resolved; check the host name")]
    Resolve(#[source] Option<io::Error>),
    /// No socket could be opened.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The system provides no random bytes for a secure connection.
    #[error("the system provides no random bytes")]
    Entropy(#[source] io::Error),
    /// The connection attempt could not begin.
    #[error(transparent)]
    Attempt(#[from] rakwire_native::ConnectError),
}

/// The connection and its endpoint, which has no other connections.
pub(super) struct Connection {
    endpoint: Owned,
    local: SocketAddr,
    id: ConnectionId,
    attempt: Attempt,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("local", &self.local).finish_non_exhaustive()
    }
}

impl Connection {
    /// Opens a socket and starts to connect to the first usable address of `server`.
    pub(super) fn connect(
        server: impl ToSocketAddrs,
        settings: ClientSettings,
    ) -> Result<Self, ConnectError> {
        let found = server.to_socket_addrs().map_err(|error| ConnectError::Resolve(Some(error)))?;
        let (mut endpoint, mut attempt) = open(found.collect(), settings)?;
        let id = attempt.dial(&mut endpoint).ok_or(ConnectError::Resolve(None))??;
        Ok(Self { local: endpoint.local_addr(), endpoint: Owned::new(endpoint), id, attempt })
    }

    pub(super) const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    pub(super) const fn endpoint(&mut self) -> &mut Owned {
        &mut self.endpoint
    }
}

impl Driver for Connection {
    type Target = polled::Endpoint<RakNet>;
    type Failure = Failure;
    type End = End;

    const ENDED_HERE: End = End::Local;

    fn id(&self) -> ConnectionId {
        self.id
    }

    fn target(&mut self) -> &mut Self::Target {
        self.endpoint.get()
    }

    fn stats(&mut self) -> Option<ConnectionStats> {
        self.endpoint.get().peer().connection_stats(self.id)
    }

    fn close_timeout(&mut self) -> Duration {
        self.endpoint.get().peer().config().close_timeout
    }

    fn update(&mut self) {
        self.endpoint.get().update();
    }

    fn poll(&mut self) -> Option<Happened<Failure, End>> {
        let endpoint = self.endpoint.get();
        loop {
            return Some(match endpoint.poll_event()? {
                Event::Connected { .. } => Happened::Connected,
                Event::ConnectFailed { reason, .. } => Happened::Failed(reason),
                Event::Disconnected { reason, .. } => Happened::Ended(reason),
                Event::MtuChanged { .. } => Happened::MtuChanged,
                Event::Receipt { receipt, .. } => Happened::Settled(receipt),
                Event::Message { .. } => Happened::Message(endpoint.take_event_data()),
                _ => continue,
            });
        }
    }

    fn dial_next(&mut self, failure: &Failure) -> bool {
        let next = RakNet::was_unanswered(failure).then(|| self.attempt.dial(self.endpoint.get()));
        let Some(Some(Ok(id))) = next else { return false };
        self.id = id;
        true
    }

    fn max_message_len(&mut self) -> Option<usize> {
        self.endpoint.get().max_message_len(self.id)
    }

    fn flush(&mut self) {
        self.endpoint.get().flush();
    }
}

/// The addresses of a server that were not tried yet, and the options of each attempt.
struct Attempt {
    remaining: IntoIter<SocketAddr>,
    password: Vec<u8>,
    connect_timeout: Option<Duration>,
    #[cfg(feature = "secure")]
    trust: Option<ServerTrust>,
}

impl Attempt {
    /// Starts connecting to the next usable address. Returns the error of the last address if none is usable, and
    /// `None` if no address is left.
    fn dial(
        &mut self,
        endpoint: &mut polled::Endpoint<RakNet>,
    ) -> Option<Result<ConnectionId, rakwire_native::ConnectError>> {
        let with = ConnectOptions {
            password: &self.password,
            connect_timeout: self.connect_timeout,
            #[cfg(feature = "secure")]
            trust: self.trust,
            ..ConnectOptions::default()
        };
        let mut last = None;
        for address in self.remaining.by_ref() {
            match endpoint.connect_with(address, &with) {
                Ok(id) => {
                    endpoint.flush();
                    return Some(Ok(id));
                }
                Err(error) => last = Some(Err(error)),
            }
        }
        last
    }
}

/// Opens a socket that can reach these addresses.
fn open(
    addresses: Vec<SocketAddr>,
    settings: ClientSettings,
) -> Result<(polled::Endpoint<RakNet>, Attempt), ConnectError> {
    #[cfg(feature = "secure")]
    let ClientSettings { mut options, password, connect_timeout, trust, .. } = settings;
    #[cfg(not(feature = "secure"))]
    let ClientSettings { options, password, connect_timeout, .. } = settings;
    #[cfg(feature = "secure")]
    if trust.is_some() {
        options.secure().map_err(ConnectError::Entropy)?;
    }
    // An IPv6 socket also reaches IPv4 addresses, but some systems have no IPv6.
    let any = [SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)), SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))];
    let with_ipv6 = addresses.iter().any(SocketAddr::is_ipv6);
    let endpoint = polled::Endpoint::bind(if with_ipv6 { &any[..] } else { &any[1..] }, options)?;
    let attempt = Attempt {
        remaining: addresses.into_iter(),
        password,
        connect_timeout,
        #[cfg(feature = "secure")]
        trust,
    };
    Ok((endpoint, attempt))
}
