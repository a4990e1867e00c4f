//! The stages of `cargo xtask test` and `cargo xtask ci`.

use anyhow::{Result, bail};

use crate::artifacts;
use crate::bench;
use crate::checks;
use crate::demo;
use crate::fuzz;
use crate::mcu;
use crate::mutants;
use crate::named_tests as documentation;
use crate::npm_size;
use crate::setup::{Need, THUMB, WASM, oldest_rust};
use crate::shell::{Shell, Stdout};
use crate::size;
use crate::stage::Stage;

/// Every test of every part.
pub(crate) fn test_stages() -> Vec<Stage> {
    crate_stages().into_iter().chain(browser_stages()).collect()
}

/// The crates, and what runs on an emulated board.
fn crate_stages() -> [Stage; 10] {
    [
        Stage::new(
            "targets",
            "the core and the game build for microcontrollers and for browsers",
            &[Need::ThumbTarget, Need::WasmTarget],
            targets,
        ),
        Stage::new("edges", "no part depends on what it must not", &[], checks::edges),
        Stage::new("docs", "the tests that the documentation names exist", &[], named_tests),
        Stage::new(
            "cargo",
            "the tests of all crates, with foreign RakNet peers",
            &[Need::Peers],
            cargo_tests,
        ),
        Stage::new(
            "size",
            "flash and RAM on microcontrollers, and no panic in the core",
            &size::NEEDS,
            size::stage,
        ),
        Stage::new(
            "mcu",
            "the firmware in QEMU, against our server and those of others",
            &mcu::NEEDS,
            mcu::stage,
        ),
        Stage::new(
            "instructions",
            "the hot paths take no more instructions than the table says",
            &[Need::Valgrind],
            bench::instructions,
        ),
        Stage::new("bench", "the benchmark, small, beside a foreign RakNet", &[Need::Peers], bench::smoke),
        Stage::new(
            "fuzz",
            "generated input against the core and the game, for a minute",
            &[Need::CargoFuzz],
            fuzz::stage,
        ),
        Stage::new("mutants", "the models find every fault that is put into the core", &[], mutants::stage),
    ]
}

/// What JavaScript uses, and what runs in a browser.
fn browser_stages() -> [Stage; 4] {
    [
        Stage::new(
            "wasm",
            "the npm package: build, size, contents, tests",
            &[
                Need::Node,
                Need::WasmTarget,
                Need::WasmBindgen,
                Need::WasmPack,
                Need::Packages,
                Need::Chromium,
                Need::Peers,
            ],
            wasm_tests,
        ),
        Stage::new(
            "game",
            "the messages and the client of the game in JavaScript",
            &[Need::Node, Need::WasmTarget, Need::WasmBindgen, Need::WasmPack],
            game_tests,
        ),
        Stage::new(
            "web",
            "the page in Chromium",
            &[Need::Node, Need::Packages, Need::Chromium, Need::Peers],
            web_tests,
        ),
        Stage::new(
            "demo",
            "the demo: two pages play against each other by each protocol",
            &[Need::Node, Need::Packages, Need::Chromium],
            demo_smoke,
        ),
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
        ),
        Stage::new(
            "msrv",
            "the core builds with the oldest Rust that it promises",
            &[Need::OldestRust],
            oldest,
        ),
        Stage::new(
            "firmware",
            "the firmwares are formatted, and no lint warns",
            &[Need::Components, Need::FirmwareTargets],
            mcu::lints,
        ),
        Stage::new("doc", "the documentation builds without warnings", &[], doc),
    ];
    stages.extend(test_stages());
    stages
}

fn fmt(shell: &mut Shell) -> Result<()> {
    shell.cmd("cargo", ["fmt", "--all", "--check"]).run()?;
    shell.cmd_in(fuzz::FOLDER, "cargo", ["fmt", "--check"]).run()
}

fn deny(shell: &mut Shell) -> Result<()> {
    shell.cmd("cargo", ["deny", "check", "--hide-inclusion-graph", "bans", "licenses", "sources"]).run()
}

fn clippy(shell: &mut Shell) -> Result<()> {
    let args = ["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];
    shell.cmd("cargo", args).run()?;
    let package = ["clippy", "-p", "rakwire-wasm", "--all-features", "--lib", "--examples"];
    let for_browsers = package.into_iter().chain(["--target", WASM, "--", "-D", "warnings"]);
    shell.cmd_for(WASM, ".", "cargo", for_browsers).run()
}

/// Checks the core with the oldest compiler that its manifest promises.
fn oldest(shell: &mut Shell) -> Result<()> {
    let version = oldest_rust(shell)?;
    for features in ["--no-default-features", "--all-features"] {
        let check = shell.cmd("cargo", ["check", "-p", "rakwire", features]);
        let check = check.with(|command| {
            command.env("RUSTUP_TOOLCHAIN", &version);
        });
        check.run()?;
    }
    Ok(())
}

fn doc(shell: &mut Shell) -> Result<()> {
    let doc = shell.cmd("cargo", ["doc", "--workspace", "--no-deps"]);
    doc.with(|command| {
        command.env("RUSTDOCFLAGS", "-D warnings");
    })
    .run()
}

fn targets(shell: &mut Shell) -> Result<()> {
    for target in [THUMB, WASM] {
        for package in ["rakwire", "snowfight"] {
            let args = ["build", "-p", package, "--no-default-features", "--target", target];
            shell.cmd_for(target, ".", "cargo", args).run()?;
        }
    }
    Ok(())
}

fn named_tests(shell: &mut Shell) -> Result<()> {
    documentation::check(&shell.path("."))
}

fn cargo_tests(shell: &mut Shell) -> Result<()> {
    shell.cmd("cargo", ["test", "--workspace", "--exclude", "rakwire"]).run()?;
    shell.cmd("cargo", ["test", "-p", "rakwire", "--all-features"]).run()
}

fn wasm_tests(shell: &mut Shell) -> Result<()> {
    artifacts::wasm(shell)?;
    let imports = artifacts::inspect_wasm(shell)?.imports;
    if imports.iter().any(|module| module == "env") {
        bail!("{} imports from \"env\", which no page provides", artifacts::WASM_FILE);
    }
    println!("{} imports from: {}", artifacts::WASM_FILE, imports.join(", "));
    npm_size::check(shell)?;
    artifacts::binaries(shell)?;
    shell.cmd_in("wasm", "npm", ["test"]).run()
}

fn game_tests(shell: &mut Shell) -> Result<()> {
    artifacts::game(shell)?;
    shell.cmd_in("game/wasm", "node", ["--test", "--test-reporter=spec", "tests/messages.test.mjs"]).run()
}

fn web_tests(shell: &mut Shell) -> Result<()> {
    artifacts::binaries(shell)?;
    artifacts::web(shell)?;
    shell.cmd_in("web", "npm", ["test"]).run()
}

fn demo_smoke(shell: &mut Shell) -> Result<()> {
    let before = shell.stdout;
    shell.stdout = Stdout::ToStderr;
    let line = demo::smoke_test(shell);
    shell.stdout = before;
    println!("{}", line?);
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
