//! The client: one connection to a server.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bevy::prelude::*;
use bevy_replicon::bytes::Bytes;
use bevy_replicon::prelude::*;
use rakwire_native::rakwire::endpoint::Event;
#[cfg(feature = "secure")]
use rakwire_native::secure::ServerTrust;
use rakwire_native::{
    BindError, ConnectFailure, ConnectOptions, ConnectionStats, DisconnectReason, Options, RakNet, polled,
};

use crate::channels::{ChannelId, open};
use crate::closing::{Closing, ClosingPlugin, Owned};
use crate::counters::{Dropped, statistics};
use crate::outbox::{DEFAULT_BACKLOG, Outbox, Overflow, once_a_frame};

/// The settings of a [`RakwireClient`].
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
    /// The options of the endpoint: timeouts, memory, a simulated network.
    ///
    /// Only the options listed at [`polled::Endpoint::bind`] apply.
    pub options: Options,
    /// The password for the server, 0 to 255 bytes. Default: empty.
    ///
    /// It crosses the network unencrypted, except in a secure connection.
    pub password: Vec<u8>,
    /// The server to trust. The connection is then secure, or the attempt fails. Default: none, for a plain connection.
    #[cfg(feature = "secure")]
    pub trust: Option<ServerTrust>,
    /// The timeout of the attempt. Default: that of [`ConnectOptions::connect_timeout`], about 6 s.
    pub connect_timeout: Option<Duration>,
    /// The bytes of reliable messages that may wait for room in the connection. Default: [`DEFAULT_BACKLOG`].
    ///
    /// The client disconnects when there are more.
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

/// The error of [`RakwireClient::connect`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The name of the server could not be resolved, or it has no address.
    #[error("the address of the server cannot be found")]
    Resolve(#[source] Option<io::Error>),
    /// No socket could be opened.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The system provides no random bytes for a secure connection.
    #[error("the system provides no random bytes")]
    Entropy(#[source] io::Error),
    /// The attempt could not start.
    #[error(transparent)]
    Attempt(#[from] rakwire_native::ConnectError),
}

/// The reason why a client is not connected any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DisconnectCause {
    /// The connection could not be opened. A full server, for example, is
    /// [`Refused`](ConnectFailure::Refused).
    #[error(transparent)]
    Failed(ConnectFailure),
    /// The connection has ended.
    #[error(transparent)]
    Ended(DisconnectReason),
    /// More reliable messages wait than [`ClientSettings::backlog`] allows.
    #[error("more reliable messages wait than the backlog may hold")]
    Backlog,
    /// A reliable message exceeds [`RakwireClient::max_message_len`].
    #[error("a reliable message is larger than the connection may hold")]
    TooLarge,
}

impl From<Overflow> for DisconnectCause {
    fn from(overflow: Overflow) -> Self {
        match overflow {
            Overflow::Backlog => Self::Backlog,
            Overflow::TooLarge => Self::TooLarge,
        }
    }
}

/// The status of a [`RakwireClient`]. Replicon's [`ClientState`] follows it by one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The connection is being opened.
    Connecting,
    /// The connection is open.
    Connected,
    /// There is no connection any more. To connect again, insert a new [`RakwireClient`].
    Disconnected(DisconnectCause),
}

/// The number of the next client of this program. It shows the systems that a resource has been replaced.
static NEXT_SESSION: AtomicU64 = AtomicU64::new(1);

/// A client with a connection to one server, as a resource.
///
/// Insert it to connect, and insert another one to reconnect. Removing it disconnects; reliable messages sent before
/// arrive first, as long as the app runs and unless they still wait for room. [`disconnect`](Self::disconnect) sends
/// those, too.
#[derive(Resource)]
pub struct RakwireClient {
    endpoint: Owned,
    local: SocketAddr,
    outbox: Outbox,
    status: Status,
    dropped: Dropped,
    session: u64,
}

