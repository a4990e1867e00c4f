//! Replacements for the standard library: the allocator and the panic handler.

#[cfg(not(feature = "std"))]
use core::panic::PanicInfo;

/// Its code is smaller than that of the default allocator, and the module rarely allocates.
#[global_allocator]
static ALLOCATOR: rlsf::SmallGlobalTlsf = rlsf::SmallGlobalTlsf::new();

/// Traps, which throws an exception in JavaScript. A panic message would need 10 KB of formatting code.
#[cfg(not(feature = "std"))]
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
