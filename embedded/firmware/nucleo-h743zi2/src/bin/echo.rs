//! A plain UDP echo on the Nucleo-H743ZI2, to see what the others add to it: `cargo run --release --bin nucleo-echo`.

#![no_std]
#![no_main]

use defmt_rtt as _;
use embassy_executor::Spawner;
use embassy_net::Stack;
use panic_probe as _;
use rakwire_firmware::echo;
use rakwire_firmware::pulse::Pulse;
use rakwire_nucleo_h743zi2::board::{self, Board};

static PULSE: Pulse = Pulse::new();

#[embassy_executor::main]
async fn main(spawner: Spawner) {
    let Board { stack, watchdog, .. } = board::start(spawner).await;
    spawner.spawn(defmt::unwrap!(reply(stack)));
    spawner.spawn(defmt::unwrap!(guard(watchdog)));
}

#[embassy_executor::task]
async fn reply(stack: Stack<'static>) -> ! {
    echo::run(stack, &PULSE).await
}

#[embassy_executor::task]
async fn guard(mut watchdog: board::Watchdog) -> ! {
    PULSE.guard(|| watchdog.pet()).await
}
