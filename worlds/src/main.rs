//! Runs simulated worlds, and prints the command that reproduces a failure.

use std::alloc::System;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Parser;
use rakwire_worlds::batch::{Progress, run_all};
use rakwire_worlds::plan::{Omitted, Plan};
use rakwire_worlds::plant::Plant;
use rakwire_worlds::shrink::{run, shrink};
use rakwire_worlds::soak::{Quarter, soak};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

/// Measures the heap, which a soak compares between quarters.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Runs simulated worlds of clients, routers, a relay, a front and a game server, with faults.
///
/// Checks that no message is lost, duplicated, changed, reordered or delivered on another connection. Also checks that
/// memory is bounded, and that all messages are delivered after the faults have stopped.
#[derive(Parser)]
#[command(version)]
struct Options {
    /// The first seed.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// The number of worlds, with successive seeds.
    #[arg(long, value_name = "N", default_value_t = 1)]
    worlds: u64,
    /// Continue an interrupted run at this seed, and skip the worlds before it.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    from: u64,
    /// The number of worlds that run at the same time.
    #[arg(long, value_name = "N", default_value = "1")]
    jobs: NonZeroUsize,
    /// After a failure, do not search for a smaller world that still fails.
    #[arg(long)]
    no_shrink: bool,
    /// Leave out these faults, by their numbers in the plan.
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    without_faults: Vec<usize>,
    /// Leave out these clients, by their numbers in the plan.
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    without_clients: Vec<usize>,
    /// Print the plan of the first seed without running it.
    #[arg(long)]
    plan: bool,
    /// Insert a deliberate fault into the simulated drivers, which the checks must find.
    #[arg(long, value_name = "FAULT")]
    plant: Option<Plant>,
    /// Insert each fault of `--plant`, one at a time, and print the number of worlds needed to find it.
    #[arg(long, conflicts_with = "plant")]
    plants: bool,
    /// Run one world for this many hours of virtual time, and check that memory does not grow.
    #[arg(long, value_name = "HOURS", value_parser = hours, conflicts_with = "worlds")]
    soak: Option<Duration>,
}

/// Parses a number of hours, such as 0.5.
fn hours(text: &str) -> Result<Duration, String> {
    let hours = text.parse::<f64>().ok().filter(|hours| (0.01..=1_000.0).contains(hours));
    hours
        .map(|hours| Duration::from_secs_f64(hours * 3_600.0))
        .ok_or_else(|| "expected a number of hours from 0.01 to 1000".to_owned())
}

/// The number of worlds after which a planted fault counts as not found.
const MAX_FOR_PLANT: u64 = 200;
/// The interval of the progress lines.
const PROGRESS: Duration = Duration::from_secs(30);

#[allow(clippy::print_stdout, reason = "the results of a program for terminals")]
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
    if let Some(time) = options.soak {
        return Ok(run_soak(options.seed, time, options.plant));
    }
    Ok(run_worlds(&options, &omitted))
}

/// Runs the worlds; stops after the first failure.
#[allow(clippy::print_stdout, reason = "the results of a program for terminals")]
fn run_worlds(options: &Options, omitted: &Omitted) -> ExitCode {
    let started = Instant::now();
    let end = options.seed.saturating_add(options.worlds);
    let last_line = Mutex::new(started);
    let report = |progress: &Progress| {
        let mut last_line = last_line.lock().unwrap_or_else(PoisonError::into_inner);
        if last_line.elapsed() >= PROGRESS {
            *last_line = Instant::now();
            println!("{}", describe(progress, end, started.elapsed()));
        }
    };
    let ran = run_all(options.seed.max(options.from)..end, options.jobs, omitted, options.plant, &report);
    if let Some((seed, broken)) = ran.failure {
        println!("world {seed}: {broken}");
        println!("reproduce it: {}", command(seed, omitted, options.plant));
        if !options.no_shrink && *omitted == Omitted::default() {
            let (smaller, broken) = shrink(seed, options.plant, broken);
            println!("shrunk: {broken}");
            println!("reproduce the shrunk world: {}", command(seed, &smaller, options.plant));
        }
        return ExitCode::FAILURE;
    }
    println!(
        "{} worlds kept their guarantees: {} messages over {} connections, {} faults, {} virtual seconds in {:.1} s",
        ran.worlds,
        ran.total.messages,
        ran.total.connections,
        ran.total.faults,
        ran.total.seconds,
        started.elapsed().as_secs_f64(),
    );
    ExitCode::SUCCESS
}

/// Returns the progress line of an unfinished run, with the option that continues it.
fn describe(progress: &Progress, end: u64, elapsed: Duration) -> String {
    let per_second = progress.worlds as f64 / elapsed.as_secs_f64();
    let left = end.saturating_sub(progress.from);
    format!(
        "{} worlds, {per_second:.1} per second, about {:.0} min left; continue an interrupted run with --from {}",
        progress.worlds,
        left as f64 / per_second / 60.0,
        progress.from
    )
}

/// Runs a soak and prints a line for each quarter.
#[allow(clippy::print_stdout, reason = "the results of a program for terminals")]
fn run_soak(seed: u64, time: Duration, plant: Option<Plant>) -> ExitCode {
    let started = Instant::now();
    let before = heap();
    println!(
        "{:>8} {:>10} {:>11} {:>7} {:>7} {:>7} {:>11} {:>6} {:>9}",
        "virtual", "messages", "connections", "faults", "blocks", "at most", "connected", "flows", "KiB heap"
    );
    let mut report = |quarter: &Quarter| {
        let Quarter { outcome, blocks, most_blocks, connections, flows, heap } = *quarter;
        println!(
            "{:>6} s {:>10} {:>11} {:>7} {blocks:>7} {most_blocks:>7} {connections:>11} {flows:>6} {:>9}",
            outcome.seconds,
            outcome.messages,
            outcome.connections,
            outcome.faults,
            heap.saturating_sub(before) / 1_024
        );
    };
    match soak(seed, time, plant, &heap, &mut report) {
        Ok(_) => {
            println!(
                "the soak kept its guarantees with flat memory, in {:.1} s",
                started.elapsed().as_secs_f64()
            );
            ExitCode::SUCCESS
        }
        Err(broken) => {
            println!("soak {seed}: {broken}");
            let hours = time.as_secs_f64() / 3_600.0;
            println!("reproduce it: {} --soak {hours}", command(seed, &Omitted::default(), plant));
            ExitCode::FAILURE
        }
    }
}

/// Returns the number of bytes that this process has allocated and not freed.
fn heap() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}

/// Returns the command that reproduces a world.
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

/// Prints the number of worlds needed to find each planted fault.
#[allow(clippy::print_stdout, reason = "the results of a program for terminals")]
fn find_plants(first: u64) -> Result<ExitCode> {
    println!("{:<18} {:>7}  found as", "planted fault", "worlds");
    for plant in Plant::all() {
        let found = (0..MAX_FOR_PLANT).find_map(|number| {
            let broken = run(first + number, &Omitted::default(), Some(*plant)).err()?;
            Some((number + 1, broken))
        });
        let Some((worlds, broken)) = found else {
            bail!("{} worlds did not find the planted fault {}", MAX_FOR_PLANT, plant.name());
        };
        println!("{:<18} {worlds:>7}  {}", plant.name(), broken.chars().take(100).collect::<String>());
    }
    Ok(ExitCode::SUCCESS)
}
