//! The program behind `cargo xtask bench`.

#![forbid(unsafe_code)]

mod instructions;
#[path = "../../interop/shared/bench.rs"]
#[allow(unreachable_pub, reason = "other programs include this file, too")]
mod part;
mod peer;
mod raw;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use rakwire_bench::hot::HotPath;

/// Measures rakwire beside other RakNet implementations, beside the bare socket, and alone.
#[derive(Debug, Parser)]
#[command(name = "rakwire-bench")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Repeat a hot path of the core, for callgrind and perf.
    Hot {
        /// Which
        path: HotPath,
        /// How often
        repetitions: u64,
    },
    Instructions(instructions::Options),
    Peer(peer::Arguments),
    #[command(subcommand)]
    Raw(raw::Part),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Hot { path, repetitions } => {
            path.run(repetitions);
            Ok(())
        }
        Command::Instructions(options) => instructions::run(&options),
        Command::Peer(arguments) => peer::run(&arguments),
        Command::Raw(part) => raw::run(&part),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rakwire-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
