//! The program `rakwire-relay`. The library describes what it does.

#![forbid(unsafe_code)]

mod args;
mod commands;
mod run;
mod signals;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use crate::args::{Cli, Task};
use crate::commands::Failure;

/// The exit code for an invalid configuration, the same as clap's.
const MISCONFIGURED: u8 = 2;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return reject_arguments(&error),
    };
    let done = match cli.into_task() {
        Task::Run(args) => run::run(args),
        Task::Check(args) => commands::check(&args),
        Task::Config(args) => commands::print(&args),
        Task::Reload(args) => commands::reload(&args),
        Task::List(args) => commands::list(&args),
        Task::Announce(args) => commands::announce(args),
        Task::Keygen(args) => commands::keygen(&args),
        Task::Token(args) => commands::token(&args),
        Task::Completions(args) => commands::completions(&args),
        Task::Man => commands::manual(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Misconfigured(line)) => {
            eprintln!("error: {line}");
            ExitCode::from(MISCONFIGURED)
        }
        Err(Failure::Failed(line)) => {
            eprintln!("error: {line}");
            ExitCode::FAILURE
        }
    }
}

/// Prints one line for an invalid value, and clap's output for help and missing options.
fn reject_arguments(error: &clap::Error) -> ExitCode {
    if error.kind() == ErrorKind::ValueValidation {
        eprintln!("{}", error.to_string().lines().next().unwrap_or_default());
        return ExitCode::from(MISCONFIGURED);
    }
    error.exit()
}
