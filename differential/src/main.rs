//! The command `differential`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use rakwire_differential::pairing::Pairing;
use rakwire_differential::programs::Programs;
use rakwire_differential::run::run;
use rakwire_differential::script::{Script, parse};
use rakwire_differential::suite::{self, Options, Outcome};
use rakwire_differential::{generate, named_scripts, table};

/// Runs scripts of calls on the original RakNet and on rakwire, in every pairing, and compares what applications see.
#[derive(Parser)]
#[command(name = "differential")]
struct Arguments {
    /// Run only the named scripts with this text in their names.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Run this many random scripts instead of the named ones.
    #[arg(long, value_name = "COUNT")]
    random: Option<u64>,
    /// Seed of the networks, and of the first random script.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Scripts that run at the same time.
    #[arg(long, default_value_t = 8, value_name = "COUNT")]
    at_once: usize,
    /// Run the scripts of this file instead of the named ones.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print the traces of all pairings instead of comparing them.
    #[arg(long)]
    traces: bool,
    /// List the named scripts and exit.
    #[arg(long)]
    list: bool,
    /// Print the random script of `--seed` and exit.
    #[arg(long)]
    print: bool,
    /// Folder for the two drivers.
    #[arg(long, default_value = "target/differential/drivers", value_name = "FOLDER")]
    drivers: PathBuf,
}

fn main() -> ExitCode {
    match start(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("differential: {error}");
            ExitCode::from(2)
        }
    }
}

/// Runs the scripts. Returns false if there are differences.
fn start(arguments: &Arguments) -> Result<bool, Box<dyn std::error::Error>> {
    if arguments.print {
        print!("{}", generate::script(arguments.seed));
        return Ok(true);
    }
    let scripts = choose(arguments)?;
    if arguments.list {
        scripts.iter().for_each(|script| println!("{}", script.name));
        return Ok(true);
    }
    let programs = Programs::build(&arguments.drivers)?;
    if arguments.traces {
        return print_traces(&scripts, &programs, arguments.seed).map(|()| true);
    }
    let rows = table::parse(named_scripts::DIFFERENCES)?;
    table::check_pages(&rows)?;
    let options = Options { seed: arguments.seed, at_once: arguments.at_once };
    let outcomes = suite::run_all(&scripts, &programs, &rows, &options, print_outcome)?;
    // With a selection of scripts, some rows of the table are necessarily unused.
    let is_all = arguments.only.is_none() && arguments.random.is_none() && arguments.file.is_none();
    let unused = if is_all { suite::unused_rows(&rows, &outcomes) } else { Vec::new() };
    for row in &unused {
        println!("differences.txt, line {}: no script has this difference; remove the row", row.line);
    }
    let failed = outcomes.iter().filter(|outcome| !outcome.differences.is_empty()).count();
    println!("{} scripts, {} comparisons, {failed} with differences", scripts.len(), outcomes.len());
    Ok(failed == 0 && unused.is_empty())
}

fn choose(arguments: &Arguments) -> Result<Vec<Script>, Box<dyn std::error::Error>> {
    let mut scripts = match (arguments.random, &arguments.file) {
        (Some(count), _) => {
            let seeds = arguments.seed..arguments.seed + count;
            parse(&seeds.map(generate::script).collect::<String>())?
        }
        (None, Some(file)) => parse(&std::fs::read_to_string(file)?)?,
        (None, None) => named_scripts::all()?,
    };
    if let Some(text) = &arguments.only {
        scripts.retain(|script| script.name.contains(text));
    }
    if scripts.is_empty() {
        return Err(
            "no script name contains the text of --only; `differential --list` lists all scripts".into()
        );
    }
    Ok(scripts)
}

fn print_outcome(outcome: &Outcome) {
    let verdict = if outcome.differences.is_empty() { "same" } else { "DIFFERENT" };
    let rules = outcome.applied.iter().map(|(rule, count)| format!(" {rule} x{count}"));
    let rows = outcome.rows.iter().map(|line| format!(" row {line}"));
    let permitted: String = rules.chain(rows).collect();
    let by = if permitted.is_empty() { "" } else { ", by" };
    println!("{verdict} {} {}{by}{permitted}", outcome.script, outcome.pairing);
    outcome.differences.iter().for_each(|difference| println!("  {difference}"));
}

fn print_traces(
    scripts: &[Script],
    programs: &Programs,
    seed: u64,
) -> Result<(), Box<dyn std::error::Error>> {
    for script in scripts {
        for pairing in std::iter::once(Pairing::REFERENCE).chain(Pairing::COMPARED) {
            println!("{} {pairing}", script.name);
            print!("{}", run(script, pairing, programs, seed)?);
            println!();
        }
    }
    Ok(())
}
