//! The server: runs the rules of the game, and mirrors its objects and players as Bevy entities.

use std::collections::HashMap;
use std::error::Error;
use std::net::SocketAddr;

use bevy::prelude::*;
use bevy_replicon::prelude::*;
use rakwire_bevy::rakwire_native::read_key_file;
use rakwire_bevy::{RakwireServer, ServerSettings};
use snowfight::message::{EntityId, EntityKind, PlayerId};
use snowfight::world::World as Rules;

use crate::game::{self, Act, Body, Id, Welcome};

/// The state of the game, and the Bevy entity for each entity of the game.
#[derive(Resource)]
struct Game {
    rules: Box<Rules>,
    entities: HashMap<EntityId, Entity>,
}

/// The player of a client, stored on the entity of the client.
#[derive(Clone, Component, Copy)]
struct Seat(PlayerId);

/// Starts a server, and returns its address with the actual port. With a key file all connections are secure.
pub(crate) fn app(address: SocketAddr, key_file: Option<&str>) -> Result<(App, SocketAddr), Box<dyn Error>> {
    let mut settings = ServerSettings::new(64)?;
    if let Some(file) = key_file {
        settings.require_security(read_key_file(file)?)?;
    }
    let listening = RakwireServer::bind(address, settings)?;
    let bound = listening.local_addr();
    let mut app = game::app();
    app.insert_resource(listening)
        .insert_resource(Game { rules: Box::new(Rules::new(7)), entities: HashMap::new() })
        .add_observer(join)
        .add_observer(leave)
        .add_observer(act)
        .add_systems(FixedUpdate, tick);
    Ok((app, bound))
}

fn join(client: On<Add, AuthorizedClient>, mut commands: Commands, mut game: ResMut<Game>) {
    seat(client.entity, &mut commands, &mut game);
}

/// Creates a player for a client, if the game is not full.
fn seat(client: Entity, commands: &mut Commands, game: &mut Game) {
    let Some(player) = game.rules.join() else { return };
    commands.entity(client).insert(Seat(player));
    let targets = SendTargets::Single(ClientId::Client(client));
    commands.server_trigger(ToClients { targets, message: Welcome(player) });
}

fn leave(client: On<Remove, Seat>, seats: Query<&Seat>, mut game: ResMut<Game>) {
    if let Ok(seat) = seats.get(client.entity) {
        game.rules.leave(seat.0);
    }
}

fn act(action: On<FromClient<Act>>, seats: Query<&Seat>, mut game: ResMut<Game>) {
    if let ClientId::Client(client) = action.client_id
        && let Ok(seat) = seats.get(client)
    {
        game.rules.act(seat.0, action.message.0);
    }
}

fn tick(
    mut game: ResMut<Game>,
    mut commands: Commands,
    mut bodies: Query<&mut Body>,
    seats: Query<(Entity, &Seat)>,
) {
    let game = &mut *game;
    for fallen in game.rules.tick() {
        println!("player {} is out, and joins again", fallen.0);
        if let Some((client, _)) = seats.iter().find(|(_, seat)| seat.0 == fallen) {
            seat(client, &mut commands, game);
        }
    }
    let mut gone = std::mem::take(&mut game.entities);
    for thing in game.rules.entities() {
        if thing.kind == EntityKind::Dead {
            continue;
        }
        let entity = match gone.remove(&thing.id) {
            Some(entity) => {
                if let Ok(mut body) = bodies.get_mut(entity) {
                    body.set_if_neq(Body(thing.kind));
                }
                entity
            }
            None => commands.spawn((Replicated, Id(thing.id), Body(thing.kind))).id(),
        };
        game.entities.insert(thing.id, entity);
    }
    gone.into_values().for_each(|entity| commands.entity(entity).despawn());
}
