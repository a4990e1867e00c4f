//! The report, with one row per figure and one column per library.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;

use super::library::Library;
use super::work::{Kind, Measured, Work};
use crate::pairing::{Pattern, median};
use crate::report::{Better, Environment, markdown, number};

/// The number of columns: the name, the unit, and one for each library.
const COLUMNS: usize = Library::ALL.len() + 2;

/// A value that is computed from each measurement of a kind of work.
#[derive(Clone, Copy)]
struct Figure {
    name: &'static str,
    unit: &'static str,
    better: Better,
    of: fn(&Measured, &Work) -> Option<f64>,
}

const RATE: Figure = Figure {
    name: "",
    unit: "messages/s",
    better: Better::Higher,
    of: |measured, _| Some(measured.messages / measured.run.seconds),
};
const BYTES: Figure = Figure {
    name: "",
    unit: "MB/s",
    better: Better::Higher,
    of: |measured, work| match work.kind {
        Kind::Reliable(workload) => {
            Some(measured.messages * workload.size as f64 / 1e6 / measured.run.seconds)
        }
        Kind::Unreliable { .. } => None,
    },
};
const CPU: Figure = Figure {
    name: ", CPU",
    unit: "µs/message",
    better: Better::Lower,
    of: |measured, _| {
        Some((measured.run.client_cpu + measured.run.server_cpu) * 1e6 / measured.messages.max(1.0))
    },
};
const MEDIAN: Figure =
    Figure { name: ", median", unit: "µs", better: Better::Lower, of: |measured, _| measured.run.p50_us };
const P99: Figure =
    Figure { name: ", p99", unit: "µs", better: Better::Lower, of: |measured, _| measured.run.p99_us };
const DELIVERY_P99: Figure = Figure {
    name: ", p99 of delivery",
    unit: "ms",
    better: Better::Lower,
    of: |measured, _| measured.run.p99_us.map(|micros| micros / 1e3),
};

fn figures(work: &Work) -> &'static [Figure] {
    match (work.kind, work.name) {
        (Kind::Reliable(workload), _) if workload.pattern == Pattern::PingPong => &[MEDIAN, P99],
        (Kind::Reliable(_), "bulk") => &[BYTES],
        (Kind::Reliable(_), "messages") | (Kind::Unreliable { .. }, _) => &[RATE, CPU],
        (Kind::Reliable(_), _) => &[RATE, DELIVERY_P99],
    }
}

/// The values of one figure for all libraries.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    name: String,
    unit: &'static str,
    better: Better,
    values: BTreeMap<Library, f64>,
    /// The errors of the libraries that could not be measured.
    errors: BTreeMap<Library, String>,
    runs: BTreeMap<Library, Vec<Measured>>,
}

impl Row {
    /// Returns one row for each figure of a kind of work.
    pub(super) fn of(work: &Work, all: &[(Library, Result<Vec<Measured>>)]) -> Vec<Self> {
        let row = |figure: &Figure| {
            let mut row = Self {
                name: format!("{}{}", work.name, figure.name),
                unit: figure.unit,
                better: figure.better,
                values: BTreeMap::new(),
                errors: BTreeMap::new(),
                runs: BTreeMap::new(),
            };
            for (library, found) in all {
                match found {
                    Ok(runs) => {
                        let value = median(runs.iter().filter_map(|run| (figure.of)(run, work)));
                        row.values.extend(value.map(|value| (*library, value)));
                        row.runs.insert(*library, runs.clone());
                    }
                    Err(error) => {
                        row.errors.insert(*library, format!("{error:#}"));
                    }
                }
            }
            row
        };
        figures(work).iter().map(row).collect()
    }

    /// Returns the library with the best value.
    fn best(&self) -> Option<Library> {
        let best = self.values.iter().max_by(|a, b| self.better.compare(*a.1, *b.1));
        best.map(|(library, _)| *library)
    }

    fn cells(&self) -> [String; COLUMNS] {
        let best = self.best();
        let mut cells = [const { String::new() }; COLUMNS];
        self.name.clone_into(&mut cells[0]);
        self.unit.clone_into(&mut cells[1]);
        for (cell, library) in cells.iter_mut().skip(2).zip(Library::ALL) {
            let value = self.values.get(&library).map(|value| number(*value));
            *cell = match (value, self.errors.get(&library)) {
                (Some(value), _) if best == Some(library) => format!("**{value}**"),
                (Some(value), _) => value,
                (None, Some(error)) => error.clone(),
                (None, None) => "–".to_owned(),
            };
        }
        cells
    }
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    pub(super) environment: Environment,
    pub(super) rows: Vec<Row>,
}

impl Report {
    /// Formats the environment and a table.
    pub(super) fn markdown(&self) -> String {
        let mut lines = vec![head()];
        lines.extend(self.rows.iter().map(Row::cells));
        format!("{}\n\n{}", self.environment.sentences(), markdown(&lines))
    }

    /// Returns one line for each library that could not be measured, with the error.
    pub(super) fn failures(&self) -> Vec<String> {
        let of = |row: &Row| {
            let failure =
                |(library, error): (&Library, &String)| format!("{}: {}: {error}", row.name, library.name());
            row.errors.iter().map(failure).collect::<Vec<_>>()
        };
        self.rows.iter().flat_map(of).collect()
    }
}

fn head() -> [String; COLUMNS] {
    let mut cells = [const { String::new() }; COLUMNS];
    "workload".clone_into(&mut cells[0]);
    "unit".clone_into(&mut cells[1]);
    for (cell, library) in cells.iter_mut().skip(2).zip(Library::ALL) {
        library.name().clone_into(cell);
    }
    cells
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;
    use crate::pairing::Run;

    #[test]
    fn the_best_median_is_marked_and_failures_are_listed() {
        let [work, ..] = Work::all(true);
        let measured = |seconds| Measured { messages: 100.0, run: Run { seconds, ..Run::default() } };
        let rows = Row::of(
            &work,
            &[
                (Library::Rakwire, Ok(vec![measured(1.0), measured(9.0), measured(2.0)])),
                (Library::Quinn, Ok(vec![measured(4.0)])),
                (Library::Enet, Err(anyhow!("no"))),
            ],
        );
        let [rate, _] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!(rate.best(), Some(Library::Rakwire));
        let cells = rate.cells();
        assert_eq!(cells[..5], ["messages", "messages/s", "**50.0**", "–", "25.0"].map(str::to_owned));
        assert_eq!(cells[5], "no");
        let report = Report { rows, ..Report::default() };
        assert_eq!(report.failures().first().map(String::as_str), Some("messages: ENet: no"));
    }
}
