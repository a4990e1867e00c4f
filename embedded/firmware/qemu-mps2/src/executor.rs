//! An executor that sleeps with WFI. Embassy's executor uses WFE, which does not sleep in QEMU: an idle machine would
//! use a whole core of the host.

use core::sync::atomic::{AtomicBool, Ordering};

use embassy_executor::{Spawner, raw};

static WORK: AtomicBool = AtomicBool::new(false);

#[unsafe(export_name = "__pender")]
fn pender(_context: *mut ()) {
    WORK.store(true, Ordering::SeqCst);
}

pub(crate) struct Executor(raw::Executor);

impl Executor {
    pub(crate) fn new() -> Self {
        Self(raw::Executor::new(core::ptr::null_mut()))
    }

    pub(crate) fn run(&'static mut self, init: impl FnOnce(Spawner)) -> ! {
        init(self.0.spawner());
        loop {
            // SAFETY: there is no other call of `poll`, so it is not reentrant.
            unsafe { self.0.poll() };
            // A pending interrupt ends WFI even when masked, so a wake-up between the check and the sleep is not lost.
            cortex_m::interrupt::disable();
            if !WORK.swap(false, Ordering::SeqCst) {
                cortex_m::asm::wfi();
            }
            // SAFETY: no critical section is open here.
            unsafe { cortex_m::interrupt::enable() };
        }
    }
}
