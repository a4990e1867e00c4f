//! A plain UDP echo on the emulated board, the baseline for the sizes of the other programs.

#![no_std]
#![no_main]

use embassy_net::Stack;
use rakwire_firmware::echo;
use rakwire_firmware::heartbeat::Heartbeat;
use rakwire_qemu_mps2::board;

static HEARTBEAT: Heartbeat = Heartbeat::new();

#[cortex_m_rt::entry]
fn main() -> ! {
    board::start(|board, _arguments| {
        if let Ok(program) = program(board.stack) {
            board.spawner.spawn(program);
        }
    })
}

#[embassy_executor::task]
async fn program(stack: Stack<'static>) -> ! {
    echo::run(stack, &HEARTBEAT).await
}
