//! The program `rakwire-relay`. The library describes what it does.

#![forbid(unsafe_code)]
// These macros panic where nothing can be written.
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

/// The exit code for an invalid configuration, the same as clap's.
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

/// Prints a line on standard error. A failure to print is ignored.
fn report(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Prints one line for a mistake, and clap's output for help.
fn reject_arguments(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        error.exit();
    }
    report(mistake(error));
    ExitCode::from(MISCONFIGURED)
}

/// What is wrong with the command line, in one line with what was probably meant.
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
