//! rakwire on the Nucleo-H743ZI2, complete in one file. It joins a RakNet server over the board's Ethernet, sends a
//! message every second, and logs the messages that it receives.
//!
//! On a machine in the same network run `cargo run -p rakwire-cli -- echo --listen 0.0.0.0:19132`, and here `cargo run
//! --release --bin nucleo-quickstart`. `RAKWIRE_SERVER=192.168.0.10:19132` at build time sets the server; without it
//! the board searches for one.
//!
//! To start your own program, copy this file, `.cargo/config.toml`, and the dependencies in `Cargo.toml` except for
//! `rakwire-firmware`, and change their paths.

#![no_std]
#![no_main]

use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use defmt::{expect, info, unwrap, warn};
use defmt_rtt as _;
use embassy_executor::Spawner;
use embassy_futures::select::{Either, select};
use embassy_net::{Stack, StackResources};
use embassy_stm32::eth::{Ethernet, GenericPhy, PacketQueue, Sma};
use embassy_stm32::peripherals::{ETH, ETH_SMA, RNG};
use embassy_stm32::rng::Rng;
use embassy_stm32::{bind_interrupts, eth, rng};
use embassy_time::{Duration, Ticker, Timer};
use panic_probe as _;
use rakwire::raknet::{Config, Delivery};
use rakwire_embassy::raknet::profiles::Sensor;
use rakwire_embassy::raknet::{self, Connection, Handle, Runner};
use static_cell::{ConstStaticCell, StaticCell};

/// The server, such as 192.168.0.10:19132; without one the board searches the local network.
const SERVER: Option<&str> = option_env!("RAKWIRE_SERVER");

bind_interrupts!(struct Interrupts {
    ETH => eth::InterruptHandler;
    RNG => rng::InterruptHandler<RNG>;
});

type Device = Ethernet<'static, ETH, GenericPhy<Sma<'static, ETH_SMA>>>;

#[embassy_executor::main]
async fn main(spawner: Spawner) {
    static PACKETS: ConstStaticCell<PacketQueue<4, 4>> = ConstStaticCell::new(PacketQueue::new());
    // Sockets: one for DHCP and two for the peer.
    static RESOURCES: StaticCell<StackResources<3>> = StaticCell::new();
    let mut config = embassy_stm32::Config::default();
    // The random number generator needs this clock.
    config.rcc.hsi48 = Some(Default::default());
    let p = embassy_stm32::init(config);
    let mut rng = Rng::new(p.RNG, Interrupts);
    let (mut seed, mut entropy) = ([0; 8], [0; 32]);
    unwrap!(rng.async_fill_bytes(&mut seed).await);
    unwrap!(rng.async_fill_bytes(&mut entropy).await);
    let address = rakwire_embassy::mac_address(&embassy_stm32::uid::uid());
    let device: Device = Ethernet::new(
        PACKETS.take(),
        p.ETH,
        Interrupts,
        p.PA1,
        p.PA7,
        p.PC4,
        p.PC5,
        p.PG13,
        p.PB13,
        p.PG11,
        address,
        p.ETH_SMA,
        p.PA2,
        p.PC1,
    );
    let (config, seed) = (embassy_net::Config::dhcpv4(Default::default()), u64::from_ne_bytes(seed));
    let (stack, runner) = embassy_net::new(device, config, RESOURCES.init(StackResources::new()), seed);
    spawner.spawn(unwrap!(network(runner)));
    let server = SERVER.map(|server| expect!(server.parse().ok(), "RAKWIRE_SERVER is not ADDRESS:PORT"));
    start(spawner, stack, entropy, server);
}

#[embassy_executor::task]
async fn network(mut runner: embassy_net::Runner<'static, Device>) -> ! {
    runner.run().await
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
