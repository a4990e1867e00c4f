//! Replicates the world of the snowball fight to the emulated board: `cargo run --release --bin replication --
//! entropy=HEX server=10.0.2.2:19132 seed=7`, with the seed of the server's world.
//!
//! The board joins over RakNet and walks until the server has moved its player. Then it compares every object in sight
//! with the world of that seed, and ends with a line `RESULT session=1 name=value ...`.

#![no_std]
#![no_main]

use core::net::SocketAddrV4;

use embassy_futures::select::{Either, select};
use embassy_time::{Duration, Instant, Ticker, Timer};
use rakwire::endpoint::{PluginHost, PluginKey};
use rakwire::raknet::{Config, Delivery, RakNet};
use rakwire_embassy::raknet::{self, Connection, Handle, Runner, State};
use rakwire_firmware::network;
use rakwire_qemu_mps2::arguments::Arguments;
use rakwire_qemu_mps2::board::{self, Board};
use rakwire_qemu_mps2::{exit, stack};
use snowfight::client::{Client, Input};
use snowfight::message::{self, Direction, Entity, EntityKind, Point, Scope};
use snowfight::wanderer::FRAMES_PER_SECOND;
use snowfight::world::World;
use snowfight_replication::{NEAR, POSITION_SCALE, WorldReplicas, entities};
use static_cell::ConstStaticCell;

/// The plugins of the board.
type Plugins = PluginHost<WorldReplicas<RakNet>, 1>;
/// The memory for one connection and a few updates in flight.
type Memory = State<'static, 1, 64, 128, 4, Plugins>;

/// The first byte of the game's messages in RakNet.
const MESSAGE_ID: u8 = 0x86;
/// The time limit of the whole program.
const LIMIT: Duration = Duration::from_secs(240);
/// The distance to walk, in tiles.
const WALK: f32 = 2.0;
/// The minimum number of frames to walk: three seconds.
const FRAMES: u32 = 3 * FRAMES_PER_SECOND;
/// The number of frames in one direction. An obstacle blocks only some directions.
const STROLL: u32 = 2 * FRAMES_PER_SECOND;
const WAYS: [Direction; 4] = [Direction::EAST, Direction::NORTH, Direction::WEST, Direction::SOUTH];

#[cortex_m_rt::entry]
fn main() -> ! {
    board::start(set_up)
}

/// Sets up the peer. Moving the plugin into place takes stack, which is freed because this function returns.
#[inline(never)]
fn set_up(board: Board, arguments: Arguments) {
    static MEMORY: ConstStaticCell<Memory> = ConstStaticCell::new(Memory::new());
    let mut plugins = Plugins::new();
    let Ok(replicas) = snowfight_replication::replicas::<RakNet>(Delivery::UNRELIABLE) else { exit(1) };
    let Ok(key) = plugins.attach::<RakNet>(replicas) else { exit(1) };
    let config = Config::new(board.entropy);
    let (handle, runner) = raknet::new_with_hook(MEMORY.take(), board.stack, 0, config, plugins);
    if let (Ok(peer), Ok(program)) = (peer(runner), program(board, handle, key, arguments)) {
        board.spawner.spawn(peer);
        board.spawner.spawn(program);
    }
}

#[embassy_executor::task]
async fn peer(mut runner: Runner<'static, Plugins>) -> ! {
    runner.run().await
}

#[embassy_executor::task]
async fn program(board: Board, handle: Handle<'static, Plugins>, key: PluginKey, arguments: Arguments) {
    network::wait_for_address(board.stack).await;
    let Some(server) = arguments.get::<SocketAddrV4>("server") else { exit(1) };
    let seed = arguments.get("seed").unwrap_or(0);
    let code = match select(play(handle, key, server, seed), Timer::after(LIMIT)).await {
        Either::First(Some(())) => 0,
        Either::First(None) => {
            defmt::println!("the connection could not be opened, or has ended");
            1
        }
        Either::Second(()) => {
            defmt::println!("the game did not finish in time");
            1
        }
    };
    exit(code)
}

