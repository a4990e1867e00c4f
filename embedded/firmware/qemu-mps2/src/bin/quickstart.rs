//! The single-file example of the boards, on the emulated board: `cargo run --release --bin quickstart -- entropy=HEX
//! server=10.0.2.2:19132`.
//!
//! 10.0.2.2 is the host in QEMU's network. The setup of this board is in its library; the rest is the same as on the
//! boards, and is tested here.

#![no_std]
#![no_main]

use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use defmt::{info, unwrap, warn};
use embassy_executor::Spawner;
use embassy_futures::select::{Either, select};
use embassy_net::Stack;
use embassy_time::{Duration, Ticker, Timer};
use rakwire::raknet::{Config, Delivery};
use rakwire_embassy::raknet::profiles::Sensor;
use rakwire_embassy::raknet::{self, Connection, Handle, Runner};
use rakwire_qemu_mps2::board;
use static_cell::ConstStaticCell;

#[cortex_m_rt::entry]
fn main() -> ! {
    board::start(|board, arguments| {
        start(board.spawner, board.stack, board.entropy, arguments.get("server"));
    })
}

// From here on the file is the same for every board.

/// The port for the search if no server is set.
const PORT: u16 = 19_132;
/// The id of our messages, which is their first byte. Ids below 0x1B belong to RakNet.
const HELLO: u8 = 0x90;

/// Starts the peer and the program. The random bytes must come from the generator of the chip.
fn start(spawner: Spawner, stack: Stack<'static>, entropy: [u8; 32], server: Option<SocketAddrV4>) {
    static MEMORY: ConstStaticCell<Sensor<'static>> = ConstStaticCell::new(Sensor::new());
    let (handle, runner) = raknet::new(MEMORY.take(), stack, 0, Config::new(entropy));
    spawner.spawn(unwrap!(peer(runner)));
    spawner.spawn(unwrap!(program(stack, handle, server)));
}

#[embassy_executor::task]
async fn peer(mut runner: Runner<'static>) -> ! {
    runner.run().await
}

/// Joins the server, and rejoins it when the connection has ended.
#[embassy_executor::task]
async fn program(stack: Stack<'static>, handle: Handle<'static>, server: Option<SocketAddrV4>) -> ! {
    loop {
        info!("waiting for an address");
        stack.wait_config_up().await;
        if let Some(server) = find(handle, server).await {
            match handle.connect(server).await {
                Ok(connection) => {
                    info!("connected with {}", server);
                    exchange(&connection).await;
                    warn!("the connection has ended: {}", connection.closed_reason());
                }
                Err(error) => warn!("cannot connect with {}: {}", server, error),
            }
        }
        Timer::after_secs(1).await;
    }
}

/// Returns the configured server, or the first that answers a broadcast ping on the local network.
async fn find(handle: Handle<'_>, server: Option<SocketAddrV4>) -> Option<SocketAddr> {
    if let Some(server) = server {
        return Some(server.into());
    }
    info!("looking for a server on port {}", PORT);
    let pong = handle.discover((Ipv4Addr::BROADCAST, PORT).into(), Duration::from_secs(1)).await;
    pong.ok().map(|pong| pong.from())
}

/// Sends a message every second and logs those that arrive, until the connection ends.
async fn exchange(connection: &Connection<'_>) {
    let mut ticker = Ticker::every(Duration::from_secs(1));
    let mut number = 0_u8;
    loop {
        match select(ticker.next(), connection.recv()).await {
            Either::First(()) => {
                number = number.wrapping_add(1);
                match connection.try_send(&[HELLO, number], Delivery::RELIABLE_ORDERED) {
                    Ok(_) => info!("sent message {}", number),
                    Err(error) => warn!("did not send message {}: {}", number, error),
                }
            }
            Either::Second(Some(message)) => match message.copy_to(&mut [0; 64]) {
                Some(bytes) => info!("received {=[u8]:#04x}", bytes),
                None => info!("received {}", message),
            },
            Either::Second(None) => return,
        }
    }
}
