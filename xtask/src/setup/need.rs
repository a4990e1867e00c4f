//! The needs of commands: how each is installed, the load of the installation, and its prerequisites.

use anyhow::Result;

use super::rust;
use super::system::Done;
use super::tools::{self, Tool};
use crate::artifacts;
use crate::fields;
use crate::schedule::{Constraints, Load, Resource};
use crate::shell::Shell;
use crate::targets::{ELSEWHERE, RISCV, STATIC, THUMB, THUMB_M4, THUMB_M33, WASM};
use crate::tools_of_xtask;

/// QEMU for Arm boards: the program, and the package of the distribution.
pub const QEMU: &str = "qemu-system-arm";

/// Programs that create and boot a bare Debian. Only the test of the relay's guide needs them.
const BARE_DEBIAN: [(&str, &str); 2] =
    [("/usr/sbin/debootstrap", "debootstrap"), ("/usr/bin/systemd-nspawn", "systemd-container")];

/// Files that the build of GameNetworkingSockets needs, each with the Debian package that installs it.
const CMAKE: [(&str, &str); 4] = [
    ("/usr/bin/cmake", "cmake"),
    ("/usr/bin/protoc", "protobuf-compiler"),
    ("/usr/include/google/protobuf/message.h", "libprotobuf-dev"),
    ("/usr/include/openssl/evp.h", "libssl-dev"),
];

/// The way in which a need is met.
pub(super) enum How {
    /// Programs by name or files by path, each with its package of the distribution.
    System(&'static [(&'static str, &'static str)]),
    /// A browser: the variable with its path, the possible names of its program, and its package.
    Browser(&'static str, &'static [&'static str], &'static str),
    /// A tool that cargo compiles.
    Cargo(&'static Tool),
    /// Targets of Rust.
    Targets(&'static [&'static str]),
    /// Other components of Rust.
    Rust(fn(&Shell) -> Result<Done>),
    /// Node, which must be installed already.
    Node,
    /// The npm packages of these folders.
    Npm(&'static [&'static str]),
    /// The interop peers with these names; all if empty.
    Peers(&'static [&'static str]),
    /// Built from this repository, in a build folder that only one job at a time may use.
    Built(fn(&Shell) -> Result<String>, Option<Resource>),
}

/// Defines the list of needs: each with its name, the way in which it is met, and its prerequisites.
macro_rules! needs {
    ($($need:ident $name:literal: $how:expr $(, after [$($required:ident),*])?;)*) => {
        /// A requirement of a command.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Need {
            $(#[doc = concat!("It is called `", $name, "`.")] $need,)*
        }

        impl Need {
            const ALL: &[Self] = &[$(Self::$need),*];

            /// Returns its name in tables and logs.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$need => $name,)* }
            }

            pub(super) fn how(self) -> How {
                match self { $(Self::$need => $how,)* }
            }

            pub(crate) const fn requires(self) -> &'static [Self] {
                match self { $(Self::$need => &[$($(Self::$required),*)?],)* }
            }
        }
    };
}

