//! The telemetry example on the emulated board: `cargo run --release --bin telemetry -- entropy=HEX`. It looks for a server
//! as the other boards do; QEMU's network shows the host as 10.0.2.2 (`RAKWIRE_SERVER=10.0.2.2:19132`).

#![no_std]
#![no_main]

use embassy_net::Stack;
use rakwire::raknet::Config;
use rakwire_embassy::raknet::profiles::Sensor;
use rakwire_embassy::raknet::{self, Handle, Runner};
use rakwire_firmware::pulse::Pulse;
use rakwire_firmware::telemetry;
use rakwire_qemu_mps2::board;
use static_cell::ConstStaticCell;

static PULSE: Pulse = Pulse::new();

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
    // There is no sensor here: a saw-tooth stands in for one.
    let mut value = 0_i16;
    telemetry::run(handle, stack, &PULSE, || {
        value = (value + 1) % 1_000;
        value
    })
    .await
}
