//! The compilation targets other than the host, by their rustc names.

/// The smallest microcontroller target: Arm cores without atomic compare-and-swap.
pub const THUMB: &str = "thumbv6m-none-eabi";
/// The target of Cortex-M4 and M7: the emulated board and the Nucleo.
pub const THUMB_M4: &str = "thumbv7em-none-eabihf";
/// The target of Cortex-M33: the Pico 2.
pub const THUMB_M33: &str = "thumbv8m.main-none-eabihf";
/// The target of small RISC-V cores.
pub const RISCV: &str = "riscv32imc-unknown-none-elf";
/// The target of programs that need no system library: Linux with musl, on the host's architecture.
pub const STATIC: &str =
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-musl" } else { "x86_64-unknown-linux-musl" };
/// Desktop and phone targets that are only built, because no test here can run on them.
pub const ELSEWHERE: [&str; 4] =
    [WINDOWS, "aarch64-apple-darwin", "aarch64-apple-ios", "aarch64-linux-android"];
/// Windows, with the linker of MinGW.
pub const WINDOWS: &str = "x86_64-pc-windows-gnu";
/// The browser target.
pub const WASM: &str = "wasm32-unknown-unknown";
