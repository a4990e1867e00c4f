//! The embassy-time driver on the dual timer of Arm's CMSDK ("AP804").
//!
//! The first timer runs freely at 25 MHz, and its interrupt counts wraparounds. The second timer is the alarm.

use core::cell::{Cell, RefCell};
use core::task::Waker;

use critical_section::{CriticalSection, Mutex};
use embassy_time_driver::{Driver, time_driver_impl};
use embassy_time_queue_utils::Queue;

use crate::registers::{read, write};

pub(crate) const IRQ: u16 = 10;

const CLOCK: usize = 0x4000_2000;
const ALARM: usize = CLOCK + 0x20;
const LOAD: usize = 0x00;
const VALUE: usize = 0x04;
const CONTROL: usize = 0x08;
const INTERRUPT_CLEAR: usize = 0x0c;
const INTERRUPT_STATUS: usize = 0x10;

const ENABLE: u32 = 1 << 7;
const INTERRUPT: u32 = 1 << 5;
const BITS_32: u32 = 1 << 1;
const ONE_SHOT: u32 = 1;

const CYCLES_PER_TICK: u64 = 25_000_000 / embassy_time_driver::TICK_HZ;
/// The maximum distance of an alarm in ticks. A later alarm is set in several steps.
const LONGEST: u64 = 0x8000_0000;

struct DualTimer {
    wraps: Mutex<Cell<u32>>,
    queue: Mutex<RefCell<Queue>>,
}

time_driver_impl!(static DRIVER: DualTimer = DualTimer {
    wraps: Mutex::new(Cell::new(0)),
    queue: Mutex::new(RefCell::new(Queue::new())),
});

impl DualTimer {
    fn cycles(&self, cs: CriticalSection<'_>) -> u64 {
        let mut high = self.wraps.borrow(cs).get();
        let mut low = !read(CLOCK + VALUE);
        if read(CLOCK + INTERRUPT_STATUS) & 1 != 0 {
            // The timer has wrapped, and the interrupt has not counted the wraparound yet. The value may be from
            // before the wraparound.
            low = !read(CLOCK + VALUE);
            high = high.wrapping_add(1);
        }
        u64::from(high) << 32 | u64::from(low)
    }

    fn set_alarm(&self, cs: CriticalSection<'_>, queue: &mut Queue) {
        let now = self.cycles(cs) / CYCLES_PER_TICK;
        let next = queue.next_expiration(now);
        write(ALARM + CONTROL, 0);
        write(ALARM + INTERRUPT_CLEAR, 1);
        if next != u64::MAX {
            let cycles = next.saturating_sub(now).saturating_mul(CYCLES_PER_TICK).clamp(1, LONGEST);
            write(ALARM + LOAD, cycles as u32);
            write(ALARM + CONTROL, ENABLE | INTERRUPT | BITS_32 | ONE_SHOT);
        }
    }
}

impl Driver for DualTimer {
    fn now(&self) -> u64 {
        critical_section::with(|cs| self.cycles(cs)) / CYCLES_PER_TICK
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        critical_section::with(|cs| {
            let mut queue = self.queue.borrow(cs).borrow_mut();
            if queue.schedule_wake(at, waker) {
                self.set_alarm(cs, &mut queue);
            }
        });
    }
}

pub(crate) fn init() {
    write(CLOCK + CONTROL, 0);
    write(CLOCK + LOAD, u32::MAX);
    write(CLOCK + INTERRUPT_CLEAR, 1);
    write(CLOCK + CONTROL, ENABLE | INTERRUPT | BITS_32);
    write(ALARM + CONTROL, 0);
    write(ALARM + INTERRUPT_CLEAR, 1);
}

pub(crate) fn on_interrupt() {
    critical_section::with(|cs| {
        if read(CLOCK + INTERRUPT_STATUS) & 1 != 0 {
            write(CLOCK + INTERRUPT_CLEAR, 1);
            let wraps = DRIVER.wraps.borrow(cs);
            wraps.set(wraps.get().wrapping_add(1));
        }
        write(ALARM + INTERRUPT_CLEAR, 1);
        DRIVER.set_alarm(cs, &mut DRIVER.queue.borrow(cs).borrow_mut());
    });
}
