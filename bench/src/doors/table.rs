//! The report, with one row per door.

use anyhow::Result;
use serde::Serialize;

use super::door::Door;
use super::work::{LENGTH, Measured, WINDOW, Work};
use crate::pairing::median;
use crate::report::{Environment, markdown, number};

/// The rounds of a door, or the reason why it could not be measured.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    door: Door,
    rounds: Vec<Vec<Measured>>,
    error: Option<String>,
}

impl Row {
    fn values(&self, work: Work, of: fn(&Measured) -> f64) -> impl Iterator<Item = f64> {
        self.rounds.iter().flatten().filter(move |measured| measured.work == work).map(of)
    }

    fn rate(&self, work: Work) -> Option<f64> {
        median(self.values(work, |measured| measured.rate))
    }

    /// Returns the median of the ratios to another door in the same rounds.
    fn ratio(&self, other: &Self, work: Work) -> Option<f64> {
        let rate = |measured: &Measured| measured.rate;
        median(self.values(work, rate).zip(other.values(work, rate)).map(|(own, other)| own / other))
    }
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    pub(super) environment: Environment,
    pub(super) rows: Vec<Row>,
}

/// The command of a door or the reason for which there is none, and its rounds.
type Found = ((Door, Result<Vec<String>>), Vec<Vec<Measured>>);

impl Report {
    pub(super) fn add(&mut self, found: impl Iterator<Item = Found>) {
        let row = |((door, command), rounds): Found| {
            let error = command.err().map(|error: anyhow::Error| format!("{error:#}"));
            Row { door, rounds, error }
        };
        self.rows.extend(found.map(row));
    }

    pub(super) fn error_of(&self, door: Door) -> Option<&str> {
        self.row(door)?.error.as_deref()
    }

    fn row(&self, door: Door) -> Option<&Row> {
        self.rows.iter().find(|row| row.door == door)
    }

    /// Returns the median ratio of a door to another one.
    fn ratio(&self, row: &Row, other: Door, work: Work) -> Option<f64> {
        row.ratio(self.row(other)?, work)
    }

    /// Formats the environment, the table and the goals.
    pub(super) fn markdown(&self) -> String {
        let head = ["door", "round trips/s", "of native", "messages/s", "of native", "CPU per message, µs"];
        let mut lines = vec![head.map(str::to_owned)];
        lines.extend(self.rows.iter().map(|row| self.cells(row)));
        format!(
            "{} Messages of {LENGTH} bytes, reliable and ordered; {WINDOW} in flight for messages/s.\n\n{}\n{}",
            self.environment.sentences(),
            markdown(&lines),
            self.rows.iter().filter_map(|row| self.goal(row)).collect::<String>()
        )
    }

    fn cells(&self, row: &Row) -> [String; 6] {
        let name = row.door.name().to_owned();
        if let Some(error) = &row.error {
            // A vertical bar would end the cell.
            let reason = format!("not measured: {}", error.replace('|', "/"));
            return [name, reason, String::new(), String::new(), String::new(), String::new()];
        }
        let percent = |work| self.ratio(row, Door::Native, work).map_or_else(String::new, percent);
        let rate = |work| row.rate(work).map_or_else(String::new, number);
        let cpu = median(row.values(Work::Messages, |measured| measured.cpu_us));
        let cpu = cpu.filter(|_| row.door.waits()).map_or_else(|| "–".to_owned(), number);
        let [trips, messages] = Work::ALL;
        [name, rate(trips), percent(trips), rate(messages), percent(messages), cpu]
    }

    /// Formats whether a door reaches its goal.
    fn goal(&self, row: &Row) -> Option<String> {
        let goal = row.door.goal()?;
        let [trips, messages] = Work::ALL.map(|work| self.ratio(row, goal.of, work));
        let verdict = match (trips, messages) {
            (Some(trips), Some(messages)) => {
                let met = trips >= goal.least && messages >= goal.least;
                let met = if met { "met" } else { "**missed**" };
                format!("{met} ({} and {})", percent(trips), percent(messages))
            }
            _ => "**not measured**".to_owned(),
        };
        Some(format!(
            "- {}: at least {} of the round trips and messages of \"{}\": {verdict}.\n",
            row.door.name(),
            percent(goal.least),
            goal.of.name()
        ))
    }
}

/// Formats a ratio with one decimal place.
fn percent(ratio: f64) -> String {
    format!("{:.1} %", 100.0 * ratio)
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    fn rounds(rates: &[(f64, f64)]) -> Vec<Vec<Measured>> {
        let round = |(trips, messages): &(f64, f64)| {
            let measured = |(work, rate)| Measured { work, rate, cpu_us: 1.5 };
            [(Work::RoundTrips, *trips), (Work::Messages, *messages)].map(measured).into()
        };
        rates.iter().map(round).collect()
    }

    fn report(of_c: &[(f64, f64)]) -> Report {
        let mut report = Report::default();
        let found = [
            ((Door::Native, Ok(Vec::new())), rounds(&[(100.0, 1_000.0), (200.0, 2_000.0), (50.0, 500.0)])),
            ((Door::C, Ok(Vec::new())), rounds(of_c)),
            ((Door::Dotnet, Err(anyhow!("no a|b"))), Vec::new()),
        ];
        report.add(found.into_iter());
        report
    }

    #[test]
    fn ratios_compare_the_same_round() {
        let text = report(&[(98.0, 900.0), (196.0, 1_960.0), (40.0, 490.0)]).markdown();
        assert!(text.contains("| C              | 98.0 "), "{text}");
        assert!(text.contains("- C: at least 97.0 % of the round trips and messages of \"native, polled\": met (98.0 % and 98.0 %)."), "{text}");
        let text = report(&[(96.0, 980.0)]).markdown();
        assert!(text.contains("**missed** (96.0 % and 98.0 %)"), "{text}");
    }

    #[test]
    fn a_door_without_a_program_has_its_reason_in_the_table() {
        let report = report(&[(98.0, 900.0)]);
        let text = report.markdown();
        assert!(text.contains("not measured: no a/b"), "{text}");
        assert!(
            text.contains("- C#, .NET: at least 90.0 % of") && text.contains("**not measured**."),
            "{text}"
        );
        assert_eq!((report.error_of(Door::Native), report.error_of(Door::Dotnet)), (None, Some("no a|b")));
    }
}