needs! {
    Node "node": How::Node;
    Components "rust components": How::Rust(rust::components);
    ThumbTarget "rust target for microcontrollers": How::Targets(&[THUMB]);
    WasmTarget "rust target for browsers": How::Targets(&[WASM]);
    FirmwareTargets "rust targets of the firmwares": How::Targets(&[THUMB_M4, THUMB_M33, RISCV]);
    ElsewhereTargets "rust targets of Windows, macOS, iOS and Android": How::Targets(&ELSEWHERE);
    MinGw "mingw": How::System(&[("x86_64-w64-mingw32-gcc", "gcc-mingw-w64-x86-64")]);
    StaticTarget "rust target of static programs": How::Targets(&[STATIC]);
    MuslCompiler "musl-gcc": How::System(&[("musl-gcc", "musl-tools")]);
    Chromium "chromium": How::Browser("CHROMIUM", &["chromium", "google-chrome", "google-chrome-stable", "chromium-browser"], "chromium");
    Firefox "firefox": How::Browser("FIREFOX", &["firefox-esr", "firefox"], "firefox-esr");
    WebKit "webkit": How::System(&[("WebKitWebDriver", "webkit2gtk-driver")]);
    Xvfb "xvfb": How::System(&[("Xvfb", "xvfb")]);
    OpenSsl "openssl": How::System(&[("openssl", "openssl")]);
    CertUtil "certutil": How::System(&[("certutil", "libnss3-tools")]);
    IpRoute "ip": How::System(&[("ip", "iproute2")]);
    Nftables "nft": How::System(&[("nft", "nftables")]);
    CppCompiler "C++ compiler": How::System(&[("c++", "g++")]);
    PkgConfig "pkg-config": How::System(&[("pkg-config", "pkg-config")]);
    Cmake "cmake and its libraries": How::System(&CMAKE);
    Nginx "nginx": How::System(&[("nginx", "nginx-light")]);
    HaProxy "haproxy": How::System(&[("haproxy", "haproxy")]);
    Caddy "caddy": How::System(&[("caddy", "caddy")]);
    Systemd "systemd": How::System(&[("systemd-analyze", "systemd")]);
    BareDebian "bare debian": How::System(&BARE_DEBIAN);
    Mono "mono": How::System(&[("mcs", "mono-devel")]);
    Valgrind "valgrind": How::System(&[("valgrind", "valgrind")]);
    Qemu "qemu": How::System(&[(QEMU, QEMU)]);
    TShark "tshark": How::System(&[("tshark", "tshark")]);
    Redis "redis": How::System(&[("redis-server", "redis-server")]);
    MdBook "mdbook": How::Cargo(&tools::MDBOOK);
    DefmtPrint "defmt-print": How::Cargo(&tools::DEFMT_PRINT);
    WasmBindgen "wasm-bindgen": How::Built(tools::wasm_bindgen, Some(Resource::DevProfile));
    WasmPack "wasm-pack": How::Cargo(&tools::WASM_PACK), after [WasmTarget, WasmBindgen];
    CargoDeny "cargo-deny": How::Cargo(&tools::CARGO_DENY);
    CargoFuzz "cargo-fuzz": How::Cargo(&tools::CARGO_FUZZ);
    CargoHack "cargo-hack": How::Cargo(&tools::CARGO_HACK);
    CargoMutants "cargo-mutants": How::Cargo(&tools::CARGO_MUTANTS);
    CargoSemverChecks "cargo-semver-checks": How::Cargo(&tools::CARGO_SEMVER_CHECKS);
    Miri "miri": How::Rust(rust::miri);
    Verifpal "verifpal": How::Cargo(&tools::VERIFPAL), after [Miri];
    // The runtimes are programs for Linux on x86-64, which npm refuses on other systems.
    Packages "npm packages": How::Npm(&["wasm", "web"]), after [Node];
    BundlerPackages "npm packages of bundlers": How::Npm(&["wasm/tests/bundlers"]), after [Node];
    RuntimePackages "npm packages of runtimes": How::Npm(&["wasm/tests/runtimes"]), after [Node];
    ExamplePackages "npm packages of examples": How::Npm(&["web/examples"]), after [Node];
    PythonPeer "foreign RakNet from Python": How::Peers(&["python"]);
    CppPeer "foreign RakNet in C++": How::Peers(&["cpp"]);
    Peers "foreign RakNet peers": How::Peers(&[]);
    Tools "tools of xtask": How::Built(tools_of_xtask::build, Some(Resource::DevProfile));
    NpmPackage "npm package": How::Built(artifacts::npm_package, Some(Resource::NpmProfile)),
        after [WasmTarget, WasmBindgen, WasmPack, Packages];
    GamePackage "game package": How::Built(artifacts::game_package, Some(Resource::NpmProfile)),
        after [WasmTarget, WasmBindgen];
    Page "page": How::Built(artifacts::page, None), after [NpmPackage, GamePackage, Packages];
    Programs "programs": How::Built(artifacts::programs, Some(Resource::DevProfile));
    DemoWasm "WebAssembly of the demo": How::Built(artifacts::demo_wasm, Some(Resource::DevProfile)),
        after [WasmTarget, WasmBindgen, Packages];
    DemoPage "page of the demo": How::Built(artifacts::demo_page, None), after [DemoWasm];
    DemoPrograms "programs of the demo": How::Built(artifacts::demo_programs, Some(Resource::DevProfile));
    HostTests "host tests": How::Built(artifacts::host_tests, Some(Resource::DevProfile));
    FastRelay "relay for the benchmark": How::Built(artifacts::fast_relay, Some(Resource::ReleaseProfile));
    Benchmark "benchmark": How::Built(artifacts::benchmark, Some(Resource::ReleaseProfile));
    FieldsPeer "libraries other than RakNet": How::Built(fields::build, None), after [CppCompiler, Cmake];
}

impl Need {
    /// Returns everything that is installed, without the tools that only a release needs.
    pub(crate) fn tools() -> Vec<Self> {
        let is_rare = |need: Self| matches!(need, Self::BareDebian | Self::CargoSemverChecks);
        let is_built = |need: Self| need != Self::WasmBindgen && matches!(need.how(), How::Built(..));
        Self::ALL.iter().copied().filter(|need| !is_rare(*need) && !is_built(*need)).collect()
    }

    pub(crate) fn constraints(self, after: Vec<usize>) -> Constraints {
        let (load, resource) = match self.how() {
            How::System(_) | How::Browser(..) => (Load::None, Some(Resource::SystemPackages)),
            How::Cargo(_) => (Load::Full, Some(Resource::Tools)),
            How::Targets(_) | How::Rust(_) => (Load::None, Some(Resource::Toolchains)),
            How::Node | How::Npm(_) => (Load::None, None),
            // The script of the peers also installs system packages. The Python peer needs no compilation.
            How::Peers(["python"]) => (Load::None, Some(Resource::SystemPackages)),
            How::Peers(_) => (Load::Full, Some(Resource::SystemPackages)),
            How::Built(_, resource) => (Load::Full, resource),
        };
        Constraints { load, resource, after }
    }

    /// Returns these needs and their prerequisites. Each occurs once, after its own prerequisites.
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
    fn each_prerequisite_precedes_its_dependents_and_occurs_once() {
        let order = Need::with_required(&[Need::Page, Need::Node]);
        let place = |need| order.iter().position(|other| *other == need).unwrap();
        for need in &order {
            assert!(need.requires().iter().all(|other| place(*other) < place(*need)), "{need:?}");
        }
        assert_eq!(order.iter().filter(|need| **need == Need::WasmBindgen).count(), 1);
        assert!(!order.contains(&Need::Chromium));
    }

    #[test]
    fn setup_installs_tools_but_builds_no_programs_of_this_repository() {
        let tools = Need::tools();
        assert!(tools.contains(&Need::CargoDeny) && tools.contains(&Need::WasmBindgen));
        assert!(!tools.contains(&Need::Page) && !tools.contains(&Need::BareDebian));
    }
}
