//! Runs worlds, and prints how to repeat one that fails.

#![allow(clippy::print_stdout, reason = "a program for terminals")]

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Parser;
use rakwire_worlds::plan::{Omitted, Plan};
use rakwire_worlds::plant::Plant;
use rakwire_worlds::shrink::{run, shrink};

/// Runs simulated worlds of clients, routers, a relay, a front and a game server, with faults, and checks that no message
/// is lost, duplicated, out of order or of another connection, that memory is bounded, and that everything is delivered
/// once the faults have stopped.
#[derive(Parser)]
#[command(version)]
struct Options {
    /// The first seed.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// The number of worlds, with successive seeds.
    #[arg(long, value_name = "N", default_value_t = 1)]
    worlds: u64,
    /// Faults to leave out, by their numbers in the plan.
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    without_faults: Vec<usize>,
    /// Clients to leave out, by their numbers in the plan.
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    without_clients: Vec<usize>,
    /// Print the plan of the first seed, and run nothing.
    #[arg(long)]
    plan: bool,
    /// Put a fault into the simulated drivers, which the checks must find.
    #[arg(long, value_name = "FAULT")]
    plant: Option<Plant>,
    /// Put in each fault of `--plant` in turn, and print how many worlds it takes to find it.
    #[arg(long, conflicts_with = "plant")]
    plants: bool,
}

/// The number of worlds in which a planted fault must be found.
const MOST_FOR_PLANT: u64 = 200;

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    let omitted = Omitted {
        faults: options.without_faults.iter().copied().collect(),
        clients: options.without_clients.iter().copied().collect(),
    };
    if options.plan {
        println!("{:#?}", Plan::without(options.seed, &omitted));
        return Ok(ExitCode::SUCCESS);
    }
    if options.plants {
        return find_plants(options.seed);
    }
    run_worlds(&options, &omitted)
}

/// Runs the worlds; stops at the first that fails.
fn run_worlds(options: &Options, omitted: &Omitted) -> Result<ExitCode> {
    let started = Instant::now();
    let (mut messages, mut connections, mut faults, mut seconds) = (0, 0, 0, 0);
    for seed in options.seed..options.seed.saturating_add(options.worlds) {
        match run(seed, omitted, options.plant) {
            Ok(outcome) => {
                messages += outcome.messages;
                connections += outcome.connections;
                faults += outcome.faults;
                seconds += outcome.seconds;
            }
            Err(broken) => {
                println!("world {seed}: {broken}");
                if *omitted == Omitted::default() {
                    let (smaller, broken) = shrink(seed, options.plant, broken);
                    println!("shrunk: {broken}");
                    println!("repeat it: {}", command(seed, &Omitted::default(), options.plant));
                    println!("or shrunk: {}", command(seed, &smaller, options.plant));
                }
                return Ok(ExitCode::FAILURE);
            }
        }
    }
    println!(
        "{} worlds kept their promises: {messages} messages over {connections} connections, {faults} faults, {seconds} virtual \
         seconds in {:.1} s",
        options.worlds,
        started.elapsed().as_secs_f64(),
    );
    Ok(ExitCode::SUCCESS)
}

/// Returns the command that repeats a world.
fn command(seed: u64, omitted: &Omitted, plant: Option<Plant>) -> String {
    let list = |numbers: &std::collections::BTreeSet<usize>| {
        numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
    };
    let mut command = format!("cargo run --release -p rakwire-worlds -- --seed {seed}");
    for (option, numbers) in [("--without-faults", &omitted.faults), ("--without-clients", &omitted.clients)]
    {
        if !numbers.is_empty() {
            command += &format!(" {option} {}", list(numbers));
        }
    }
    if let Some(plant) = plant {
        command += &format!(" --plant {}", plant.name());
    }
    command
}

/// Finds each planted fault.
fn find_plants(first: u64) -> Result<ExitCode> {
    println!("{:<18} {:>7}  found as", "planted fault", "worlds");
    for plant in Plant::all() {
        let found = (0..MOST_FOR_PLANT).find_map(|number| {
            let broken = run(first + number, &Omitted::default(), Some(*plant)).err()?;
            Some((number + 1, broken))
        });
        let Some((worlds, broken)) = found else {
            bail!("{} worlds do not find the planted fault {}", MOST_FOR_PLANT, plant.name());
        };
        println!("{:<18} {worlds:>7}  {}", plant.name(), broken.chars().take(100).collect::<String>());
    }
    Ok(ExitCode::SUCCESS)
}
