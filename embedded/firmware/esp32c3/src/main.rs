//! rakwire on the ESP32-C3, complete in one file. It joins a RakNet server over Wi-Fi, sends a message every second,
//! and logs the messages that it receives.
//!
//! On a machine in the same network run `cargo run -p rakwire-cli -- echo --listen 0.0.0.0:19132`, and in this folder
//! `RAKWIRE_WIFI=name RAKWIRE_WIFI_PASSWORD=password cargo run --release` with the name and the password of the Wi-Fi.
//! `RAKWIRE_SERVER=192.168.0.10:19132` sets the server; without it the board searches for one.
//!
//! To start your own program, copy this file, `.cargo` and `Cargo.toml`, and change the paths in `Cargo.toml`.

#![no_std]
#![no_main]

use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use defmt::{expect, info, unwrap, warn};
use embassy_executor::Spawner;
use embassy_futures::select::{Either, select};
use embassy_net::{Stack, StackResources};
use embassy_time::{Duration, Ticker, Timer};
use esp_alloc as _;
use esp_backtrace as _;
use esp_hal::rng::Rng;
use esp_hal::timer::timg::TimerGroup;
use esp_println as _;
use esp_radio::wifi::sta::StationConfig;
use esp_radio::wifi::{AuthenticationMethodConfig, Interface, PowerSaveMode, WifiController};
use rakwire::raknet::{Config, Delivery};
use rakwire_embassy::raknet::profiles::Sensor;
use rakwire_embassy::raknet::{self, Connection, Handle, Runner};
use static_cell::{ConstStaticCell, StaticCell};

/// The server, such as 192.168.0.10:19132; without one the board searches the local network.
const SERVER: Option<&str> = option_env!("RAKWIRE_SERVER");
const WIFI: &str = env!("RAKWIRE_WIFI", "set RAKWIRE_WIFI to the name of the Wi-Fi");
const WIFI_PASSWORD: &str =
    env!("RAKWIRE_WIFI_PASSWORD", "set RAKWIRE_WIFI_PASSWORD to the password of the Wi-Fi");

esp_bootloader_esp_idf::esp_app_desc!();

#[esp_rtos::main]
async fn main(spawner: Spawner) {
    // Sockets: one for DHCP and two for the peer.
    static RESOURCES: StaticCell<StackResources<3>> = StaticCell::new();
    let p = esp_hal::init(esp_hal::Config::default());
    // The memory of the radio driver; rakwire uses none of it.
    esp_alloc::heap_allocator!(size: 96 * 1024);
    esp_rtos::start(TimerGroup::new(p.TIMG0).timer0, p.FROM_CPU_INTR0);
    let mut controller = unwrap!(WifiController::new(p.WIFI, Default::default()));
    // While a station sleeps, the access point holds back its datagrams.
    unwrap!(controller.set_power_saving(PowerSaveMode::None));
    let station = StationConfig::default()
        .with_ssid(expect!(WIFI.try_into().ok(), "RAKWIRE_WIFI is not a valid Wi-Fi name"))
        .with_authentication(AuthenticationMethodConfig::Wpa2Personal(expect!(
            WIFI_PASSWORD.try_into().ok(),
            "RAKWIRE_WIFI_PASSWORD is not a valid Wi-Fi password"
        )));
    unwrap!(controller.set_config(&esp_radio::wifi::Config::Station(station)));
    // While the radio is on, its noise feeds the generator.
    let (rng, mut seed, mut entropy) = (Rng::new(), [0; 8], [0; 32]);
    rng.read(&mut seed);
    rng.read(&mut entropy);
    let (config, seed) = (embassy_net::Config::dhcpv4(Default::default()), u64::from_ne_bytes(seed));
    let resources = RESOURCES.init(StackResources::new());
    let (stack, runner) = embassy_net::new(Interface::station(), config, resources, seed);
    spawner.spawn(unwrap!(network(runner)));
    spawner.spawn(unwrap!(wifi(controller)));
    let server = SERVER.map(|server| expect!(server.parse().ok(), "RAKWIRE_SERVER is not ADDRESS:PORT"));
    start(spawner, stack, entropy, server);
}

#[embassy_executor::task]
async fn network(mut runner: embassy_net::Runner<'static, Interface>) -> ! {
    runner.run().await
}

/// Joins the Wi-Fi, and rejoins it when it is lost.
#[embassy_executor::task]
async fn wifi(mut controller: WifiController<'static>) -> ! {
    loop {
        info!("joining the Wi-Fi {}", WIFI);
        match controller.connect_async().await {
            Ok(_) => {
                let end = controller.wait_for_disconnect_async().await;
                warn!("the Wi-Fi is lost: {}", end);
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
