//! A player of the snowball fight on the emulated board: `cargo run --release --bin player -- entropy=HEX`.
//!
//! The server is given by `server=10.0.2.2:8999` (the host in QEMU's network), or found by `ping=10.0.2.2:19132`,
//! because QEMU does not forward broadcasts. With `sessions=N` it plays N games, the last one for `frames=N`; each game
//! ends with a line `RESULT name=value ...`.

#![no_std]
#![no_main]

use rakwire_embassy::game_protocol::profiles::Player;
use rakwire_embassy::game_protocol::{self, Handle, Runner};
use rakwire_firmware::discovery::Discovery;
use rakwire_firmware::heartbeat::Heartbeat;
use rakwire_firmware::panel::Blank;
use rakwire_firmware::player::{self, End, Report, World};
use rakwire_qemu_mps2::arguments::Arguments;
use rakwire_qemu_mps2::board::{self, Board};
use rakwire_qemu_mps2::{exit, stack};
use static_cell::ConstStaticCell;

static HEARTBEAT: Heartbeat = Heartbeat::new();

#[cortex_m_rt::entry]
fn main() -> ! {
    board::start(|board, arguments| {
        static MEMORY: ConstStaticCell<Player<'static>> = ConstStaticCell::new(Player::new());
        let (handle, runner) =
            game_protocol::new(MEMORY.take(), board.stack, 0, player::config(board.entropy));
        if let (Ok(peer), Ok(program)) = (peer(runner), program(board, handle, arguments)) {
            board.spawner.spawn(peer);
            board.spawner.spawn(program);
        }
    })
}

#[embassy_executor::task]
async fn peer(mut runner: Runner<'static>) -> ! {
    runner.run().await
}

#[embassy_executor::task]
async fn program(board: Board, handle: Handle<'static>, arguments: Arguments) {
    static WORLD: ConstStaticCell<World> = ConstStaticCell::new(World::new());
    let at = arguments.get("server").map(Discovery::At);
    let discovery =
        at.or_else(|| arguments.get("ping").map(Discovery::Ping)).unwrap_or_else(Discovery::as_built);
    let Board { stack, .. } = board;
    let mut player =
        player::Board { handle, stack, discovery, heartbeat: &HEARTBEAT, panel: Blank, world: WORLD.take() };
    let Some(sessions) = arguments.get::<u32>("sessions") else { player.run().await };
    let mut played = 0;
    while played < sessions {
        // The test ends all sessions but the last.
        let is_last = played + 1 == sessions;
        let frames = arguments.get("frames").filter(|_| is_last).unwrap_or(u32::MAX);
        if let Some((report, end)) = player.session(frames).await {
            played += 1;
            print_report(&report, end, played);
        }
    }
    exit(0)
}

fn print_report(report: &Report, end: End, session: u32) {
    defmt::println!("session {}: {}", session, end);
    defmt::println!(
        "RESULT session={} frames={} snapshots={} entities={} walked={} throws={} pongs={} malformed={}",
        session,
        report.frames,
        report.snapshots,
        report.entities,
        report.walked,
        report.throws,
        report.pongs,
        report.malformed
    );
    defmt::println!(
        "RESULT session={} sent={} resent={} unacknowledged={} round_trip_us={} stack={}",
        session,
        report.sent,
        report.resent,
        report.unacknowledged,
        report.round_trip_us,
        stack::high_water().0
    );
}
