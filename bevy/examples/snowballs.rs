//! The snowball fight as Bevy entities: a server without a window decides, and bots play.
//!
//! ```sh
//! cargo run --release --example snowballs                               # a server and two bots for 20 seconds
//! cargo run --release --example snowballs -- server 0.0.0.0:19133 600   # a server for ten minutes
//! cargo run --release --example snowballs -- client 127.0.0.1:19133 60  # a bot for a minute
//! ```

use std::collections::HashMap;
use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use bevy::app::ScheduleRunnerPlugin;
use bevy::prelude::*;
use bevy::state::app::StatesPlugin;
use bevy_replicon::prelude::*;
use rakwire_bevy::{
    ClientSettings, RakwireClient, RakwireRepliconPlugins, RakwireServer, ServerSettings, Status,
};
use serde::{Deserialize, Serialize};
use snowfight::bot;
use snowfight::client::Input;
use snowfight::message::{ActionKind, Break, EntityId, EntityKind, Move, PlayerId, Throw};
use snowfight::world::{TICKS_PER_SECOND, World as Rules};

/// The number of an entity in the game.
#[derive(Clone, Component, Copy, Deserialize, Serialize)]
struct Id(EntityId);

/// A player, a tree or a mushroom. Only the server changes it.
#[derive(Clone, Component, Copy, Deserialize, PartialEq, Serialize)]
struct Body(EntityKind);

/// An action of a player, from its client.
#[derive(Clone, Copy, Deserialize, Event, Serialize)]
struct Act(ActionKind);

/// The player of a client, from the server.
#[derive(Clone, Copy, Deserialize, Event, Serialize)]
struct Welcome(PlayerId);

/// An app with everything that server and clients have in common.
fn app(time: Duration) -> App {
    let mut app = App::new();
    let frames = Duration::from_secs(1) / TICKS_PER_SECOND;
    app.add_plugins((
        MinimalPlugins.set(ScheduleRunnerPlugin::run_loop(frames)),
        StatesPlugin,
        RepliconPlugins,
        RakwireRepliconPlugins,
    ))
    .insert_resource(Time::<Fixed>::from_hz(TICKS_PER_SECOND.into()))
    .insert_resource(End(Timer::new(time, TimerMode::Once)))
    .replicate::<Id>()
    .replicate::<Body>()
    .add_client_event::<Act>(Channel::Ordered)
    .add_server_event::<Welcome>(Channel::Ordered)
    .add_systems(Update, end_in_time);
    app
}

/// The time until the program ends.
#[derive(Resource)]
struct End(Timer);

fn end_in_time(mut end: ResMut<End>, time: Res<Time>, mut exit: MessageWriter<AppExit>) {
    if end.0.tick(time.delta()).just_finished() {
        exit.write(AppExit::Success);
    }
}

/// The rules of the game, and the entity for each of theirs.
#[derive(Resource)]
struct Game {
    rules: Box<Rules>,
    entities: HashMap<EntityId, Entity>,
}

/// The player of a client, on its entity.
#[derive(Clone, Component, Copy)]
struct Seat(PlayerId);

fn server(address: SocketAddr, time: Duration) -> Result<(App, SocketAddr), Box<dyn Error>> {
    let listening = RakwireServer::bind(address, ServerSettings::new(64)?)?;
    let bound = listening.local_addr();
    let mut app = app(time);
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

/// Gives a client a player, if there is room.
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

/// The bot of a client.
#[derive(Default, Resource)]
struct Bot {
    player: Option<PlayerId>,
    last: Input,
    throws: u32,
    most_seen: usize,
}

fn client(address: SocketAddr, time: Duration) -> Result<App, Box<dyn Error>> {
    let mut app = app(time);
    app.insert_resource(RakwireClient::connect(address, ClientSettings::new()?)?)
        .init_resource::<Bot>()
        .add_observer(|welcome: On<Welcome>, mut bot: ResMut<Bot>| bot.player = Some(welcome.0))
        .add_systems(FixedUpdate, play.run_if(in_state(ClientState::Connected)))
        .add_systems(OnEnter(ClientState::Disconnected), report);
    Ok(app)
}

/// Decides by the replicated world, and sends changes.
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

/// Plays until the end. Returns whether the bot had a game.
fn run_client(address: SocketAddr, time: Duration) -> Result<bool, Box<dyn Error>> {
    let mut app = client(address, time)?;
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

/// A server and two bots in one program.
fn demo(time: Duration) -> Result<(), Box<dyn Error>> {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let (bound, address) = std::sync::mpsc::channel();
    let serve = std::thread::spawn(move || {
        let (mut app, listening) =
            server(any, time + Duration::from_secs(2)).map_err(|error| error.to_string())?;
        bound.send(listening).map_err(|error| error.to_string())?;
        app.run();
        Ok::<(), String>(())
    });
    let address = address.recv()?;
    let play = || run_client(address, time).map_err(|error| error.to_string());
    let played = std::thread::scope(|scope| {
        let bots = [(); 2].map(|()| scope.spawn(play));
        bots.map(|bot| bot.join().unwrap_or_else(|_| Err("a bot failed".to_owned())))
    });
    serve.join().map_err(|_| "the server failed")??;
    for had_a_game in played {
        if !had_a_game? {
            return Err("a bot saw no game".into());
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let seconds = |text: &str| Ok::<_, Box<dyn Error>>(Duration::from_secs(text.parse()?));
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => demo(Duration::from_secs(20)),
        ["demo", time] => demo(seconds(time)?),
        ["server", address, time] => {
            let (mut app, bound) = server(address.parse()?, seconds(time)?)?;
            println!("listening on {bound}");
            app.run();
            Ok(())
        }
        ["client", address, time] => run_client(address.parse()?, seconds(time)?).map(|_| ()),
        _ => Err("usage: snowballs [demo SECONDS | server ADDRESS SECONDS | client ADDRESS SECONDS]".into()),
    }
}
