//! What the standard library would bring along: the allocator, and what happens at a panic.

#[cfg(not(feature = "std"))]
use core::panic::PanicInfo;

/// Smaller than the standard one, for a module that allocates little and seldom.
#[global_allocator]
static ALLOCATOR: rlsf::SmallGlobalTlsf = rlsf::SmallGlobalTlsf::new();

/// The module traps, which JavaScript sees as an exception. A message would take 10 KB of code that writes it.
#[cfg(not(feature = "std"))]
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
