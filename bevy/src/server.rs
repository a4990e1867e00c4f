//! The server: a connection and an entity for each client.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicU64, Ordering};

use bevy::prelude::*;
use bevy_replicon::bytes::Bytes;
use bevy_replicon::prelude::*;
use bevy_replicon::shared::backend::connected_client::NetworkId;
use rakwire_native::raknet::{ConnectionId, SetError};
use rakwire_native::rakwire::endpoint::Event;
#[cfg(feature = "secure")]
use rakwire_native::secure::{ServerIdentity, StaticKey};
use rakwire_native::{BindError, ConnectionStats, Guid, Options, RakNet, polled};

use crate::channels::{ChannelId, open};
use crate::closing::{Closing, ClosingPlugin, Owned};
use crate::counters::{Dropped, statistics};
use crate::endpoint::once_a_frame;
use crate::outbox::{DEFAULT_BACKLOG, Outbox};

/// The settings of a [`RakwireServer`].
///
/// ```
/// use rakwire_bevy::ServerSettings;
///
/// let mut settings = ServerSettings::new(64)?;
/// settings.password = b"snow".to_vec();
/// settings.options.config.max_per_address = Some(4);
/// assert_eq!(settings.options.config.max_incoming, 64);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerSettings {
    /// The options of the endpoint: limits, timeouts, memory, keys, and the network simulator.
    ///
    /// Only the options listed at [`polled::Endpoint::bind`] apply.
    pub options: Options,
    /// The password that clients must send, 0 to 255 bytes. Default: empty, no password.
    pub password: Vec<u8>,
    /// The maximum number of queued reliable bytes per connection. Default: [`DEFAULT_BACKLOG`].
    ///
    /// Each message counts 64 bytes more than its length. A client that exceeds the limit is disconnected.
    pub backlog: usize,
}

impl ServerSettings {
    /// Creates the default settings for up to `max_clients` clients.
    ///
    /// # Errors
    /// Returns an error if the operating system provides no random bytes.
    pub fn new(max_clients: u16) -> io::Result<Self> {
        let options = once_a_frame(Options::server(max_clients)?);
        Ok(Self { options, password: Vec::new(), backlog: DEFAULT_BACKLOG })
    }

    /// Sets the private key of the server, and refuses clients without a secure connection.
    ///
    /// [`Options::secure`] has further settings: client identities, connect tokens, and optional security.
    ///
    /// # Errors
    /// Returns an error if the operating system provides no random bytes.
    #[cfg(feature = "secure")]
    pub fn require_security(&mut self, key: StaticKey) -> io::Result<()> {
        let mut identity = ServerIdentity::new(key);
        identity.requires_security = true;
        self.options.secure()?.server = Some(identity);
        Ok(())
    }
}

/// The error of [`RakwireServer::bind`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The socket could not be opened.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The password is longer than 255 bytes.
    #[error(transparent)]
    Password(#[from] SetError),
}

/// The connection of a client: a component next to [`ConnectedClient`].
///
/// The [`NetworkId`] of the entity is the GUID that the client chose. It is unique among the connected clients, but not
/// authenticated. Each [`RakwireClient`](crate::RakwireClient) chooses a new one.
#[derive(Clone, Copy, Component, Debug)]
#[component(immutable)]
pub struct ClientConnection {
    id: ConnectionId,
    remote: SocketAddr,
}

impl ClientConnection {
    /// Returns the id of the connection, for use with [`RakwireServer::endpoint_mut`].
    #[must_use]
    pub const fn id(&self) -> ConnectionId {
        self.id
    }

    /// Returns the address of the client.
    #[must_use]
    pub const fn remote(&self) -> SocketAddr {
        self.remote
    }
}

/// A connected client, which has an entity.
#[derive(Debug)]
struct Client {
    entity: Entity,
    outbox: Outbox,
    /// True if a message of this client arrived in the current frame.
    was_heard: bool,
}

/// The session number of the next [`RakwireServer`]. Systems compare session numbers to detect a replaced resource.
static NEXT_SESSION: AtomicU64 = AtomicU64::new(1);

/// The server, a resource that listens on a UDP socket.
///
/// Each client is an entity with a [`ConnectedClient`] and a [`ClientConnection`]. To disconnect a client, write a
/// [`DisconnectRequest`] or despawn its entity. Removing the resource disconnects all clients. In both cases earlier
/// reliable messages are delivered first, for at most 5 s and only while the app runs. Messages still queued in the
/// backlog when the resource is removed are discarded.
#[derive(Resource)]
pub struct RakwireServer {
    endpoint: Owned,
    local: SocketAddr,
    clients: HashMap<ConnectionId, Client>,
    /// Entities of connections that closed in a frame in which their messages also arrived. They are despawned after
    /// replicon has read these messages.
    ended: Vec<Entity>,
    /// Connections that have lost their entity. Each is closed once its queued messages are sent.
    leaving: Vec<Outbox>,
    backlog: usize,
    dropped: Dropped,
    session: u64,
}

