//! The entities of the game, for its server and all of its clients.
//!
//! Replicon compares a hash of the types that server and client register, including their paths. For this reason,
//! native programs and the page must take this module from the same crate.

use std::time::Duration;

use bevy::app::ScheduleRunnerPlugin;
use bevy::prelude::*;
use bevy::state::app::StatesPlugin;
use bevy_replicon::prelude::*;
use rakwire_bevy::RakwireRepliconPlugins;
use serde::{Deserialize, Serialize};
use snowfight::message::{ActionKind, EntityId, EntityKind, PlayerId};
use snowfight::world::TICKS_PER_SECOND;

/// The number of an entity in the game.
#[derive(Clone, Component, Copy, Deserialize, Serialize)]
pub(crate) struct Id(pub(crate) EntityId);

/// A player or an object of the game, such as a tree. Only the server changes it.
#[derive(Clone, Component, Copy, Deserialize, PartialEq, Serialize)]
pub(crate) struct Body(pub(crate) EntityKind);

/// An action of a player, sent by its client.
#[derive(Clone, Copy, Deserialize, Event, Serialize)]
pub(crate) struct Act(pub(crate) ActionKind);

/// The player id that the server has assigned to a client.
#[derive(Clone, Copy, Deserialize, Event, Serialize)]
pub(crate) struct Welcome(pub(crate) PlayerId);

/// Creates an app with the plugins and types that server and clients share.
pub(crate) fn app() -> App {
    let mut app = App::new();
    let frames = Duration::from_secs(1) / TICKS_PER_SECOND;
    app.add_plugins((
        MinimalPlugins.set(ScheduleRunnerPlugin::run_loop(frames)),
        StatesPlugin,
        RepliconPlugins,
        RakwireRepliconPlugins,
    ))
    .insert_resource(Time::<Fixed>::from_hz(TICKS_PER_SECOND.into()))
    .replicate::<Id>()
    .replicate::<Body>()
    .add_client_event::<Act>(Channel::Ordered)
    .add_server_event::<Welcome>(Channel::Ordered);
    app
}
