//! The board: clocks, random bytes, Ethernet, temperature sensor, button, lights, watchdog.

use embassy_executor::Spawner;
use embassy_net::{Config as NetConfig, Runner, Stack, StackResources};
use embassy_stm32::adc::{Adc, SampleTime};
use embassy_stm32::eth::{Ethernet, GenericPhy, InterruptHandler, PacketQueue, Sma};
use embassy_stm32::gpio::{Input, Level, Output, Pull, Speed};
use embassy_stm32::peripherals::{ADC3, ETH, ETH_SMA, IWDG1, RNG};
use embassy_stm32::rng::{self, Rng};
use embassy_stm32::wdg::IndependentWatchdog;
use embassy_stm32::{Config, adc, bind_interrupts};
use rakwire_firmware::heartbeat::PERIOD;
use rakwire_firmware::panel::{Button, Health, Panel};
use static_cell::{ConstStaticCell, StaticCell};

/// The timeout of the watchdog in microseconds, after which it resets the chip.
const WATCHDOG_MICROS: u32 = 8_000_000;
/// The timeout of the watchdog must exceed two heartbeat periods.
const _: () = assert!(WATCHDOG_MICROS as u64 > 2 * PERIOD.as_micros());
/// The number of sockets: one for DHCP, and two each for two peers.
const SOCKETS: usize = 5;

bind_interrupts!(struct Interrupts {
    ETH => InterruptHandler;
    RNG => rng::InterruptHandler<RNG>;
});

type Device = Ethernet<'static, ETH, GenericPhy<Sma<'static, ETH_SMA>>>;
/// The watchdog of the chip.
pub type Watchdog = IndependentWatchdog<'static, IWDG1>;

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
async fn network(mut runner: Runner<'static, Device>) -> ! {
    runner.run().await
}

/// Starts the board, except for the program.
pub async fn start(spawner: Spawner) -> Board {
    static PACKETS: ConstStaticCell<PacketQueue<4, 4>> = ConstStaticCell::new(PacketQueue::new());
    static RESOURCES: StaticCell<StackResources<SOCKETS>> = StaticCell::new();
    let p = embassy_stm32::init(clocks());
    // The watchdog is started first, because the setup below hangs if a device does not answer.
    let mut watchdog = IndependentWatchdog::new(p.IWDG1, WATCHDOG_MICROS);
    watchdog.unleash();
    let mut random = [0; 40];
    defmt::unwrap!(Rng::new(p.RNG, Interrupts).async_fill_bytes(&mut random).await);
    let mut entropy = [0; 32];
    let (seed, rest) = random.split_at(8);
    entropy.copy_from_slice(rest);
    let seed = seed.iter().fold(0, |seed, byte| seed << 8 | u64::from(*byte));
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
    let config = NetConfig::dhcpv4(Default::default());
    let (stack, runner) = embassy_net::new(device, config, RESOURCES.init(StackResources::new()), seed);
    spawner.spawn(defmt::unwrap!(network(runner)));
    Board {
        stack,
        entropy,
        thermometer: Thermometer::new(Adc::new(p.ADC3)),
        panel: Lights {
            button: Input::new(p.PC13, Pull::Down),
            lights: [
                Output::new(p.PB0, Level::Low, Speed::Low),
                Output::new(p.PE1, Level::Low, Speed::Low),
                Output::new(p.PB14, Level::Low, Speed::Low),
            ],
        },
        watchdog,
    }
}

/// Configures 400 MHz from the internal oscillator, and 48 MHz for random numbers.
fn clocks() -> Config {
    use embassy_stm32::rcc::{
        AHBPrescaler, APBPrescaler, HSIPrescaler, Pll, PllDiv, PllMul, PllPreDiv, PllSource, Sysclk,
        VoltageScale, mux,
    };
    let mut config = Config::default();
    let rcc = &mut config.rcc;
    rcc.hsi = Some(HSIPrescaler::DIV1);
    rcc.csi = true;
    rcc.hsi48 = Some(Default::default());
    rcc.pll1 = Some(Pll {
        source: PllSource::HSI,
        prediv: PllPreDiv::DIV4,
        mul: PllMul::MUL50,
        fracn: None,
        divp: Some(PllDiv::DIV2),
        divq: None,
        divr: None,
    });
    rcc.sys = Sysclk::PLL1_P;
    rcc.ahb_pre = AHBPrescaler::DIV2;
    rcc.apb1_pre = APBPrescaler::DIV2;
    rcc.apb2_pre = APBPrescaler::DIV2;
    rcc.apb3_pre = APBPrescaler::DIV2;
    rcc.apb4_pre = APBPrescaler::DIV2;
    rcc.voltage_scale = VoltageScale::Scale1;
    // After reset the clock source of the ADC is a PLL that is off; use the internal oscillator.
    rcc.mux.adcsel = mux::Adcsel::PER;
    config
}

/// The chip's own temperature sensor, uncalibrated: raw values of the ADC.
pub struct Thermometer {
    adc: Adc<'static, ADC3>,
    channel: adc::Temperature,
}

impl Thermometer {
    fn new(adc: Adc<'static, ADC3>) -> Self {
        let channel = adc.enable_temperature();
        Self { adc, channel }
    }

    /// Returns the current value.
    pub fn read(&mut self) -> i16 {
        let value = self.adc.blocking_read(&mut self.channel, SampleTime::CYCLES387_5);
        i16::try_from(value / 2).unwrap_or(i16::MAX)
    }
}

/// The blue button B1, and the lights LD1 to LD3, one for each point of remaining health.
pub struct Lights {
    button: Input<'static>,
    lights: [Output<'static>; 3],
}

impl Panel for Lights {
    fn button(&mut self) -> Button {
        if self.button.is_high() { Button::Down } else { Button::Up }
    }

    fn show(&mut self, health: Health) {
        for (light, number) in self.lights.iter_mut().zip(1..) {
            light.set_level(if number <= health.now { Level::High } else { Level::Low });
        }
    }
}
