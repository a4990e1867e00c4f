//! `cargo xtask size`: measures memory use and package sizes, compares them with the committed tables, and checks that
//! the core contains no reachable panic.

mod elf;
mod known_panics;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};

use self::elf::Program;
use crate::measurements::Measurements;
use xtask::files;
use xtask::firmware::{self, EMULATED, NUCLEO, PICO, SIZE_PROGRAMS};
use xtask::npm_size;
use xtask::setup::Need;
use xtask::shell::Shell;
use xtask::stages::SIZE;
use xtask::targets::{RISCV, THUMB, THUMB_M4, THUMB_M33};
use xtask::tasks;

const TARGET_DIR: &str = "target/size";
const TABLE: &str = "bench/size/table.md";
const UPDATE: &str = "cargo xtask size mcu --update";
/// The maximum size of initialised variables in each firmware, in bytes.
const MAX_DATA: u64 = 1_024;

/// The targets of the core alone, with their names in the table.
const CORES: [(&str, &str); 3] = [(THUMB, "thumbv6m"), (THUMB_M4, "thumbv7em"), (RISCV, "riscv32imc")];
/// The programs without a network driver: name in the table, optimisation level, program, features.
const CORE_PROGRAMS: [(&str, &str, &str, &[&str]); 7] = [
    ("core_raknet_client", "z", "client", &["full"]),
    ("core_raknet_client", "s", "client", &["full"]),
    ("core_raknet_client", "3", "client", &["full"]),
    ("core_raknet_minimal_client", "z", "client", &[]),
    ("core_game_client", "s", "game", &[]),
    ("snowfight_player", "s", "player", &["player"]),
    // Measured on one target, because the cryptographic primitives take long to build.
    ("core_raknet_secure_client", "s", "client", SECURE),
];
const SECURE: &[&str] = &["full", "secure"];
/// The programs in which no panic may be reached, with their features.
const NEVER_PANIC: [(&str, &[&str]); 4] =
    [("client", &["full"]), ("client", &[]), ("game", &[]), ("player", &["player"])];

/// The boards: folder, target, prefix of its program names, name in the table.
const BOARDS: [Board; 3] = [
    (EMULATED, THUMB_M4, "", "qemu"),
    (NUCLEO, THUMB_M4, "nucleo-", "nucleo"),
    (PICO, THUMB_M33, "pico2-", "pico2"),
];
/// The programs of each board other than its UDP echo, each with the name of the part that it adds to the echo.
const PROGRAMS_OF_A_BOARD: [(&str, &str); 2] = [("telemetry", "raknet"), ("player", "game")];

/// The options of the measurement.
#[derive(Args)]
pub(crate) struct Options {
    /// Rewrite the committed table instead of comparing with it.
    #[arg(long, global = true)]
    update: bool,
    /// The part to measure; everything by default.
    #[command(subcommand)]
    part: Option<Part>,
}

/// Parts that can be measured separately.
#[derive(Clone, Copy, PartialEq, Eq, Subcommand)]
enum Part {
    /// Flash and RAM on microcontrollers.
    Mcu,
    /// The entries of the npm package.
    Npm,
}

/// `cargo xtask size`.
pub(crate) fn command(shell: &Shell, options: &Options) -> Result<()> {
    if options.part != Some(Part::Npm) {
        tasks::set_up(shell, &SIZE)?;
        mcu(shell, Rows::All, options.update)?;
    }
    if options.part != Some(Part::Mcu) {
        tasks::set_up(shell, &[Need::NpmPackage, Need::BundlerPackages])?;
        npm_size::check(shell, &["--others"])?;
    }
    Ok(())
}

/// The stage of `cargo xtask ci`: the programs for one target, and those of the emulated board.
pub(crate) fn guard(shell: &Shell) -> Result<()> {
    mcu(shell, Rows::Guard, false)?;
    no_panic(shell, Rows::Guard)
}

/// The stage of `cargo xtask nightly`: everything.
pub(crate) fn all(shell: &Shell) -> Result<()> {
    mcu(shell, Rows::All, false)?;
    no_panic(shell, Rows::All)
}

/// The extent of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rows {
    /// One target, at the levels that optimise for size, and the emulated board.
    Guard,
    All,
}

impl Rows {
    fn has_core(self, target: &str, level: &str) -> bool {
        self == Self::All || (target == THUMB_M4 && level != "3")
    }

    fn boards(self) -> &'static [Board] {
        if self == Self::All { &BOARDS } else { &BOARDS[..1] }
    }
}

type Board = (&'static str, &'static str, &'static str, &'static str);

