//! The telemetry example on the Nucleo-H743ZI2: `cargo run --release --bin nucleo-telemetry`. The sensor is the chip's
//! own temperature sensor.
//!
//! At build time, `RAKWIRE_SERVER` sets the server, and `RAKWIRE_ADDRESS` the address without DHCP.

#![no_std]
#![no_main]

use defmt_rtt as _;
use embassy_executor::Spawner;
use embassy_net::Stack;
use panic_probe as _;
use rakwire::raknet::Config;
use rakwire_embassy::raknet::profiles::Player;
use rakwire_embassy::raknet::{self, Handle, Runner};
use rakwire_firmware::heartbeat::Heartbeat;
use rakwire_firmware::telemetry;
use rakwire_nucleo_h743zi2::board::{self, Board, Thermometer};
use static_cell::ConstStaticCell;

static HEARTBEAT: Heartbeat = Heartbeat::new();

#[embassy_executor::main]
async fn main(spawner: Spawner) {
    static MEMORY: ConstStaticCell<Player<'static>> = ConstStaticCell::new(Player::new());
    let Board { stack, entropy, thermometer, watchdog, .. } = board::start(spawner).await;
    let (handle, runner) = raknet::new(MEMORY.take(), stack, 0, Config::new(entropy));
    spawner.spawn(defmt::unwrap!(peer(runner)));
    spawner.spawn(defmt::unwrap!(report(handle, stack, thermometer)));
    spawner.spawn(defmt::unwrap!(guard(watchdog)));
}

#[embassy_executor::task]
async fn peer(mut runner: Runner<'static>) -> ! {
    runner.run().await
}

#[embassy_executor::task]
async fn report(handle: Handle<'static>, stack: Stack<'static>, mut thermometer: Thermometer) -> ! {
    telemetry::run(handle, stack, &HEARTBEAT, || thermometer.read()).await
}

#[embassy_executor::task]
async fn guard(mut watchdog: board::Watchdog) -> ! {
    HEARTBEAT.feed_watchdog(|| watchdog.pet()).await
}