impl std::fmt::Debug for RakwireClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { local, status, dropped, .. } = self;
        let mut shown = f.debug_struct("RakwireClient");
        shown.field("local", local).field("status", status).field("dropped", dropped).finish_non_exhaustive()
    }
}

impl RakwireClient {
    /// Opens a socket and starts to connect to the first address of `server`. The plugin does the rest, frame by frame.
    ///
    /// A name is resolved by the system, which blocks; resolve it in a task if that takes too long.
    ///
    /// # Errors
    /// Returns a [`ConnectError`] if there is no such address, no socket, or the settings do not allow an attempt.
    /// Failures of the attempt itself are in [`status`](Self::status).
    pub fn connect(server: impl ToSocketAddrs, settings: ClientSettings) -> Result<Self, ConnectError> {
        let resolved = server.to_socket_addrs().map_err(|error| ConnectError::Resolve(Some(error)))?.next();
        let remote = resolved.ok_or(ConnectError::Resolve(None))?;
        let ClientSettings { password, connect_timeout, backlog, .. } = &settings;
        let with = ConnectOptions {
            password,
            connect_timeout: *connect_timeout,
            #[cfg(feature = "secure")]
            trust: settings.trust,
            ..ConnectOptions::default()
        };
        #[cfg(feature = "secure")]
        let options = {
            let mut options = settings.options.clone();
            if settings.trust.is_some() {
                options.secure().map_err(ConnectError::Entropy)?;
            }
            options
        };
        #[cfg(not(feature = "secure"))]
        let options = settings.options.clone();
        let any = match remote {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let mut endpoint = polled::Endpoint::bind(any, options)?;
        let id = endpoint.connect_with(remote, &with)?;
        endpoint.flush();
        Ok(Self {
            local: endpoint.local_addr(),
            endpoint: Owned::new(endpoint),
            outbox: Outbox::new(id, *backlog),
            status: Status::Connecting,
            dropped: Dropped::default(),
            session: NEXT_SESSION.fetch_add(1, Ordering::Relaxed),
        })
    }

    /// Returns the status of the connection.
    #[must_use]
    pub const fn status(&self) -> Status {
        self.status
    }

    /// Returns the address of the socket. Its IP address is unspecified.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Returns the numbers of dropped messages.
    #[must_use]
    pub const fn dropped(&self) -> Dropped {
        self.dropped
    }

    /// Returns the counters and measurements of the connection, or `None` once it has ended.
    pub fn stats(&mut self) -> Option<ConnectionStats> {
        let id = self.outbox.id();
        self.endpoint.get().peer().connection_stats(id)
    }

    /// Returns the length of the longest message in bytes, or `None` once the connection has ended.
    pub fn max_message_len(&mut self) -> Option<usize> {
        let id = self.outbox.id();
        // The longest prefix of a channel has 3 bytes.
        self.endpoint.get().max_message_len(id).map(|length| length.saturating_sub(3))
    }

    /// Returns the endpoint, for functions without a method here, such as pings.
    ///
    /// Its events belong to the plugin.
    pub fn endpoint_mut(&mut self) -> &mut polled::Endpoint<RakNet> {
        self.endpoint.get()
    }

    /// Starts to disconnect. Reliable messages sent before arrive first.
    pub fn disconnect(&mut self) {
        if !matches!(self.status, Status::Disconnected(_)) {
            self.status = Status::Disconnected(DisconnectCause::Ended(DisconnectReason::Local));
            self.outbox.close(self.endpoint.get());
        }
    }

    /// Handles received datagrams, and forwards the messages of the first `count` channels.
    fn receive(&mut self, count: usize, mut insert: impl FnMut(usize, Bytes)) {
        let endpoint = self.endpoint.get();
        endpoint.update();
        while let Some(event) = endpoint.poll_event() {
            match event {
                Event::Connected { .. } if self.status == Status::Connecting => {
                    self.status = Status::Connected;
                    self.outbox.measure(endpoint);
                    // Replicon takes messages from the next frame on, after its state has changed.
                    break;
                }
                Event::ConnectFailed { reason, .. } if self.status == Status::Connecting => {
                    self.status = Status::Disconnected(DisconnectCause::Failed(reason));
                }
                Event::Disconnected { reason, .. } if self.status == Status::Connected => {
                    self.status = Status::Disconnected(DisconnectCause::Ended(reason));
                }
                Event::MtuChanged { .. } => {
                    self.outbox.measure(endpoint);
                }
                Event::Receipt { receipt, .. } => self.outbox.settle(receipt),
                Event::Message { .. } if self.status == Status::Connected => {
                    match open(endpoint.take_event_data(), count) {
                        Some((channel, payload)) => insert(channel, payload),
                        None => self.dropped.unknown_channel += 1,
                    }
                }
                _ => {}
            }
        }
        self.retry();
    }

    fn retry(&mut self) {
        let sent = self.outbox.retry(self.endpoint.get(), &mut self.dropped);
        self.end_if_failed(sent);
    }

    fn send(&mut self, channel: (Channel, ChannelId), payload: &[u8]) {
        if self.status != Status::Connected {
            self.dropped.not_connected += 1;
            return;
        }
        let sent = self.outbox.send(self.endpoint.get(), channel, payload, &mut self.dropped);
        self.end_if_failed(sent);
    }

    fn end_if_failed(&mut self, sent: Result<(), Overflow>) {
        if let Err(overflow) = sent {
            log::error!("disconnecting from the server: {overflow}");
            self.status = Status::Disconnected(overflow.into());
            self.outbox.abort(self.endpoint.get());
        }
    }
}

/// The plugin of clients. It does nothing while there is no [`RakwireClient`].
#[derive(Clone, Copy, Debug, Default)]
pub struct RakwireRepliconClientPlugin;

impl Plugin for RakwireRepliconClientPlugin {
    fn build(&self, app: &mut App) {
        ClosingPlugin::add_once(app);
        app.add_systems(PreUpdate, receive.in_set(ClientSystems::ReceivePackets)).add_systems(
            PostUpdate,
            send.in_set(ClientSystems::SendPackets).run_if(resource_exists::<RakwireClient>),
        );
    }
}

#[expect(clippy::too_many_arguments, reason = "each one is something that this system reads or changes")]
fn receive(
    client: Option<ResMut<RakwireClient>>,
    state: Res<State<ClientState>>,
    mut next: ResMut<NextState<ClientState>>,
    channels: Res<RepliconChannels>,
    mut messages: ResMut<ClientMessages>,
    mut stats: ResMut<ClientStats>,
    closing: Res<Closing>,
    mut session: Local<u64>,
) {
    let mut follow = |target: ClientState| {
        if *state.get() != target {
            next.set(target);
        }
    };
    let Some(mut client) = client else { return follow(ClientState::Disconnected) };
    if client.session != *session {
        // Replicon forgets the connection of the previous resource first.
        if *state.get() != ClientState::Disconnected {
            return follow(ClientState::Disconnected);
        }
        *session = client.session;
    }
    client.endpoint.leave_to(&closing);
    let count = channels.server_channels().len();
    client.receive(count, |channel, payload| messages.insert_received(channel, payload));
    if let Some(now) = client.stats().filter(|_| client.status == Status::Connected) {
        *stats = statistics(&now);
    }
    follow(match client.status {
        Status::Connecting => ClientState::Connecting,
        Status::Connected => ClientState::Connected,
        Status::Disconnected(_) => ClientState::Disconnected,
    });
}

fn send(
    mut client: ResMut<RakwireClient>,
    channels: Res<RepliconChannels>,
    mut messages: ResMut<ClientMessages>,
) {
    for (number, payload) in messages.drain_sent() {
        match (channels.client_channels().get(number), ChannelId::new(number)) {
            (Some(&channel), Ok(id)) => client.send((channel, id), &payload),
            _ => client.dropped.unknown_channel += 1,
        }
    }
    client.endpoint.get().flush();
}
