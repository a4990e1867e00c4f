//! The report of a benchmark: measured rows with their references and goals.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Deserializer, Serialize};

use crate::pairing::{Pairing, Run};

/// The default path of the report of a session.
pub(crate) const REPORT: &str = "target/bench/report.json";

/// All results of a measurement session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) environment: Environment,
    pub(crate) rows: Vec<Row>,
    /// The steps that this session has measured, with the duration of each in seconds.
    #[serde(default)]
    pub(crate) steps: BTreeMap<String, f64>,
    /// The rows that were taken over from earlier sessions, one entry per session.
    #[serde(default)]
    pub(crate) kept: Vec<Kept>,
}

/// The names of rows from an earlier session, and its environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(crate) environment: Environment,
    pub(crate) rows: Vec<String>,
}

/// The machine, the build and the load during a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Environment {
    /// The command that starts a measurement.
    pub(crate) command: String,
    pub(crate) commit: String,
    pub(crate) rustc: String,
    /// The kernel's random id of the boot.
    #[serde(default)]
    pub(crate) boot: String,
    pub(crate) system: String,
    pub(crate) processor: String,
    /// The machine's load average over one minute, at the start and at the end of the session.
    pub(crate) load: [f64; 2],
    pub(crate) runs: u32,
    /// Names and versions of the other implementations.
    pub(crate) peers: BTreeMap<String, String>,
}

impl Environment {
    /// Returns the sentences that precede published figures.
    pub(crate) fn sentences(&self) -> String {
        let Self { command, commit, rustc, processor, system, runs, .. } = self;
        let runs = if *runs > 1 { format!(", medians of {runs} runs") } else { String::new() };
        let peers = self.peers.iter().map(|(name, version)| format!("{name} ({version})"));
        let peers = peers.collect::<Vec<_>>().join(", ");
        let peers = if peers.is_empty() { peers } else { format!(", compared with {peers}") };
        let [before, after] = self.load;
        format!(
            "Measured by `{command}` at commit {commit} with {rustc}, on {processor} ({system}){runs}{peers}. The load \
             average was {before} at the start and {after} at the end."
        )
    }
}

/// The direction in which values are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Better {
    Higher,
    Lower,
    /// For shares in percent: closer to 50 is better.
    Even,
}

impl Better {
    /// Compares two values; `Greater` means that `value` is better than `other`.
    pub(crate) fn compare(self, value: f64, other: f64) -> Ordering {
        let from_half = |share: f64| (share - 50.0).abs();
        match self {
            Self::Higher => value.total_cmp(&other),
            Self::Lower => other.total_cmp(&value),
            Self::Even => from_half(other).total_cmp(&from_half(value)),
        }
    }

    /// Describes the better direction, for titles.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Higher => "higher is better",
            Self::Lower => "lower is better",
            Self::Even => "an even share is best",
        }
    }
}

/// A measured value with its references and goals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    /// NaN if the measurement failed.
    #[serde(deserialize_with = "number_or_null")]
    pub(crate) value: f64,
    pub(crate) unit: String,
    pub(crate) better: Better,
    /// The best result without rakwire.
    #[serde(default)]
    pub(crate) best_peer: Option<Best>,
    /// The value divided by the best result without rakwire.
    #[serde(default)]
    pub(crate) ratio_to_best_peer: Option<f64>,
    /// The UDP baseline in the same unit.
    #[serde(default)]
    pub(crate) baseline: Option<f64>,
    #[serde(default)]
    pub(crate) ratio_to_baseline: Option<f64>,
    /// The CPU time per message in microseconds: of client and server together, or of the server only if the row
    /// measures a server.
    #[serde(default)]
    pub(crate) cpu_us: Option<f64>,
    /// The round-trip time between two plain UDP sockets in the same rounds, in microseconds. Present if the row
    /// depends on how fast the machine wakes up a task.
    #[serde(default)]
    pub(crate) wake_up_us: Option<f64>,
    #[serde(default)]
    pub(crate) goals: Vec<Goal>,
    /// The results of the individual pairings.
    #[serde(default)]
    pub(crate) pairings: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Best {
    pub(crate) name: String,
    pub(crate) value: f64,
}

/// The goal of a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Goal {
    pub(crate) text: String,
    pub(crate) met: bool,
    /// The limits of a goal in the unit of the row.
    #[serde(default)]
    pub(crate) at_least: Option<f64>,
    #[serde(default)]
    pub(crate) at_most: Option<f64>,
}

impl Goal {
    pub(crate) fn new(text: String, met: bool) -> Self {
        Self { text, met, at_least: None, at_most: None }
    }
}

/// The result of one pairing in a row: a value or an error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) pairing: Pairing,
    #[serde(default)]
    pub(crate) value: Option<f64>,
    #[serde(default)]
    pub(crate) error: Option<String>,
    #[serde(default)]
    pub(crate) runs: Vec<Run>,
}

/// Reads a number, or NaN from `null`, because JSON has no NaN.
fn number_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

