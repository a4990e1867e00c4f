//! Commands and stages of `cargo xtask` that are slow to compile, because they parse Rust and microcontroller programs.
//! `xtask` builds and runs this program when one of them is requested.

mod bench;
mod boards;
mod citations;
mod cli;
mod commands;
mod documents;
mod english;
mod fuzz;
mod mcu;
mod measurements;
mod modules;
mod mutants;
mod package;
mod relay_package;
mod release;
mod size;
mod stages;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use xtask::shell::Shell;
use xtask::stop;

use crate::cli::{Cli, Command};

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) if stop::interrupted() => ExitCode::from(130),
        Err(error) => {
            eprintln!("\nError: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<()> {
    stop::watch_signals()?;
    let shell = Shell::new()?;
    match cli.command {
        Command::Stage { name } => stages::run(&shell, &name),
        Command::Size(options) => size::command(&shell, &options),
        Command::Mcu(options) => mcu::command(&shell, &options),
        Command::Fuzz(options) => fuzz::command(&shell, &options),
        Command::Soak(options) => fuzz::soak(&shell, &options),
        Command::Mutants(options) => mutants::command(&shell, &options),
        Command::Bench(options) => bench::command(&shell, &options),
        Command::PackageRelay(options) => relay_package::command(&shell, &options),
        Command::Release(options) => release::command(&shell, &options),
    }
}
