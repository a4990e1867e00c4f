//! `cargo xtask size`: how much memory everything takes, compared with the committed table; and whether a panic is left
//! in the core.

mod elf;
mod known_panics;
mod profile;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use serde_json::json;

use self::elf::Program;
use crate::firmware::{self, EMULATED, NUCLEO, PICO, SIZE_PROGRAMS};
use crate::measurements::Measurements;
use crate::npm_size;
use crate::setup::Need;
use crate::shell::Shell;
use crate::targets::{RISCV, THUMB, THUMB_M4, THUMB_M33};
use crate::tasks;

const TARGET_DIR: &str = "target/size";
const TABLE: &str = "bench/size/table.md";
const RESULT: &str = "target/size/mcu.json";
const UPDATE: &str = "cargo xtask size mcu --update";
/// Variables with a first value, at most, in each firmware.
const MOST_DATA: u64 = 1_024;

const INTRODUCTION: &str = "\
# Sizes on microcontrollers

Sizes in bytes, measured by `cargo xtask size mcu`, which compares them with this table;
`cargo xtask size mcu --update` rewrites the table. `core_raknet_client` is a RakNet client without a driver,
`core_raknet_secure_client` the same with secure connections (`cargo xtask size profile` says what these consist of), and `core_game_client` one of the Game Protocol; `snowfight_player` unpacks the messages of the game's server with
Rabbit, stores the world and decides, without a transport. Without an `opt` in its name a program is optimised for size
(`z`). `firmware` are the programs of the boards, with embassy, network and logging (`s`): a plain UDP echo, the
telemetry example with RakNet, and the player of the game with the Game Protocol and Rabbit. `added` is the flash of
these two beyond that of the echo: protocol, driver and the program itself. RAM excludes the stack; `data` is the part of
it whose initial values also take flash. `resources` is the memory of the protocol for a profile, `state` includes that
of the driver and the socket; `game` are those of the Game Protocol.
";

/// The targets of the core alone, with their names in the table.
const CORES: [(&str, &str); 3] = [(THUMB, "thumbv6m"), (THUMB_M4, "thumbv7em"), (RISCV, "riscv32imc")];
const LEVELS: [&str; 3] = ["z", "s", "3"];
/// The other programs without a driver, measured at one level: program, feature, name in the table.
const OTHERS: [(&str, &str, &str); 2] =
    [("game", "", "core_game_client"), ("player", "player", "snowfight_player")];
const LEVEL_OF_OTHERS: &str = "s";

/// The boards: folder, target, what the names of its programs begin with, name in the table.
const BOARDS: [(&str, &str, &str, &str); 3] = [
    (EMULATED, THUMB_M4, "", "qemu"),
    (NUCLEO, THUMB_M4, "nucleo-", "nucleo"),
    (PICO, THUMB_M33, "pico2-", "pico2"),
];
/// What each board has besides its UDP echo: the program, and what is in it beyond the echo.
const PROGRAMS_OF_A_BOARD: [(&str, &str); 2] = [("telemetry", "raknet"), ("player", "game")];

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
    /// The entries of the npm package.
    Npm,
    /// What takes the flash of secure connections on a microcontroller, part by part.
    Profile,
}

/// `cargo xtask size`.
pub(crate) fn command(shell: &Shell, options: &Options) -> Result<()> {
    if matches!(options.part, Some(Part::Profile)) {
        tasks::set_up(shell, &NEEDS)?;
        return secure_profile(shell);
    }
    if !matches!(options.part, Some(Part::Npm)) {
        tasks::set_up(shell, &NEEDS)?;
        mcu(shell, options.update)?;
    }
    if !matches!(options.part, Some(Part::Mcu)) {
        tasks::set_up(shell, &[Need::NpmPackage])?;
        npm_size::check(shell)?;
    }
    Ok(())
}

/// The stage of `cargo xtask test`.
pub(crate) fn stage(shell: &Shell) -> Result<()> {
    mcu(shell, false)?;
    no_panic(shell)
}

fn mcu(shell: &Shell, update: bool) -> Result<()> {
    let mut rows = BTreeMap::new();
    for (target, name) in CORES {
        for level in LEVELS {
            let client = build(shell, target, level, "client", &[])?;
            let footprint = Program::read(&client)?.footprint()?;
            let opt = if level == "z" { String::new() } else { format!("_opt_{level}") };
            rows.insert(format!("core_raknet_client_{name}{opt}_flash"), footprint.flash);
            rows.insert(format!("core_raknet_client_{name}{opt}_ram"), footprint.ram);
        }
        // Measured on one target, since building its primitives takes long.
        let secure = (target == THUMB_M4).then_some(("client", "secure", "core_raknet_secure_client"));
        for (program, feature, what) in OTHERS.into_iter().chain(secure) {
            let program = build(shell, target, LEVEL_OF_OTHERS, program, &[feature])?;
            let footprint = Program::read(&program)?.footprint()?;
            rows.insert(format!("{what}_{name}_opt_{LEVEL_OF_OTHERS}_flash"), footprint.flash);
            rows.insert(format!("{what}_{name}_opt_{LEVEL_OF_OTHERS}_ram"), footprint.ram);
        }
    }
    let profiles = build(shell, THUMB_M4, "s", "profiles", &["driver"])?;
    rows.extend(Program::read(&profiles)?.symbols(&["resources_", "state_"])?);
    for board in BOARDS {
        firmwares(shell, board, &mut rows)?;
    }
    let measured = Measurements { rustc: firmware::rustc(shell)?, rows };
    write_result(&shell.path(RESULT), &measured)?;
    let path = shell.path(TABLE);
    if update {
        fs::write(&path, measured.write(INTRODUCTION))
            .with_context(|| format!("{TABLE} cannot be written"))?;
        return Ok(());
    }
    Measurements::parse(&shell.read(TABLE)?)?.check(&measured, UPDATE, &shell.log)?;
    shell.print(format_args!("{} sizes are as {TABLE} says, or smaller", measured.rows.len()));
    Ok(())
}

