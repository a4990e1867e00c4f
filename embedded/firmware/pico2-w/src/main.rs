//! rakwire on the Raspberry Pi Pico 2 W, complete in one file. It joins a RakNet server over Wi-Fi, sends a message
//! every second, and logs the messages that it receives.
//!
//! On a machine in the same network run `cargo run -p rakwire-cli -- echo --listen 0.0.0.0:19132`, and in this folder
//! `RAKWIRE_WIFI=name RAKWIRE_WIFI_PASSWORD=password cargo run --release` with the name and the password of the Wi-Fi.
//! `RAKWIRE_SERVER=192.168.0.10:19132` sets the server; without it the board searches for one.
//!
//! To start your own program, copy this file, `.cargo`, `build.rs`, `memory.x` and `Cargo.toml`, and change the paths
//! in `Cargo.toml`.

#![no_std]
#![no_main]

use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use cyw43::{Control, JoinOptions, NetDriver, PowerManagementMode, SpiBus, State};
use cyw43_pio::{PioSpi, RM2_CLOCK_DIVIDER};
use cyw43_setup::{CLM, FW, NVRAM};
use defmt::{expect, info, unwrap, warn};
use defmt_rtt as _;
use embassy_executor::Spawner;
use embassy_futures::select::{Either, select};
use embassy_net::{Stack, StackResources};
use embassy_rp::gpio::{Level, Output};
use embassy_rp::peripherals::{DMA_CH0, PIO0, TRNG};
use embassy_rp::pio::Pio;
use embassy_rp::trng::Trng;
use embassy_rp::{bind_interrupts, dma, pio, trng};
use embassy_time::{Duration, Ticker, Timer};
use panic_probe as _;
use rakwire::raknet::{Config, Delivery};
use rakwire_embassy::raknet::profiles::Sensor;
use rakwire_embassy::raknet::{self, Connection, Handle, Runner};
use static_cell::{ConstStaticCell, StaticCell};

/// The server, such as 192.168.0.10:19132; without one the board searches the local network.
const SERVER: Option<&str> = option_env!("RAKWIRE_SERVER");
const WIFI: &str = env!("RAKWIRE_WIFI", "set RAKWIRE_WIFI to the name of the Wi-Fi");
const WIFI_PASSWORD: &str =
    env!("RAKWIRE_WIFI_PASSWORD", "set RAKWIRE_WIFI_PASSWORD to the password of the Wi-Fi");

bind_interrupts!(struct Interrupts {
    DMA_IRQ_0 => dma::InterruptHandler<DMA_CH0>;
    PIO0_IRQ_0 => pio::InterruptHandler<PIO0>;
    TRNG_IRQ => trng::InterruptHandler<TRNG>;
});

#[embassy_executor::main]
async fn main(spawner: Spawner) {
    static STATE: StaticCell<State> = StaticCell::new();
    // Sockets: one for DHCP and two for the peer.
    static RESOURCES: StaticCell<StackResources<3>> = StaticCell::new();
    let p = embassy_rp::init(Default::default());
    let mut rng = Trng::new(p.TRNG, Interrupts, trng::Config::default());
    let (mut seed, mut entropy) = ([0; 8], [0; 32]);
    rng.fill_bytes(&mut seed).await;
    rng.fill_bytes(&mut entropy).await;
    let Pio { mut common, irq0, sm0, .. } = Pio::new(p.PIO0, Interrupts);
    let (power, select) = (Output::new(p.PIN_23, Level::Low), Output::new(p.PIN_25, Level::High));
    let dma = dma::Channel::new(p.DMA_CH0, Interrupts);
    // The divider suits the clock of this chip, which is faster than that of the first Pico.
    let spi = PioSpi::new(&mut common, sm0, RM2_CLOCK_DIVIDER, irq0, select, p.PIN_24, p.PIN_29, dma);
    let (device, mut control, runner) = cyw43::new(STATE.init(State::new()), power, spi, &FW, &NVRAM).await;
    spawner.spawn(unwrap!(chip(runner)));
    control.init(CLM).await;
    // While a station sleeps, the access point holds back its datagrams.
    control.set_power_management(PowerManagementMode::None).await;
    let (config, seed) = (embassy_net::Config::dhcpv4(Default::default()), u64::from_ne_bytes(seed));
    let (stack, runner) = embassy_net::new(device, config, RESOURCES.init(StackResources::new()), seed);
    spawner.spawn(unwrap!(network(runner)));
    spawner.spawn(unwrap!(wifi(control, stack)));
    let server = SERVER.map(|server| expect!(server.parse().ok(), "RAKWIRE_SERVER is not ADDRESS:PORT"));
    start(spawner, stack, entropy, server);
}

#[embassy_executor::task]
async fn chip(runner: cyw43::Runner<'static, SpiBus<Output<'static>, PioSpi<'static, PIO0, 0>>>) -> ! {
    runner.run().await
}

#[embassy_executor::task]
async fn network(mut runner: embassy_net::Runner<'static, NetDriver<'static>>) -> ! {
    runner.run().await
}

/// Joins the Wi-Fi, and rejoins it when it is lost.
#[embassy_executor::task]
async fn wifi(mut control: Control<'static>, stack: Stack<'static>) -> ! {
    loop {
        info!("joining the Wi-Fi {}", WIFI);
        match control.join(WIFI, JoinOptions::new(WIFI_PASSWORD.as_bytes())).await {
            Ok(()) => {
                stack.wait_link_up().await;
                stack.wait_link_down().await;
                warn!("the Wi-Fi is lost");
            }
            Err(error) => warn!("cannot join the Wi-Fi: {}", error),
        }
        Timer::after_secs(1).await;
    }
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
