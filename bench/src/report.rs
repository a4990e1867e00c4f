//! The results of a benchmark: rows with ratios and goals.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::pairing::{Pairing, Run};

/// All results of a measurement session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) environment: Environment,
    pub(crate) rows: Vec<Row>,
    /// Rows from earlier sessions.
    #[serde(default)]
    pub(crate) kept: Vec<Kept>,
}

/// Rows of an earlier session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(crate) environment: Environment,
    pub(crate) rows: Vec<String>,
}

/// The machine, the build and the load during a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Environment {
    /// The command.
    pub(crate) command: String,
    pub(crate) commit: String,
    pub(crate) rustc: String,
    pub(crate) system: String,
    pub(crate) processor: String,
    /// The load average over one minute at the start and at the end.
    pub(crate) load: [f64; 2],
    pub(crate) runs: u32,
    /// Names and versions of the other implementations.
    pub(crate) peers: BTreeMap<String, String>,
}

/// Which values are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Better {
    Higher,
    Lower,
}

/// A measured value, with what it is compared with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) unit: String,
    pub(crate) better: Better,
    /// The best pairing without rakwire.
    #[serde(default)]
    pub(crate) best_peer: Option<Best>,
    /// The value divided by that of the best pairing.
    #[serde(default)]
    pub(crate) ratio_to_best_peer: Option<f64>,
    /// The UDP baseline in the same unit.
    #[serde(default)]
    pub(crate) baseline: Option<f64>,
    #[serde(default)]
    pub(crate) ratio_to_baseline: Option<f64>,
    /// CPU time per message of both ends together, in microseconds.
    #[serde(default)]
    pub(crate) cpu_us: Option<f64>,
    #[serde(default)]
    pub(crate) goals: Vec<Goal>,
    /// The value of each pairing, or why it has none.
    #[serde(default)]
    pub(crate) pairings: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Best {
    pub(crate) name: String,
    pub(crate) value: f64,
}

/// A target for the value of a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Goal {
    pub(crate) text: String,
    pub(crate) met: bool,
}

/// The result of one pairing in a row.
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

    fn reaches(&self, value: f64, target: f64) -> bool {
        match self.better {
            Better::Higher => value >= target,
            Better::Lower => value <= target,
        }
    }

    fn with_goal(mut self, met: bool, text: String) -> Self {
        self.goals.push(Goal { text, met });
        self
    }

    /// Adds a goal as a multiple of the best pairing of others.
    pub(crate) fn goal_relative_to_peer(self, target: f64) -> Self {
        let met = self.ratio_to_best_peer.is_some_and(|ratio| self.reaches(ratio, target));
        self.with_goal(met, format!("{target} x the best pairing of others"))
    }

    /// Adds a goal as a multiple of the UDP baseline.
    pub(crate) fn goal_relative_to_baseline(self, target: f64) -> Self {
        let met = self.ratio_to_baseline.is_some_and(|ratio| self.reaches(ratio, target));
        self.with_goal(met, format!("{target} x the UDP baseline"))
    }

    /// Adds a goal in the unit of the row.
    pub(crate) fn goal(self, target: f64) -> Self {
        let met = self.reaches(self.value, target);
        let text = format!("{} {}", number(target), self.unit);
        self.with_goal(met, text)
    }

    /// The target of [`goal`](Self::goal), which a report has as text.
    pub(crate) fn target(&self) -> Option<f64> {
        self.goals.iter().find_map(|goal| {
            let value = goal.text.strip_suffix(self.unit.as_str())?.trim_end();
            value.replace(',', "").parse().ok()
        })
    }
}

impl Report {
    /// The number of goals that are met, and of all goals.
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

    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(path, serde_json::to_string_pretty(self)? + "\n")
            .with_context(|| format!("{} cannot be written", path.display()))
    }

    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is not a report", path.display()))
    }

    /// The rows as a Markdown table.
    pub(crate) fn table(&self) -> String {
        let mut lines = vec![
            ["row", "ours", "unit", "CPU, µs", "best of others", "ratio", "UDP baseline", "ratio", "goals"]
                .map(str::to_owned),
        ];
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

/// Lines of cells as a Markdown table; the first line is its header.
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

/// A number with about three significant digits.
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
    fn a_goal_is_met_in_the_direction_that_is_better() {
        let goals = |value, better| -> Vec<bool> {
            let row =
                row(value, better).goal_relative_to_peer(2.0).goal_relative_to_baseline(0.5).goal(200.0);
            row.goals.iter().map(|goal| goal.met).collect()
        };
        assert_eq!(goals(200.0, Better::Higher), [true, true, true]);
        assert_eq!(goals(199.0, Better::Higher), [false, false, false]);
        assert_eq!(goals(201.0, Better::Lower), [false, false, false]);
        let unpaired = Row::new("a", 1e9, "", Better::Higher).goal_relative_to_peer(2.0);
        assert!(!unpaired.goals[0].met, "a goal without a comparison is not met");
    }

    #[test]
    fn a_goal_in_the_rows_own_unit_is_read_back() {
        let row = row(1.0, Better::Lower).goal_relative_to_peer(3.0).goal_relative_to_baseline(0.5);
        assert_eq!(row.target(), None);
        assert_eq!(row.goal(12_048.0).target(), Some(12_048.0));
    }

    #[test]
    fn rows_that_are_not_measured_again_keep_their_positions() {
        let report = |commit: &str, rows: &[(&str, f64)]| Report {
            environment: Environment { commit: commit.to_owned(), ..Environment::default() },
            rows: rows.iter().map(|(name, value)| Row::new(*name, *value, "", Better::Lower)).collect(),
            kept: Vec::new(),
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
    fn the_table_has_every_row_and_the_report_survives_a_file() {
        let mut report = Report::default();
        report.rows.push(Row { cpu_us: Some(1.5), ..row(200.0, Better::Higher).goal_relative_to_peer(3.0) });
        let table = report.table();
        assert!(table.contains("| a   | 200  | messages/s | 1.50    | 100 (b)"), "{table}");
        assert!(table.contains("3 x the best pairing of others: **missed**"), "{table}");
        assert_eq!(report.goals(), (0, 1));
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(number(1_234_567.8), "1,234,568");
        assert_eq!(number(123.4), "123");
        assert_eq!(number(12.34), "12.3");
        assert_eq!(number(0.1234), "0.123");
        assert_eq!(number(-1_234.0), "-1,234");
    }
}
