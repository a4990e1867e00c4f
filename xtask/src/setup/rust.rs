//! Components and targets of the Rust toolchain.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::system::Done;
use crate::shell::{CROSS_TOOLCHAIN, Shell};
use crate::targets::STATIC;

const FALLBACK: &str = ".ci/cross-toolchain";
const DOWNLOAD: Duration = Duration::from_secs(300);

pub(super) fn components(shell: &Shell) -> Result<Done> {
    let mut absent = Vec::new();
    for (command, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if shell.cmd("cargo", [command, "--version"]).probe()?.is_none() {
            absent.push(component);
        }
    }
    if absent.is_empty() {
        return Ok(Done::Present("rustfmt and clippy are installed".to_owned()));
    }
    let args = ["component", "add"].into_iter().chain(absent.iter().copied());
    shell.cmd("rustup", args).limit(DOWNLOAD).run()?;
    Ok(Done::Installed(absent.join(" and ")))
}

/// The toolchain with Miri, which stable toolchains do not include.
pub const MIRI_TOOLCHAIN: &str = "nightly";
const MIRI_INSTALL: [&str; 5] =
    ["toolchain", "install", MIRI_TOOLCHAIN, "--profile=minimal", "--component=miri,rust-src"];

pub(super) fn miri(shell: &Shell) -> Result<Done> {
    let miri = || {
        let cargo = shell.cmd("cargo", ["miri", "--version"]).env("RUSTUP_AUTO_INSTALL", "0");
        cargo.env("RUSTUP_TOOLCHAIN", MIRI_TOOLCHAIN).probe()
    };
    if let Some(version) = miri()? {
        return Ok(Done::Present(format!("{} is present", version.trim())));
    }
    shell.cmd("rustup", MIRI_INSTALL).limit(DOWNLOAD).run()?;
    let version = miri()?.context("rustup installed Miri, but it does not run")?;
    Ok(Done::Installed(version.trim().to_owned()))
}

/// Makes a target available: from the toolchain, by rustup, or by the linked toolchain.
fn target(shell: &Shell, target: &'static str) -> Result<Done> {
    if has_target(shell, None, target)? {
        return Ok(Done::Present(format!("{target} is present")));
    }
    if has_target(shell, Some(CROSS_TOOLCHAIN), target)? {
        shell.use_cross_toolchain(target);
        return Ok(Done::Present(format!("{target} is in the linked toolchain `{CROSS_TOOLCHAIN}`")));
    }
    let added = shell.cmd("rustup", ["target", "add", target]).limit(DOWNLOAD).run();
    let Err(error) = added else {
        return Ok(Done::Installed(target.to_owned()));
    };
    if target == STATIC {
        return Err(error.context("static programs need the standard library that rustup fetches"));
    }
    shell.note(format_args!("rustup cannot install {target} ({error:#})."));
    shell.note(format_args!(
        "Building it from the distribution's Rust instead, as the toolchain `{CROSS_TOOLCHAIN}`."
    ));
    shell.cmd("bash", [FALLBACK, target]).run()?;
    if !has_target(shell, Some(CROSS_TOOLCHAIN), target)? {
        bail!("{FALLBACK} succeeded, but the toolchain `{CROSS_TOOLCHAIN}` has no {target}");
    }
    shell.use_cross_toolchain(target);
    Ok(Done::Installed(format!("{target}, in the linked toolchain `{CROSS_TOOLCHAIN}`")))
}

/// Makes several targets available.
pub(super) fn targets(shell: &Shell, targets: &[&'static str]) -> Result<Done> {
    let mut installed = Vec::new();
    for name in targets {
        if let Done::Installed(what) = target(shell, name)? {
            installed.push(what);
        }
    }
    match installed.is_empty() {
        true => Ok(Done::Present(format!("{} are installed", targets.join(", ")))),
        false => Ok(Done::Installed(installed.join(", "))),
    }
}

fn has_target(shell: &Shell, toolchain: Option<&str>, target: &str) -> Result<bool> {
    let rustc = shell.cmd("rustc", ["--print", "sysroot"]).with(|command| {
        if let Some(toolchain) = toolchain {
            command.env("RUSTUP_TOOLCHAIN", toolchain);
        }
    });
    let sysroot = rustc.probe()?;
    Ok(sysroot.is_some_and(|sysroot| {
        Path::new(sysroot.trim()).join("lib/rustlib").join(target).join("lib").is_dir()
    }))
}
