//! Stages of published artefacts: crates, products in separate workspaces, and packages as their users get them.

use anyhow::Result;

use super::bevy;
use crate::artifacts;
use crate::interop;
use crate::schedule::{Load, Resource};
use crate::setup::Need;
use crate::shell::Shell;
use crate::site;
use crate::stage::{Stage, Tier};
use crate::targets::{ELSEWHERE, WINDOWS};
use crate::workspaces;

/// The needs of the npm package in runtimes other than browsers.
const RUNTIMES: [Need; 4] = [Need::Node, Need::NpmPackage, Need::RuntimePackages, Need::HostTests];

/// The needs of the tests of the packed npm package.
const BUNDLERS: [Need; 8] = [
    Need::Node,
    Need::NpmPackage,
    Need::BundlerPackages,
    Need::Chromium,
    Need::Firefox,
    Need::WebKit,
    Need::Xvfb,
    Need::HostTests,
];

/// Stages for the published crates.
#[rustfmt::skip]
pub(super) fn packages() -> [Stage; 4] {
    [
        Stage::in_tools("semver", "the public APIs respect semantic versioning, once there is a release to compare with", &[])
            .tier(Tier::Ci, "compares with a release"),
        Stage::in_tools("package", "every published crate can be packed, and compiles from its package", &[])
            .uses(Resource::DevProfile).tier(Tier::Ci, "compiles everything from packages"),
        Stage::new("msrv", "every published crate builds with its minimum Rust version", &[Need::CargoHack], msrv)
            .uses(Resource::DevProfile).tier(Tier::Nightly, "compiles everything with other compilers"),
        Stage::new("platforms", "native, plugins and the C library compile for Windows, macOS, iOS and Android; the library links for Windows",
            &[Need::ElsewhereTargets, Need::MinGw], platforms)
            .uses(Resource::DevProfile).tier(Tier::Nightly, "compiles the dependencies for four targets"),
    ]
}

/// Tests of products in separate workspaces.
#[rustfmt::skip]
pub(super) fn workspaces() -> [Stage; 9] {
    [
        Stage::in_workspace("capi", "the C library and its C++ headers: lints, bad input, foreign peers, installation",
            &[Need::CppCompiler, Need::Cmake, Need::PkgConfig, Need::Valgrind, Need::MinGw, Need::CppPeer])
            .tier(Tier::Nightly, "a separate workspace, and C programs with sanitizers and valgrind"),
        Stage::in_workspace("conformance", "each case of the conformance suite passes a model of RakNet, and fails the mutant of it", &[])
            .tier(Tier::Nightly, "a separate workspace, which few changes affect"),
        Stage::in_workspace("differential", "scripts of calls show applications the same on the original and on rakwire, or what is documented",
            &[Need::CppCompiler, Need::CppPeer])
            .tier(Tier::Nightly, "a separate workspace, and the original runs in real time"),
        Stage::new("interop-matrix", "every RakNet server with every client, checked by packet captures: the runner's tests, and the page",
            &[Need::HostTests, Need::Peers], interop::matrix)
            .uses(Resource::DevProfile).tier(Tier::Nightly, "takes a quarter of an hour, mostly of waiting"),
        Stage::in_workspace("locks", "the locks of the driver keep their promises in many orders of steps", &[])
            .tier(Tier::Nightly, "a separate workspace, which few changes affect"),
        Stage::new("csharp", "the C# binding and its transports, by Mono and .NET: header, events, errors, garbage, examples",
            &[Need::CppCompiler, Need::Mono], |shell| shell.cmd("csharp/check", [""; 0]).run())
            .tier(Tier::Nightly, "needs Mono and .NET"),
        Stage::new("python", "the Python package: lints, types, wheel, source distribution, tests with the original, programs of the documents",
            &[Need::CppPeer], |shell| shell.cmd("python/check", [""; 0]).run())
            .tier(Tier::Nightly, "compiles the driver in release profile, twice"),
        Stage::new("bevy", "the backend of bevy_replicon: lints, tests over loopback, a game with a page in Chromium",
            &bevy::NEEDS, bevy::check)
            .tier(Tier::Nightly, "a separate workspace that compiles Bevy, twice"),
        Stage::new("godot", "the extension for Godot 4: lints, tests over loopback, remote calls and wrong arguments in the engine, the example",
            &[], |shell| shell.cmd("godot/check", [""; 0]).run())
            .tier(Tier::Nightly, "a separate workspace that compiles the bindings of the engine, which it runs"),
    ]
}

