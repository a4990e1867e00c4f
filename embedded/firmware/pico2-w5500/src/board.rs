//! The board: random bytes, the Ethernet chip behind SPI, temperature sensor, button, light, watchdog.

use embassy_executor::Spawner;
use embassy_net::{Config as NetConfig, Runner as NetRunner, Stack, StackResources};
use embassy_net_wiznet::chip::W5500;
use embassy_net_wiznet::{Device, Runner, State};
use embassy_rp::adc::{Adc, Blocking, Channel, Config as AdcConfig};
use embassy_rp::gpio::{Input, Level, Output, Pull};
use embassy_rp::otp;
use embassy_rp::peripherals::{DMA_CH0, DMA_CH1, SPI0, TRNG};
use embassy_rp::spi::{Async, Config as SpiConfig, Spi};
use embassy_rp::trng::{self, Trng};
use embassy_rp::watchdog::Watchdog;
use embassy_rp::{bind_interrupts, dma};
use embassy_time::{Delay, Duration, Instant};
use embedded_hal_bus::spi::ExclusiveDevice;
use rakwire_firmware::heartbeat::PERIOD;
use rakwire_firmware::panel::{Button, Health, Panel};
use static_cell::StaticCell;

/// The timeout of the watchdog; the hardware supports slightly more than 16 s.
pub const WATCHDOG: Duration = Duration::from_secs(8);
/// The timeout of the watchdog must exceed two heartbeat periods.
const _: () = assert!(WATCHDOG.as_micros() > 2 * PERIOD.as_micros());
/// The number of sockets: one for DHCP, and two each for two peers.
const SOCKETS: usize = 5;
/// The clock frequency of the SPI bus in hertz.
const SPI_HZ: u32 = 50_000_000;

bind_interrupts!(struct Interrupts {
    DMA_IRQ_0 => dma::InterruptHandler<DMA_CH0>, dma::InterruptHandler<DMA_CH1>;
    TRNG_IRQ => trng::InterruptHandler<TRNG>;
});

type Bus = ExclusiveDevice<Spi<'static, SPI0, Async>, Output<'static>, Delay>;

/// The resources of a program.
pub struct Board {
    /// The network stack, which uses DHCP.
    pub stack: Stack<'static>,
    /// 32 bytes from the hardware random number generator.
    pub entropy: [u8; 32],
    /// The sensor.
    pub thermometer: Thermometer,
    /// The button and the lights.
    pub panel: Lights,
    /// The running watchdog.
    pub watchdog: Watchdog,
}

#[embassy_executor::task]
async fn chip(runner: Runner<'static, W5500, Bus, Input<'static>, Output<'static>>) -> ! {
    runner.run().await
}

#[embassy_executor::task]
async fn network(mut runner: NetRunner<'static, Device<'static>>) -> ! {
    runner.run().await
}

/// Starts the board, except for the program.
pub async fn start(spawner: Spawner) -> Board {
    static STATE: StaticCell<State<4, 4>> = StaticCell::new();
    static RESOURCES: StaticCell<StackResources<SOCKETS>> = StaticCell::new();
    let p = embassy_rp::init(Default::default());
    // The watchdog is started first, because the Ethernet chip may not answer yet, and then needs a reset.
    let mut watchdog = Watchdog::new(p.WATCHDOG);
    watchdog.start(WATCHDOG);
    let mut random = [0; 48];
    Trng::new(p.TRNG, Interrupts, trng::Config::default()).fill_bytes(&mut random).await;
    let mut config = SpiConfig::default();
    config.frequency = SPI_HZ;
    let spi = Spi::new(p.SPI0, p.PIN_18, p.PIN_19, p.PIN_16, p.DMA_CH0, p.DMA_CH1, Interrupts, config);
    let bus = defmt::unwrap!(ExclusiveDevice::new(spi, Output::new(p.PIN_17, Level::High), Delay));
    let (interrupt, reset) = (Input::new(p.PIN_21, Pull::Up), Output::new(p.PIN_20, Level::High));
    let (seed, rest) = random.split_at(8);
    let (fallback, rest) = rest.split_at(8);
    let address = mac_address(fallback);
    let (device, runner) = defmt::unwrap!(
        embassy_net_wiznet::new(address, STATE.init(State::new()), bus, interrupt, reset).await
    );
    spawner.spawn(defmt::unwrap!(chip(runner)));
    let seed = seed.iter().fold(0, |seed, byte| seed << 8 | u64::from(*byte));
    let mut entropy = [0; 32];
    entropy.copy_from_slice(rest);
    let config = NetConfig::dhcpv4(Default::default());
    let (stack, runner) = embassy_net::new(device, config, RESOURCES.init(StackResources::new()), seed);
    spawner.spawn(defmt::unwrap!(network(runner)));
    let adc = Adc::new_blocking(p.ADC, AdcConfig::default());
    let thermometer = Thermometer { adc, channel: Channel::new_temp_sensor(p.ADC_TEMP_SENSOR) };
    let panel = Lights { button: Input::new(p.PIN_15, Pull::Up), light: Output::new(p.PIN_25, Level::Low) };
    Board { stack, entropy, thermometer, panel, watchdog }
}

/// Returns a MAC address for the Ethernet chip, which has none. It is derived from the id of the microcontroller, or
/// from `random` if the memory with the id is locked.
fn mac_address(random: &[u8]) -> [u8; 6] {
    match otp::get_chipid() {
        Ok(id) => rakwire_embassy::mac_address(&id.to_be_bytes()),
        Err(error) => {
            defmt::warn!("the chip has no id ({}); the MAC address changes at every start", error);
            rakwire_embassy::mac_address(random)
        }
    }
}

/// The chip's own temperature sensor, uncalibrated: raw values of the ADC.
pub struct Thermometer {
    adc: Adc<'static, Blocking>,
    channel: Channel<'static>,
}

impl Thermometer {
    /// Returns the current value, or `i16::MAX` if it cannot be read.
    pub fn read(&mut self) -> i16 {
        let value = self.adc.blocking_read(&mut self.channel).ok();
        value.and_then(|value| i16::try_from(value).ok()).unwrap_or(i16::MAX)
    }
}

/// A button between pin 15 and ground, and the only light of the board. The board has no other button for programs.
///
/// The light is on at full health, blinks faster with less health, and is off without a player.
pub struct Lights {
    button: Input<'static>,
    light: Output<'static>,
}

impl Lights {
    /// Half of the blinking period: with several points of health left, and with one.
    const SLOW: Duration = Duration::from_millis(500);
    const FAST: Duration = Duration::from_millis(125);
}

impl Panel for Lights {
    fn button(&mut self) -> Button {
        if self.button.is_low() { Button::Down } else { Button::Up }
    }

    fn show(&mut self, health: Health) {
        let blinks = |half: Duration| (Instant::now().as_millis() / half.as_millis()).is_multiple_of(2);
        let is_on = match health.now {
            0 => false,
            now if now >= health.max => true,
            1 => blinks(Self::FAST),
            _ => blinks(Self::SLOW),
        };
        self.light.set_level(if is_on { Level::High } else { Level::Low });
    }
}
