//! The commands of this repository, run as `cargo xtask COMMAND`.
//!
//! Each command does its own set-up on a machine which has only stable Rust, Node and npm; what is there already is
//! not installed again. Every child process ends with the command that started it.

mod artifacts;
mod bench;
mod boards;
mod checks;
mod citations;
mod cli;
mod corpus;
mod demo;
mod documents;
mod features;
mod fields;
mod firmware;
mod fuzz;
mod interop;
mod log;
mod mcu;
mod measurements;
mod miri;
mod models;
mod modules;
mod msrv;
mod mutants;
mod npm_size;
mod own_files;
mod package;
mod process;
mod quickstarts;
mod relay_package;
mod release;
mod runner;
mod schedule;
mod service;
mod setup;
mod shell;
mod size;
mod slow_page;
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
use clap::Parser;

use crate::cli::{Cli, Command, Selection};
use crate::setup::Need;
use crate::shell::Shell;

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
        Command::PackageRelay(options) => relay_package::command(&shell, &options),
        Command::Release(options) => release::command(&shell, &options),
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
