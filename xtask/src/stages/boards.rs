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
        Stage::new("targets", "the core and the game build for microcontrollers and for browsers, and the driver for the smallest boards",
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
        Stage::in_tools("mutants", "the models find every fault inserted into the core, and simulated worlds most of them", &[])
            .tier(Tier::Nightly, "takes a quarter of an hour, and checks the tests rather than the code"),
        Stage::new("models", "no attack on the models of secure connections, and one on a model with a known attack",
            &models::NEEDS, models::stage)
            .tier(Tier::Nightly, "the models change less often than the code"),
        Stage::new("miri", "no undefined behaviour where the core computes with indices and bits", &miri::NEEDS, miri::stage)
            .tier(Tier::Nightly, "an interpreter, with another compiler"),
        Stage::in_tools("fuzz", "generated input against the core, the game and the C API, for a minute", &FUZZ)
            .tier(Tier::Nightly, "takes minutes, and rarely finds anything"),
        Stage::in_tools("soak", "a server and clients that come and go for a minute leave no files or tasks behind, and the heap does not grow", &[])
            .uses(Resource::ReleaseProfile).tier(Tier::Nightly, "compiles the driver with optimisation"),
        Stage::new("parts-all", "the core has no unused code with any one or two of the features that remove code; native and extras build with each feature",
            &[Need::CargoHack], all_parts)
            .uses(Resource::DevProfile).tier(Tier::Nightly, "checks the core thirty times"),
    ]
}

fn targets(shell: &Shell) -> Result<()> {
    for target in [THUMB, WASM] {
        for package in ["rakwire", "snowfight"] {
            let args = ["build", "-p", package, "--no-default-features", "--target", target];
            shell.cmd_for(target, ".", "cargo", args).run()?;
        }
    }
    // Boards without compare-and-swap.
    let driver = ["build", "-p", "rakwire-embassy", "--features", "defmt,unconnected", "--target", THUMB];
    shell.cmd_for(THUMB, ".", "cargo", driver).run()
}

/// Runs the tests of the core's small profile in both profiles, and those without an allocator.
pub(super) fn parts(shell: &Shell) -> Result<()> {
    workspaces::cargo(shell, MINIMAL, &["fmt", "--check"]).run()?;
    let features: [&[&str]; 3] =
        [&[], &["--features", "full"], &["--no-default-features", "--features", "unconnected"]];
    features.iter().try_for_each(|features| {
        workspaces::cargo(shell, MINIMAL, &[&["test", "--locked"], *features].concat()).run()
    })
}

/// The features of the core that cut code out, or that use code which nothing else uses.
const CUTTING: &str = "alloc,delay-based,full,secure,server,unconnected,zero-copy";

/// Runs [`parts`]; lints the core with each feature and each pair of them, and native and extras with each feature.
fn all_parts(shell: &Shell) -> Result<()> {
    parts(shell)?;
    let pairs = ["--feature-powerset", "--depth", "2", "--include-features", CUTTING, "-p", "rakwire"];
    let alone = ["--each-feature", "-p", "rakwire-native", "-p", "rakwire-extras"];
    [&pairs[..], &alone[..]].iter().try_for_each(|chosen| {
        let args = [&["hack", "clippy", "--lib"], *chosen, &["--", "-D", "warnings"]].concat();
        shell.cmd("cargo", args).run()
    })
}

/// The small profile of the core, in a separate workspace.
const MINIMAL: &str = "core/minimal";
