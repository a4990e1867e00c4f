//! How many players the server of the snowball fight carries: the server alone on one core, all players on the other.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;
use serde_json::Value;

use crate::pairing::itself;
use crate::process::{Cores, Program};
use crate::report::Sitting;
use crate::sitting;

/// A tick that takes longer than this leaves too little of its sixtieth of a second.
const LIMIT_US: u64 = 5_000;
const COUNTS: [u32; 9] = [10, 25, 50, 75, 100, 125, 150, 200, 250];
const LONGEST: Duration = Duration::from_secs(120);

/// Measure how many players the server of the snowball fight carries.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Few players for a short time: to see that it works
    #[arg(long)]
    quick: bool,
    /// Where the report goes
    #[arg(long, value_name = "FILE", default_value = "target/bench/game.json")]
    report: PathBuf,
}

/// What the players ask for, and how many of them there shall be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Whole,
    Changes,
}

impl Mode {
    const ALL: [Self; 2] = [Self::Whole, Self::Changes];

    const fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Changes => "changes",
        }
    }

    const fn goal(self) -> u32 {
        match self {
            Self::Whole => 50,
            Self::Changes => 200,
        }
    }
}

/// So many players, and what they cost.
#[derive(Clone, Debug, Serialize)]
struct Measured {
    mode: Mode,
    players: u32,
    tick_us_p50: u64,
    tick_us_p99: u64,
    late_us_p99: u64,
    /// A second.
    ticks: f64,
    datagrams_a_player: f64,
    bytes_a_player: f64,
    /// Of one core.
    cpu: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    sitting: Sitting,
    rows: Vec<Measured>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let cores = Cores::choose()?;
    let mut report = Report { sitting: sitting::begin(1)?, rows: Vec::new() };
    for mode in Mode::ALL {
        for players in counts(options.quick) {
            let measured = measure(mode, players, cores, options.quick)
                .with_context(|| format!("{} players, {} snapshots", players, mode.name()))?;
            print(&measured);
            let over = measured.tick_us_p99 > 2 * LIMIT_US;
            report.rows.push(measured);
            if over {
                break;
            }
        }
    }
    sitting::end(&mut report.sitting)?;
    if let Some(folder) = options.report.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(&options.report, serde_json::to_string_pretty(&report)?)?;
    for mode in Mode::ALL {
        let carried = carried(&report.rows, mode);
        println!(
            "{}: {carried} players with a p99 tick of at most 5 ms; the goal is {}",
            mode.name(),
            mode.goal()
        );
    }
    println!("the load was {:?}; {}", report.sitting.load, options.report.display());
    Ok(())
}

fn counts(quick: bool) -> impl Iterator<Item = u32> {
    COUNTS.into_iter().take(if quick { 1 } else { COUNTS.len() })
}

/// The most players before the first count that was too many.
fn carried(rows: &[Measured], mode: Mode) -> u32 {
    let rows = rows.iter().filter(|row| row.mode == mode);
    rows.take_while(|row| row.tick_us_p99 <= LIMIT_US).map(|row| row.players).max().unwrap_or(0)
}

fn print(row: &Measured) {
    println!(
        "{:>8} {:>4} players: tick p50 {:>6} µs, p99 {:>6} µs, late p99 {:>6} µs; a player and second {:>5.0} datagrams, \
         {:>7.0} bytes; cpu {:>3.0} %; {:.1} ticks/s",
        row.mode.name(),
        row.players,
        row.tick_us_p50,
        row.tick_us_p99,
        row.late_us_p99,
        row.datagrams_a_player,
        row.bytes_a_player,
        100.0 * row.cpu,
        row.ticks,
    );
}

fn measure(mode: Mode, players: u32, cores: Cores, quick: bool) -> Result<Measured> {
    let watch = Duration::from_secs(if quick { 2 } else { 10 });
    let path = std::env::var_os("SNOWFIGHT_BIN").unwrap_or_else(|| "target/release/snowfight-server".into());
    let mut command = Command::new(path);
    let every = watch.as_secs().to_string();
    let any = "127.0.0.1:0";
    command.args(["--listen", any, "--listen-raknet", any, "--seed", "1", "--report", &every]);
    let server = Program::start(command, cores.receiver, LONGEST)?;
    let line = server.line()?;
    let address = line.strip_prefix("listening on ").and_then(|line| line.split_whitespace().next());
    let address = address.with_context(|| format!("{line:?} announces no address"))?.to_owned();
    let mut command = itself()?;
    command.args(["fighters", &address, "--players", &players.to_string()]);
    if mode == Mode::Changes {
        command.arg("--changes");
    }
    let fighters = Program::start(command, cores.sender, LONGEST)?;
    fighters.connected()?;
    // The report in which the last players came, and one more for them to spread.
    server.line()?;
    server.line()?;
    let (began, before) = (Instant::now(), server.cpu()?);
    let line = server.line()?;
    let (seconds, cpu) = (began.elapsed().as_secs_f64(), server.cpu()? - before);
    let told: Value = serde_json::from_str(&line).context("no report")?;
    let number = |name: &str| told.get(name).and_then(Value::as_u64).with_context(|| format!("no {name}"));
    let there = number("players")?;
    if there != u64::from(players) {
        bail!("{there} of them are in the game");
    }
    let a_player = |count: u64| count as f64 / seconds / f64::from(players);
    Ok(Measured {
        mode,
        players,
        tick_us_p50: number("tick_us_p50")?,
        tick_us_p99: number("tick_us_p99")?,
        late_us_p99: number("late_us_p99")?,
        ticks: number("ticks")? as f64 / seconds,
        datagrams_a_player: a_player(number("datagrams")?),
        bytes_a_player: a_player(number("bytes")?),
        cpu: cpu.as_secs_f64() / seconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_carried_ends_at_the_first_count_that_is_too_many() {
        let row = |players, tick_us_p99| Measured {
            mode: Mode::Whole,
            players,
            tick_us_p50: 0,
            tick_us_p99,
            late_us_p99: 0,
            ticks: 60.0,
            datagrams_a_player: 0.0,
            bytes_a_player: 0.0,
            cpu: 0.0,
        };
        let rows = [row(10, 100), row(25, 5_000), row(50, 5_001), row(75, 4_000)];
        assert_eq!((carried(&rows, Mode::Whole), carried(&rows, Mode::Changes)), (25, 0));
    }
}
