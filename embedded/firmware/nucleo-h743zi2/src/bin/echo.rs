//! A plain UDP echo on the Nucleo-H743ZI2, the baseline for the sizes of the other programs: `cargo run --release --bin
//! nucleo-echo`.

#![no_std]
#![no_main]

use defmt_rtt as _;
use embassy_executor::Spawner;
use embassy_net::Stack;
use panic_probe as _;
use rakwire_firmware::echo;
use rakwire_firmware::heartbeat::Heartbeat;
use rakwire_nucleo_h743zi2::board::{self, Board};

static HEARTBEAT: Heartbeat = Heartbeat::new();

#[embassy_executor::main]
async fn main(spawner: Spawner) {
    let Board { stack, watchdog, .. } = board::start(spawner).await;
    spawner.spawn(defmt::unwrap!(reply(stack)));
    spawner.spawn(defmt::unwrap!(guard(watchdog)));
}

#[embassy_executor::task]
async fn reply(stack: Stack<'static>) -> ! {
    echo::run(stack, &HEARTBEAT).await
}

#[embassy_executor::task]
async fn guard(mut watchdog: board::Watchdog) -> ! {
    HEARTBEAT.feed_watchdog(|| watchdog.pet()).await
}
