//! Set-up: what the commands need on this machine, installed or built where it is missing.

mod browser;
mod emulator;
mod npm;
mod peers;
mod rust;
mod system;
mod tools;

use anyhow::{Result, anyhow};

use crate::artifacts;
use crate::schedule::{Constraints, Load, Resource};
use crate::shell::Shell;
use crate::tasks;

pub(crate) use emulator::QEMU;
pub(crate) use rust::{RISCV, THUMB, THUMB_M4, THUMB_M33, WASM, oldest_rust};

/// One thing that a command needs.
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
    Packages,
    Peers,
    /// The npm package.
    NpmPackage,
    /// The package of the game's client.
    GamePackage,
    /// The page of the demo.
    Page,
    /// The programs of the demo.
    Programs,
    /// The tests of all crates, and with them their programs.
    HostTests,
    /// The program that measures.
    Benchmark,
}

/// What a step of the set-up found or did.
pub(crate) enum Done {
    Present(String),
    Installed(String),
}

impl Need {
    /// What is installed, not built from this repository.
    pub(crate) const TOOLS: [Self; 16] = [
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
        Self::Packages,
        Self::Peers,
    ];

    /// Its name, how much it takes of the machine, and what must be ready before.
    #[rustfmt::skip]
    fn facts(self) -> (&'static str, Load, Option<Resource>, &'static [Self]) {
        match self {
            Self::Node => ("node", Load::None, None, &[]),
            Self::Components => ("rust components", Load::None, Some(Resource::Toolchains), &[]),
            Self::OldestRust => ("oldest rust", Load::None, Some(Resource::Toolchains), &[]),
            Self::ThumbTarget => ("rust target for microcontrollers", Load::None, Some(Resource::Toolchains), &[]),
            Self::WasmTarget => ("rust target for browsers", Load::None, Some(Resource::Toolchains), &[]),
            Self::FirmwareTargets => ("rust targets of the firmwares", Load::None, Some(Resource::Toolchains), &[]),
            Self::Chromium => ("chromium", Load::None, Some(Resource::SystemPackages), &[]),
            Self::Valgrind => ("valgrind", Load::None, Some(Resource::SystemPackages), &[]),
            Self::Qemu => ("qemu", Load::None, Some(Resource::SystemPackages), &[]),
            Self::DefmtPrint => ("defmt-print", Load::Full, Some(Resource::Tools), &[]),
            Self::WasmBindgen => ("wasm-bindgen", Load::Full, Some(Resource::Tools), &[]),
            Self::WasmPack => ("wasm-pack", Load::Full, Some(Resource::Tools), &[]),
            Self::CargoDeny => ("cargo-deny", Load::Full, Some(Resource::Tools), &[]),
            Self::CargoFuzz => ("cargo-fuzz", Load::Full, Some(Resource::Tools), &[]),
            Self::Packages => ("npm packages", Load::None, None, &[Self::Node]),
            // Its script installs packages of the system, too.
            Self::Peers => ("foreign RakNet peers", Load::Full, Some(Resource::SystemPackages), &[]),
            Self::NpmPackage => ("npm package", Load::Full, Some(Resource::NpmProfile), &Self::FOR_NPM_PACKAGE),
            Self::GamePackage => ("game package", Load::Full, Some(Resource::NpmProfile), &Self::FOR_GAME_PACKAGE),
            Self::Page => ("page", Load::Full, None, &[Self::NpmPackage, Self::GamePackage, Self::Packages]),
            Self::Programs => ("programs", Load::Full, Some(Resource::DevProfile), &[]),
            Self::HostTests => ("host tests", Load::Full, Some(Resource::DevProfile), &[]),
            Self::Benchmark => ("benchmark", Load::Full, Some(Resource::ReleaseProfile), &[]),
        }
    }

    const FOR_NPM_PACKAGE: [Self; 4] = [Self::WasmTarget, Self::WasmBindgen, Self::WasmPack, Self::Packages];
    const FOR_GAME_PACKAGE: [Self; 3] = [Self::WasmTarget, Self::WasmBindgen, Self::WasmPack];

    pub(crate) fn name(self) -> &'static str {
        self.facts().0
    }

    pub(crate) fn constraints(self, after: Vec<usize>) -> Constraints {
        let (_, load, resource, _) = self.facts();
        Constraints { load, resource, after }
    }

    pub(crate) fn requires(self) -> &'static [Self] {
        self.facts().3
    }

    /// Sees to it that it is there.
    pub(crate) fn install(self, shell: &Shell) -> Result<Done> {
        let done = match self {
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
            Self::Packages => npm::packages(shell),
            Self::Peers => peers::build(shell),
            Self::NpmPackage => artifacts::npm_package(shell).map(Done::Installed),
            Self::GamePackage => artifacts::game_package(shell).map(Done::Installed),
            Self::Page => artifacts::page(shell).map(Done::Installed),
            Self::Programs => artifacts::programs(shell).map(Done::Installed),
            Self::HostTests => artifacts::host_tests(shell).map(Done::Installed),
            Self::Benchmark => artifacts::benchmark(shell).map(Done::Installed),
        };
        done.map_err(|reason| {
            let by_hand = self.by_hand(shell);
            let by_hand = by_hand.map_or_else(String::new, |by_hand| format!("\n  by hand: {by_hand}"));
            anyhow!("the set-up step \"{}\" failed: {reason:#}{by_hand}", self.name())
        })
    }

    /// What a person can do where the step failed.
    fn by_hand(self, shell: &Shell) -> Option<String> {
        let text = match self {
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
            Self::Packages => "`npm ci` in wasm/ and in web/".to_owned(),
            Self::Peers => format!("`bash {}`, and read what it says", peers::SCRIPT),
            Self::NpmPackage
            | Self::GamePackage
            | Self::Page
            | Self::Programs
            | Self::HostTests
            | Self::Benchmark => return None,
        };
        Some(text)
    }
}

/// Sees to it that all this is there. What was seen to before, in this run, is not looked at again.
pub(crate) fn run(shell: &Shell, needs: &[Need]) -> Result<()> {
    tasks::run(shell, &missing(shell, needs), &[]).into_result()
}

/// What is not known to be ready of these and of all that they require, each after what it requires.
pub(crate) fn missing(shell: &Shell, needs: &[Need]) -> Vec<Need> {
    let mut order = Vec::new();
    needs.iter().for_each(|need| visit(shell, *need, &mut order));
    order
}

fn visit(shell: &Shell, need: Need, order: &mut Vec<Need>) {
    if !order.contains(&need) && !shell.is_ready(need) {
        need.requires().iter().for_each(|other| visit(shell, *other, order));
        order.push(need);
    }
}

/// Removes what the installation left behind.
pub(crate) fn clean(shell: &Shell) {
    tools::clean(shell);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_required_comes_first_and_once() {
        let shell = Shell::new().unwrap();
        let order = missing(&shell, &[Need::Page, Need::Node]);
        let place = |need| order.iter().position(|other| *other == need).unwrap();
        for need in &order {
            assert!(need.requires().iter().all(|other| place(*other) < place(*need)), "{need:?}");
        }
        assert_eq!(order.iter().filter(|need| **need == Need::WasmPack).count(), 1);
        assert!(!order.contains(&Need::Chromium));
    }

    #[test]
    fn what_is_ready_is_not_looked_at_again() {
        let shell = Shell::new().unwrap();
        shell.set_ready(Need::Node);
        assert_eq!(missing(&shell, &[Need::Packages]), [Need::Packages]);
    }
}
