//! A client in a browser, as shown in docs/from-bevy.md. For other targets it is empty.
#![cfg(target_arch = "wasm32")]

use bevy::app::ScheduleRunnerPlugin;
use bevy::{prelude::*, state::app::StatesPlugin};
use bevy_replicon::prelude::*;
use rakwire_bevy::{ClientSettings, RakwireClient, RakwireRepliconPlugins, Status};
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console)]
    fn warn(text: &str);
}

/// Connects when the page has loaded.
#[wasm_bindgen(start)]
pub fn start() -> Result<(), JsError> {
    let frames = ScheduleRunnerPlugin::run_loop(std::time::Duration::from_millis(16));
    let client = RakwireClient::connect_by_relay("wss://play.example.org/ws", "game", ClientSettings::new()?);
    App::new()
        .add_plugins((MinimalPlugins.set(frames), StatesPlugin, RepliconPlugins, RakwireRepliconPlugins))
        .insert_resource(client)
        .add_systems(OnEnter(ClientState::Disconnected), report)
        .run();
    Ok(())
}

fn report(client: Res<RakwireClient>) {
    if let Status::Disconnected(cause) = client.status() {
        warn(&cause.to_string());
    }
}
