//! Stages of the core on microcontrollers, without some of its features, and with generated input.

use anyhow::Result;

use crate::miri;
use crate::models;
use crate::schedule::{Load, Resource};
use crate::setup::Need;
use crate::shell::Shell;
use crate::stage::{Stage, Tier};
use crate::targets::{THUMB, WASM};
use crate::workspaces;

/// The needs of memory measurements for microcontrollers.
pub const SIZE: [Need; 2] = [Need::ThumbTarget, Need::FirmwareTargets];

/// The needs of fuzzing.
pub const FUZZ: [Need; 2] = [Need::CargoFuzz, Need::CppCompiler];

/// Stages that build for microcontrollers, run an emulated board, or count instructions.
#[rustfmt::skip]
pub(super) fn boards() -> [Stage; 6] {
    [
        Stage::in_tools("mcu", "the firmware in QEMU, with our server and other servers",
            &[Need::FirmwareTargets, Need::Qemu, Need::DefmtPrint, Need::Peers, Need::HostTests])
            .load(Load::Half).tier(Tier::Ci, "needs QEMU and all other RakNet implementations"),
        Stage::in_tools("size", "flash and RAM on one microcontroller, and no panic in the core there", &SIZE)
            .part_of("size-all").tier(Tier::Ci, "one target shows the cost of a change"),
        Stage::in_tools("size-all", "flash and RAM on microcontrollers, and no panic in the core", &SIZE)
            .tier(Tier::Nightly, "links dozens of programs"),
        Stage::new("targets", "the core and the game build for microcontrollers and for browsers",
            &[Need::ThumbTarget, Need::WasmTarget], targets)
            .uses(Resource::DevProfile).tier(Tier::Ci, "compiles for other targets"),
        Stage::in_tools("instructions", "the hot paths take no more instructions than in the table",
            &[Need::Valgrind, Need::Benchmark])
            .tier(Tier::Nightly, "compiles with optimisation, which takes minutes"),
        Stage::in_tools("boards", "the single-file example of each board builds, and converts to the board's USB format", &SIZE)
            .tier(Tier::Nightly, "compiles the frameworks of six boards"),
    ]
}

/// Searches for faults that no test covers.
#[rustfmt::skip]
pub(super) fn generated_input() -> [Stage; 6] {
    [
        Stage::in_tools("mutants", "the models find every fault inserted into the core", &[])
            .tier(Tier::Nightly, "takes a quarter of an hour, and checks the tests rather than the code"),
        Stage::new("models", "no attack on the models of secure connections, and one on a model with a known attack",
            &models::NEEDS, models::stage)
            .tier(Tier::Nightly, "the models change less often than the code"),
        Stage::new("miri", "no undefined behaviour where the core computes with indices and bits", &miri::NEEDS, miri::stage)
            .tier(Tier::Nightly, "an interpreter, with another compiler"),
        Stage::in_tools("fuzz", "generated input against the core and the game, for a minute", &FUZZ)
            .tier(Tier::Nightly, "takes minutes, and rarely finds anything"),
        Stage::in_tools("soak", "a server and clients that come and go for a minute leave no files or tasks behind, and memory grows by less than 4 MiB", &[])
            .uses(Resource::ReleaseProfile).tier(Tier::Nightly, "compiles the driver with optimisation"),
        Stage::new("parts-all", "the core's tests pass with each single feature that a small client leaves out, and without each; native and extras build with each feature",
            &[Need::CargoHack], all_parts)
            .uses(Resource::DevProfile).tier(Tier::Nightly, "compiles the core sixteen times"),
    ]
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

/// The features that a small client leaves out.
const PARTS: [&str; 7] =
    ["channels", "connections", "packing", "priorities", "sequencing", "splitting", "statistics"];

/// Tests the core without the features that a small client leaves out, and with all of them.
pub(super) fn parts(shell: &Shell) -> Result<()> {
    workspaces::cargo(shell, MINIMAL, &["fmt", "--check"]).run()?;
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
    workspaces::cargo(shell, MINIMAL, &[&["test", "--locked"], features].concat()).run()
}
