//! Two clients: a bot that plays, and one that only prints how players walk.

use std::collections::HashMap;
use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use bevy::prelude::*;
use bevy_replicon::prelude::*;
use rakwire_bevy::rakwire_native::secure::ServerTrust;
use rakwire_bevy::{ClientSettings, RakwireClient, Status};
use snowfight::bot;
use snowfight::client::Input;
use snowfight::message::{ActionKind, Break, Direction, EntityKind, Move, PlayerId, Throw};
use snowfight::world::TICKS_PER_SECOND;

use crate::game::{self, Act, Body, Id, Welcome};
use crate::program::end_after;

/// The state of the bot.
#[derive(Default, Resource)]
struct Bot {
    player: Option<PlayerId>,
    last: Input,
    throws: u32,
    most_seen: usize,
}

fn client(address: SocketAddr, time: Duration, key: Option<&str>) -> Result<App, Box<dyn Error>> {
    let mut settings = ClientSettings::new()?;
    settings.trust = key.map(str::parse).transpose()?.map(ServerTrust::Key);
    let mut app = game::app();
    end_after(&mut app, time);
    app.insert_resource(RakwireClient::connect(address, settings)?)
        .add_systems(OnEnter(ClientState::Disconnected), report);
    Ok(app)
}

/// Chooses actions from the replicated entities, and sends those that have changed.
fn play(mut bot: ResMut<Bot>, things: Query<(&Id, &Body), With<Remote>>, mut commands: Commands) {
    let seen: Vec<_> =
        things.iter().map(|(id, body)| snowfight::message::Entity { id: id.0, kind: body.0 }).collect();
    bot.most_seen = bot.most_seen.max(seen.len());
    let Some(player) = bot.player else { return };
    let input = bot::decide(&seen, player);
    if input.movement != bot.last.movement {
        commands.client_trigger(Act(ActionKind::Move(Move { direction: input.movement })));
    }
    if input.breaking != bot.last.breaking {
        commands.client_trigger(Act(ActionKind::Break(Break { entity: input.breaking })));
    }
    if let Some(target) = input.throw.filter(|_| bot.last.throw.is_none()) {
        commands.client_trigger(Act(ActionKind::Throw(Throw { target })));
        bot.throws += 1;
    }
    bot.last = input;
}

fn report(client: Option<Res<RakwireClient>>, mut exit: MessageWriter<AppExit>) {
    if let Some(Status::Disconnected(cause)) = client.map(|client| client.status()) {
        println!("disconnected: {cause}");
        exit.write(AppExit::Success);
    }
}

/// Plays for `time`. Returns true if the bot took part in a game.
pub(crate) fn run(address: SocketAddr, time: Duration, key: Option<&str>) -> Result<bool, Box<dyn Error>> {
    let mut app = client(address, time, key)?;
    app.init_resource::<Bot>()
        .add_observer(|welcome: On<Welcome>, mut bot: ResMut<Bot>| bot.player = Some(welcome.0))
        .add_systems(FixedUpdate, play.run_if(in_state(ClientState::Connected)));
    app.finish();
    app.cleanup();
    while app.should_exit().is_none() {
        app.update();
        std::thread::sleep(Duration::from_secs(1) / TICKS_PER_SECOND);
    }
    let stats = *app.world().resource::<ClientStats>();
    let bot = app.world().resource::<Bot>();
    println!(
        "a bot saw {} entities and threw {} times; round trip {:.1} ms, {:.1} KB/s received",
        bot.most_seen,
        bot.throws,
        stats.rtt * 1e3,
        stats.received_bps / 1e3
    );
    Ok(bot.player.is_some() && bot.most_seen > 100)
}

/// Prints the directions in which players walk, for `time`.
pub(crate) fn watch(address: SocketAddr, time: Duration, key: Option<&str>) -> Result<(), Box<dyn Error>> {
    let mut app = client(address, time, key)?;
    app.add_systems(Update, print_walks)
        .add_systems(OnEnter(ClientState::Connected), || println!("connected"));
    app.run();
    Ok(())
}

fn print_walks(bodies: Query<&Body, Changed<Body>>, mut walks: Local<HashMap<PlayerId, Direction>>) {
    for body in &bodies {
        let EntityKind::Player(player) = body.0 else { continue };
        let before = walks.insert(player.owner, player.movement).unwrap_or_default();
        if before != player.movement {
            println!("player {} walks {:?}", player.owner.0, player.movement);
        }
    }
}
