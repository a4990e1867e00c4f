//! Set-up: what the commands need on this machine, installed where it is missing.

mod browser;
mod emulator;
mod npm;
mod peers;
mod rust;
mod system;
mod tools;

use std::time::Instant;

use anyhow::{Result, anyhow};

use crate::shell::Shell;

pub(crate) use emulator::QEMU;
pub(crate) use rust::{RISCV, THUMB, THUMB_M4, THUMB_M33, WASM, oldest_rust};

/// One thing that a command needs. The order is the order of installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    Node,
    Components,
    OldestRust,
    ThumbTarget,
    WasmTarget,
    FirmwareTargets,
    Chromium,
    Valgrind,
    Qemu,
    DefmtPrint,
    WasmBindgen,
    WasmPack,
    CargoDeny,
    CargoFuzz,
    CargoMutants,
    Packages,
    Peers,
}

/// What a step of the set-up found or did.
pub(crate) enum Done {
    Present(String),
    Installed(String),
}

impl Need {
    pub(crate) const ALL: [Self; 17] = [
        Self::Node,
        Self::Components,
        Self::OldestRust,
        Self::ThumbTarget,
        Self::WasmTarget,
        Self::FirmwareTargets,
        Self::Chromium,
        Self::Valgrind,
        Self::Qemu,
        Self::DefmtPrint,
        Self::WasmBindgen,
        Self::WasmPack,
        Self::CargoDeny,
        Self::CargoFuzz,
        Self::CargoMutants,
        Self::Packages,
        Self::Peers,
    ];

    /// What building the npm package and the page takes.
    pub(crate) const PAGE: [Self; 5] =
        [Self::Node, Self::WasmTarget, Self::WasmBindgen, Self::WasmPack, Self::Packages];

    fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Components => "rust components",
            Self::OldestRust => "the oldest Rust that the core promises",
            Self::ThumbTarget => "rust target for microcontrollers",
            Self::WasmTarget => "rust target for browsers",
            Self::FirmwareTargets => "rust targets of the firmwares",
            Self::Chromium => "chromium",
            Self::Valgrind => "valgrind",
            Self::Qemu => "qemu",
            Self::DefmtPrint => "defmt-print",
            Self::WasmBindgen => "wasm-bindgen",
            Self::WasmPack => "wasm-pack",
            Self::CargoDeny => "cargo-deny",
            Self::CargoFuzz => "cargo-fuzz",
            Self::CargoMutants => "cargo-mutants",
            Self::Packages => "npm packages",
            Self::Peers => "foreign RakNet peers",
        }
    }

    fn install(self, shell: &mut Shell) -> Result<Done> {
        match self {
            Self::Node => npm::node(shell),
            Self::Components => rust::components(shell),
            Self::OldestRust => rust::oldest(shell),
            Self::ThumbTarget => rust::target(shell, THUMB),
            Self::WasmTarget => rust::target(shell, WASM),
            Self::FirmwareTargets => rust::targets(shell, &[THUMB_M4, THUMB_M33, RISCV]),
            Self::Chromium => browser::chromium(shell),
            Self::Valgrind => system::valgrind(shell),
            Self::Qemu => emulator::qemu(shell),
            Self::DefmtPrint => tools::defmt_print(shell),
            Self::WasmBindgen => tools::wasm_bindgen(shell),
            Self::WasmPack => tools::wasm_pack(shell),
            Self::CargoDeny => tools::cargo_deny(shell),
            Self::CargoFuzz => tools::cargo_fuzz(shell),
            Self::CargoMutants => tools::cargo_mutants(shell),
            Self::Packages => npm::packages(shell),
            Self::Peers => peers::build(shell),
        }
    }

    /// What a person can do where the step failed.
    fn by_hand(self, shell: &Shell) -> String {
        match self {
            Self::Node => {
                "install Node 20 or newer with npm, for example `apt-get install nodejs npm`".to_owned()
            }
            Self::Components => "`rustup component add rustfmt clippy`".to_owned(),
            Self::OldestRust => {
                let version = oldest_rust(shell).unwrap_or_else(|_| "VERSION".to_owned());
                format!("`rustup toolchain install {version} --profile minimal`")
            }
            Self::ThumbTarget => rust::by_hand(THUMB),
            Self::WasmTarget => rust::by_hand(WASM),
            Self::Chromium => {
                "install Chromium, for example `apt-get install chromium`, or set CHROMIUM to its path"
                    .to_owned()
            }
            Self::Valgrind => "install valgrind, for example `apt-get install valgrind`".to_owned(),
            Self::FirmwareTargets => rust::by_hand(&[THUMB_M4, THUMB_M33, RISCV].join(" ")),
            Self::Qemu => format!("`apt-get install {QEMU}`"),
            Self::DefmtPrint => format!("`cargo install --locked defmt-print@{}`", tools::DEFMT_PRINT),
            Self::WasmBindgen => {
                let version = tools::locked_version(shell).unwrap_or_else(|_| "VERSION".to_owned());
                format!("`cargo install wasm-bindgen-cli@{version}`")
            }
            Self::WasmPack => format!("`cargo install --locked wasm-pack@{}`", tools::WASM_PACK),
            Self::CargoDeny => format!("`cargo install --locked cargo-deny@{}`", tools::CARGO_DENY),
            Self::CargoFuzz => format!("`cargo install --locked cargo-fuzz@{}`", tools::CARGO_FUZZ),
            Self::CargoMutants => format!("`cargo install --locked cargo-mutants@{}`", tools::CARGO_MUTANTS),
            Self::Packages => "`npm ci` in wasm/ and in web/".to_owned(),
            Self::Peers => format!("`bash {}`, and read what it says", peers::SCRIPT),
        }
    }
}

/// Sees to it that all this is there. What was seen to before, in this run, is not looked at again.
pub(crate) fn run(shell: &mut Shell, needs: &[Need]) -> Result<()> {
    let mut missing: Vec<Need> = needs.iter().copied().filter(|need| !shell.ready.contains(need)).collect();
    missing.sort_unstable();
    missing.dedup();
    for need in missing {
        let started = Instant::now();
        let done = need.install(shell).map_err(|reason| {
            let by_hand = need.by_hand(shell);
            anyhow!("the set-up step \"{}\" failed: {reason:#}\n  by hand: {by_hand}", need.name())
        })?;
        shell.ready.insert(need);
        match done {
            Done::Present(what) => eprintln!("set-up: {}: {what}", need.name()),
            Done::Installed(what) => {
                eprintln!("set-up: {}: {what} ({:.1} s)", need.name(), started.elapsed().as_secs_f64());
            }
        }
    }
    tools::clean(shell);
    Ok(())
}
