//! The commands of this repository, run as `cargo xtask COMMAND`.
//!
//! Each command does its own set-up on a machine which has only stable Rust, Node and npm; what is there already is
//! not installed again. Every child process ends with the command that started it.

mod artifacts;
mod bench;
mod checks;
mod citations;
mod corpus;
mod demo;
mod features;
mod firmware;
mod fuzz;
mod interop;
mod log;
mod mcu;
mod measurements;
mod modules;
mod msrv;
mod mutants;
mod named_tests;
mod npm_size;
mod own_files;
mod process;
mod quickstarts;
mod runner;
mod schedule;
mod service;
mod setup;
mod shell;
mod size;
mod smoke;
mod stage;
mod stop;
mod targets;
mod tasks;
mod test;
mod tracked;
mod words;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

use crate::setup::Need;
use crate::shell::Shell;

/// The commands of this repository.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Install everything that the other commands need.
    Setup,
    /// Build the npm package: wasm/pkg and wasm/dist.
    Wasm,
    /// Build the page: web/dist.
    Web,
    /// Run a game server, the relay and the page until Ctrl-C.
    Demo(demo::Options),
    /// Run the firmware of microcontrollers in QEMU.
    Mcu(mcu::Options),
    /// Measure how much memory everything takes, and compare with the committed tables.
    Size(size::Options),
    /// Run every test of every part.
    Test(Selection),
    /// Look for faults of the core with generated input.
    Fuzz(fuzz::FuzzOptions),
    /// Run the core over bad networks, thousands of times.
    Soak(fuzz::SoakOptions),
    /// Put faults into a copy of the core, one at a time: the tests must find each of them.
    Mutants(mutants::Options),
    /// Measure speed beside other RakNets and beside the bare socket.
    Bench(bench::Options),
    /// What a change must pass: formatting, lints, docs, dependency policy and every test.
    Ci(Selection),
}

/// Which stages to run.
#[derive(Args)]
struct Selection {
    /// Run this stage only, with the set-up that it needs.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// List the stages and run none.
    #[arg(long, conflicts_with = "only")]
    list: bool,
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) if stop::interrupted() => {
            eprintln!("\nxtask: interrupted");
            ExitCode::from(130)
        }
        Err(error) => {
            eprintln!("\nxtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<()> {
    stop::watch_signals()?;
    let shell = Shell::new()?;
    match cli.command {
        Command::Setup => tasks::set_up(&shell, &Need::TOOLS),
        Command::Wasm => tasks::set_up(&shell, &[Need::NpmPackage]),
        Command::Web => tasks::set_up(&shell, &[Need::Page]),
        Command::Demo(options) => demo::run(&shell, &options),
        Command::Size(options) => size::command(&shell, &options),
        Command::Mcu(options) => mcu::command(&shell, &options),
        Command::Fuzz(options) => fuzz::command(&shell, &options),
        Command::Soak(options) => fuzz::soak(&shell, &options),
        Command::Mutants(options) => mutants::command(&shell, &options),
        Command::Bench(options) => bench::command(&shell, &options),
        Command::Test(selection) => run_stages(&shell, &test::test_stages(), &selection),
        Command::Ci(selection) => run_stages(&shell, &test::ci_stages(), &selection),
    }
}

fn run_stages(shell: &Shell, stages: &[stage::Stage], selection: &Selection) -> Result<()> {
    if selection.list {
        stage::list(stages);
        return Ok(());
    }
    match &selection.only {
        None => runner::run(shell, stages),
        Some(name) => runner::run_only(shell, stage::find(stages, name)?),
    }
}
