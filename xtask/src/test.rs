//! The stages of `cargo xtask test` and `cargo xtask ci`.

use anyhow::{Result, bail};

use crate::artifacts;
use crate::bench;
use crate::boards;
use crate::checks;
use crate::citations;
use crate::demo;
use crate::documents;
use crate::features;
use crate::fields;
use crate::firmware;
use crate::fuzz;
use crate::interop;
use crate::mcu;
use crate::miri;
use crate::models;
use crate::modules;
use crate::msrv;
use crate::mutants;
use crate::npm_size;
use crate::own_files;
use crate::package;
use crate::quickstarts;
use crate::relay_package;
use crate::release::semver;
use crate::schedule::{Load, Resource};
use crate::setup::Need;
use crate::shell::Shell;
use crate::size;
use crate::stage::Stage;
use crate::targets::{THUMB, WASM};
use crate::words;

/// What a page in a browser needs that talks to our programs and to foreign ones.
const BROWSER: [Need; 9] = [
    Need::Node,
    Need::NpmPackage,
    Need::Chromium,
    Need::Firefox,
    Need::OpenSsl,
    Need::CertUtil,
    Need::IpRoute,
    Need::HostTests,
    Need::Peers,
];

/// What the packed npm package is tried with.
const BUNDLERS: [Need; 7] =
    [Need::Node, Need::NpmPackage, Need::Chromium, Need::Firefox, Need::WebKit, Need::Xvfb, Need::HostTests];

/// Every test of every part. The first ones start first: those whose preparation takes long, and those that take long.
pub(crate) fn test_stages() -> Vec<Stage> {
    let mut stages = vec![
        Stage::new("edges", "no part depends on what it must not", &[], checks::edges),
        Stage::new("modules", "modules use each other in no circle and not upwards", &[], modules::stage),
        Stage::new("words", "names and texts use the words of the glossary", &[], words::stage),
        Stage::new("citations", "what comments cite of docs/ exists", &[], citations::stage),
        Stage::new("docs", "what documents name exists: tests, files, commands", &[], documents),
        Stage::new(
            "features",
            "the public items exist that the table of features names",
            &[],
            features::check,
        ),
        Stage::new("parts", "the core keeps its word without the features that a small client leaves out", &[], parts)
            .uses(Resource::DevProfile),
        Stage::new("own-files", "no test reads outside of its package", &[], own_files::check),
        Stage::new(
            "cargo",
            "the tests of all crates, those behind proxies and routers of the distribution too",
            &[Need::HostTests, Need::Nginx, Need::HaProxy, Need::Caddy, Need::IpRoute, Need::Nftables],
            cargo_tests,
        ),
        Stage::new(
            "relay-package",
            "the Debian package of the relay is installed, started, drained and removed; its units and Dockerfile",
            &relay_package::NEEDS,
            relay_package::stage,
        )
        .load(Load::Half),
        Stage::new(
            "quickstarts",
            "the commands of the quickstarts print what is written there",
            &[Need::HostTests],
            quickstarts::check,
        )
        .load(Load::Half),
        Stage::new(
            "interop",
            "our endpoint and the relay with foreign programs, and the page of what was found",
            &[Need::HostTests, Need::Peers, Need::Redis, Need::HaProxy, Need::TShark],
            interop::stage,
        ),
    ];
    stages.extend(browser_stages());
    stages.extend(embedded_stages());
    stages.extend(measuring_stages());
    stages
}

/// What JavaScript uses, and what runs in a browser.
fn browser_stages() -> [Stage; 6] {
    [
        Stage::new("wasm", "the npm package: build, size, contents, tests", &BROWSER, wasm_tests)
            .load(Load::Half),
        Stage::new(
            "bundlers",
            "the packed npm package in every bundler, in Chromium, Firefox, WebKit, Bun and Deno; its reference",
            &BUNDLERS,
            bundler_tests,
        )
        .load(Load::Half),
        Stage::new(
            "examples",
            "the examples of pages build, and hear from a server in Chromium",
            &[Need::Node, Need::NpmPackage, Need::Chromium, Need::HostTests],
            example_tests,
        )
        .load(Load::Half),
        Stage::new(
            "game",
            "the messages and the client of the game in JavaScript",
            &[Need::Node, Need::GamePackage],
            game_tests,
        ),
        Stage::new(
            "web",
            "the page in Chromium",
            &[Need::Page, Need::Chromium, Need::HostTests, Need::Peers],
            web_tests,
        ),
        Stage::new(
            "demo",
            "the demo: two pages play against each other by each protocol",
            &[Need::Page, Need::Chromium, Need::HostTests],
            demo_smoke,
        ),
    ]
}

