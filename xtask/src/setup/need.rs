//! What commands need: how much it takes to have it, and what must be there before.

use crate::schedule::{Constraints, Load, Resource};
use crate::targets::{RISCV, STATIC, THUMB, THUMB_M4, THUMB_M33, WASM};

/// One thing that a command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Node with npm.
    Node,
    /// The formatter and the lints of Rust.
    Components,
    /// The oldest Rust that the published crates promise.
    OldestRust,
    /// The target of small microcontrollers.
    ThumbTarget,
    /// The target of browsers.
    WasmTarget,
    /// The targets of the firmwares.
    FirmwareTargets,
    /// The target of programs that need no library of the system.
    StaticTarget,
    /// What compiles C for it.
    MuslCompiler,
    /// The browser Chromium.
    Chromium,
    /// The browser Firefox.
    Firefox,
    /// WebKit, what drives it, and its display.
    WebKit,
    /// A screen for programs that ask for one.
    Xvfb,
    /// What makes certificates for tests.
    OpenSsl,
    /// What lets Firefox trust them.
    CertUtil,
    /// What joins the network namespaces of tests.
    IpRoute,
    /// What translates addresses in them as routers do.
    Nftables,
    /// What the fuzzer's own code is built with.
    CppCompiler,
    /// CMake, and the libraries that GameNetworkingSockets is built with.
    Cmake,
    /// The reverse proxies that the relay is tested behind.
    Nginx,
    /// HAProxy.
    HaProxy,
    /// Caddy.
    Caddy,
    /// What checks the units of the relay.
    Systemd,
    /// What makes and boots a bare Debian. Only the trial of the relay's guide needs it.
    BareDebian,
    /// What counts instructions.
    Valgrind,
    /// The emulator of Arm boards.
    Qemu,
    /// What reads captures of RakNet.
    TShark,
    /// Where game servers announce themselves.
    Redis,
    /// The reader of the logs of firmwares.
    DefmtPrint,
    /// The program that writes the glue between WebAssembly and JavaScript.
    WasmBindgen,
    /// The program that packs WebAssembly for npm.
    WasmPack,
    /// The check of licences and sources.
    CargoDeny,
    /// The program that runs the targets of fuzzing.
    CargoFuzz,
    /// The program that puts faults into code.
    CargoMutants,
    /// What compares interfaces. Only a release needs it.
    CargoSemverChecks,
    /// The interpreter that finds undefined behaviour.
    Miri,
    /// What looks for attacks in models of protocols.
    Verifpal,
    /// The npm packages that ours is built with, and the pages.
    Packages,
    /// Those of the tests with bundlers.
    BundlerPackages,
    /// Those of other runtimes than browsers.
    RuntimePackages,
    /// Those of the examples of pages.
    ExamplePackages,
    /// The foreign RakNet that is there in seconds: a wheel.
    PythonPeer,
    /// The original RakNet.
    CppPeer,
    /// All foreign RakNets.
    Peers,
    /// The part of xtask that takes long to compile.
    Tools,
    /// The npm package.
    NpmPackage,
    /// The package of the game's client.
    GamePackage,
    /// The page of the game, as it is published.
    Page,
    /// The programs for people.
    Programs,
    /// The WebAssembly of the demo, built to be there soon.
    DemoWasm,
    /// The page with it.
    DemoPage,
    /// The programs of the demo.
    DemoPrograms,
    /// The tests of all crates, and with them their programs.
    HostTests,
    /// The relay, built for speed.
    FastRelay,
    /// The program that measures.
    Benchmark,
    /// The program around libraries other than RakNet.
    FieldsPeer,
}

const RUST_TARGETS: [(Need, &[&str]); 4] = [
    (Need::ThumbTarget, &[THUMB]),
    (Need::WasmTarget, &[WASM]),
    (Need::StaticTarget, &[STATIC]),
    (Need::FirmwareTargets, &[THUMB_M4, THUMB_M33, RISCV]),
];

/// The folders of npm packages. Those of the runtimes are programs for Linux on x86-64, which npm refuses elsewhere.
const NPM_FOLDERS: [(Need, &[&str]); 4] = [
    (Need::Packages, &["wasm", "web"]),
    (Need::BundlerPackages, &["wasm/tests/bundlers"]),
    (Need::RuntimePackages, &["wasm/tests/runtimes"]),
    (Need::ExamplePackages, &["web/examples"]),
];

