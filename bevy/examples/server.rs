//! A server without a window.

use bevy::app::ScheduleRunnerPlugin;
use bevy::{prelude::*, state::app::StatesPlugin};
use bevy_replicon::prelude::*;
use rakwire_bevy::{RakwireRepliconPlugins, RakwireServer, ServerSettings};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let frames = ScheduleRunnerPlugin::run_loop(std::time::Duration::from_millis(16));
    App::new()
        .add_plugins((MinimalPlugins.set(frames), StatesPlugin, RepliconPlugins, RakwireRepliconPlugins))
        .insert_resource(RakwireServer::bind("0.0.0.0:19132", ServerSettings::new(64)?)?)
        .add_observer(|client: On<Add, AuthorizedClient>| println!("{} has joined", client.entity))
        .run();
    Ok(())
}