/// What is built for microcontrollers, and what runs on an emulated board.
fn embedded_stages() -> [Stage; 4] {
    [
        Stage::new(
            "mcu",
            "the firmware in QEMU, against our server and those of others",
            &mcu::TEST_NEEDS,
            mcu::stage,
        )
        .load(Load::Half),
        Stage::new(
            "boards",
            "the single-file example of each board builds, and becomes what the board takes over USB",
            &boards::NEEDS,
            boards::stage,
        ),
        Stage::new(
            "size",
            "flash and RAM on microcontrollers, and no panic in the core",
            &size::NEEDS,
            size::stage,
        ),
        Stage::new(
            "targets",
            "the core and the game build for microcontrollers and for browsers",
            &[Need::ThumbTarget, Need::WasmTarget],
            targets,
        )
        .uses(Resource::DevProfile),
    ]
}

/// Generated input, and measurements.
fn measuring_stages() -> [Stage; 6] {
    [
        Stage::new("mutants", "the models find every fault that is put into the core", &[], mutants::stage),
        Stage::new(
            "models",
            "no attack on the models of secure connections, and one where there is one",
            &models::NEEDS,
            models::stage,
        ),
        Stage::new(
            "miri",
            "no undefined behaviour where the core computes with indices and bits",
            &miri::NEEDS,
            miri::stage,
        ),
        Stage::new(
            "fuzz",
            "generated input against the core and the game, for a minute",
            &fuzz::NEEDS,
            fuzz::stage,
        ),
        Stage::new(
            "instructions",
            "the hot paths take no more instructions than the table says",
            &[Need::Valgrind, Need::Benchmark],
            bench::instructions,
        ),
        Stage::new(
            "bench",
            "the benchmarks, small, beside a foreign RakNet, other libraries and a WebSocket echo",
            &[Need::Peers, Need::FastRelay, Need::Benchmark, Need::FieldsPeer],
            bench::smoke,
        )
        .load(Load::Alone),
    ]
}

/// What a change must pass: the cheap checks first, then every test.
pub(crate) fn ci_stages() -> Vec<Stage> {
    let mut stages = vec![
        Stage::new("fmt", "the code is formatted", &[Need::Components], fmt),
        Stage::new("deny", "licences, bans and sources", &[Need::CargoDeny], deny),
        Stage::new(
            "clippy",
            "no lint warns, here and in browsers",
            &[Need::Components, Need::WasmTarget],
            clippy,
        )
        .uses(Resource::DevProfile),
        Stage::new(
            "msrv",
            "every published crate builds with the oldest Rust that it promises",
            &[Need::OldestRust],
            msrv::stage,
        )
        .uses(Resource::DevProfile),
        Stage::new(
            "firmware",
            "the firmwares are formatted, and no lint warns",
            &[Need::Components, Need::ThumbTarget, Need::FirmwareTargets],
            firmware::lints,
        ),
        Stage::new(
            "fuzz-lints",
            "the targets of fuzzing are formatted, and no lint warns",
            &[Need::Components],
            fuzz::lints,
        ),
        Stage::new(
            "fields-lints",
            "the program around libraries other than RakNet is formatted, and no lint warns",
            &[Need::Components],
            fields::lints,
        ),
        Stage::new(
            "doc",
            "the documentation builds without warnings, as its readers get it",
            &[Need::WasmTarget],
            doc,
        )
        .uses(Resource::DevProfile),
        Stage::new(
            "semver",
            "the interfaces keep what the version promises, once there is a release to compare with",
            &[],
            semver::stage,
        ),
        Stage::new(
            "package",
            "every published crate packs, and compiles from its package",
            &[],
            package::stage,
        )
        .uses(Resource::DevProfile),
    ];
    stages.extend(test_stages());
    stages
}

