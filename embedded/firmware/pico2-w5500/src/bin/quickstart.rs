//! rakwire on the W5500-EVB-Pico2, complete in one file. It joins a RakNet server over the board's Ethernet, sends a
//! message every second, and logs the messages that it receives.
//!
//! On a machine in the same network run `cargo run -p rakwire-cli -- echo --listen 0.0.0.0:19132`, and here `cargo run
//! --release --bin pico2-quickstart`. `RAKWIRE_SERVER=192.168.0.10:19132` at build time sets the server; without it the
//! board searches for one.
//!
//! To start your own program, copy this file, `.cargo`, `build.rs`, `memory.x`, and the dependencies in `Cargo.toml`
//! except for `rakwire-firmware`, and change their paths.

#![no_std]
#![no_main]

use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use defmt::{expect, info, unwrap, warn};
use defmt_rtt as _;
use embassy_executor::Spawner;
use embassy_futures::select::{Either, select};
use embassy_net::{Stack, StackResources};
use embassy_net_wiznet::chip::W5500;
use embassy_net_wiznet::{Device, State};
use embassy_rp::gpio::{Input, Level, Output, Pull};
use embassy_rp::peripherals::{DMA_CH0, DMA_CH1, SPI0, TRNG};
use embassy_rp::spi::{Async, Config as SpiConfig, Spi};
use embassy_rp::trng::Trng;
use embassy_rp::{bind_interrupts, dma, otp, trng};
use embassy_time::{Delay, Duration, Ticker, Timer};
use embedded_hal_bus::spi::ExclusiveDevice;
use panic_probe as _;
use rakwire::raknet::{Config, Delivery};
use rakwire_embassy::raknet::profiles::Sensor;
use rakwire_embassy::raknet::{self, Connection, Handle, Runner};
use static_cell::{ConstStaticCell, StaticCell};

/// The server, such as 192.168.0.10:19132; without one the board searches the local network.
const SERVER: Option<&str> = option_env!("RAKWIRE_SERVER");

bind_interrupts!(struct Interrupts {
    DMA_IRQ_0 => dma::InterruptHandler<DMA_CH0>, dma::InterruptHandler<DMA_CH1>;
    TRNG_IRQ => trng::InterruptHandler<TRNG>;
});

type Bus = ExclusiveDevice<Spi<'static, SPI0, Async>, Output<'static>, Delay>;

#[embassy_executor::main]
async fn main(spawner: Spawner) {
    static STATE: StaticCell<State<4, 4>> = StaticCell::new();
    // Sockets: one for DHCP and two for the peer.
    static RESOURCES: StaticCell<StackResources<3>> = StaticCell::new();
    let p = embassy_rp::init(Default::default());
    let mut rng = Trng::new(p.TRNG, Interrupts, trng::Config::default());
    let (mut seed, mut fallback, mut entropy) = ([0; 8], [0; 8], [0; 32]);
    rng.fill_bytes(&mut seed).await;
    rng.fill_bytes(&mut fallback).await;
    rng.fill_bytes(&mut entropy).await;
    let mut config = SpiConfig::default();
    config.frequency = 50_000_000;
    let spi = Spi::new(p.SPI0, p.PIN_18, p.PIN_19, p.PIN_16, p.DMA_CH0, p.DMA_CH1, Interrupts, config);
    let bus = unwrap!(ExclusiveDevice::new(spi, Output::new(p.PIN_17, Level::High), Delay));
    let (interrupt, reset) = (Input::new(p.PIN_21, Pull::Up), Output::new(p.PIN_20, Level::High));
    let address = mac_address(fallback);
    let (device, runner) =
        unwrap!(embassy_net_wiznet::new(address, STATE.init(State::new()), bus, interrupt, reset).await);
    spawner.spawn(unwrap!(chip(runner)));
    let (config, seed) = (embassy_net::Config::dhcpv4(Default::default()), u64::from_ne_bytes(seed));
    let (stack, runner) = embassy_net::new(device, config, RESOURCES.init(StackResources::new()), seed);
    spawner.spawn(unwrap!(network(runner)));
    let server = SERVER.map(|server| expect!(server.parse().ok(), "RAKWIRE_SERVER is not ADDRESS:PORT"));
    start(spawner, stack, entropy, server);
}

/// Returns the address of the Ethernet chip, which comes without one. It is derived from the id of the microcontroller,
/// or is `random` if the memory with the id is locked.
fn mac_address(random: [u8; 8]) -> [u8; 6] {
    match otp::get_chipid() {
        Ok(id) => rakwire_embassy::mac_address(&id.to_be_bytes()),
        Err(error) => {
            warn!("the chip has no id ({}); the MAC address changes at every start", error);
            rakwire_embassy::mac_address(&random)
        }
    }
}

#[embassy_executor::task]
async fn chip(runner: embassy_net_wiznet::Runner<'static, W5500, Bus, Input<'static>, Output<'static>>) -> ! {
    runner.run().await
}

#[embassy_executor::task]
async fn network(mut runner: embassy_net::Runner<'static, Device<'static>>) -> ! {
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
