//! The board: its devices, the executor, and the handling of panics and faults.

use defmt_semihosting as _;
use embassy_executor::Spawner;
use embassy_net::{Config, Runner, Stack, StackResources};
use static_cell::{ConstStaticCell, StaticCell};

use crate::arguments::Arguments;
use crate::executor::Executor;
use crate::lan9118::{self, Lan9118};
use crate::{exit, registers, time_driver};

/// The number of sockets: one for DHCP, and two each for two peers.
const SOCKETS: usize = 5;

/// QEMU's exit code after a panic.
const PANICKED: i32 = 101;
/// QEMU's exit code after a fault.
const FAULTED: i32 = 102;

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    cortex_m::interrupt::disable();
    defmt::error!("{}", defmt::Display2Format(info));
    exit(PANICKED)
}

#[cortex_m_rt::exception]
unsafe fn HardFault(_frame: &cortex_m_rt::ExceptionFrame) -> ! {
    exit(FAULTED)
}

/// Handles all device interrupts.
#[cortex_m_rt::exception]
unsafe fn DefaultHandler(number: i16) {
    match number as u16 {
        time_driver::IRQ => time_driver::on_interrupt(),
        lan9118::IRQ => lan9118::on_interrupt(),
        _ => panic!("unexpected interrupt {number}"),
    }
}

#[derive(Clone, Copy)]
struct Irq(u16);

// SAFETY: both numbers are those of the board's devices.
unsafe impl cortex_m::interrupt::InterruptNumber for Irq {
    fn number(self) -> u16 {
        self.0
    }
}

#[embassy_executor::task]
async fn network(mut runner: Runner<'static, &'static mut Lan9118>) -> ! {
    runner.run().await
}

/// The resources of a program.
#[derive(Clone, Copy)]
pub struct Board {
    /// The spawner of tasks.
    pub spawner: Spawner,
    /// The network stack, which uses DHCP.
    pub stack: Stack<'static>,
    /// 32 random bytes from the host, because the machine has no random number generator.
    pub entropy: [u8; 32],
}

/// Starts the board and the program.
pub fn start(program: impl FnOnce(Board, Arguments)) -> ! {
    static EXECUTOR: StaticCell<Executor> = StaticCell::new();
    EXECUTOR.init(Executor::new()).run(|spawner| {
        let arguments = Arguments::read();
        let entropy = entropy(&arguments);
        start_clocks();
        let stack = start_network(spawner, entropy);
        program(Board { spawner, stack, entropy }, arguments);
    })
}

/// Parses the 64 hexadecimal digits of the argument `entropy`.
fn entropy(arguments: &Arguments) -> [u8; 32] {
    let text: Option<heapless::String<64>> = arguments.get("entropy");
    let mut entropy = [0; 32];
    let digits = text.iter().flat_map(|word| word.as_bytes().chunks(2));
    for (byte, digits) in entropy.iter_mut().zip(digits) {
        let digits = core::str::from_utf8(digits).ok();
        *byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).unwrap_or(0);
    }
    if entropy == [0; 32] {
        defmt::error!("the argument entropy= must be 64 hexadecimal digits, not all of them zero");
        exit(2);
    }
    entropy
}

fn start_clocks() {
    const TIMER_0: usize = 0x4000_0000;
    time_driver::init();
    unmask(time_driver::IRQ);
    // A timer of 1 kHz without an interrupt. Without a running timer, QEMU polls its sockets too rarely.
    registers::write(TIMER_0 + 8, 25_000 - 1);
    registers::write(TIMER_0, 1);
}

fn start_network(spawner: Spawner, entropy: [u8; 32]) -> Stack<'static> {
    static DEVICE: ConstStaticCell<Lan9118> = ConstStaticCell::new(Lan9118::new());
    static RESOURCES: StaticCell<StackResources<SOCKETS>> = StaticCell::new();
    let device = DEVICE.take();
    if device.init().is_err() {
        defmt::error!("there is no LAN9118; start QEMU with -nic user,model=lan9118");
        exit(2);
    }
    // The interrupt is cleared only now: before its setup, the chip's interrupt line is active low and would stay
    // asserted.
    cortex_m::peripheral::NVIC::unpend(Irq(lan9118::IRQ));
    unmask(lan9118::IRQ);
    let [a, b, c, d, e, f, g, h, ..] = entropy;
    let seed = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
    let resources = RESOURCES.init(StackResources::new());
    let (stack, runner) = embassy_net::new(device, Config::dhcpv4(Default::default()), resources, seed);
    if let Ok(task) = network(runner) {
        spawner.spawn(task);
    }
    stack
}

fn unmask(interrupt: u16) {
    // SAFETY: no critical section relies on the interrupt being masked.
    unsafe { cortex_m::peripheral::NVIC::unmask(Irq(interrupt)) };
}