/// Prints what a secure client has more than a plain one.
fn secure_profile(shell: &Shell) -> Result<()> {
    let client = |feature| Program::read(&build(shell, THUMB_M4, LEVEL_OF_OTHERS, "client", &[feature])?);
    let (plain, secure) = (client("")?, client("secure")?);
    let more = secure.footprint()?.flash.saturating_sub(plain.footprint()?.flash);
    shell.print(profile::table(&plain.symbols(&[""])?, &secure.symbols(&[""])?, more));
    Ok(())
}

/// The programs of a board, and what they add to its UDP echo.
fn firmwares(
    shell: &Shell,
    (folder, target, prefix, board): (&str, &'static str, &str, &str),
    rows: &mut BTreeMap<String, u64>,
) -> Result<()> {
    let mut measure = |program: &str| -> Result<u64> {
        let binary = format!("{prefix}{program}");
        let built = firmware::build(shell, folder, target, &["--bin", &binary])?;
        let footprint = Program::read(&firmware::built(&built, target, &binary)?)?.footprint()?;
        if footprint.data >= MOST_DATA {
            bail!("the firmware {binary} has {} bytes of variables that take flash, too", footprint.data);
        }
        rows.insert(format!("firmware_{board}_{program}_flash"), footprint.flash);
        rows.insert(format!("firmware_{board}_{program}_ram"), footprint.ram);
        rows.insert(format!("firmware_{board}_{program}_data"), footprint.data);
        Ok(footprint.flash)
    };
    let echo = measure("echo")?;
    let mut added = Vec::new();
    for (program, what) in PROGRAMS_OF_A_BOARD {
        added.push((format!("added_{board}_{what}_flash"), measure(program)?.saturating_sub(echo)));
    }
    rows.extend(added);
    Ok(())
}

/// Links the clients with a panic handler that nobody defines: only a program without a reachable panic links.
fn no_panic(shell: &Shell) -> Result<()> {
    for (target, name) in CORES {
        for level in ["s", "3"] {
            for (program, feature, _) in [("client", "", "")].iter().chain(&OTHERS) {
                build(shell, target, level, program, &["no-panic", feature]).with_context(|| {
                    format!("a panic can be reached in {program} on {name} at level {level}")
                })?;
            }
        }
    }
    if build(shell, THUMB_M4, "s", "client", &["no-panic", "deliberate-panic"]).is_ok() {
        bail!("a deliberate panic went unnoticed");
    }
    known_panics::check(&secure_client(shell, "secure")?.panicking()?)?;
    if known_panics::check(&secure_client(shell, "secure,deliberate-panic")?.panicking()?).is_ok() {
        bail!("a deliberate panic in the secure client went unnoticed");
    }
    shell.print("the secure client has the panics of its primitives that xtask/src/size/known_panics.rs lists, and no others");
    shell.print("no panic can be reached in the clients and the player, and a deliberate one is noticed");
    Ok(())
}

/// The secure client with its relocations, in which calls can be found.
fn secure_client(shell: &Shell, features: &str) -> Result<Program> {
    let args = ["rustc", "--release", "--locked", "--target", THUMB_M4, "--bin", "client", "--features"];
    let args = args.into_iter().chain([features, "--", "-C", "link-arg=--emit-relocs"]);
    let folder = shell.path(TARGET_DIR).join(LEVEL_OF_OTHERS);
    shell
        .cmd_for(THUMB_M4, SIZE_PROGRAMS, "cargo", args)
        .with(|command| {
            command.env("CARGO_TARGET_DIR", &folder).env("CARGO_PROFILE_RELEASE_OPT_LEVEL", LEVEL_OF_OTHERS);
        })
        .run()?;
    Program::read(&firmware::built(&folder, THUMB_M4, "client")?)
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
        .cmd_for(target, SIZE_PROGRAMS, "cargo", args)
        .with(|command| {
            command.env("CARGO_TARGET_DIR", &folder).env("CARGO_PROFILE_RELEASE_OPT_LEVEL", level);
        })
        .run()?;
    firmware::built(&folder, target, binary)
}

fn write_result(path: &Path, measured: &Measurements) -> Result<()> {
    let mut object = json!({ "rustc": measured.rustc });
    for (name, number) in &measured.rows {
        object[name] = (*number).into();
    }
    let folder = path.parent().context("the result lies in no folder")?;
    fs::create_dir_all(folder).and_then(|()| fs::write(path, format!("{object:#}\n")))?;
    Ok(())
}
