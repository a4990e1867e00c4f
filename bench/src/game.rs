//! Measures how many players a server of the snowball fight supports.
//!
//! The server runs on one CPU core, and all players share another.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;
use serde_json::Value;

use crate::pairing::itself;
use crate::process::{Cores, Program};
use crate::report::{Environment, markdown, number};
use crate::{environment, publish, report};

const BEGIN: &str = "<!-- figures: written by `cargo xtask bench game --publish` -->";
/// The longest acceptable tick; a tick starts every sixtieth of a second.
const LIMIT_US: u64 = 5_000;
const COUNTS: [u32; 9] = [10, 25, 50, 75, 100, 125, 150, 200, 250];
const LONGEST: Duration = Duration::from_secs(120);

/// Measure how many players a server of the snowball fight supports.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Measure with few players for a short time, as a smoke test
    #[arg(long)]
    quick: bool,
    /// Write the table into docs/game.md
    #[arg(long, conflicts_with = "quick")]
    publish: bool,
    /// The path of the report, by default target/bench/game.json, and game-quick.json beside it for a quick measurement
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// The snapshots that the players request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Snapshots {
    Whole,
    Changes,
}

impl Snapshots {
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

/// The measured load of a server with `players` players.
#[derive(Clone, Debug, Serialize)]
struct Measured {
    snapshots: Snapshots,
    players: u32,
    tick_us_p50: u64,
    tick_us_p99: u64,
    late_us_p99: u64,
    /// Ticks per second.
    ticks: f64,
    datagrams_per_player: f64,
    bytes_per_player: f64,
    /// The used share of one core, from 0 to 1.
    cpu: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    environment: Environment,
    rows: Vec<Measured>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let cores = Cores::choose()?;
    let mut report = Report { environment: environment::begin(1)?, rows: Vec::new() };
    "cargo xtask bench game".clone_into(&mut report.environment.command);
    report.environment.peers.clear();
    for snapshots in Snapshots::ALL {
        for players in counts(options.quick) {
            let measured = measure(snapshots, players, cores, options.quick)
                .with_context(|| format!("{} players, {} snapshots", players, snapshots.name()))?;
            print(&measured);
            let over = measured.tick_us_p99 > 2 * LIMIT_US;
            report.rows.push(measured);
            if over {
                break;
            }
        }
    }
    environment::end(&mut report.environment)?;
    report::write(&report, &report::path(options.report.as_deref(), "game", options.quick))?;
    let text = report.markdown();
    print!("{text}");
    if options.publish { publish::write_figures(Path::new("docs/game.md"), BEGIN, &text) } else { Ok(()) }
}

impl Report {
    /// Formats the environment, the table and the goals.
    fn markdown(&self) -> String {
        let head = [
            "snapshots",
            "players",
            "tick p50",
            "tick p99",
            "datagrams per player and second",
            "bytes per player and second",
            "CPU",
        ];
        let mut lines = vec![head.map(str::to_owned)];
        lines.extend(self.rows.iter().map(Measured::cells));
        let goals = Snapshots::ALL.map(|snapshots| {
            let (supported, goal) = (supported(&self.rows, snapshots), snapshots.goal());
            let verdict = if supported >= goal { "met" } else { "**missed**" };
            format!(
                "- Snapshots of kind `{}`: {supported} players with a p99 of at most 5 ms; the goal is {goal}: {verdict}.\n",
                snapshots.name()
            )
        });
        format!("{}\n\n{}\n{}", self.environment.sentences(), markdown(&lines), goals.concat())
    }
}

impl Measured {
    fn cells(&self) -> [String; 7] {
        let millis = |micros: u64| format!("{:.1} ms", micros as f64 / 1e3);
        [
            self.snapshots.name().to_owned(),
            self.players.to_string(),
            millis(self.tick_us_p50),
            millis(self.tick_us_p99),
            number(self.datagrams_per_player.round()),
            number(self.bytes_per_player.round()),
            format!("{:.0} %", 100.0 * self.cpu),
        ]
    }
}

fn counts(quick: bool) -> impl Iterator<Item = u32> {
    COUNTS.into_iter().take(if quick { 1 } else { COUNTS.len() })
}

/// Returns the largest number of players that was measured before the first one with a too slow tick.
fn supported(rows: &[Measured], snapshots: Snapshots) -> u32 {
    let rows = rows.iter().filter(|row| row.snapshots == snapshots);
    rows.take_while(|row| row.tick_us_p99 <= LIMIT_US).map(|row| row.players).max().unwrap_or(0)
}

fn print(row: &Measured) {
    println!(
        "{:>8} {:>4} players: tick p50 {:>6} µs, p99 {:>6} µs, late p99 {:>6} µs; per player and second {:>5.0} datagrams, \
         {:>7.0} bytes; cpu {:>3.0} %; {:.1} ticks/s",
        row.snapshots.name(),
        row.players,
        row.tick_us_p50,
        row.tick_us_p99,
        row.late_us_p99,
        row.datagrams_per_player,
        row.bytes_per_player,
        100.0 * row.cpu,
        row.ticks,
    );
}

fn measure(snapshots: Snapshots, players: u32, cores: Cores, quick: bool) -> Result<Measured> {
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
    command.args(["game-load", &address, "--players", &players.to_string()]);
    if snapshots == Snapshots::Changes {
        command.arg("--changes");
    }
    let load = Program::start(command, cores.sender, LONGEST)?;
    load.connected()?;
    // Skips the report of the interval in which the last players joined, and another one while the players spread out.
    server.line()?;
    server.line()?;
    let (began, before) = (Instant::now(), server.cpu()?);
    let line = server.line()?;
    let (seconds, cpu) = (began.elapsed().as_secs_f64(), server.cpu()? - before);
    let line: Value =
        serde_json::from_str(&line).with_context(|| format!("the server printed no report: {line:?}"))?;
    let number = |name: &str| {
        line.get(name)
            .and_then(Value::as_u64)
            .with_context(|| format!("the report of the server has no number `{name}`"))
    };
    let joined = number("players")?;
    if joined != u64::from(players) {
        bail!("only {joined} of {players} players are in the game");
    }
    let per_player = |count: u64| count as f64 / seconds / f64::from(players);
    Ok(Measured {
        snapshots,
        players,
        tick_us_p50: number("tick_us_p50")?,
        tick_us_p99: number("tick_us_p99")?,
        late_us_p99: number("late_us_p99")?,
        ticks: number("ticks")? as f64 / seconds,
        datagrams_per_player: per_player(number("datagrams")?),
        bytes_per_player: per_player(number("bytes")?),
        cpu: cpu.as_secs_f64() / seconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_supported_players_are_the_largest_count_before_the_first_slow_count() {
        let row = |players, tick_us_p99| Measured {
            snapshots: Snapshots::Whole,
            players,
            tick_us_p50: 0,
            tick_us_p99,
            late_us_p99: 0,
            ticks: 60.0,
            datagrams_per_player: 0.0,
            bytes_per_player: 0.0,
            cpu: 0.0,
        };
        let rows = [row(10, 100), row(25, 5_000), row(50, 5_001), row(75, 4_000)];
        assert_eq!((supported(&rows, Snapshots::Whole), supported(&rows, Snapshots::Changes)), (25, 0));
    }
}
