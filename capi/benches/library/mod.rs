//! Builds the libraries that the C programs of the benchmarks link.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a command, which must succeed.
pub(crate) fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
    assert!(status.success(), "{command:?}");
}

/// Builds the libraries with `cargo build --release`, as users do, and returns their folder.
pub(crate) fn build(target: &Path, features: &str) -> PathBuf {
    run(Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--release", "--locked", "--lib", "--no-default-features", "--features"])
        .arg(features)
        .arg("--manifest-path")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))
        .arg("--target-dir")
        .arg(target));
    target.join("release")
}