fn mcu(shell: &Shell, wanted: Rows, update: bool) -> Result<()> {
    let mut rows = BTreeMap::new();
    for (target, target_name) in CORES {
        let is_wanted = |level: &str, features: &[&str]| {
            wanted.has_core(target, level) && (features != SECURE || target == THUMB_M4)
        };
        for (what, level, binary, features) in
            CORE_PROGRAMS.into_iter().filter(|(_, level, _, features)| is_wanted(level, features))
        {
            let name = if level == "z" { "" } else { &format!("_opt_{level}") };
            let footprint = Program::read(&build(shell, target, level, binary, features)?)?.footprint()?;
            rows.insert(format!("{what}_{target_name}{name}_flash"), footprint.flash);
            rows.insert(format!("{what}_{target_name}{name}_ram"), footprint.ram);
        }
    }
    let profiles = build(shell, THUMB_M4, "s", "profiles", &["driver", "full"])?;
    rows.extend(Program::read(&profiles)?.symbols(&["resources_", "state_"])?);
    for board in wanted.boards() {
        firmwares(shell, *board, &mut rows)?;
    }
    let measured = Measurements { rustc: firmware::rustc(shell)?, rows };
    let committed = shell.read(TABLE)?;
    if update {
        // Keeps the text before the table.
        let introduction = committed.split("\nCompiler: ").next().unwrap_or_default();
        return files::write(&shell.path(TABLE), measured.write(introduction));
    }
    let mut table = Measurements::parse(&committed)?;
    if wanted == Rows::Guard {
        table.rows.retain(|name, _| measured.rows.contains_key(name));
    }
    table.check(&measured, UPDATE, &shell.log)?;
    shell.print(format_args!("{} sizes match {TABLE}, or are smaller", measured.rows.len()));
    Ok(())
}

/// Builds the programs of a board, and measures the memory that each adds to the board's UDP echo.
fn firmwares(shell: &Shell, board: Board, rows: &mut BTreeMap<String, u64>) -> Result<()> {
    let mut measure = |program: &str| -> Result<u64> {
        let footprint = built_firmware(shell, board, program)?.footprint()?;
        let (.., board) = board;
        if footprint.data >= MAX_DATA {
            bail!(
                "the firmware {program} of {board} has {} bytes of initialised variables, which also take flash",
                footprint.data
            );
        }
        rows.insert(format!("firmware_{board}_{program}_flash"), footprint.flash);
        rows.insert(format!("firmware_{board}_{program}_ram"), footprint.ram);
        rows.insert(format!("firmware_{board}_{program}_data"), footprint.data);
        Ok(footprint.flash)
    };
    let echo = measure("echo")?;
    let mut added = Vec::new();
    for (program, what) in PROGRAMS_OF_A_BOARD {
        added.push((format!("added_{}_{what}_flash", board.3), measure(program)?.saturating_sub(echo)));
    }
    rows.extend(added);
    Ok(())
}

fn built_firmware(shell: &Shell, (folder, target, prefix, _): Board, program: &str) -> Result<Program> {
    let binary = format!("{prefix}{program}");
    let built = firmware::build(shell, folder, target, &["--bin", &binary])?;
    Program::read(&firmware::built(&built, target, &binary)?)
}

/// Checks that the programs contain no reachable panic, by linking them with an undefined panic handler.
fn no_panic(shell: &Shell, wanted: Rows) -> Result<()> {
    for (target, name) in CORES {
        for level in ["s", "3"].into_iter().filter(|level| wanted.has_core(target, level)) {
            for (program, features) in NEVER_PANIC {
                let features = [&["no-panic"], features].concat();
                build(shell, target, level, program, &features).with_context(|| {
                    format!("a panic can be reached in {program} on {name} at level {level}")
                })?;
            }
        }
    }
    if build(shell, THUMB_M4, "s", "client", &["no-panic", "deliberate-panic"]).is_ok() {
        bail!("a deliberate panic went unnoticed");
    }
    known_panics::check(&secure_client(shell, "full,secure")?.panicking()?)?;
    if known_panics::check(&secure_client(shell, "full,secure,deliberate-panic")?.panicking()?).is_ok() {
        bail!("a deliberate panic in the secure client went unnoticed");
    }
    shell.print("the secure client contains only the panics of its primitives listed in xtask/tools/src/size/known_panics.rs");
    shell.print("no panic can be reached in the clients and the player, and a deliberate one is detected");
    Ok(())
}

/// Links the secure client with its relocations, from which calls are found.
fn secure_client(shell: &Shell, features: &str) -> Result<Program> {
    let args = ["rustc", "--release", "--locked", "--target", THUMB_M4, "--bin", "client", "--features"];
    let args = args.into_iter().chain([features, "--", "-C", "link-arg=--emit-relocs"]);
    let folder = shell.path(TARGET_DIR).join("s");
    shell
        .cmd_for(THUMB_M4, SIZE_PROGRAMS, "cargo", args)
        .env("CARGO_TARGET_DIR", &folder)
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "s")
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
    // Each optimisation level has its own target folder, so that a second run has nothing to build.
    let folder = shell.path(TARGET_DIR).join(level);
    shell
        .cmd_for(target, SIZE_PROGRAMS, "cargo", args)
        .env("CARGO_TARGET_DIR", &folder)
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", level)
        .env("CARGO_PROFILE_RELEASE_DEBUG", "none")
        .run()?;
    firmware::built(&folder, target, binary)
}
