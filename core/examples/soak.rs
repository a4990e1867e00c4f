//! Runs seeded connections over bad networks, for `cargo xtask soak`.
//!
//! The first argument is the number of runs; the default is 10,000.

#[path = "../tests/model/mod.rs"]
#[allow(dead_code, unreachable_pub, reason = "this program uses a part")]
mod model;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use model::soak;

const PROGRESS: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let runs = std::env::args().nth(1).map_or(Ok(10_000), |runs| runs.parse::<u64>());
    let Ok(runs) = runs else {
        eprintln!("usage: soak [RUNS]");
        return ExitCode::from(2);
    };
    let (mut passed, mut failed, mut messages) = (0_u64, 0_u64, 0);
    let mut reported = Instant::now();
    for seed in 0..runs {
        match soak::run(seed) {
            Ok(arrived) => {
                passed += 1;
                messages += arrived;
            }
            Err(broken) => {
                failed += 1;
                println!("seed {seed}: {broken}");
            }
        }
        if reported.elapsed() > PROGRESS {
            reported = Instant::now();
            println!("{} of {runs} runs, {messages} messages", seed + 1);
        }
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
