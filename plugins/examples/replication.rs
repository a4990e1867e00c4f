//! A server with moving entities, and a client that receives the entities near it and controls one of them. Both run
//! in one program, over real sockets.

use std::num::NonZeroU16;
use std::time::Duration;

use rakwire::endpoint::{ConnectionId, Plugin, PluginHost};
use rakwire_native::endpoint::SharedHook;
use rakwire_native::raknet::{Delivery, Endpoint, Options, RakNet};
use rakwire_plugins::replication::{
    AuthorityConfig, Class, EntityInfo, Field, HeapAuthority, HeapReplicas, ReplicaEvent, Replicas,
    ReplicasConfig, Scope,
};

/// A position in centimetres.
static CLASSES: [Class; 1] = [Class { fields: &[Field::new(16).or_short(8), Field::new(16).or_short(8)] }];
const NEAR: u32 = 2_000;
const TICK: Duration = Duration::from_millis(20);

/// A scope around the west end: nearer entities have a higher priority.
struct WestEnd;

impl Scope for WestEnd {
    fn priority(&mut self, _: ConnectionId, entity: &EntityInfo<'_>) -> Option<NonZeroU16> {
        let distance = entity.values.first()?;
        NonZeroU16::new(u16::try_from(NEAR.checked_sub(*distance)?).ok()?)
    }
}

async fn bind<T: Plugin<RakNet> + Send + 'static>(
    options: Options,
    plugin: &SharedHook<T>,
) -> Result<Endpoint, Box<dyn std::error::Error>> {
    let mut host = PluginHost::<_, 1>::new();
    host.attach::<RakNet>(plugin.clone())?;
    Ok(Endpoint::bind_with_hook("127.0.0.1:0", options, |_| host).await?)
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let delivery = Delivery::UNRELIABLE;
    let config = AuthorityConfig { connections: 8, entities: 64, ..AuthorityConfig::default() };
    let authority = HeapAuthority::<RakNet, _>::new(&CLASSES, WestEnd, delivery, &config)?;
    let authority = SharedHook::new(authority);
    let server = bind(Options::server(8)?, &authority).await?;
    let config = ReplicasConfig { entities: 64, ..ReplicasConfig::default() };
    let replicas = HeapReplicas::<RakNet>::new(&CLASSES, delivery, &config)?;
    let replicas = SharedHook::new(replicas);
    let client = bind(Options::client()?, &replicas).await?;
    let connection = client.connect(server.local_addr()).await?;
    let accepted = server.accept().await.ok_or("the endpoint is closed")?;

    let walker = authority.with(|authority| authority.spawn(0, 1, &[500, 700]))?;
    let own = authority.with(|authority| authority.spawn(0, 2, &[100, 100]))?;
    authority.with(|authority| authority.set_owner(own, Some(accepted.id())));
    let (mut east, mut ticks) = (500, tokio::time::interval(TICK));
    // The walker finally leaves the scope of the client.
    while east < NEAR + 200 {
        tokio::select! {
            _ = ticks.tick() => {
                east += 100;
                authority.with(|authority| {
                    authority.tick();
                    authority.set(walker, 0, east)
                })?;
                server.wake();
            }
            (id, event) = replicas.next(Replicas::poll_event) => {
                let values = replicas.with(|replicas| replicas.get(id).map(|replica| replica.values.to_vec()));
                println!("{id}: {event:?} {values:?}");
                if event == ReplicaEvent::OwnerChanged(true) {
                    replicas.with(|replicas| replicas.set(id, 1, 4_711))?;
                    client.wake();
                }
            }
        }
    }
    authority.with(|authority| {
        println!(
            "the client says that {own} is at {:?}",
            authority.get(own).map(|entity| entity.values.to_vec())
        );
        println!("{:?}", authority.peer_stats(accepted.id()));
    });
    connection.disconnect().await;
    Ok(())
}