/// Tests of the published packages as their users get them, and of their speed.
#[rustfmt::skip]
pub(super) fn products() -> [Stage; 7] {
    [
        Stage::new("runtimes", "the npm package in Node 20, 22 and 24, Deno and Bun: failures in each; the packed package in Deno and Bun",
            &RUNTIMES, runtime_tests)
            .load(Load::Half).tier(Tier::Ci, "takes half a minute, and its runtimes are large downloads"),
        Stage::new("bundlers", "the packed npm package with every bundler, in Chromium, Firefox and WebKit; its reference",
            &BUNDLERS, bundler_tests)
            .load(Load::Half).tier(Tier::Nightly, "needs three browsers and all bundlers"),
        Stage::new("examples", "the example pages build, and receive messages from a server in Chromium",
            &[Need::Node, Need::NpmPackage, Need::ExamplePackages, Need::Chromium, Need::HostTests], example_tests)
            .load(Load::Half).tier(Tier::Nightly, "tests frameworks of pages, which few changes affect"),
        Stage::new("site", "the book builds with the references and the demo, and its links are valid", &site::NEEDS, site::build)
            .uses(Resource::DevProfile).tier(Tier::Nightly, "compiles the book tool and all documentation"),
        Stage::in_tools("relay-package", "the Debian package of the relay is installed, started, drained and removed; its units and Dockerfile",
            &[Need::HostTests, Need::Systemd])
            .load(Load::Half).tier(Tier::Nightly, "needs its own root file system"),
        Stage::in_tools("release-files", "the files of a release: without Rust, a player in Node reaches a server with them",
            &[Need::Node, Need::NpmPackage, Need::StaticTarget, Need::MuslCompiler, Need::Cmake])
            .uses(Resource::ReleaseProfile).tier(Tier::Nightly, "compiles the programs with optimisation, twice, and the libraries"),
        Stage::in_tools("bench", "small runs of the benchmarks, with another RakNet, other libraries and a WebSocket echo",
            &[Need::Peers, Need::FastRelay, Need::Benchmark, Need::FieldsPeer])
            .load(Load::Alone).tier(Tier::Nightly, "needs the machine for itself"),
    ]
}

/// Builds every published crate with its minimum Rust version. The core is also built without its default features, as for
/// boards.
fn msrv(shell: &Shell) -> Result<()> {
    let selections: [&[&str]; 3] = [
        &["--workspace"],
        &["--workspace", "--all-features"],
        &["--package", "rakwire", "--no-default-features"],
    ];
    selections.into_iter().try_for_each(|selection| {
        let args = ["hack", "check", "--rust-version", "--ignore-private"].into_iter();
        shell.cmd("cargo", args.chain(selection.iter().copied())).run()
    })
}

/// Builds for Windows, and only checks the other targets: they cannot be linked on Linux without their vendors' SDKs.
fn platforms(shell: &Shell) -> Result<()> {
    for target in ELSEWHERE {
        shell
            .cmd("cargo", ["check", "-p", "rakwire-native", "-p", "rakwire-plugins", "--target", target])
            .run()?;
        workspaces::cargo(shell, "capi", &["check", "--locked", "--target", target]).run()?;
    }
    for [package, kind] in [["rakwire-cli", "--bins"], ["rakwire-native", "--all-targets"]] {
        shell.cmd("cargo", ["build", "-p", package, kind, "--target", WINDOWS]).run()?;
    }
    workspaces::cargo(shell, "capi", &["build", "--locked", "--target", WINDOWS]).run()
}

/// Runs the tests with the system's Node: `npm test` would use the one among the packages of its folder.
fn runtime_tests(shell: &Shell) -> Result<()> {
    artifacts::built_programs(shell)?;
    let tests =
        ["--test", "--test-concurrency=2", "--test-reporter=spec", "failures.test.mjs", "packed.test.mjs"];
    shell.cmd_in("wasm/tests/runtimes", "node", tests).run()
}

fn bundler_tests(shell: &Shell) -> Result<()> {
    artifacts::built_programs(shell)?;
    shell.cmd_in("wasm/tests/bundlers", "npm", ["run", "doc"]).run()?;
    shell.cmd_in("wasm/tests/bundlers", "npm", ["test"]).run()
}

fn example_tests(shell: &Shell) -> Result<()> {
    artifacts::built_programs(shell)?;
    shell.cmd_in("web/examples", "npm", ["test"]).run()
}