impl Row {
    pub(crate) fn new(name: impl Into<String>, value: f64, unit: &str, better: Better) -> Self {
        Self {
            name: name.into(),
            value,
            unit: unit.to_owned(),
            better,
            best_peer: None,
            ratio_to_best_peer: None,
            baseline: None,
            ratio_to_baseline: None,
            cpu_us: None,
            wake_up_us: None,
            goals: Vec::new(),
            pairings: Vec::new(),
        }
    }

    pub(crate) fn compared_with_peer(mut self, best: Option<Best>) -> Self {
        self.ratio_to_best_peer = best.as_ref().map(|best| self.value / best.value);
        self.best_peer = best;
        self
    }

    pub(crate) fn compared_with_baseline(mut self, baseline: Option<f64>) -> Self {
        self.ratio_to_baseline = baseline.map(|baseline| self.value / baseline);
        self.baseline = baseline;
        self
    }

    pub(crate) fn with_wake_up(mut self, wake_up_us: Option<f64>) -> Self {
        self.wake_up_us = wake_up_us;
        self
    }
}

impl Report {
    /// Returns the number of met goals and the number of all goals.
    pub(crate) fn goals(&self) -> (usize, usize) {
        let all = || self.rows.iter().flat_map(|row| &row.goals);
        (all().filter(|goal| goal.met).count(), all().count())
    }

    /// Adds the rows of an earlier report that are not in this one, at their old positions.
    pub(crate) fn keep(&mut self, earlier: Self) {
        let is_new = |name: &str| self.rows.iter().any(|row| row.name == name);
        let names = |rows: Vec<String>| rows.into_iter().filter(|name| !is_new(name)).collect();
        let mut kept: Vec<Kept> =
            earlier.kept.into_iter().map(|old| Kept { rows: names(old.rows), ..old }).collect();
        let older = |name: &String| kept.iter().any(|old| old.rows.contains(name));
        let rows = earlier.rows.iter().map(|row| row.name.clone()).filter(|name| !older(name));
        let rows = names(rows.collect());
        kept.insert(0, Kept { environment: earlier.environment, rows });
        kept.retain(|old| !old.rows.is_empty());
        for (index, row) in earlier.rows.into_iter().enumerate() {
            if !self.rows.iter().any(|new| new.name == row.name) {
                self.rows.insert(index.min(self.rows.len()), row);
            }
        }
        self.kept = kept;
    }

    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is not a report", path.display()))
    }

    /// Formats the rows as a Markdown table.
    pub(crate) fn table(&self) -> String {
        let mut lines = vec![HEAD.map(str::to_owned)];
        for row in &self.rows {
            let ratio = |ratio: Option<f64>| ratio.map_or(String::new(), |ratio| format!("{ratio:.2}"));
            let best = row.best_peer.as_ref();
            let best = best.map_or(String::new(), |best| format!("{} ({})", number(best.value), best.name));
            let goals = row
                .goals
                .iter()
                .map(|goal| format!("{}: {}", goal.text, if goal.met { "met" } else { "**missed**" }));
            lines.push([
                row.name.clone(),
                number(row.value),
                row.unit.clone(),
                row.cpu_us.map_or(String::new(), number),
                row.wake_up_us.map_or(String::new(), number),
                best,
                ratio(row.ratio_to_best_peer),
                row.baseline.map_or(String::new(), number),
                ratio(row.ratio_to_baseline),
                goals.collect::<Vec<_>>().join("; "),
            ]);
        }
        markdown(&lines)
    }
}

const HEAD: [&str; 10] = [
    "row",
    "value",
    "unit",
    "CPU, µs",
    "wake-up, µs",
    "best of others",
    "ratio",
    "UDP baseline",
    "ratio",
    "goals",
];

/// Returns the path of the report of the measurement `name`: `given`, or a default that differs for quick measurements.
pub(crate) fn path(given: Option<&Path>, name: &str, quick: bool) -> PathBuf {
    let suffix = if quick { "-quick" } else { "" };
    given.map_or_else(|| format!("target/bench/{name}{suffix}.json").into(), Path::to_path_buf)
}

/// Writes a report, and creates its folder.
pub(crate) fn write(report: &impl Serialize, path: &Path) -> Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, serde_json::to_string_pretty(report)? + "\n")
        .with_context(|| format!("{} cannot be written", path.display()))
}

/// Formats lines of cells as a Markdown table; the first line is the header.
pub(crate) fn markdown<const COLUMNS: usize>(lines: &[[String; COLUMNS]]) -> String {
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; COLUMNS] = std::array::from_fn(width);
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        let cells = line.iter().zip(widths).map(|(cell, width)| format!(" {cell:<width$} "));
        text += &format!("|{}|\n", cells.collect::<Vec<_>>().join("|"));
        if at == 0 {
            let rules = widths.map(|width| "-".repeat(width + 2));
            text += &format!("|{}|\n", rules.join("|"));
        }
    }
    text
}

