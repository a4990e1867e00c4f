//! All stages, with the purpose, needs and tier of each.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::artifacts;
use crate::checks;
use crate::demo;
use crate::fields;
use crate::firmware;
use crate::interop;
use crate::miri;
use crate::models;
use crate::npm_size::{self, Others};
use crate::own_files;
use crate::quickstarts;
use crate::rerun::Runner;
use crate::schedule::{Load, Resource};
use crate::setup::Need;
use crate::shell::Shell;
use crate::site;
use crate::smoke;
use crate::stage::{Stage, Tier};
use crate::targets::{THUMB, WASM};

/// The needs of the tests of the npm package that run in Node and Chromium.
const NODE_AND_CHROMIUM: [Need; 5] =
    [Need::Node, Need::NpmPackage, Need::Chromium, Need::HostTests, Need::CppPeer];

/// The needs of a page in several browsers that talks to our programs and to other servers.
const BROWSERS: [Need; 11] = [
    Need::Node,
    Need::NpmPackage,
    Need::Chromium,
    Need::Firefox,
    Need::Xvfb,
    Need::OpenSsl,
    Need::CertUtil,
    Need::IpRoute,
    Need::Nftables,
    Need::HostTests,
    Need::CppPeer,
];

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

/// The needs of games between pages.
const DEMO: [Need; 3] = [Need::Page, Need::Chromium, Need::HostTests];

/// The needs of memory measurements for microcontrollers.
pub const SIZE: [Need; 2] = [Need::ThumbTarget, Need::FirmwareTargets];
/// The needs of fuzzing.
pub const FUZZ: [Need; 2] = [Need::CargoFuzz, Need::CppCompiler];

/// Returns all stages, lower tiers first. Of the stages that can start, the first does, so stages with a long preparation
/// precede others of their tier.
pub fn all() -> Vec<Stage> {
    let mut stages = checks_of_texts().to_vec();
    stages.extend(lints());
    stages.extend(tests());
    stages.extend(tests_of_all_peers());
    stages.extend(packages());
    stages.extend(boards());
    stages.extend(generated_input());
    stages.extend(workspaces());
    stages.extend(products());
    stages
}

/// Stages that read the files of the repository without compiling them.
#[rustfmt::skip]
fn checks_of_texts() -> [Stage; 7] {
    [
        Stage::new("fmt", "the code is formatted", &[Need::Components], fmt)
            .tier(Tier::Check, "a second"),
        Stage::new("edges", "the parts have no forbidden dependencies", &[], checks::edges)
            .tier(Tier::Check, "a second"),
        Stage::in_tools("modules", "modules have no cycles and no uses of higher layers; no folder has too many files", &[])
            .tier(Tier::Check, "seconds"),
        Stage::in_tools("english", "comments and documents are in plain English", &[])
            .tier(Tier::Check, "a second"),
        Stage::in_tools("citations", "citations of docs/ in comments are valid", &[])
            .tier(Tier::Check, "a second"),
        Stage::in_tools("docs", "names in documents exist: tests, files, commands; the stage table is current", &[])
            .tier(Tier::Check, "seconds"),
        Stage::new("own-files", "no test reads files outside of its package", &[], own_files::check)
            .tier(Tier::Check, "a second"),
    ]
}

/// Stages that compile without running anything.
fn lints() -> [Stage; 7] {
    let ci = |stage: Stage, why| stage.tier(Tier::Ci, why);
    [
        Stage::new("clippy", "no lint warns", &[Need::Components], clippy)
            .uses(Resource::DevProfile)
            .tier(Tier::Check, "seconds once the dependencies are compiled"),
        ci(
            Stage::new("deny", "licences, bans and sources", &[Need::CargoDeny], deny),
            "only changed dependencies affect it, and its tool takes minutes to install",
        ),
        ci(
            Stage::new(
                "clippy-browsers",
                "no lint warns in code for browsers",
                &[Need::Components, Need::WasmTarget],
                clippy_for_browsers,
            )
            .uses(Resource::DevProfile),
            "compiles the dependencies for another target",
        ),
        ci(
            Stage::new(
                "firmware",
                "the firmwares are formatted, and no lint warns",
                &[Need::Components, Need::ThumbTarget, Need::FirmwareTargets],
                firmware::lints,
            ),
            "compiles the dependencies for four targets",
        ),
        ci(
            Stage::in_tools(
                "fuzz-lints",
                "the fuzz targets are formatted, and no lint warns",
                &[Need::Components],
            ),
            "a separate workspace, which few changes affect",
        ),
        ci(
            Stage::new(
                "fields-lints",
                "the comparison program with other libraries is formatted, and no lint warns",
                &[Need::Components],
                fields::lints,
            ),
            "a separate workspace, which few changes affect",
        ),
        ci(
            Stage::new(
                "doc",
                "the documentation builds without warnings, as published",
                &[Need::WasmTarget],
                doc,
            )
            .uses(Resource::DevProfile),
            "takes minutes, and clippy finds most problems",
        ),
    ]
}

