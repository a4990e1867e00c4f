//! Replication of the world to the RakNet connections that request it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::{io, thread};

use rakwire::endpoint::{Plugin, PluginHost};
use rakwire_native::BindError;
use rakwire_native::endpoint::{ConnectionId, Endpoint, SharedHook};
use rakwire_native::raknet::{Delivery, Options, RakNet};
use snowfight::server::{MAX_SESSIONS, Server};
use snowfight_replication::{ReplicatedWorld, WorldAuthority, WorldReplicas};

use crate::key::Key;

/// The stack size of the thread that creates the authority, in bytes. The authority has capacity for all connections.
/// It is created on the stack before it is moved to the heap, and exceeds the default stack size.
const STACK: usize = 256 << 20;

type Authority = WorldAuthority<RakNet, MAX_SESSIONS>;
/// The replicas of a client.
pub(crate) type Replicas = SharedHook<WorldReplicas<RakNet>>;

/// The replication authority of a server, and the connections that may use it.
#[derive(Debug)]
pub(crate) struct Replication {
    authority: SharedHook<Authority>,
    world: ReplicatedWorld,
    connections: HashMap<Key, Served>,
}

/// A connection, and whether it receives the world.
#[derive(Clone, Copy, Debug)]
struct Served {
    id: ConnectionId,
    is_active: bool,
}

impl Replication {
    /// Starts replication without connections.
    ///
    /// # Panics
    /// Never panics: the entity classes are valid constants.
    pub(crate) fn start() -> io::Result<Self> {
        let make = || {
            let authority = snowfight_replication::authority(Delivery::UNRELIABLE);
            SharedHook::new(authority.expect("valid constant classes"))
        };
        let making = thread::Builder::new().stack_size(STACK).spawn(make)?;
        let authority = making.join().expect("the thread does not panic");
        Ok(Self { authority, world: ReplicatedWorld::new(), connections: HashMap::new() })
    }

    /// Binds the server's RakNet endpoint with the replication plugin.
    pub(crate) async fn bind(
        &self,
        address: SocketAddr,
        options: Options,
    ) -> Result<Endpoint<RakNet>, BindError> {
        bind(address, options, &self.authority).await
    }

    /// Registers a new connection. It receives nothing until its client requests replication.
    pub(crate) fn open(&mut self, key: Key, id: ConnectionId) {
        self.authority.with(|authority| ReplicatedWorld::pause(authority, id));
        self.connections.insert(key, Served { id, is_active: false });
    }

    /// Removes a closed connection.
    pub(crate) fn close(&mut self, key: Key) {
        self.connections.remove(&key);
    }

    /// Records the world after a tick; returns true if there are updates to send.
    pub(crate) fn record(&mut self, server: &Server<Key>) -> bool {
        let Self { authority, world, connections } = self;
        if !world.is_due(server.world().time()) {
            return false;
        }
        let place = |(key, player)| Some((key, server.world().position_of(player)?));
        let places: HashMap<Key, _> = server.replicated().filter_map(place).collect();
        let (time, entities) = (server.world().time(), server.world().entities());
        authority.with(|authority| {
            let mut players = Vec::with_capacity(places.len());
            for (key, served) in connections {
                let position = places.get(key);
                if position.is_none() && served.is_active {
                    ReplicatedWorld::pause(authority, served.id);
                }
                served.is_active = position.is_some();
                players.extend(position.map(|position| (served.id, *position)));
            }
            world.record(authority, time, &entities, players)
        })
    }
}

/// Binds a client's endpoint with the replication plugin, and returns its replicas.
///
/// # Panics
/// Never panics: the entity classes are valid constants.
pub(crate) async fn bind_client(
    address: SocketAddr,
    options: Options,
) -> Result<(Endpoint<RakNet>, Replicas), BindError> {
    let replicas = snowfight_replication::replicas(Delivery::UNRELIABLE);
    let replicas = SharedHook::new(replicas.expect("valid constant classes"));
    Ok((bind(address, options, &replicas).await?, replicas))
}

async fn bind<T: Plugin<RakNet> + Send + 'static>(
    address: SocketAddr,
    options: Options,
    plugin: &SharedHook<T>,
) -> Result<Endpoint<RakNet>, BindError> {
    let mut host = PluginHost::<_, 1>::new();
    // This cannot fail: it is the only plugin of this host.
    let _ = host.attach::<RakNet>(plugin.clone());
    Endpoint::bind_with_hook(address, options, |_| host).await
}
