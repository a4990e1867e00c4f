//! The command-line tool of rakwire: pings, echoes and sends RakNet messages, measures paths and decodes datagrams.

#![forbid(unsafe_code)]
// The print macros panic when the output cannot be written.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod bench;
mod capture;
mod conformance;
mod connection;
mod decode;
mod discover;
mod echo;
mod facilitator;
mod failure;
mod hex;
mod host;
mod keygen;
mod keys;
mod log;
mod meet;
mod overhead;
mod password;
mod ping;
mod protocol;
mod pull;
mod push;
mod send;
mod text;
mod tls;
mod token;
mod transfer;

use std::error::Error;
use std::num::{IntErrorKind, ParseIntError};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

use failure::Failure;

/// RakNet from the command line.
///
/// The exit status is 0 on success, 1 on failure, and 2 for invalid arguments.
#[derive(Debug, Parser)]
#[command(name = "rakwire", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Ping(ping::Arguments),
    Discover(discover::Arguments),
    Echo(echo::Arguments),
    Send(send::Arguments),
    Decode(decode::Arguments),
    Push(push::Arguments),
    Pull(pull::Arguments),
    Meet(meet::Arguments),
    Facilitator(facilitator::Arguments),
    Log(log::Arguments),
    Bench(bench::Arguments),
    Overhead(overhead::Arguments),
    Keygen(keygen::Arguments),
    Token(token::Arguments),
    Conformance(conformance::Arguments),
}

fn main() -> ExitCode {
    let result = match Arguments::try_parse() {
        Ok(arguments) => run(arguments.command),
        Err(error) => match explain(&error) {
            Some(failure) => Err(failure),
            // Help or version.
            None => error.exit(),
        },
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(command: Command) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::runtime(format!("cannot start the async runtime: {error}")))?;
    match command {
        Command::Ping(arguments) => runtime.block_on(ping::run(arguments)),
        Command::Discover(arguments) => runtime.block_on(discover::run(arguments)),
        Command::Echo(arguments) => runtime.block_on(echo::run(arguments)),
        Command::Send(arguments) => runtime.block_on(send::run(arguments)),
        Command::Push(arguments) => runtime.block_on(push::run(arguments)),
        Command::Pull(arguments) => runtime.block_on(pull::run(arguments)),
        Command::Meet(arguments) => runtime.block_on(meet::run(arguments)),
        Command::Facilitator(arguments) => runtime.block_on(facilitator::run(arguments)),
        Command::Bench(arguments) => runtime.block_on(bench::run(arguments)),
        Command::Decode(arguments) => decode::run(&arguments),
        Command::Log(arguments) => log::run(&arguments),
        Command::Overhead(arguments) => overhead::run(&arguments),
        Command::Keygen(arguments) => keygen::run(&arguments),
        Command::Token(arguments) => token::run(&arguments),
        Command::Conformance(arguments) => conformance::run(&arguments),
    }
}

/// Rewords clap's messages about numbers, which quote Rust's own errors.
fn in_plain_words(error: &clap::Error, line: &str) -> String {
    let Some(source) = error.source() else { return line.to_owned() };
    let text = source.to_string();
    let words = match source.downcast_ref::<ParseIntError>().map(ParseIntError::kind) {
        Some(IntErrorKind::PosOverflow | IntErrorKind::NegOverflow) => "the number is too large".to_owned(),
        Some(_) => "it is not a whole number".to_owned(),
        None if text.contains(" is not in ") => {
            text.replace(" is not in ", " is not in the range ").replace("..=", " to ")
        }
        None => return line.to_owned(),
    };
    line.replace(&text, &words)
}

/// Returns the error in the command line as one line, or `None` if help or the version was requested.
fn explain(error: &clap::Error) -> Option<Failure> {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Some(Failure::usage("no command given; `rakwire --help` lists all commands"));
    }
    let is_requested = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    let text = error.to_string();
    let lines = text.lines().take_while(|line| !line.is_empty());
    let line = lines.map(str::trim).collect::<Vec<_>>().join(" ");
    let line = in_plain_words(error, line.trim_start_matches("error: "));
    (!is_requested).then(|| Failure::usage(format!("{line}; see --help")))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_option_of_every_command_has_a_help_text() {
        for command in Arguments::command().get_subcommands() {
            for option in command.get_arguments() {
                assert!(option.get_help().is_some(), "{} {}", command.get_name(), option.get_id());
            }
        }
    }

    #[test]
    fn the_readme_lists_every_option_of_every_command() {
        let readme = include_str!("../README.md");
        let cli = Arguments::command();
        let rows = cli.get_subcommands().filter_map(|command| {
            let options = command.get_arguments().filter_map(|option| option.get_long());
            let options: Vec<_> = options.map(|option| format!("`--{option}`")).collect();
            (!options.is_empty()).then(|| format!("| `{}` | {} |", command.get_name(), options.join(", ")))
        });
        let missing: Vec<_> = rows.filter(|row| !readme.lines().any(|line| line == row)).collect();
        assert!(missing.is_empty(), "cli/README.md lacks these rows:\n{}", missing.join("\n"));
    }
}
