//! A player of the snowball fight on the Nucleo-H743ZI2: `cargo run --release`. The blue button throws, and the three
//! lights show the health.
//!
//! At build time, `RAKWIRE_GAME` sets the server, and `RAKWIRE_ADDRESS` the address without DHCP.

#![no_std]
#![no_main]

use defmt_rtt as _;
use embassy_executor::Spawner;
use panic_probe as _;
use rakwire_embassy::game_protocol::profiles::Player;
use rakwire_embassy::game_protocol::{self, Runner};
use rakwire_firmware::discovery::Discovery;
use rakwire_firmware::heartbeat::Heartbeat;
use rakwire_firmware::player::{self, World};
use rakwire_nucleo_h743zi2::board::{self, Board, Lights};
use static_cell::ConstStaticCell;

static HEARTBEAT: Heartbeat = Heartbeat::new();

#[embassy_executor::main]
async fn main(spawner: Spawner) {
    static MEMORY: ConstStaticCell<Player<'static>> = ConstStaticCell::new(Player::new());
    static WORLD: ConstStaticCell<World> = ConstStaticCell::new(World::new());
    let Board { stack, entropy, panel, watchdog, .. } = board::start(spawner).await;
    let (handle, runner) = game_protocol::new(MEMORY.take(), stack, 0, player::config(entropy));
    let (discovery, world) = (Discovery::as_built(), WORLD.take());
    let board = player::Board { handle, stack, discovery, heartbeat: &HEARTBEAT, panel, world };
    spawner.spawn(defmt::unwrap!(peer(runner)));
    spawner.spawn(defmt::unwrap!(play(board)));
    spawner.spawn(defmt::unwrap!(guard(watchdog)));
}

#[embassy_executor::task]
async fn peer(mut runner: Runner<'static>) -> ! {
    runner.run().await
}

#[embassy_executor::task]
async fn play(board: player::Board<'static, Lights>) -> ! {
    board.run().await
}

#[embassy_executor::task]
async fn guard(mut watchdog: board::Watchdog) -> ! {
    HEARTBEAT.feed_watchdog(|| watchdog.pet()).await
}