fn documents(shell: &Shell) -> Result<()> {
    let stages = ci_stages();
    documents::check(shell, &stages.iter().map(|stage| stage.name).collect::<Vec<_>>())
}

fn fmt(shell: &Shell) -> Result<()> {
    shell.cmd("cargo", ["fmt", "--all", "--check"]).run()
}

fn deny(shell: &Shell) -> Result<()> {
    shell.cmd("cargo", ["deny", "check", "--hide-inclusion-graph", "bans", "licenses", "sources"]).run()
}

fn clippy(shell: &Shell) -> Result<()> {
    let args = ["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];
    shell.cmd("cargo", args).run()?;
    let package = ["clippy", "-p", "rakwire-wasm", "--all-features", "--lib", "--examples"];
    let for_browsers = package.into_iter().chain(["--target", WASM, "--", "-D", "warnings"]);
    shell.cmd_for(WASM, ".", "cargo", for_browsers).run()
}

/// With the features and targets that the manifests name in `[package.metadata.docs.rs]`.
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

/// Tests the core without the features that a small client leaves out, with each of them alone, and without each of them.
fn parts(shell: &Shell) -> Result<()> {
    const FOLDER: &str = "core/minimal";
    const PARTS: [&str; 7] =
        ["channels", "connections", "packing", "priorities", "sequencing", "splitting", "statistics"];
    shell.cmd_in(FOLDER, "cargo", ["fmt", "--check"]).run()?;
    let target_dir = shell.path("target/minimal");
    let single = PARTS.map(str::to_owned);
    let without =
        PARTS.map(|part| PARTS.into_iter().filter(|other| *other != part).collect::<Vec<_>>().join(","));
    for features in [String::new(), PARTS.join(",")].iter().chain(&single).chain(&without) {
        let test = shell.cmd_in(FOLDER, "cargo", ["test", "--locked", "--features", features]);
        let folder = &target_dir;
        test.with(|command| {
            command.env("CARGO_TARGET_DIR", folder);
        })
        .run()?;
    }
    Ok(())
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
    shell.cmd("cargo", artifacts::HOST_TESTS).run()?;
    // In the whole workspace the driver for boards has chosen the smaller BLAKE2s. Servers have the other one.
    shell.cmd("cargo", ["test", "-p", "rakwire", "--lib", "secure::"]).run()
}

fn wasm_tests(shell: &Shell) -> Result<()> {
    let imports = artifacts::inspect_wasm(shell)?.imports;
    if imports.iter().any(|module| module == "env") {
        bail!("{} imports from \"env\", which no page provides", artifacts::WASM_FILE);
    }
    shell.print(format_args!("{} imports from: {}", artifacts::WASM_FILE, imports.join(", ")));
    npm_size::check(shell)?;
    artifacts::built_programs(shell)?;
    // The tests build an example for browsers.
    shell.cmd_for(WASM, "wasm", "npm", ["test"]).run()
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
    shell
        .cmd_in("snowfight/wasm", "node", ["--test", "--test-reporter=spec", "tests/messages.test.mjs"])
        .run()
}

fn web_tests(shell: &Shell) -> Result<()> {
    artifacts::built_programs(shell)?;
    shell.cmd_in("web", "npm", ["test"]).run()
}

fn demo_smoke(shell: &Shell) -> Result<()> {
    let line = demo::smoke_test(shell)?;
    shell.print(line);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn stages_have_names_of_their_own() {
        let stages = ci_stages();
        let names: BTreeSet<_> = stages.iter().map(|stage| stage.name).collect();
        assert_eq!(names.len(), stages.len());
    }

    #[test]
    fn ci_runs_every_test_stage() {
        let ci: BTreeSet<_> = ci_stages().iter().map(|stage| stage.name).collect();
        assert!(test_stages().iter().all(|stage| ci.contains(stage.name)));
    }
}
