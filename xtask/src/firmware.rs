//! Packages for microcontrollers, which are outside of the repository's workspace.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::process::Cmd;
use crate::shell::Shell;
use crate::targets::{RISCV, THUMB, THUMB_M4, THUMB_M33};

/// The common target folder, so that shared dependencies are built once.
const TARGET_DIR: &str = "target/firmware";
/// The firmware for QEMU.
pub const EMULATED: &str = "embedded/firmware/qemu-mps2";
/// The code that firmwares share.
const COMMON: &str = "embedded/firmware/common";
/// The firmware for the Nucleo.
pub const NUCLEO: &str = "embedded/firmware/nucleo-h743zi2";
/// The firmware for the Pico 2.
pub const PICO: &str = "embedded/firmware/pico2-w5500";
/// The Wi-Fi example for the Pico W.
pub const PICO_W: &str = "embedded/firmware/pico-w";
/// The Wi-Fi example for the Pico 2 W.
pub const PICO_2_W: &str = "embedded/firmware/pico2-w";
/// The Wi-Fi example for the ESP32-C3.
pub const ESP32C3: &str = "embedded/firmware/esp32c3";
/// Programs that are built only to measure their size.
pub const SIZE_PROGRAMS: &str = "bench/size";

/// Placeholders for the build-time variables of the Wi-Fi examples, which xtask builds but does not run.
const WIFI: [(&str, &str); 2] =
    [("RAKWIRE_WIFI", "not a network"), ("RAKWIRE_WIFI_PASSWORD", "not a password")];

/// The packages, their targets, and their other build options.
const PACKAGES: [(&str, &str, &[&str]); 8] = [
    (EMULATED, THUMB_M4, &["--features", "secure,server"]),
    (COMMON, THUMB_M4, &[]),
    (NUCLEO, THUMB_M4, &[]),
    (PICO, THUMB_M33, &[]),
    (PICO_W, THUMB, &[]),
    (PICO_2_W, THUMB_M33, &[]),
    (ESP32C3, RISCV, &[]),
    (SIZE_PROGRAMS, THUMB_M4, &["--features", "driver,player"]),
];

/// Checks the formatting and lints of all packages for microcontrollers.
pub fn lints(shell: &Shell) -> Result<()> {
    lints_of(shell, |_| true)
}

/// Checks the formatting of all packages for microcontrollers, and the lints of those for QEMU and the size tables.
pub fn emulated_lints(shell: &Shell) -> Result<()> {
    lints_of(shell, |folder| [EMULATED, COMMON, SIZE_PROGRAMS].contains(&folder))
}

fn lints_of(shell: &Shell, is_wanted: fn(&str) -> bool) -> Result<()> {
    let clippy = |folder: &str, target, more: &[&str]| {
        let args =
            [&["clippy", "--release", "--locked", "--target", target], more, &["--", "-D", "warnings"]];
        cargo(shell, folder, target, &args.concat()).run()
    };
    for (folder, target, more) in PACKAGES {
        shell.cmd_in(folder, "cargo", ["fmt", "--check"]).run()?;
        if is_wanted(folder) {
            clippy(folder, target, more)?;
        }
    }
    clippy(".", THUMB_M4, &["--package", "rakwire-embassy", "--features", "defmt,ipv6,secure"])
}

/// Builds a firmware, and returns the folder of its binaries.
pub fn build(shell: &Shell, folder: &str, target: &'static str, more: &[&str]) -> Result<PathBuf> {
    let args = [&["build", "--release", "--locked", "--target", target], more].concat();
    cargo(shell, folder, target, &args).run()?;
    Ok(shell.path(TARGET_DIR))
}

fn cargo(shell: &Shell, folder: &str, target: &str, args: &[&str]) -> Cmd {
    let command = shell.cmd_for(target, folder, "cargo", args.iter().copied());
    let command = command.env("CARGO_TARGET_DIR", shell.path(TARGET_DIR));
    WIFI.into_iter().fold(command, |command, (name, value)| command.env(name, value))
}

/// Returns the path of a built firmware.
pub fn built(target_dir: &Path, target: &str, name: &str) -> Result<PathBuf> {
    let path = target_dir.join(target).join("release").join(name);
    if !path.is_file() {
        bail!("the build did not produce {}", path.display());
    }
    Ok(path)
}

/// Returns the version line of the compiler for firmware.
pub fn rustc(shell: &Shell) -> Result<String> {
    let version = shell.cmd_for(THUMB_M4, ".", "rustc", ["--version"]).probe()?;
    Ok(version.context("rustc did not print its version")?.trim().to_owned())
}
