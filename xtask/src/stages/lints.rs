//! Stages that read the texts of the repository, or compile without running anything.

use anyhow::Result;

use crate::checks;
use crate::fields;
use crate::firmware;
use crate::own_files;
use crate::schedule::Resource;
use crate::setup::Need;
use crate::shell::Shell;
use crate::stage::{Stage, Tier};
use crate::targets::WASM;
use crate::workspaces;

/// Stages that read the files of the repository without compiling them.
#[rustfmt::skip]
pub(super) fn checks_of_texts() -> [Stage; 7] {
    [
        Stage::new("fmt", "the code is formatted", &[Need::Components], fmt)
            .tier(Tier::Check, "a second"),
        Stage::new("edges", "the parts have no forbidden dependencies", &[], checks::edges)
            .tier(Tier::Check, "a second"),
        Stage::in_tools("modules", "modules have no cycles and no uses of higher layers; folders, files and xtask keep to their sizes", &[])
            .tier(Tier::Check, "seconds"),
        Stage::in_tools("english", "comments and documents are in plain English", &[])
            .tier(Tier::Check, "a second"),
        Stage::in_tools("citations", "citations of docs/ in comments are valid", &[])
            .tier(Tier::Check, "a second"),
        Stage::in_tools("docs", "names in documents exist: tests, files; their programs and the stage table are current", &[])
            .tier(Tier::Check, "seconds"),
        Stage::new("own-files", "no test reads files outside of its package", &[], own_files::check)
            .tier(Tier::Check, "a second"),
    ]
}

/// Stages that compile without running anything.
#[rustfmt::skip]
pub(super) fn lints() -> [Stage; 8] {
    [
        Stage::new("clippy", "no lint warns", &[Need::Components], clippy)
            .uses(Resource::DevProfile).tier(Tier::Check, "seconds once the dependencies are compiled"),
        Stage::new("deny", "licences, bans and sources", &[Need::CargoDeny], deny)
            .tier(Tier::Ci, "only changed dependencies affect it, and its tool takes minutes to install"),
        Stage::new("clippy-browsers", "no lint warns in code for browsers",
            &[Need::Components, Need::WasmTarget], clippy_for_browsers)
            .uses(Resource::DevProfile).tier(Tier::Ci, "compiles the dependencies for another target"),
        Stage::new("firmware", "the firmwares are formatted, and no lint warns in that for QEMU and in the driver",
            &[Need::Components, Need::FirmwareTargets], firmware::emulated_lints)
            .part_of("firmware-all").tier(Tier::Ci, "compiles the dependencies for another target"),
        Stage::new("firmware-all", "the firmwares are formatted, and no lint warns",
            &[Need::Components, Need::ThumbTarget, Need::FirmwareTargets], firmware::lints)
            .tier(Tier::Nightly, "compiles the dependencies for four targets"),
        Stage::new("fuzz-lints", "the fuzz targets are formatted, and no lint warns", &[Need::Components], fuzz_lints)
            .tier(Tier::Ci, "a separate workspace, which few changes affect"),
        Stage::new("fields-lints", "the comparison program with other libraries is formatted, and no lint warns",
            &[Need::Components], fields_lints)
            .tier(Tier::Nightly, "compiles all compared libraries"),
        Stage::new("doc", "the documentation builds without warnings, as published", &[Need::WasmTarget], doc)
            .uses(Resource::DevProfile).tier(Tier::Ci, "takes minutes, and clippy finds most problems"),
    ]
}

fn fmt(shell: &Shell) -> Result<()> {
    shell.cmd("cargo", ["fmt", "--all", "--check"]).run()
}

/// Checks the main workspace, then the products in separate workspaces. A product may contain two versions of a crate,
/// because its engine determines its dependencies.
fn deny(shell: &Shell) -> Result<()> {
    const CHECK: [&str; 4] = ["check", "--hide-inclusion-graph", "licenses", "sources"];
    shell.cmd("cargo", ["deny"].into_iter().chain(CHECK).chain(["bans"])).run()?;
    ["bevy", "capi", "conformance", "godot", "python"].iter().try_for_each(|folder| {
        let manifest = format!("{folder}/Cargo.toml");
        let workspace = ["deny", "--locked", "--config", "deny.toml", "--manifest-path", &manifest];
        shell.cmd("cargo", workspace.into_iter().chain(CHECK)).run()
    })
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

/// Lints the library of the fuzz targets. Their programs build only for the fuzzer.
fn fuzz_lints(shell: &Shell) -> Result<()> {
    workspaces::lints(shell, "fuzz", &["--lib", "--tests"])
}

fn fields_lints(shell: &Shell) -> Result<()> {
    workspaces::lints(shell, fields::FOLDER, &["--release"])
}

/// Builds the documentation with the features and targets of `[package.metadata.docs.rs]` in the manifests.
fn doc(shell: &Shell) -> Result<()> {
    let here = ["doc", "--no-deps", "--all-features", "--workspace"];
    let for_browsers = ["doc", "--no-deps", "--all-features", "-p", "rakwire-wasm", "--target", WASM];
    for doc in [shell.cmd("cargo", here), shell.cmd_for(WASM, ".", "cargo", for_browsers)] {
        doc.env("RUSTDOCFLAGS", "-D warnings").run()?;
    }
    Ok(())
}
