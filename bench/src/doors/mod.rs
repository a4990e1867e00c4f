//! Compares the doors to rakwire, such as C, C#, Python and Bevy, with the native client.
//!
//! All doors do the same work: they keep messages in flight to the same native echo server. The Bevy programs run a
//! server of their own.

pub(crate) mod client;
mod door;
mod table;
mod work;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;

use self::door::Door;
use self::table::Report;
use self::work::{Measured, Work};
use crate::pairing::itself;
use crate::process::{Cores, Program};
use crate::{environment, publish, report};

const BEGIN: &str = "<!-- figures: written by `cargo xtask bench doors --publish` -->";
/// The seconds beyond the measured time that a program may take, for its start and its warm-up.
const START: Duration = Duration::from_secs(30);

/// Measure C, C#, Python and Bevy compared with the native client: round trips and messages per second.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Measure everything once and briefly, as a smoke test
    #[arg(long)]
    quick: bool,
    /// The number of rounds; the report has the medians
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Write the table into docs/doors.md
    #[arg(long)]
    publish: bool,
    /// The path of the report, by default target/bench/doors.json, and doors-quick.json beside it for a quick measurement
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let (runs, time) = if options.quick { (1, 0.3) } else { (options.runs, 2.0) };
    let mut report = Report { environment: environment::begin(runs)?, rows: Vec::new() };
    "cargo xtask bench doors".clone_into(&mut report.environment.command);
    if options.quick {
        report.environment.command += " --quick";
    }
    report.environment.peers.clear();
    let mut built: Vec<(Door, Result<Vec<String>>)> = Door::ALL.map(|door| (door, door.build())).into();
    let mut measured: Vec<Vec<Vec<Measured>>> = Door::ALL.map(|_| Vec::new()).into();
    let cores = Cores::choose()?;
    // Each round measures every door once, so that a change in the machine's load affects all of them.
    for _ in 0..runs {
        for ((door, command), rounds) in built.iter_mut().zip(&mut measured) {
            let Ok(words) = command else { continue };
            let round: Result<Vec<Measured>> =
                Work::ALL.into_iter().map(|work| measure(*door, words, work, time, cores)).collect();
            match round {
                Ok(round) => rounds.push(round),
                Err(error) => *command = Err(error),
            }
        }
    }
    environment::end(&mut report.environment)?;
    report.add(built.into_iter().zip(measured));
    report::write(&report, &report::path(options.report.as_deref(), "doors", options.quick))?;
    let text = report.markdown();
    print!("{text}");
    if let Some(error) = report.error_of(Door::Native) {
        bail!("the native client, with which all doors are compared: {error}");
    }
    if options.publish { publish::write_figures(Path::new("docs/doors.md"), BEGIN, &text) } else { Ok(()) }
}

/// Runs the client of a door once.
fn measure(door: Door, words: &[String], work: Work, time: f64, cores: Cores) -> Result<Measured> {
    let limit = START + Duration::from_secs_f64(2.0 * time);
    let (program, arguments) = words.split_first().context("a door without a program")?;
    let mut client = Command::new(program);
    client.args(arguments);
    let mut server = None;
    if !door.is_pair() {
        let mut echo = itself()?;
        echo.args(["peer", "echo", "--port", "0"]);
        let echo = server.insert(Program::start(echo, cores.receiver, limit)?);
        client.arg(format!("127.0.0.1:{}", echo.port()?));
    }
    client.args([work.window().to_string(), time.to_string()]);
    let mut client = Program::start(client, cores.sender, limit)?;
    client.connected()?;
    let before = client.cpu()?;
    client.go()?;
    let line = client.line()?;
    let cpu = client.cpu()? - before;
    let (echoes, seconds) = numbers(&line).with_context(|| format!("the client printed {line:?}"))?;
    Ok(Measured { work, rate: echoes / seconds, cpu_us: cpu.as_secs_f64() * 1e6 / echoes })
}

/// Reads the number of echoes and the seconds from the line of a client, both of which must be positive.
fn numbers(line: &str) -> Option<(f64, f64)> {
    let (echoes, seconds) = line.trim().split_once(' ')?;
    let numbers: (f64, f64) = (echoes.parse().ok()?, seconds.parse().ok()?);
    (numbers.0 > 0.0 && numbers.1 > 0.0).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_client_has_positive_numbers() {
        assert_eq!(numbers("250 0.500000000\n"), Some((250.0, 0.5)));
        assert_eq!(numbers("0 0.5"), None);
        assert_eq!(numbers("250"), None);
        assert_eq!(numbers("250 x"), None);
    }
}