impl Need {
    /// What is installed, not built from this repository.
    pub(crate) const TOOLS: [Self; 41] = [
        Self::Node,
        Self::Components,
        Self::OldestRust,
        Self::ThumbTarget,
        Self::WasmTarget,
        Self::FirmwareTargets,
        Self::StaticTarget,
        Self::MuslCompiler,
        Self::Chromium,
        Self::Firefox,
        Self::WebKit,
        Self::Xvfb,
        Self::OpenSsl,
        Self::CertUtil,
        Self::IpRoute,
        Self::Nftables,
        Self::CppCompiler,
        Self::Cmake,
        Self::Nginx,
        Self::HaProxy,
        Self::Caddy,
        Self::Systemd,
        Self::Valgrind,
        Self::Qemu,
        Self::TShark,
        Self::Redis,
        Self::DefmtPrint,
        Self::WasmBindgen,
        Self::WasmPack,
        Self::CargoDeny,
        Self::CargoFuzz,
        Self::CargoMutants,
        Self::Miri,
        Self::Verifpal,
        Self::Packages,
        Self::BundlerPackages,
        Self::RuntimePackages,
        Self::ExamplePackages,
        Self::PythonPeer,
        Self::CppPeer,
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
            Self::StaticTarget => ("rust target of static programs", Load::None, Some(Resource::Toolchains), &[]),
            Self::MuslCompiler => ("musl-gcc", Load::None, Some(Resource::SystemPackages), &[]),
            Self::Chromium => ("chromium", Load::None, Some(Resource::SystemPackages), &[]),
            Self::Firefox => ("firefox", Load::None, Some(Resource::SystemPackages), &[]),
            Self::WebKit => ("webkit", Load::None, Some(Resource::SystemPackages), &[]),
            Self::Xvfb => ("xvfb", Load::None, Some(Resource::SystemPackages), &[]),
            Self::OpenSsl => ("openssl", Load::None, Some(Resource::SystemPackages), &[]),
            Self::CertUtil => ("certutil", Load::None, Some(Resource::SystemPackages), &[]),
            Self::IpRoute => ("ip", Load::None, Some(Resource::SystemPackages), &[]),
            Self::Nftables => ("nft", Load::None, Some(Resource::SystemPackages), &[]),
            Self::CppCompiler => ("C++ compiler", Load::None, Some(Resource::SystemPackages), &[]),
            Self::Cmake => ("cmake and its libraries", Load::None, Some(Resource::SystemPackages), &[]),
            Self::Nginx => ("nginx", Load::None, Some(Resource::SystemPackages), &[]),
            Self::HaProxy => ("haproxy", Load::None, Some(Resource::SystemPackages), &[]),
            Self::Caddy => ("caddy", Load::None, Some(Resource::SystemPackages), &[]),
            Self::Systemd => ("systemd", Load::None, Some(Resource::SystemPackages), &[]),
            Self::BareDebian => ("bare debian", Load::None, Some(Resource::SystemPackages), &[]),
            Self::Valgrind => ("valgrind", Load::None, Some(Resource::SystemPackages), &[]),
            Self::Qemu => ("qemu", Load::None, Some(Resource::SystemPackages), &[]),
            Self::TShark => ("tshark", Load::None, Some(Resource::SystemPackages), &[]),
            Self::Redis => ("redis", Load::None, Some(Resource::SystemPackages), &[]),
            Self::DefmtPrint => ("defmt-print", Load::Full, Some(Resource::Tools), &[]),
            Self::WasmBindgen => ("wasm-bindgen", Load::Full, Some(Resource::DevProfile), &[]),
            Self::WasmPack => ("wasm-pack", Load::Full, Some(Resource::Tools), &[Self::WasmTarget, Self::WasmBindgen]),
            Self::CargoDeny => ("cargo-deny", Load::Full, Some(Resource::Tools), &[]),
            Self::CargoFuzz => ("cargo-fuzz", Load::Full, Some(Resource::Tools), &[]),
            Self::CargoMutants => ("cargo-mutants", Load::Full, Some(Resource::Tools), &[]),
            Self::CargoSemverChecks => ("cargo-semver-checks", Load::Full, Some(Resource::Tools), &[]),
            Self::Miri => ("miri", Load::None, Some(Resource::Toolchains), &[]),
            Self::Verifpal => ("verifpal", Load::Full, Some(Resource::Tools), &[Self::Miri]),
            Self::Packages => ("npm packages", Load::None, None, &[Self::Node]),
            Self::BundlerPackages => ("npm packages of bundlers", Load::None, None, &[Self::Node]),
            Self::RuntimePackages => ("npm packages of runtimes", Load::None, None, &[Self::Node]),
            Self::ExamplePackages => ("npm packages of examples", Load::None, None, &[Self::Node]),
            // Its script installs packages of the system, too.
            Self::PythonPeer => ("foreign RakNet from Python", Load::None, Some(Resource::SystemPackages), &[]),
            Self::CppPeer => ("foreign RakNet in C++", Load::Full, Some(Resource::SystemPackages), &[]),
            Self::Peers => ("foreign RakNet peers", Load::Full, Some(Resource::SystemPackages), &[]),
            Self::Tools => ("tools of xtask", Load::Full, Some(Resource::DevProfile), &[]),
            Self::NpmPackage => ("npm package", Load::Full, Some(Resource::NpmProfile), &Self::FOR_NPM_PACKAGE),
            Self::GamePackage => ("game package", Load::Full, Some(Resource::NpmProfile), &Self::FOR_GAME_PACKAGE),
            Self::Page => ("page", Load::Full, None, &[Self::NpmPackage, Self::GamePackage, Self::Packages]),
            Self::Programs => ("programs", Load::Full, Some(Resource::DevProfile), &[]),
            Self::DemoWasm => ("WebAssembly of the demo", Load::Full, Some(Resource::DevProfile), &Self::FOR_NPM_PACKAGE),
            Self::DemoPage => ("page of the demo", Load::Full, None, &[Self::DemoWasm]),
            Self::DemoPrograms => ("programs of the demo", Load::Full, Some(Resource::DevProfile), &[]),
            Self::HostTests => ("host tests", Load::Full, Some(Resource::DevProfile), &[]),
            Self::FastRelay => ("relay for the benchmark", Load::Full, Some(Resource::ReleaseProfile), &[]),
            Self::Benchmark => ("benchmark", Load::Full, Some(Resource::ReleaseProfile), &[]),
            Self::FieldsPeer => ("libraries other than RakNet", Load::Full, None, &[Self::CppCompiler, Self::Cmake]),
        }
    }

    const FOR_NPM_PACKAGE: [Self; 3] = [Self::WasmTarget, Self::WasmBindgen, Self::Packages];
    const FOR_GAME_PACKAGE: [Self; 2] = [Self::WasmTarget, Self::WasmBindgen];

    /// The targets of Rust that it is, if it is some.
    pub(super) fn rust_targets(self) -> &'static [&'static str] {
        RUST_TARGETS.iter().find(|(need, _)| *need == self).map_or(&[], |(_, targets)| targets)
    }

    /// The folders of the npm packages that it is, if it is some.
    pub(super) fn npm_folders(self) -> &'static [&'static str] {
        NPM_FOLDERS.iter().find(|(need, _)| *need == self).map_or(&[], |(_, folders)| folders)
    }

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

    /// These and all that they require, each once and after what it requires.
    pub(crate) fn with_required(needs: &[Self]) -> Vec<Self> {
        let mut order = Vec::new();
        needs.iter().for_each(|need| need.visit(&mut order));
        order
    }

    fn visit(self, order: &mut Vec<Self>) {
        if !order.contains(&self) {
            self.requires().iter().for_each(|other| other.visit(order));
            order.push(self);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_required_comes_first_and_once() {
        let order = Need::with_required(&[Need::Page, Need::Node]);
        let place = |need| order.iter().position(|other| *other == need).unwrap();
        for need in &order {
            assert!(need.requires().iter().all(|other| place(*other) < place(*need)), "{need:?}");
        }
        assert_eq!(order.iter().filter(|need| **need == Need::WasmBindgen).count(), 1);
        assert!(!order.contains(&Need::Chromium));
    }
}
