//! The telemetry example on the emulated board: `cargo run --release --bin telemetry -- entropy=HEX`.
//!
//! It finds its server like the other boards; the host in QEMU's network is 10.0.2.2 (`RAKWIRE_SERVER=10.0.2.2:19132`).

#![no_std]
#![no_main]

use embassy_net::Stack;
use rakwire::raknet::Config;
use rakwire_embassy::raknet::profiles::Sensor;
use rakwire_embassy::raknet::{self, Handle, Runner};
use rakwire_firmware::heartbeat::Heartbeat;
use rakwire_firmware::telemetry;
use rakwire_qemu_mps2::board;
use static_cell::ConstStaticCell;

static HEARTBEAT: Heartbeat = Heartbeat::new();

#[cortex_m_rt::entry]
fn main() -> ! {
    board::start(|board, _arguments| {
        static MEMORY: ConstStaticCell<Sensor<'static>> = ConstStaticCell::new(Sensor::new());
        let (handle, runner) = raknet::new(MEMORY.take(), board.stack, 0, Config::new(board.entropy));
        if let (Ok(peer), Ok(program)) = (peer(runner), program(handle, board.stack)) {
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
async fn program(handle: Handle<'static>, stack: Stack<'static>) -> ! {
    // A sawtooth instead of a sensor.
    let mut value = 0_i16;
    telemetry::run(handle, stack, &HEARTBEAT, || {
        value = (value + 1) % 1_000;
        value
    })
    .await
}