/// Joins, walks until the server has moved the player, and reports the objects in sight.
async fn play(
    handle: Handle<'static, Plugins>,
    key: PluginKey,
    server: SocketAddrV4,
    seed: u64,
) -> Option<()> {
    let connection = handle.connect(server.into()).await.ok()?;
    let mut client = Client::with_scope(Scope::Replicated);
    client.handle_connected();
    let mut ticker = Ticker::every(Duration::from_hz(FRAMES_PER_SECOND.into()));
    let (mut start, mut frame) = (None, 0_u32);
    loop {
        let movement = WAYS.get((frame / STROLL) as usize % WAYS.len()).copied().unwrap_or_default();
        client.handle_frame(now(), Input { movement, ..Input::default() });
        send(&connection, &mut client);
        receive(&connection, &mut client, &mut ticker).await?;
        frame += 1;
        let Some(me) = own(&handle, key, &client) else { continue };
        let start = *start.get_or_insert(me);
        let walked = (me - start).length();
        if walked < WALK || frame < FRAMES {
            continue;
        }
        let seen = handle.with_hook(|plugins| plugins.get(key).map(|replicas| compare(replicas, me, seed)));
        if let Some(seen) = seen.filter(Seen::is_complete) {
            report(&handle, key, seen, walked);
            connection.disconnect().await;
            return Some(());
        }
    }
}

fn now() -> rakwire::Instant {
    rakwire::Instant::from_micros(Instant::now().as_micros())
}

fn send(connection: &Connection<'_, Plugins>, client: &mut Client) {
    let mut message = [MESSAGE_ID; 64];
    while let Some((delivery, length)) = message
        .get_mut(1..)
        .and_then(|room| client.poll_message(room))
        .map(|(delivery, packed)| (delivery, packed.len()))
    {
        let delivery = match delivery {
            message::Delivery::Reliable => Delivery::RELIABLE_ORDERED,
            message::Delivery::Unreliable => Delivery::UNRELIABLE,
        };
        // The client repeats actions, so a message that cannot be queued is dropped.
        let _ = connection.try_send(message.get(..=length).unwrap_or_default(), delivery);
    }
}

/// Handles messages until the next frame.
async fn receive(
    connection: &Connection<'_, Plugins>,
    client: &mut Client,
    ticker: &mut Ticker,
) -> Option<()> {
    loop {
        let message = match select(ticker.next(), connection.recv()).await {
            Either::First(()) => return Some(()),
            Either::Second(message) => message?,
        };
        let mut buffer = [0; 256];
        if let Some([MESSAGE_ID, message @ ..]) = message.copy_to(&mut buffer) {
            // A malformed message is ignored.
            let _ = client.handle_message(now(), &message);
        }
    }
}

/// Returns the position of the board's own player.
fn own(handle: &Handle<'_, Plugins>, key: PluginKey, client: &Client) -> Option<Point> {
    let owner = client.player()?;
    handle.with_hook(|plugins| {
        entities(plugins.get(key)?).find_map(|entity| match entity.kind {
            EntityKind::Player(player) if player.owner == owner => Some(player.position),
            EntityKind::Player(_) | EntityKind::Object(_) | EntityKind::Dead => None,
        })
    })
}

/// The number of objects that should be in sight according to the seed, and the number of these that are missing or
/// displaced.
#[derive(Clone, Copy)]
struct Seen {
    objects: u32,
    wrong: u32,
}

impl Seen {
    const fn is_complete(&self) -> bool {
        self.objects > 0 && self.wrong == 0
    }
}

/// Compares the objects in sight with the world of the seed. The world takes stack only while this function runs.
#[inline(never)]
fn compare(replicas: &WorldReplicas<RakNet>, me: Point, seed: u64) -> Seen {
    let mut seen = Seen { objects: 0, wrong: 0 };
    let near = |entity: &Entity| match entity.kind {
        EntityKind::Object(object) => (object.position - me).length() < NEAR - 1.0,
        EntityKind::Player(_) | EntityKind::Dead => false,
    };
    for expected in World::new(seed).entities().iter().filter(|entity| near(entity)) {
        let shown = entities(replicas).find(|entity| entity.id == expected.id);
        seen.objects += 1;
        seen.wrong += u32::from(!shown.is_some_and(|shown| is_alike(&shown, expected)));
    }
    seen
}

/// Compares two entities with the precision of the transmitted fields.
fn is_alike(shown: &Entity, expected: &Entity) -> bool {
    let (EntityKind::Object(shown), EntityKind::Object(expected)) = (shown.kind, expected.kind) else {
        return false;
    };
    let off = (shown.position - expected.position).length();
    off <= 1.0 / POSITION_SCALE && (shown.kind, shown.health) == (expected.kind, expected.health)
}

fn report(handle: &Handle<'_, Plugins>, key: PluginKey, seen: Seen, walked: f32) {
    let stats = handle.with_hook(|plugins| plugins.get(key).map(WorldReplicas::stats));
    let stats = stats.unwrap_or_default();
    defmt::println!(
        "RESULT session=1 objects={} wrong={} walked={} updates={} late={} malformed={} stack={}",
        seen.objects,
        seen.wrong,
        walked,
        stats.updates,
        stats.late,
        stats.malformed,
        stack::high_water().0
    );
}
