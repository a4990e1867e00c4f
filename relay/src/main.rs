//! The program `rakwire-relay`; see the library for a description.

#![forbid(unsafe_code)]
// These macros panic if stdout or stderr is not writable.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod commands;

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use clap::error::{ContextKind, ErrorKind};

use crate::args::{Cli, Task};
use crate::commands::Failure;

/// The exit code for an invalid configuration, the same as clap's for invalid arguments.
const MISCONFIGURED: u8 = 2;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return reject_arguments(&error),
    };
    let done = match cli.into_task() {
        Task::Run(args) => commands::run(args),
        Task::Check(args) => commands::check(&args),
        Task::Config(args) => commands::print(&args),
        Task::Reload(args) => commands::reload(&args),
        Task::List(args) => commands::list(&args),
        Task::Clients(args) => commands::clients(&args),
        Task::Kick(args) => commands::kick(&args),
        Task::Ban(args) => commands::ban(&args),
        Task::Unban(args) => commands::unban(&args),
        Task::Bans(args) => commands::bans(&args),
        Task::Announce(args) => commands::announce(args),
        Task::Keygen(args) => commands::keygen(&args),
        Task::Token(args) => commands::token(&args),
        Task::Completions(args) => commands::completions(&args),
        Task::Man => commands::manual(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Misconfigured(line)) => {
            report(format_args!("error: {line}"));
            ExitCode::from(MISCONFIGURED)
        }
        Err(Failure::Failed(line)) => {
            report(format_args!("error: {line}"));
            ExitCode::FAILURE
        }
    }
}

/// Prints a line to stderr, and ignores failures.
fn report(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Prints one line about a usage error, or clap's complete output for help.
fn reject_arguments(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        error.exit();
    }
    report(mistake(error));
    ExitCode::from(MISCONFIGURED)
}

/// Returns a one-line description of a usage error, with a suggested correction.
fn mistake(error: &clap::Error) -> String {
    let text = error.to_string();
    let lines = text.lines().map(str::trim).take_while(|line| !line.is_empty());
    let mut line = lines.collect::<Vec<_>>().join(" ");
    let near = [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue]
        .into_iter()
        .find_map(|kind| error.get(kind));
    if let Some(near) = near {
        line.push_str(&format!(": did you mean {near}?"));
    }
    line
}
