//! A server for clients in other languages, over RakNet or, with the argument `game`, the Game Protocol. A walker
//! moves, flares appear and vanish, and each client controls an entity that the others see. The server prints the
//! positions of the entities that clients control.

use std::time::Duration;

use rakwire::endpoint::{PluginHost, Protocol};
use rakwire::game_protocol::{GameProtocol, Reliability};
use rakwire::raknet::{Delivery, RakNet};
use rakwire_native::endpoint::{Connection, Endpoint, Options, SharedHook};
use rakwire_plugins::replication::{
    AuthorityConfig, Class, EverythingInScope, Field, HeapAuthority, NetworkId,
};

type Failure = Box<dyn std::error::Error>;
type World<P> = HeapAuthority<P, EverythingInScope>;

/// A player's position in centimetres, and a flare's brightness.
static CLASSES: [Class; 2] = [
    Class { fields: &[Field::new(16).or_short(6), Field::new(16).or_short(6)] },
    Class { fields: &[Field::new(8)] },
];
const PLAYER: u8 = 0;
const FLARE: u8 = 1;
const WALKER: u32 = 0;
const TICK: Duration = Duration::from_millis(50);
const STEP: u32 = 5;
/// The period of flares, in ticks.
const FLARE_TICKS: u32 = 20;
const FLARE_LIFE: u32 = 10;

/// A client and its entity.
struct Player<P: Protocol> {
    connection: Connection<P>,
    id: NetworkId,
    values: Vec<u32>,
}

impl<P: Protocol> Player<P> {
    fn join(world: &mut World<P>, connection: Connection<P>, number: u32) -> Result<Self, Failure> {
        let values = vec![100 * number, 100];
        let id = world.spawn(PLAYER, number, &values)?;
        world.set_owner(id, Some(connection.id()));
        Ok(Self { connection, id, values })
    }

    /// Prints the position if it has changed; returns false if the client has left.
    fn look(&mut self, world: &mut World<P>) -> bool {
        if self.connection.closed_reason().is_some() {
            world.despawn(self.id);
            return false;
        }
        let values = world.get(self.id).map(|entity| entity.values.to_vec()).unwrap_or_default();
        if values != self.values {
            println!("{} is at {values:?}", self.connection.remote());
            self.values = values;
        }
        true
    }
}

/// Moves the entities that no client controls.
fn go_on<P: Protocol>(world: &mut World<P>, walker: NetworkId, tick: u32) -> Result<(), Failure> {
    world.set(walker, 0, tick * STEP)?;
    let flare = world.iter().find(|entity| entity.class == FLARE).map(|entity| entity.id);
    match (tick % FLARE_TICKS, flare) {
        (0, None) => drop(world.spawn(FLARE, tick, &[255])?),
        (FLARE_LIFE, Some(flare)) => drop(world.despawn(flare)),
        (faded, Some(flare)) => world.set(flare, 0, 255 - 20 * faded)?,
        (_, None) => {}
    }
    Ok(())
}

async fn serve<P: Protocol>(unreliable: P::Delivery) -> Result<(), Failure> {
    let config = AuthorityConfig { connections: 8, entities: 64, ..AuthorityConfig::default() };
    let world = SharedHook::new(World::<P>::new(&CLASSES, EverythingInScope, unreliable, &config)?);
    let mut host = PluginHost::<_, 1>::new();
    host.attach::<P>(world.clone())?;
    let server = Endpoint::<P>::bind_with_hook("127.0.0.1:0", Options::server(8)?, |_| host).await?;
    println!("listening on {}", server.local_addr());
    let walker = world.with(|world| world.spawn(PLAYER, WALKER, &[0, 700]))?;
    let (mut players, mut number, mut tick) = (Vec::<Player<P>>::new(), WALKER, 0);
    let mut ticks = tokio::time::interval(TICK);
    loop {
        tokio::select! {
            accepted = server.accept() => {
                let Some(connection) = accepted else { return Ok(()) };
                number += 1;
                players.push(world.with(|world| Player::join(world, connection, number))?);
            }
            _ = ticks.tick() => {
                world.with(|world| {
                    players.retain_mut(|player| player.look(world));
                    tick = world.tick();
                    go_on(world, walker, tick)
                })?;
                server.wake();
            }
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    match std::env::args().nth(1).as_deref() {
        Some("game") => serve::<GameProtocol>(Reliability::Unreliable).await,
        _ => serve::<RakNet>(Delivery::UNRELIABLE).await,
    }
}