impl std::fmt::Debug for RakwireServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { local, clients, dropped, .. } = self;
        let mut shown = f.debug_struct("RakwireServer");
        shown.field("local", local).field("clients", &clients.len()).field("dropped", dropped);
        shown.finish_non_exhaustive()
    }
}

impl RakwireServer {
    /// Opens a UDP socket on the first usable address. Port 0 selects a free port.
    ///
    /// # Errors
    /// Returns a [`ServerError`] if no address is usable, or the password is too long.
    pub fn bind(address: impl ToSocketAddrs, settings: ServerSettings) -> Result<Self, ServerError> {
        let ServerSettings { options, password, backlog } = settings;
        let mut endpoint = polled::Endpoint::bind(address, options)?;
        endpoint.peer_mut().set_password(&password)?;
        Ok(Self {
            local: endpoint.local_addr(),
            endpoint: Owned::new(endpoint),
            clients: HashMap::new(),
            ended: Vec::new(),
            leaving: Vec::new(),
            backlog,
            dropped: Dropped::default(),
            session: NEXT_SESSION.fetch_add(1, Ordering::Relaxed),
        })
    }

    /// Returns the local address of the socket, with the actual port.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Returns the numbers of dropped messages, summed over all connections.
    #[must_use]
    pub const fn dropped(&self) -> Dropped {
        self.dropped
    }

    /// Returns the number of connections, including those that are opening or closing.
    pub fn connections(&mut self) -> usize {
        self.endpoint.get().connections()
    }

    /// Returns the counters and measurements of a connection, or `None` if it is closed.
    pub fn stats(&mut self, connection: &ClientConnection) -> Option<ConnectionStats> {
        self.endpoint.get().peer().connection_stats(connection.id)
    }

    /// Returns the endpoint, for functions without a method here: the advertisement, bans, and connect tokens
    /// of clients.
    ///
    /// Do not poll its events, which the plugin handles.
    pub fn endpoint_mut(&mut self) -> &mut polled::Endpoint<RakNet> {
        self.endpoint.get()
    }

    /// Starts disconnecting all clients. Each entity is despawned when its client has disconnected.
    pub fn disconnect_all(&mut self) {
        let endpoint = self.endpoint.get();
        for client in self.clients.values_mut() {
            close(&mut client.outbox, endpoint);
        }
    }

    /// Handles received datagrams, and forwards the messages of the first `count` channels.
    fn receive(
        &mut self,
        count: usize,
        commands: &mut Commands<'_, '_>,
        mut insert: impl FnMut(Entity, usize, Bytes),
    ) {
        self.ended.drain(..).for_each(|entity| commands.entity(entity).try_despawn());
        self.clients.values_mut().for_each(|client| client.was_heard = false);
        let endpoint = self.endpoint.get();
        endpoint.update();
        while let Some(event) = endpoint.poll_event() {
            match event {
                Event::Connected { id, remote, identity, .. } => {
                    let mut outbox = Outbox::new(id, self.backlog);
                    let max_size = outbox.measure(endpoint.peer().connection_stats(id));
                    let entity = spawn(commands, ClientConnection { id, remote }, identity, max_size);
                    self.clients.insert(id, Client { entity, outbox, was_heard: false });
                }
                Event::MtuChanged { id, .. } => {
                    if let Some(client) = self.clients.get_mut(&id) {
                        let max_size = client.outbox.measure(endpoint.peer().connection_stats(id));
                        commands.entity(client.entity).try_insert(ConnectedClient { max_size });
                    }
                }
                Event::Receipt { id, receipt, .. } => {
                    if let Some(client) = self.clients.get_mut(&id) {
                        client.outbox.settle(receipt);
                    }
                }
                Event::Message { id, .. } => {
                    let message = endpoint.take_event_data();
                    let Some(client) = self.clients.get_mut(&id) else { continue };
                    match open(message, count) {
                        Some((channel, payload)) => {
                            client.was_heard = true;
                            insert(client.entity, channel, payload);
                        }
                        None => self.dropped.unknown_channel += 1,
                    }
                }
                Event::Disconnected { id, reason, .. } => {
                    let Some(client) = self.clients.remove(&id) else { continue };
                    log::debug!("client `{}` has left: {reason}", client.entity);
                    if client.was_heard {
                        self.ended.push(client.entity);
                    } else {
                        commands.entity(client.entity).try_despawn();
                    }
                }
                Event::Refused { remote, reason, .. } => log::debug!("refused {remote}: {reason:?}"),
                _ => {}
            }
        }
        let outboxes = self.clients.values_mut().map(|client| &mut client.outbox);
        for outbox in outboxes.chain(&mut self.leaving) {
            if let Err(overflow) = outbox.retry(endpoint, &mut self.dropped) {
                log::error!("disconnecting a client: {overflow}");
            }
        }
        self.leaving.retain(|outbox| !outbox.queue.is_empty());
    }

