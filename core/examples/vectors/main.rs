//! Checks a file of test vectors: `cargo run -q -p rakwire --example vectors -- core/tests/vectors/raknet.json`.
//!
//! A JSON object contains vectors of RakNet. A JSON list contains vectors of the Game Protocol; only vectors of the
//! transport are checked. docs/raknet.md and docs/game-protocol.md specify the formats.
//!
//! Prints a line for each failed vector, then `N passed, N failed`. The exit status is 1 if a vector failed, and 2,
//! with one line, if the file cannot be read.

#[path = "../../tests/it/support/game_entries.rs"]
mod game_entries;
#[path = "../../tests/it/support/game_vectors.rs"]
mod game_vectors;
#[path = "../../tests/it/support/recorder.rs"]
mod recorder;
#[path = "../../tests/it/support/vectors.rs"]
mod vectors;

use std::process::ExitCode;

const UNREADABLE: u8 = 2;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(path), None) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: vectors FILE.json");
        return ExitCode::from(UNREADABLE);
    };
    let tally =
        std::fs::read_to_string(&path).map_err(|error| error.to_string()).and_then(|text| check(&text));
    match tally {
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

fn check(text: &str) -> Result<vectors::Tally, String> {
    if !text.trim_start().starts_with('[') {
        return vectors::check(text);
    }
    let (tally, elsewhere) = game_vectors::check(text)?;
    if elsewhere > 0 {
        println!("skipped {elsewhere} vectors, which describe messages and not the transport");
    }
    Ok(tally)
}
