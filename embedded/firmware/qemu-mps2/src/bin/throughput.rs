//! Measures datagrams per second with RakNet and with plain UDP: `mode=raknet` or `mode=raw`, `port=N`, `count=N`.
//!
//! The board sends to an echo server on the host and keeps `window` messages in flight.

#![no_std]
#![no_main]

use core::net::SocketAddr;

use embassy_net::udp::{PacketMetadata, UdpSocket};
use embassy_time::{Duration, Instant, with_timeout};
use rakwire::raknet::{Config, Delivery};
use rakwire_embassy::raknet::profiles::Player;
use rakwire_embassy::raknet::{self, Handle, Runner};
use rakwire_qemu_mps2::arguments::Arguments;
use rakwire_qemu_mps2::board::{self, Board};
use rakwire_qemu_mps2::exit;
use static_cell::ConstStaticCell;

const HOST: [u8; 4] = [10, 0, 2, 2];
/// The length of a message in bytes. A datagram holds exactly one such message.
const MESSAGE: usize = 1_000;
/// Time limit for an echo, after which it counts as lost.
const ECHO_TIMEOUT: Duration = Duration::from_millis(500);

#[cortex_m_rt::entry]
fn main() -> ! {
    board::start(|board, arguments| {
        static MEMORY: ConstStaticCell<Player<'static>> = ConstStaticCell::new(Player::new());
        let (handle, runner) = raknet::new(MEMORY.take(), board.stack, 0, Config::new(board.entropy));
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

/// The number of messages to send, and the number of messages in flight.
struct Plan {
    server: SocketAddr,
    count: u32,
    window: u32,
}

#[embassy_executor::task]
async fn program(board: Board, handle: Handle<'static>, arguments: Arguments) {
    board.stack.wait_config_up().await;
    let server = (HOST, arguments.get("port").unwrap_or(19_132)).into();
    let (count, window) = (arguments.get("count").unwrap_or(20_000), arguments.get("window").unwrap_or(4));
    let plan = Plan { server, count, window };
    let datagrams =
        if arguments.is("mode", "raw") { raw(&board, &plan).await } else { with_raknet(handle, &plan).await };
    match datagrams {
        Some((datagrams, micros)) => {
            defmt::println!("RESULT datagrams={} micros={} messages={}", datagrams, micros, plan.count);
            exit(0)
        }
        None => exit(1),
    }
}

/// Measures plain UDP. Returns the number of datagrams sent and received, and the time in microseconds.
async fn raw(board: &Board, plan: &Plan) -> Option<(u64, u64)> {
    static METADATA: ConstStaticCell<[[PacketMetadata; 8]; 2]> =
        ConstStaticCell::new([[PacketMetadata::EMPTY; 8]; 2]);
    static BYTES: ConstStaticCell<[[u8; 6_144]; 2]> = ConstStaticCell::new([[0; 6_144]; 2]);
    let ([in_metadata, out_metadata], [in_bytes, out_bytes]) = (METADATA.take(), BYTES.take());
    let mut socket = UdpSocket::new(board.stack, in_metadata, in_bytes, out_metadata, out_bytes);
    socket.bind(0).ok()?;
    let (message, mut answer) = ([0xFE; MESSAGE], [0; MESSAGE]);
    let SocketAddr::V4(server) = plan.server else { return None };
    let to = (*server.ip(), server.port());
    let started = Instant::now();
    let (mut sent, mut received, mut lost) = (0, 0, 0);
    while received + lost < plan.count {
        while sent < plan.count && sent - received - lost < plan.window {
            socket.send_to(&message, to).await.ok()?;
            sent += 1;
        }
        match with_timeout(ECHO_TIMEOUT, socket.recv_from(&mut answer)).await {
            Ok(_) => received += 1,
            Err(_) => lost = sent - received,
        }
    }
    Some((u64::from(sent) + u64::from(received), started.elapsed().as_micros()))
}

async fn with_raknet(handle: Handle<'static>, plan: &Plan) -> Option<(u64, u64)> {
    let connection = handle.connect(plan.server).await.ok()?;
    let message = [0xFE; MESSAGE];
    let before = handle.stats();
    let started = Instant::now();
    let (mut sent, mut received, mut lost) = (0, 0, 0);
    while received + lost < plan.count {
        while sent < plan.count && sent - received - lost < plan.window {
            connection.send(&message, Delivery::UNRELIABLE).await.ok()?;
            sent += 1;
        }
        match with_timeout(ECHO_TIMEOUT, connection.recv()).await {
            Ok(answer) => {
                drop(answer?);
                received += 1;
            }
            Err(_) => lost = sent - received,
        }
    }
    let micros = started.elapsed().as_micros();
    let after = handle.stats();
    let datagrams =
        after.datagrams_sent - before.datagrams_sent + after.datagrams_received - before.datagrams_received;
    connection.disconnect().await;
    Some((datagrams, micros))
}