    fn send(&mut self, id: ConnectionId, channel: (Channel, ChannelId), payload: &[u8]) {
        let endpoint = self.endpoint.get();
        let Some(client) = self.clients.get_mut(&id) else {
            self.dropped.not_connected += 1;
            return;
        };
        if let Err(overflow) = client.outbox.send(endpoint, channel, payload, &mut self.dropped) {
            log::error!("disconnecting client `{}`: {overflow}", client.entity);
            client.outbox.abort(endpoint, &mut self.dropped);
        }
    }

    /// Closes the connection of an entity that is being despawned.
    fn close(&mut self, entity: Entity, id: ConnectionId) {
        // After the resource was replaced, the same id may belong to a client of the new server.
        if self.clients.get(&id).is_none_or(|client| client.entity != entity) {
            return;
        }
        if let Some(mut client) = self.clients.remove(&id) {
            close(&mut client.outbox, self.endpoint.get());
            self.leaving.push(client.outbox);
        }
    }
}

/// Closes a connection once its queued messages are sent.
fn close(outbox: &mut Outbox, endpoint: &mut polled::Endpoint<RakNet>) {
    let timeout = endpoint.peer().config().close_timeout;
    // If a queued message is refused, the connection is aborted, which also closes it.
    let _ = outbox.queue.close(endpoint, timeout);
}

fn spawn(
    commands: &mut Commands<'_, '_>,
    connection: ClientConnection,
    guid: Guid,
    max_size: usize,
) -> Entity {
    let entity = commands.spawn((ConnectedClient { max_size }, NetworkId::new(guid.0), connection)).id();
    log::debug!("client `{entity}` is connected from {}", connection.remote);
    entity
}

/// The server plugin. It does nothing while there is no [`RakwireServer`].
#[derive(Clone, Copy, Debug, Default)]
pub struct RakwireRepliconServerPlugin;

impl Plugin for RakwireRepliconServerPlugin {
    fn build(&self, app: &mut App) {
        ClosingPlugin::add_once(app);
        app.add_observer(close_despawned)
            .add_systems(PreUpdate, receive.in_set(ServerSystems::ReceivePackets))
            .add_systems(
                PostUpdate,
                (
                    (send, disconnect_by_request).chain().in_set(ServerSystems::SendPackets),
                    flush.after(ServerSystems::SendPackets),
                )
                    .run_if(resource_exists::<RakwireServer>),
            );
    }
}

#[expect(clippy::too_many_arguments, reason = "each one is something that this system reads or changes")]
fn receive(
    mut commands: Commands,
    server: Option<ResMut<RakwireServer>>,
    state: Res<State<ServerState>>,
    mut next: ResMut<NextState<ServerState>>,
    channels: Res<RepliconChannels>,
    mut messages: ResMut<ServerMessages>,
    mut clients: Query<(&ClientConnection, &mut ConnectedClientStats)>,
    closing: Res<Closing>,
    mut session: Local<u64>,
) {
    let is_running = *state.get() == ServerState::Running;
    let Some(mut server) = server else {
        if is_running {
            next.set(ServerState::Stopped);
        }
        return;
    };
    if server.session != *session && is_running {
        // Replicon must first remove the clients of the previous server.
        next.set(ServerState::Stopped);
        return;
    }
    *session = server.session;
    if !is_running {
        next.set(ServerState::Running);
        return;
    }
    server.endpoint.leave_to(&closing);
    let count = channels.client_channels().len();
    let insert = |client, channel, payload| messages.insert_received(client, channel, payload);
    server.receive(count, &mut commands, insert);
    for (connection, mut stats) in &mut clients {
        if let Some(now) = server.stats(connection) {
            **stats = statistics(&now);
        }
    }
}

fn send(
    mut server: ResMut<RakwireServer>,
    channels: Res<RepliconChannels>,
    mut messages: ResMut<ServerMessages>,
    clients: Query<&ClientConnection>,
) {
    for (entity, number, payload) in messages.drain_sent() {
        let channel = channels.server_channels().get(number);
        match (clients.get(entity), channel, ChannelId::new(number)) {
            (Ok(client), Some(&channel), Ok(id)) => server.send(client.id, (channel, id), &payload),
            (Err(_), ..) => server.dropped.not_connected += 1,
            _ => server.dropped.unknown_channel += 1,
        }
    }
}

fn disconnect_by_request(mut commands: Commands, mut requests: MessageReader<DisconnectRequest>) {
    for request in requests.read() {
        commands.entity(request.client).try_despawn();
    }
}

fn close_despawned(
    remove: On<Remove, ClientConnection>,
    server: Option<ResMut<RakwireServer>>,
    clients: Query<&ClientConnection>,
) {
    if let (Some(mut server), Ok(client)) = (server, clients.get(remove.entity)) {
        server.close(remove.entity, client.id);
    }
}

fn flush(mut server: ResMut<RakwireServer>) {
    server.endpoint.get().flush();
}
