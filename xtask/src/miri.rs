//! Miri, an interpreter that detects undefined behaviour and overflows in tests.

use anyhow::Result;

use crate::setup::{MIRI_TOOLCHAIN, Need};
use crate::shell::Shell;

/// The needs of the stage.
pub const NEEDS: [Need; 1] = [Need::Miri];

/// Modules of the core with tests for Miri: those that compute with indices and bits. The core itself has no unsafe
/// code, but its dependencies do.
const MODULES: [&str; 4] = ["storage::", "cursor::", "codec::bits::", "codec::rabbit::"];

/// The stage of `cargo xtask nightly`.
pub fn stage(shell: &Shell) -> Result<()> {
    let args = ["miri", "test", "--package", "rakwire", "--lib", "--"].into_iter().chain(MODULES);
    let target_dir = shell.path("target/miri");
    let command = shell
        .cmd("cargo", args)
        .env("RUSTUP_TOOLCHAIN", MIRI_TOOLCHAIN)
        .env("CARGO_TARGET_DIR", target_dir)
        // Miri must not isolate the tests, because bolero's harnesses search for the folder of a fuzzer.
        .env("MIRIFLAGS", "-Zmiri-strict-provenance -Zmiri-disable-isolation");
    command.run()
}
