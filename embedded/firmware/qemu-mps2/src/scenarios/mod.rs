//! Test scenarios of the driver on bare metal: `scenario=NAME port=N entropy=HEX`, and the arguments of the scenario.
//!
//! The program ends with a line `RESULT name=value ...` and an exit code, which is 0 on success.

mod exchange;
mod failure;
#[cfg(feature = "secure")]
mod security;
mod task;

use core::net::SocketAddrV4;

use embassy_futures::select::{Either, select};
use embassy_time::{Duration, Timer};
use rakwire::raknet::Config;
use rakwire_embassy::raknet::profiles::Bulk;
use rakwire_embassy::raknet::{self, Handle, Runner};
use rakwire_firmware::network;
use static_cell::ConstStaticCell;

use self::failure::Failure;
use self::task::Task;
use rakwire_qemu_mps2::arguments::Arguments;
use rakwire_qemu_mps2::board::{self, Board};
use rakwire_qemu_mps2::{exit, stack};

/// The host in QEMU's network.
const HOST: [u8; 4] = [10, 0, 2, 2];
/// The time limit of a scenario in seconds, in addition to its own duration.
const TIME_LIMIT: u64 = 240;

/// Starts the board and the scenario.
pub(crate) fn start() -> ! {
    board::start(|board, arguments| {
        static MEMORY: ConstStaticCell<Bulk<'static>> = ConstStaticCell::new(Bulk::new());
        let mut config = Config::new(board.entropy);
        config.timeout = core::time::Duration::from_secs(arguments.get("timeout").unwrap_or(10));
        config.protocol_version = arguments.get("protocol").unwrap_or(config.protocol_version);
        #[cfg(feature = "secure")]
        security::set_up(&mut config, &board);
        let (handle, runner) = raknet::new(MEMORY.take(), board.stack, 0, config);
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
    if arguments.is("network", "fixed") {
        network::use_fallback(board.stack);
        board.stack.wait_link_up().await;
    } else {
        network::wait_for_address(board.stack).await;
    }
    let server = SocketAddrV4::new(HOST.into(), arguments.get("port").unwrap_or(19_132));
    let task = Task { stack: board.stack, handle, server, arguments: &arguments };
    let limit = Duration::from_secs(arguments.get("seconds").unwrap_or(0) + TIME_LIMIT);
    let outcome = match select(task.run(), Timer::after(limit)).await {
        Either::First(outcome) => outcome,
        Either::Second(()) => Err(Failure::TooLong),
    };
    let (used, size) = stack::high_water();
    defmt::info!("stack: {} of {} bytes were used", used, size);
    match outcome {
        Ok(()) => exit(0),
        Err(failure) => {
            for (reason, count) in handle.stats().drops().filter(|(_, count)| *count > 0) {
                defmt::info!("dropped: {} times {}", count, defmt::Debug2Format(&reason));
            }
            defmt::info!("blocks: {} are free", handle.blocks_available());
            defmt::error!("{}: {}", defmt::Display2Format(&server), failure);
            exit(1)
        }
    }
}
