//! What happens at a panic: the module traps, which JavaScript sees as an exception. A message would take 10 KB of code
//! that writes it.

use core::panic::PanicInfo;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
