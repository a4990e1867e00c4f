//! Checks a file of Game Protocol vectors:
//! `cargo run -q -p snowfight --example snowfight_vectors -- snowfight/tests/vectors/game-protocol.json`.
//!
//! It prints a line for each vector that fails, and `N passed, N failed`. The exit status is 1 if one failed, and 2
//! with one line if the file cannot be read. `docs/game.md` describes the format of the file.

#[path = "../tests/it/support/vectors/mod.rs"]
mod vectors;

use std::process::ExitCode;

const UNREADABLE: u8 = 2;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(path), None) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: vectors FILE.json");
        return ExitCode::from(UNREADABLE);
    };
    let text = std::fs::read_to_string(&path).map_err(|error| error.to_string());
    match text.and_then(|text| vectors::check(&text)) {
        Err(why) => {
            eprintln!("{}: {why}", path.display());
            ExitCode::from(UNREADABLE)
        }
        Ok(tally) => {
            tally.failures.iter().for_each(|failure| println!("FAILED {failure}"));
            println!("{} passed, {} failed", tally.passed, tally.failures.len());
            if tally.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
    }
}