/// The tests for the development of a change.
fn tests() -> [Stage; 6] {
    [
        Stage::new(
            "cargo",
            "the tests of all crates, including those behind the distribution's proxies and routers",
            &[Need::HostTests, Need::Nginx, Need::HaProxy, Need::Caddy, Need::IpRoute, Need::Nftables],
            cargo_tests,
        )
        .reruns(Runner::Cargo)
        .tier(Tier::Test, "the tests"),
        Stage::new(
            "wasm",
            "the npm package in Node and Chromium: build, size, contents, tests",
            &NODE_AND_CHROMIUM,
            wasm_tests,
        )
        .reruns(Runner::Node("wasm"))
        .load(Load::Half)
        .tier(Tier::Test, "the same core with another API"),
        Stage::new(
            "game",
            "the messages and the client of the game in JavaScript",
            &[Need::Node, Need::GamePackage],
            game_tests,
        )
        .tier(Tier::Test, "seconds"),
        Stage::new(
            "interop-smoke",
            "our endpoint with one other RakNet, the original called from Python",
            &[Need::HostTests, Need::PythonPeer],
            interop::smoke,
        )
        .part_of("interop")
        .tier(Tier::Test, "the one other RakNet that is available in seconds"),
        Stage::new(
            "web",
            "the page in Chromium",
            &[Need::Page, Need::Chromium, Need::HostTests, Need::CppPeer],
            web_tests,
        )
        .reruns(Runner::Node("web"))
        .tier(Tier::Test, "the page that `cargo xtask demo` serves"),
        Stage::new(
            "demo",
            "the demo: a page watches a game with bots, and two pages play against each other over RakNet",
            &DEMO,
            demo_game,
        )
        .part_of("demo-all")
        .tier(Tier::Test, "all parts together"),
    ]
}

/// Tests with more programs, and of other parts that a change may break.
fn tests_of_all_peers() -> [Stage; 7] {
    [
        Stage::new(
            "demo-all",
            "the demo: two pages play against each other with each protocol",
            &DEMO,
            demo_games,
        )
        .tier(Tier::Ci, "takes minutes, because pages are rendered without a GPU"),
        Stage::new(
            "secure",
            "the tests of secure connections with the BLAKE2s implementation of servers",
            &[],
            secure_tests,
        )
        .uses(Resource::DevProfile)
        .tier(Tier::Ci, "compiles the core again, for one hash function"),
        Stage::new(
            "wasm-pack",
            "the game package built by wasm-pack",
            &[Need::Node, Need::WasmPack],
            wasm_pack_tests,
        )
        .tier(Tier::Ci, "its tool takes minutes to install"),
        Stage::new(
            "interop",
            "our endpoint and the relay with other implementations, and the page of the results",
            &[Need::HostTests, Need::Peers, Need::Redis, Need::HaProxy, Need::TShark],
            interop::stage,
        )
        .tier(Tier::Ci, "downloads and compiles all other RakNet implementations"),
        Stage::new(
            "wasm-browsers",
            "the npm package in Firefox and Chromium, with each transport and with other servers",
            &BROWSERS,
            other_browser_tests,
        )
        .reruns(Runner::Node("wasm"))
        .load(Load::Half)
        .tier(Tier::Ci, "needs another browser, certificates and networks"),
        Stage::new(
            "quickstarts",
            "the commands of the quickstarts print the documented output",
            &[Need::HostTests],
            quickstarts::check,
        )
        .load(Load::Half)
        .tier(Tier::Ci, "documents change less often than code"),
        Stage::new(
            "parts",
            "the core's tests pass without the features that a small client leaves out, and with all of them",
            &[],
            parts,
        )
        .uses(Resource::DevProfile)
        .part_of("parts-all")
        .tier(Tier::Ci, "compiles the core two more times"),
    ]
}

