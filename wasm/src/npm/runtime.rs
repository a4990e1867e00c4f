//! Replacements for the standard library: the allocator and the panic handler.

#[cfg(not(feature = "std"))]
use core::panic::PanicInfo;

/// Smaller than the standard one, for a module that rarely allocates.
#[global_allocator]
static ALLOCATOR: rlsf::SmallGlobalTlsf = rlsf::SmallGlobalTlsf::new();

/// The module traps, which is an exception in JavaScript. A message would need 10 KB of formatting code.
#[cfg(not(feature = "std"))]
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