/// Formats the names of rows as Markdown code, separated by commas.
pub(crate) fn names_in_markdown(rows: &[String]) -> String {
    let names = rows.iter().map(|name| format!("`{name}`"));
    names.collect::<Vec<_>>().join(", ")
}

/// Formats a number with about three significant digits.
pub(crate) fn number(value: f64) -> String {
    let digits = match value.abs() {
        small if small < 1.0 => 3,
        small if small < 10.0 => 2,
        small if small < 100.0 => 1,
        _ => 0,
    };
    let text = format!("{value:.digits$}");
    let (whole, rest) =
        text.split_once('.').map_or((text.as_str(), None), |(whole, rest)| (whole, Some(rest)));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        let left = whole.len() - at;
        if at > 0 && left % 3 == 0 && whole.chars().nth(at - 1) != Some('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    match rest {
        Some(rest) => format!("{grouped}.{rest}"),
        None => grouped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(value: f64, better: Better) -> Row {
        Row::new("a", value, "messages/s", better)
            .compared_with_peer(Some(Best { name: "b".to_owned(), value: 100.0 }))
            .compared_with_baseline(Some(400.0))
    }

    #[test]
    fn compare_ranks_the_better_value_higher() {
        assert_eq!(Better::Higher.compare(2.0, 1.0), Ordering::Greater);
        assert_eq!(Better::Lower.compare(2.0, 1.0), Ordering::Less);
        assert_eq!(Better::Even.compare(45.0, 19.2), Ordering::Greater);
        assert_eq!(Better::Even.compare(45.0, 55.0), Ordering::Equal);
    }

    #[test]
    fn kept_rows_stay_at_their_positions_with_their_environments() {
        let report = |commit: &str, rows: &[(&str, f64)]| Report {
            environment: Environment { commit: commit.to_owned(), ..Environment::default() },
            rows: rows.iter().map(|(name, value)| Row::new(*name, *value, "", Better::Lower)).collect(),
            ..Report::default()
        };
        let mut second = report("second", &[("b", 2.0)]);
        second.keep(report("first", &[("a", 1.0), ("b", 1.0), ("c", 1.0)]));
        let mut third = report("third", &[("c", 3.0), ("d", 3.0)]);
        third.keep(second);
        let rows: Vec<_> = third.rows.iter().map(|row| (row.name.as_str(), row.value)).collect();
        assert_eq!(rows, [("a", 1.0), ("b", 2.0), ("c", 3.0), ("d", 3.0)]);
        let kept = third.kept.iter().map(|kept| (kept.environment.commit.as_str(), kept.rows.join(" ")));
        assert_eq!(kept.collect::<Vec<_>>(), [("second", "b".to_owned()), ("first", "a".to_owned())]);
    }

    #[test]
    fn every_row_is_in_the_table_and_is_read_back_from_a_file() {
        let goal = Goal::new("at least 3 x the best of others".to_owned(), false);
        let (cpu_us, wake_up_us) = (Some(1.5), Some(20.0));
        let row = Row { cpu_us, wake_up_us, goals: vec![goal], ..row(200.0, Better::Higher) };
        let report = Report { rows: vec![row], ..Report::default() };
        let table = report.table();
        assert!(table.contains("| a   | 200   | messages/s | 1.50    | 20.0        | 100 (b)"), "{table}");
        assert!(table.contains("at least 3 x the best of others: **missed**"), "{table}");
        assert_eq!(report.goals(), (0, 1));
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    }

    #[test]
    fn a_row_without_a_value_is_read_back_from_a_file() {
        let text = serde_json::to_string(&row(f64::NAN, Better::Higher)).unwrap();
        assert!(serde_json::from_str::<Row>(&text).unwrap().value.is_nan());
    }

    #[test]
    fn the_sentences_about_a_run_name_its_command_and_peers() {
        let environment = Environment {
            command: "cargo xtask bench x".to_owned(),
            commit: "abc".to_owned(),
            load: [0.5, 1.0],
            ..Environment::default()
        };
        assert_eq!(
            environment.sentences(),
            "Measured by `cargo xtask bench x` at commit abc with , on  (). The load average was 0.5 at the start and 1 at the end."
        );
        let peers = [("a", "1.0"), ("b", "2.0")].map(|(name, version)| (name.to_owned(), version.to_owned()));
        let environment = Environment { runs: 3, peers: peers.into(), ..environment };
        let sentences = environment.sentences();
        assert!(
            sentences.contains("), medians of 3 runs, compared with a (1.0), b (2.0). The load"),
            "{sentences}"
        );
    }

    #[test]
    fn numbers_are_rounded_to_three_digits_and_grouped_by_thousands() {
        assert_eq!(number(1_234_567.8), "1,234,568");
        assert_eq!(number(123.4), "123");
        assert_eq!(number(12.34), "12.3");
        assert_eq!(number(0.1234), "0.123");
        assert_eq!(number(-1_234.0), "-1,234");
    }
}