/// Stages for the published crates.
fn packages() -> [Stage; 3] {
    [
        Stage::in_tools(
            "semver",
            "the public APIs respect semantic versioning, once there is a release to compare with",
            &[],
        )
        .tier(Tier::Ci, "compares with a release"),
        Stage::in_tools("package", "every published crate can be packed, and compiles from its package", &[])
            .uses(Resource::DevProfile)
            .tier(Tier::Ci, "compiles everything from packages"),
        Stage::new(
            "msrv",
            "every published crate builds with its minimum Rust version",
            &[Need::CargoHack],
            msrv,
        )
        .uses(Resource::DevProfile)
        .tier(Tier::Nightly, "compiles everything with other compilers"),
    ]
}

/// Stages that build for microcontrollers, run an emulated board, or count instructions.
fn boards() -> [Stage; 6] {
    [
        Stage::in_tools(
            "mcu",
            "the firmware in QEMU, with our server and other servers",
            &[Need::FirmwareTargets, Need::Qemu, Need::DefmtPrint, Need::Peers, Need::HostTests],
        )
        .load(Load::Half)
        .tier(Tier::Ci, "needs QEMU and all other RakNet implementations"),
        Stage::in_tools(
            "size",
            "flash and RAM on one microcontroller, and no panic in the core there",
            &SIZE,
        )
        .part_of("size-all")
        .tier(Tier::Ci, "one target shows the cost of a change"),
        Stage::in_tools("size-all", "flash and RAM on microcontrollers, and no panic in the core", &SIZE)
            .tier(Tier::Nightly, "links dozens of programs"),
        Stage::new(
            "targets",
            "the core and the game build for microcontrollers and for browsers",
            &[Need::ThumbTarget, Need::WasmTarget],
            targets,
        )
        .uses(Resource::DevProfile)
        .tier(Tier::Ci, "compiles for other targets"),
        Stage::in_tools(
            "instructions",
            "the hot paths take no more instructions than in the table",
            &[Need::Valgrind, Need::Benchmark],
        )
        .tier(Tier::Nightly, "compiles with optimisation, which takes minutes"),
        Stage::in_tools(
            "boards",
            "the single-file example of each board builds, and converts to the board's USB format",
            &SIZE,
        )
        .tier(Tier::Nightly, "compiles the frameworks of six boards"),
    ]
}

/// Searches for faults that no test covers.
fn generated_input() -> [Stage; 5] {
    [
        Stage::in_tools("mutants", "the models find every fault inserted into the core", &[])
            .tier(Tier::Nightly, "takes a quarter of an hour, and checks the tests rather than the code"),
        Stage::new(
            "models",
            "no attack on the models of secure connections, and one on a model with a known attack",
            &models::NEEDS,
            models::stage,
        )
        .tier(Tier::Nightly, "the models change less often than the code"),
        Stage::new(
            "miri",
            "no undefined behaviour where the core computes with indices and bits",
            &miri::NEEDS,
            miri::stage,
        )
        .tier(Tier::Nightly, "an interpreter, with another compiler"),
        Stage::in_tools("fuzz", "generated input against the core and the game, for a minute", &FUZZ)
            .tier(Tier::Nightly, "takes minutes, and rarely finds anything"),
        Stage::new(
            "parts-all",
            "the core's tests pass with each single feature that a small client leaves out, and without each; native and extras build with each feature",
            &[Need::CargoHack],
            all_parts,
        )
        .uses(Resource::DevProfile)
        .tier(Tier::Nightly, "compiles the core sixteen times"),
    ]
}

