//! Set-up: what the commands need on this machine, installed or built where it is missing.

mod browser;
mod done;
mod need;
mod npm;
mod peers;
mod rust;
mod system;
mod tools;

use anyhow::{Result, anyhow};

pub use self::done::Done;
pub use self::need::Need;
pub use self::peers::{PROGRAMS as PEERS, websockify};
pub use self::rust::{MIRI_TOOLCHAIN, promised_rust};
use crate::artifacts;
use crate::fields;
use crate::schedule::Resource;
use crate::shell::Shell;
use crate::tools_of_xtask;

/// QEMU for Arm boards: the program, and the package of the distribution.
pub const QEMU: &str = "qemu-system-arm";

/// What makes and boots a bare Debian.
const BARE_DEBIAN: [(&str, &str); 2] =
    [("/usr/sbin/debootstrap", "debootstrap"), ("/usr/bin/systemd-nspawn", "systemd-container")];

/// What GameNetworkingSockets is built with.
const CMAKE: [(&str, &str); 4] = [
    ("/usr/bin/cmake", "cmake"),
    ("/usr/bin/protoc", "protobuf-compiler"),
    ("/usr/include/google/protobuf/message.h", "libprotobuf-dev"),
    ("/usr/include/openssl/evp.h", "libssl-dev"),
];

/// Sees to it that what is needed is there.
pub fn install(need: Need, shell: &Shell) -> Result<Done> {
    let done = match need {
        Need::Node => npm::node(shell),
        Need::Components => rust::components(shell),
        Need::OldestRust => rust::oldest(shell),
        Need::ThumbTarget | Need::WasmTarget | Need::StaticTarget | Need::FirmwareTargets => {
            rust::targets(shell, need.rust_targets())
        }
        Need::MuslCompiler => system::program(shell, "musl-gcc", "musl-tools"),
        Need::Chromium => browser::chromium(shell),
        Need::Firefox => browser::firefox(shell),
        Need::CppCompiler => system::program(shell, "c++", "g++"),
        Need::Cmake => system::files(shell, &CMAKE),
        Need::Nginx => system::daemon(shell, "nginx", "nginx-light"),
        Need::HaProxy => system::daemon(shell, "haproxy", "haproxy"),
        Need::Caddy => system::daemon(shell, "caddy", "caddy"),
        Need::Systemd => system::program(shell, "systemd-analyze", "systemd"),
        Need::WebKit => system::program(shell, "WebKitWebDriver", "webkit2gtk-driver"),
        Need::Xvfb => system::program(shell, "Xvfb", "xvfb"),
        Need::OpenSsl => system::program(shell, "openssl", "openssl"),
        Need::CertUtil => system::program(shell, "certutil", "libnss3-tools"),
        Need::IpRoute => system::program(shell, "ip", "iproute2"),
        Need::Nftables => system::files(shell, &[("/usr/sbin/nft", "nftables")]),
        Need::BareDebian => system::files(shell, &BARE_DEBIAN),
        Need::Valgrind => system::program(shell, "valgrind", "valgrind"),
        Need::Qemu => system::program(shell, QEMU, QEMU),
        Need::TShark => system::program(shell, "tshark", "tshark"),
        Need::Redis => system::daemon(shell, "redis-server", "redis-server"),
        Need::DefmtPrint => tools::defmt_print(shell),
        Need::WasmBindgen => tools::wasm_bindgen(shell),
        Need::WasmPack => tools::wasm_pack(shell),
        Need::CargoDeny => tools::cargo_deny(shell),
        Need::CargoFuzz => tools::cargo_fuzz(shell),
        Need::CargoMutants => tools::cargo_mutants(shell),
        Need::CargoSemverChecks => tools::cargo_semver_checks(shell),
        Need::Miri => rust::miri(shell),
        Need::Verifpal => tools::verifpal(shell),
        Need::Packages | Need::BundlerPackages | Need::RuntimePackages | Need::ExamplePackages => {
            npm::packages(shell, need.npm_folders())
        }
        Need::PythonPeer => peers::build(shell, &["python"]),
        Need::CppPeer => peers::build(shell, &["cpp"]),
        Need::Peers => peers::build(shell, &[]),
        Need::Tools => tools_of_xtask::build(shell).map(Done::Installed),
        Need::NpmPackage => artifacts::npm_package(shell).map(Done::Installed),
        Need::GamePackage => artifacts::game_package(shell).map(Done::Installed),
        Need::Page => artifacts::page(shell).map(Done::Installed),
        Need::Programs => artifacts::programs(shell).map(Done::Installed),
        Need::DemoWasm => artifacts::demo_wasm(shell).map(Done::Installed),
        Need::DemoPage => artifacts::demo_page(shell).map(Done::Installed),
        Need::DemoPrograms => artifacts::demo_programs(shell).map(Done::Installed),
        Need::HostTests => artifacts::host_tests(shell).map(Done::Installed),
        Need::FastRelay => artifacts::fast_relay(shell).map(Done::Installed),
        Need::Benchmark => artifacts::benchmark(shell).map(Done::Installed),
        Need::FieldsPeer => fields::build(shell).map(Done::Installed),
    };
    done.map_err(|reason| {
        let by_hand = by_hand(need, shell);
        let by_hand = by_hand.map_or_else(String::new, |by_hand| format!("\n  by hand: {by_hand}"));
        anyhow!("the set-up step \"{}\" failed: {reason:#}{by_hand}", need.name())
    })
}

