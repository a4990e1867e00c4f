//! The program behind `cargo xtask bench`.

#![forbid(unsafe_code)]

mod alone;
mod bare;
mod crowd;
mod fighters;
mod game;
mod idle;
mod instructions;
mod measure;
mod pairing;
#[path = "../../interop/shared/bench.rs"]
#[allow(unreachable_pub, reason = "other programs include this file, too")]
mod part;
mod peer;
mod process;
mod proxy;
mod publish;
mod raw;
mod report;
mod sitting;

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
    Run(measure::Options),
    Show(measure::Show),
    Publish(publish::Options),
    Crowd(crowd::Arguments),
    Fighters(fighters::Arguments),
    Game(game::Options),
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
        Command::Run(options) => measure::run(&options),
        Command::Publish(options) => publish::run(&options),
        Command::Show(options) => measure::show(&options),
        Command::Crowd(arguments) => crowd::run(&arguments),
        Command::Fighters(arguments) => fighters::run(&arguments),
        Command::Game(options) => game::run(&options),
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