/// Tests of products in separate workspaces.
fn workspaces() -> [Stage; 2] {
    [
        Stage::new(
            "capi",
            "the C library and its C++ headers: lints, bad input, foreign peers, installation",
            &[
                Need::Components,
                Need::CppCompiler,
                Need::Cmake,
                Need::PkgConfig,
                Need::Valgrind,
                Need::CppPeer,
            ],
            |shell| workspace(shell, "capi"),
        )
        .tier(Tier::Nightly, "a separate workspace, and C programs with sanitizers and valgrind"),
        Stage::new(
            "conformance",
            "each case of the conformance suite passes a model of RakNet, and fails the mutant of it",
            &[Need::Components],
            |shell| workspace(shell, "conformance"),
        )
        .tier(Tier::Nightly, "a separate workspace, which few changes affect"),
    ]
}

/// Tests of the published packages as their users get them, and of their speed.
fn products() -> [Stage; 7] {
    [
        Stage::new(
            "runtimes",
            "the npm package in Node 20, 22 and 24, Deno and Bun: failures in each; the packed package in Deno and Bun",
            &RUNTIMES,
            runtime_tests,
        )
        .load(Load::Half)
        .tier(Tier::Ci, "takes half a minute, and its runtimes are large downloads"),
        Stage::new(
            "bundlers",
            "the packed npm package with every bundler, in Chromium, Firefox and WebKit; its reference",
            &BUNDLERS,
            bundler_tests,
        )
        .load(Load::Half)
        .tier(Tier::Nightly, "needs three browsers and all bundlers"),
        Stage::new(
            "examples",
            "the example pages build, and receive messages from a server in Chromium",
            &[Need::Node, Need::NpmPackage, Need::ExamplePackages, Need::Chromium, Need::HostTests],
            example_tests,
        )
        .load(Load::Half)
        .tier(Tier::Nightly, "tests frameworks of pages, which few changes affect"),
        Stage::new("site", "the book builds with the references and the demo, and its links are valid", &site::NEEDS, site::build)
            .uses(Resource::DevProfile)
            .tier(Tier::Nightly, "compiles the book tool and all documentation"),
        Stage::in_tools(
            "relay-package",
            "the Debian package of the relay is installed, started, drained and removed; its units and Dockerfile",
            &[Need::HostTests, Need::Systemd],
        )
        .load(Load::Half)
        .tier(Tier::Nightly, "needs its own root file system"),
        Stage::in_tools(
            "release-files",
            "the files of a release: without Rust, a player in Node reaches a server with them",
            &[Need::Node, Need::NpmPackage, Need::StaticTarget, Need::MuslCompiler],
        )
        .uses(Resource::ReleaseProfile)
        .tier(Tier::Nightly, "compiles the programs with optimisation, twice"),
        Stage::in_tools(
            "bench",
            "small runs of the benchmarks, with another RakNet, other libraries and a WebSocket echo",
            &[Need::Peers, Need::FastRelay, Need::Benchmark, Need::FieldsPeer],
        )
        .load(Load::Alone)
        .tier(Tier::Nightly, "needs the machine for itself"),
    ]
}

fn fmt(shell: &Shell) -> Result<()> {
    shell.cmd("cargo", ["fmt", "--all", "--check"]).run()
}

fn deny(shell: &Shell) -> Result<()> {
    shell.cmd("cargo", ["deny", "check", "--hide-inclusion-graph", "bans", "licenses", "sources"]).run()
}