/// How those needs are met that take longest.
const DOING: [(Need, &str); 13] = [
    (Need::Tools, "compiles the part of xtask that not every command has"),
    (Need::NpmPackage, "compiles the client for browsers and its TypeScript"),
    (Need::GamePackage, "compiles the game for browsers"),
    (Need::Page, "bundles the page"),
    (Need::Programs, "compiles the game server, the relay and the command-line tool"),
    (Need::HostTests, "compiles the tests of all crates"),
    (Need::FastRelay, "compiles it for speed"),
    (Need::Benchmark, "compiles it for speed"),
    (Need::FieldsPeer, "compiles them for speed"),
    (Need::Packages, "npm fetches them"),
    (Need::PythonPeer, "fetches a wheel of the original RakNet"),
    (Need::CppPeer, "fetches and compiles the original RakNet"),
    (Need::Peers, "fetches and compiles other RakNets"),
];

/// Says how a need is met that is not there.
pub fn doing(need: Need) -> &'static str {
    let slow = DOING.iter().find(|(other, _)| *other == need);
    slow.map_or_else(
        || match need.constraints(vec![]).resource {
            Some(Resource::Tools) => "cargo compiles and installs it",
            Some(Resource::Toolchains) => "rustup fetches it",
            Some(Resource::SystemPackages) => "the system's package manager installs it",
            Some(Resource::DevProfile | Resource::ReleaseProfile | Resource::NpmProfile) => "compiles it",
            None => "looks for it",
        },
        |(_, doing)| doing,
    )
}

/// What a person can do where the step failed.
fn by_hand(need: Need, shell: &Shell) -> Option<String> {
    let text = match need {
        Need::Node => {
            "install Node 20 or newer with npm, for example `apt-get install nodejs npm`".to_owned()
        }
        Need::Components => "`rustup component add rustfmt clippy`".to_owned(),
        Need::OldestRust => rust::oldest_by_hand(shell),
        Need::ThumbTarget | Need::WasmTarget | Need::StaticTarget | Need::FirmwareTargets => {
            rust::by_hand(need.rust_targets())
        }
        Need::Chromium => "`apt-get install chromium`, or set CHROMIUM to its path".to_owned(),
        Need::Firefox => "`apt-get install firefox-esr`, or set FIREFOX to its path".to_owned(),
        Need::CppCompiler => "install a C++ compiler, for example `apt-get install g++`".to_owned(),
        Need::Cmake => system::by_hand(&CMAKE),
        Need::Nginx => "install nginx, for example `apt-get install nginx-light`".to_owned(),
        Need::HaProxy => "install HAProxy, for example `apt-get install haproxy`".to_owned(),
        Need::Caddy => "install Caddy, for example `apt-get install caddy`".to_owned(),
        Need::Systemd => "install systemd, for example `apt-get install systemd`".to_owned(),
        Need::WebKit => "install WebKit's driver, for example `apt-get install webkit2gtk-driver`".to_owned(),
        Need::Xvfb => "install Xvfb, for example `apt-get install xvfb`".to_owned(),
        Need::OpenSsl => "install OpenSSL, for example `apt-get install openssl`".to_owned(),
        Need::CertUtil => "install certutil, for example `apt-get install libnss3-tools`".to_owned(),
        Need::IpRoute => "install iproute2, for example `apt-get install iproute2`".to_owned(),
        Need::Nftables => "install nft, for example `apt-get install nftables`".to_owned(),
        Need::BareDebian => system::by_hand(&BARE_DEBIAN),
        Need::Valgrind => "install valgrind, for example `apt-get install valgrind`".to_owned(),
        Need::MuslCompiler => "`apt-get install musl-tools`".to_owned(),
        Need::Qemu => format!("`apt-get install {QEMU}`"),
        Need::TShark => "`apt-get install tshark`".to_owned(),
        Need::Redis => "`apt-get install redis-server`".to_owned(),
        Need::DefmtPrint => format!("`cargo install --locked defmt-print@{}`", tools::DEFMT_PRINT),
        Need::WasmBindgen => "`cargo build --package xtask-bindgen`, and read what it says".to_owned(),
        Need::WasmPack => format!("`cargo install --locked wasm-pack@{}`", tools::WASM_PACK),
        Need::CargoDeny => format!("`cargo install --locked cargo-deny@{}`", tools::CARGO_DENY),
        Need::CargoFuzz => format!("`cargo install --locked cargo-fuzz@{}`", tools::CARGO_FUZZ),
        Need::CargoMutants => format!("`cargo install --locked cargo-mutants@{}`", tools::CARGO_MUTANTS),
        Need::CargoSemverChecks => {
            format!("`cargo install --locked cargo-semver-checks@{}`", tools::CARGO_SEMVER_CHECKS)
        }
        Need::Miri => rust::miri_by_hand(),
        Need::Verifpal => tools::verifpal_by_hand(),
        Need::Packages | Need::BundlerPackages | Need::RuntimePackages | Need::ExamplePackages => {
            format!("`npm ci` in {}/", need.npm_folders().join("/ and "))
        }
        Need::PythonPeer | Need::CppPeer | Need::Peers => {
            format!("`bash {}`, and read what it says", peers::SCRIPT)
        }
        Need::Tools
        | Need::NpmPackage
        | Need::GamePackage
        | Need::Page
        | Need::Programs
        | Need::DemoWasm
        | Need::DemoPage
        | Need::DemoPrograms
        | Need::HostTests
        | Need::FastRelay
        | Need::Benchmark
        | Need::FieldsPeer => return None,
    };
    Some(text)
}

/// Removes what the installation left behind.
pub fn clean(shell: &Shell) {
    tools::clean(shell);
}
