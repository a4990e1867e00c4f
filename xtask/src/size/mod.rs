//! `cargo xtask size`: how much memory everything takes, compared with the committed table; and whether a panic is left
//! in the core.

mod elf;
pub(crate) mod table;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use serde_json::json;

use self::elf::Program;
use self::table::Table;
use crate::mcu;
use crate::setup::{self, Need, RISCV, THUMB, THUMB_M4, THUMB_M33};
use crate::shell::Shell;

/// The programs that do nothing but be measured.
const PROGRAMS: &str = "embedded/size";
const TARGET_DIR: &str = "target/size";
const TABLE: &str = "embedded/size/table.md";
const RESULT: &str = "target/size/mcu.json";
const UPDATE: &str = "cargo xtask size mcu --update";
/// Variables with a first value, at most, in each firmware.
const MOST_DATA: u64 = 1_024;

const INTRODUCTION: &str = "\
# Sizes on microcontrollers

What `cargo xtask size mcu` measured, in bytes; it compares what it measures with this table, and
`cargo xtask size mcu --update` writes it anew. `core_raknet_client` is a RakNet client without a driver; without an
`opt` in its name it is optimised for size (`z`). `firmware` are the telemetry examples, with embassy, network and
logging (`s`). RAM is without the stack; `data` is the part of it whose first values also take flash. `resources` is the
memory of the protocol for a profile, `state` is that with the driver's and the socket's.
";

/// The targets of the core alone, with their names in the table.
const CORES: [(&str, &str); 3] = [(THUMB, "thumbv6m"), (THUMB_M4, "thumbv7em"), (RISCV, "riscv32imc")];
const LEVELS: [&str; 3] = ["z", "s", "3"];

/// The firmwares: folder, target, binary, name in the table.
const FIRMWARES: [(&str, &str, &str, &str); 3] = [
    (mcu::EMULATED, THUMB_M4, "telemetry", "qemu"),
    ("embedded/firmware/nucleo-h743zi2", THUMB_M4, "nucleo-telemetry", "nucleo"),
    ("embedded/firmware/pico2-w5500", THUMB_M33, "pico2-telemetry", "pico2"),
];

/// What the measuring needs.
pub(crate) const NEEDS: [Need; 2] = [Need::ThumbTarget, Need::FirmwareTargets];

/// What to measure.
#[derive(Args)]
pub(crate) struct Options {
    /// Write the committed table anew instead of comparing with it.
    #[arg(long, global = true)]
    update: bool,
    /// Everything, if none is named.
    #[command(subcommand)]
    part: Option<Part>,
}

/// What can be measured by itself.
#[derive(Clone, Copy, Subcommand)]
enum Part {
    /// Flash and RAM on microcontrollers.
    Mcu,
}

/// `cargo xtask size`.
pub(crate) fn command(shell: &mut Shell, options: &Options) -> Result<()> {
    match options.part {
        None | Some(Part::Mcu) => mcu(shell, options.update),
    }
}

/// The stage of `cargo xtask test`.
pub(crate) fn stage(shell: &mut Shell) -> Result<()> {
    mcu(shell, false)?;
    no_panic(shell)
}

fn mcu(shell: &mut Shell, update: bool) -> Result<()> {
    setup::run(shell, &NEEDS)?;
    let mut rows = BTreeMap::new();
    for (target, name) in CORES {
        for level in LEVELS {
            let client = build(shell, target, level, "client", &[])?;
            let footprint = Program::read(&client)?.footprint()?;
            let opt = if level == "z" { String::new() } else { format!("_opt_{level}") };
            rows.insert(format!("core_raknet_client_{name}{opt}_flash"), footprint.flash);
            rows.insert(format!("core_raknet_client_{name}{opt}_ram"), footprint.ram);
        }
    }
    let profiles = build(shell, THUMB_M4, "s", "profiles", &["driver"])?;
    rows.extend(Program::read(&profiles)?.symbols(&["resources_", "state_"])?);
    for (folder, target, binary, name) in FIRMWARES {
        let folder = mcu::build(shell, folder, target, &["--bin", binary])?;
        let footprint = Program::read(&mcu::built(&folder, target, binary)?)?.footprint()?;
        if footprint.data >= MOST_DATA {
            bail!("the firmware {name} has {} bytes of variables that take flash, too", footprint.data);
        }
        rows.insert(format!("firmware_{name}_flash"), footprint.flash);
        rows.insert(format!("firmware_{name}_ram"), footprint.ram);
        rows.insert(format!("firmware_{name}_data"), footprint.data);
    }
    let measured = Table { rustc: rustc(shell)?, rows };
    write_result(&shell.path(RESULT), &measured)?;
    let path = shell.path(TABLE);
    if update {
        fs::write(&path, measured.write(INTRODUCTION))
            .with_context(|| format!("{TABLE} cannot be written"))?;
        return Ok(());
    }
    Table::parse(&shell.read(TABLE)?)?.check(&measured, UPDATE)?;
    println!("{} sizes are as {TABLE} says, or smaller", measured.rows.len());
    Ok(())
}

/// Links the client with a panic handler that nobody defines: only a program without a reachable panic links.
fn no_panic(shell: &Shell) -> Result<()> {
    for (target, name) in CORES {
        for level in ["s", "3"] {
            build(shell, target, level, "client", &["no-panic"])
                .with_context(|| format!("a panic can be reached on {name} at level {level}"))?;
        }
    }
    if build(shell, THUMB_M4, "s", "client", &["no-panic", "planted-panic"]).is_ok() {
        bail!("a planted panic went unnoticed");
    }
    println!("no panic can be reached in the client, and a planted one is noticed");
    Ok(())
}

fn build(
    shell: &Shell,
    target: &'static str,
    level: &str,
    binary: &str,
    features: &[&str],
) -> Result<PathBuf> {
    let features = features.join(",");
    let args =
        ["build", "--release", "--locked", "--target", target, "--bin", binary, "--features", &features];
    // Each level has a folder, so that a second run has nothing to do.
    let folder = shell.path(TARGET_DIR).join(level);
    shell
        .cmd_for(target, PROGRAMS, "cargo", args)
        .with(|command| {
            command.env("CARGO_TARGET_DIR", &folder).env("CARGO_PROFILE_RELEASE_OPT_LEVEL", level);
        })
        .run()?;
    mcu::built(&folder, target, binary)
}

/// The compiler of the measured programs.
pub(crate) fn rustc(shell: &Shell) -> Result<String> {
    let version = shell.cmd_for(THUMB_M4, ".", "rustc", ["--version"]).probe()?;
    Ok(version.context("rustc does not tell its version")?.trim().to_owned())
}

fn write_result(path: &Path, measured: &Table) -> Result<()> {
    let mut object = json!({ "rustc": measured.rustc });
    for (name, number) in &measured.rows {
        object[name] = (*number).into();
    }
    let folder = path.parent().context("the result lies in no folder")?;
    fs::create_dir_all(folder).and_then(|()| fs::write(path, format!("{object:#}\n")))?;
    Ok(())
}