fn clippy(shell: &Shell) -> Result<()> {
    let args = ["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];
    shell.cmd("cargo", args).run()
}

fn clippy_for_browsers(shell: &Shell) -> Result<()> {
    let package = ["clippy", "-p", "rakwire-wasm", "--all-features", "--lib", "--examples"];
    let for_browsers = package.into_iter().chain(["--target", WASM, "--", "-D", "warnings"]);
    shell.cmd_for(WASM, ".", "cargo", for_browsers).run()
}

/// Builds the documentation with the features and targets of `[package.metadata.docs.rs]` in the manifests.
fn doc(shell: &Shell) -> Result<()> {
    let here = ["doc", "--no-deps", "--all-features", "--workspace"];
    let for_browsers = ["doc", "--no-deps", "--all-features", "-p", "rakwire-wasm", "--target", WASM];
    for doc in [shell.cmd("cargo", here), shell.cmd_for(WASM, ".", "cargo", for_browsers)] {
        doc.with(|command| {
            command.env("RUSTDOCFLAGS", "-D warnings");
        })
        .run()?;
    }
    Ok(())
}

/// The features that a small client leaves out.
const PARTS: [&str; 7] =
    ["channels", "connections", "packing", "priorities", "sequencing", "splitting", "statistics"];

/// Tests the core without the features that a small client leaves out, and with all of them.
fn parts(shell: &Shell) -> Result<()> {
    shell.cmd_in(MINIMAL, "cargo", ["fmt", "--check"]).run()?;
    [String::new(), PARTS.join(",")].iter().try_for_each(|features| test_with(shell, features))?;
    test_minimal(shell, &["--no-default-features", "--features", "unconnected"])
}

/// Runs the same tests, and those with each of the features alone and without each of them. Checks native and extras with
/// each single feature.
fn all_parts(shell: &Shell) -> Result<()> {
    parts(shell)?;
    let without =
        PARTS.map(|part| PARTS.into_iter().filter(|other| *other != part).collect::<Vec<_>>().join(","));
    let single = PARTS.map(str::to_owned);
    single.iter().chain(&without).try_for_each(|features| test_with(shell, features))?;
    let alone = ["hack", "clippy", "--each-feature", "--lib", "-p", "rakwire-native", "-p", "rakwire-extras"];
    shell.cmd("cargo", alone.into_iter().chain(["--", "-D", "warnings"])).run()
}

/// The core with few features, in a separate workspace.
const MINIMAL: &str = "core/minimal";

fn test_with(shell: &Shell, features: &str) -> Result<()> {
    test_minimal(shell, &["--features", features])
}

fn test_minimal(shell: &Shell, features: &[&str]) -> Result<()> {
    let target_dir = shell.path("target/minimal");
    let test =
        shell.cmd_in(MINIMAL, "cargo", ["test", "--locked"].into_iter().chain(features.iter().copied()));
    test.with(|command| {
        command.env("CARGO_TARGET_DIR", target_dir);
    })
    .run()
}

/// Checks the formatting and the lints of a separate workspace, and runs its tests.
fn workspace(shell: &Shell, folder: &str) -> Result<()> {
    let target_dir = shell.path(&format!("target/{folder}"));
    let lints: &[&str] = &["clippy", "--locked", "--all-targets", "--", "-D", "warnings"];
    [&["fmt", "--check"] as &[&str], lints, &["test", "--locked"]].into_iter().try_for_each(|args| {
        let cargo = shell.cmd_in(folder, "cargo", args.iter().copied()).with(|command| {
            command.env("CARGO_TARGET_DIR", &target_dir);
        });
        cargo.run()
    })
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

fn targets(shell: &Shell) -> Result<()> {
    for target in [THUMB, WASM] {
        for package in ["rakwire", "snowfight"] {
            let args = ["build", "-p", package, "--no-default-features", "--target", target];
            shell.cmd_for(target, ".", "cargo", args).run()?;
        }
    }
    Ok(())
}

fn cargo_tests(shell: &Shell) -> Result<()> {
    let tests = shell.cmd("cargo", artifacts::HOST_TESTS.into_iter().chain(["--no-fail-fast"]));
    tests
        .with(|command| {
            // Most tests of drivers and of the relay wait for sockets and timers.
            command.env("RUST_TEST_THREADS", "6");
        })
        .run()
}

/// Runs the tests of secure connections with the BLAKE2s implementation of servers: in the whole workspace the driver for
/// boards selects the smaller one.
fn secure_tests(shell: &Shell) -> Result<()> {
    shell.cmd("cargo", ["test", "-p", "rakwire", "--lib", "secure::"]).run()
}

fn wasm_tests(shell: &Shell) -> Result<()> {
    let imports = artifacts::inspect_wasm(shell)?.imports;
    if imports.iter().any(|module| module == "env") {
        bail!("{} imports from \"env\", which no page provides", artifacts::WASM_FILE);
    }
    shell.print(format_args!("{} imports from: {}", artifacts::WASM_FILE, imports.join(", ")));
    npm_size::check(shell, Others::FeatureDisabled)?;
    npm_tests(shell, |file| !OTHER_BROWSERS.contains(&file))
}

/// Tests of the npm package that need more than Node, Chromium and one other server.
const OTHER_BROWSERS: [&str; 8] = [
    "failures-firefox.test.mjs",
    "foreign.test.mjs",
    "leave.test.mjs",
    "local-network.test.mjs",
    "paths.test.mjs",
    "transports.test.mjs",
    "unanswered.test.mjs",
    "webrtc.test.mjs",
];

fn other_browser_tests(shell: &Shell) -> Result<()> {
    npm_tests(shell, |file| OTHER_BROWSERS.contains(&file))
}

/// Runs the tests of the npm package in files with these names.
fn npm_tests(shell: &Shell, is_wanted: impl Fn(&str) -> bool) -> Result<()> {
    const FOLDER: &str = "wasm/tests";
    artifacts::built_programs(shell)?;
    let mut files = Vec::new();
    for entry in fs::read_dir(shell.path(FOLDER)).with_context(|| format!("{FOLDER} cannot be read"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".test.mjs") && is_wanted(&name) {
            files.push(format!("tests/{name}"));
        }
    }
    files.sort();
    let args = ["--test", "--test-concurrency=2", "--test-reporter=spec"];
    // The tests build an example for browsers.
    shell.cmd_for(WASM, "wasm", "node", args.into_iter().chain(files.iter().map(String::as_str))).run()
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

fn game_tests(shell: &Shell) -> Result<()> {
    game_tests_with(shell, &shell.path(artifacts::GAME_PACKAGE))
}

/// Builds the package of the game with wasm-pack, and runs its tests.
fn wasm_pack_tests(shell: &Shell) -> Result<()> {
    let folder = shell.path("target/wasm-pack/snowfight");
    artifacts::wasm_pack(shell, &folder.to_string_lossy())?;
    game_tests_with(shell, &folder)
}

fn game_tests_with(shell: &Shell, package: &Path) -> Result<()> {
    let tests = ["--test", "--test-reporter=spec", "tests/messages.test.mjs"];
    let tests = shell.cmd_in("snowfight/wasm", "node", tests).with(|command| {
        command.env("SNOWFIGHT_PACKAGE", package);
    });
    tests.run()
}

fn web_tests(shell: &Shell) -> Result<()> {
    artifacts::built_programs(shell)?;
    shell.cmd_in("web", "npm", ["test"]).run()
}

/// Plays one game with the variant that uses the most parts: RakNet, secure and plain.
fn demo_game(shell: &Shell) -> Result<()> {
    demo::smoke_test(shell, &["raknet"]).map(|line| shell.print(line))
}

fn demo_games(shell: &Shell) -> Result<()> {
    demo::smoke_test(shell, &smoke::WAYS).map(|line| shell.print(line))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::stage::of_tier;

    fn names(tier: Tier) -> BTreeSet<&'static str> {
        of_tier(&all(), tier).iter().map(|stage| stage.name).collect()
    }

    #[test]
    fn stages_have_unique_names() {
        let stages = all();
        let names: BTreeSet<_> = stages.iter().map(|stage| stage.name).collect();
        assert_eq!(names.len(), stages.len());
    }

    #[test]
    fn ci_runs_every_test_stage() {
        let larger: Vec<_> = all().iter().filter_map(|stage| Some((stage.name, stage.part_of?))).collect();
        for stage in names(Tier::Test).union(&names(Tier::Check)) {
            let whole = larger.iter().find(|(part, _)| part == stage).map_or(*stage, |(_, whole)| *whole);
            assert!(names(Tier::Ci).contains(whole), "{stage}");
        }
    }

    #[test]
    fn a_part_and_its_whole_are_never_in_one_tier() {
        assert!(names(Tier::Test).contains("interop-smoke") && !names(Tier::Ci).contains("interop-smoke"));
        assert!(names(Tier::Ci).contains("parts") && !names(Tier::Nightly).contains("parts"));
        for stage in all().iter().filter(|stage| stage.part_of.is_some()) {
            assert!(all().iter().any(|other| stage.part_of == Some(other.name)), "{}", stage.name);
        }
    }

    #[test]
    fn every_stage_gives_a_reason_for_its_tier() {
        assert!(all().iter().all(|stage| !stage.why.is_empty()));
    }
}
