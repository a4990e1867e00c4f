//! The report: the results of the relay next to those of the WebSocket echo and plain UDP, and the goals.

use serde::Serialize;

use crate::pairing::median;
use crate::report::{Environment, Goal, markdown, number};

#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    pub(super) environment: Environment,
    /// The packets of 100 bytes per second and core, divided by those of the WebSocket echo.
    pub(super) ratio_to_websocket_echo: Option<f64>,
    pub(super) rows: Vec<Row>,
}

/// A result of the relay: the median of `runs`.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) value: f64,
    pub(super) unit: &'static str,
    pub(super) websocket_echo: Option<f64>,
    pub(super) ratio_to_websocket_echo: Option<f64>,
    /// The result of websockify in front of a TCP server.
    pub(super) websockify: Option<f64>,
    /// The result without a relay: of a program that echoes datagrams, or for latencies of the game server itself.
    pub(super) udp: Option<f64>,
    /// Datagrams per second that one core sends and another receives.
    pub(super) udp_flood: Option<f64>,
    pub(super) goal: Option<Goal>,
    pub(super) runs: Vec<f64>,
}

impl Row {
    pub(super) fn new(name: impl Into<String>, unit: &'static str, runs: Vec<f64>) -> Self {
        Self {
            name: name.into(),
            value: median(runs.iter().copied()).unwrap_or(f64::NAN),
            unit,
            websocket_echo: None,
            ratio_to_websocket_echo: None,
            websockify: None,
            udp: None,
            udp_flood: None,
            goal: None,
            runs,
        }
    }

    pub(super) fn beside_websocket_echo(mut self, runs: impl IntoIterator<Item = f64>) -> Self {
        self.websocket_echo = median(runs);
        self.ratio_to_websocket_echo = self.websocket_echo.map(|echo| self.value / echo);
        self
    }

    pub(super) fn beside_websockify(mut self, runs: impl IntoIterator<Item = f64>) -> Self {
        self.websockify = median(runs);
        self
    }

    pub(super) fn beside_udp(mut self, runs: impl IntoIterator<Item = f64>) -> Self {
        self.udp = median(runs);
        self
    }

    pub(super) fn beside_udp_flood(mut self, runs: impl IntoIterator<Item = f64>) -> Self {
        self.udp_flood = median(runs);
        self
    }

    pub(super) fn at_least(mut self, target: f64) -> Self {
        self.goal = Some(Goal::new(format!("at least {}", number(target)), self.value >= target));
        self
    }

    pub(super) fn below(mut self, target: f64) -> Self {
        self.goal = Some(Goal::new(format!("below {}", number(target)), self.value < target));
        self
    }

    pub(super) fn at_least_of_websocket_echo(mut self, ratio: f64) -> Self {
        let met = self.ratio_to_websocket_echo.is_some_and(|found| found >= ratio);
        self.goal = Some(Goal::new(format!("at least {ratio:.1} of the WebSocket echo"), met));
        self
    }
}

impl Report {
    /// Returns the number of goals that are met, and of all goals.
    pub(super) fn goals(&self) -> (usize, usize) {
        let all = || self.rows.iter().filter_map(|row| row.goal.as_ref());
        (all().filter(|goal| goal.met).count(), all().count())
    }

    /// Formats the rows as a Markdown table.
    pub(super) fn table(&self) -> String {
        let header =
            ["row", "relay", "unit", "WebSocket echo", "ratio", "websockify", "UDP", "UDP flood", "goal"];
        let mut lines = vec![header.map(str::to_owned)];
        let optional = |value: Option<f64>| value.map_or(String::new(), number);
        for row in &self.rows {
            let goal = row.goal.as_ref();
            // NaN if every run of the row was discarded because the machine was busy.
            let is_measured = row.value.is_finite();
            let verdict = |goal: &Goal| {
                let result = match (is_measured, goal.met) {
                    (false, _) => "not measured",
                    (true, true) => "met",
                    (true, false) => "**missed**",
                };
                format!("{}: {result}", goal.text)
            };
            lines.push([
                row.name.clone(),
                if is_measured { number(row.value) } else { "not measured".to_owned() },
                row.unit.to_owned(),
                optional(row.websocket_echo),
                row.ratio_to_websocket_echo.map_or(String::new(), |ratio| format!("{ratio:.2}")),
                optional(row.websockify),
                optional(row.udp),
                optional(row.udp_flood),
                goal.map_or(String::new(), verdict),
            ]);
        }
        markdown(&lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_median_and_the_result_of_its_goal() {
        let row = || Row::new("a", "packets/s", vec![3.0, 1.0, 2.0]).beside_websocket_echo([4.0]);
        assert_eq!((row().value, row().ratio_to_websocket_echo), (2.0, Some(0.5)));
        let met = |row: Row| row.goal.map(|goal| goal.met);
        assert_eq!(met(row().at_least(2.0)), Some(true));
        assert_eq!(met(row().below(2.0)), Some(false));
        assert_eq!(met(row().at_least_of_websocket_echo(0.5)), Some(true));
        assert_eq!(met(row().at_least_of_websocket_echo(1.0)), Some(false));
        let uncompared = Row::new("a", "", vec![9.0]).at_least_of_websocket_echo(0.0);
        assert_eq!(met(uncompared), Some(false), "a goal without a comparison must not be met");
        assert_eq!(
            met(Row::new("a", "", Vec::new()).at_least(0.0)),
            Some(false),
            "a goal of a row without runs must not be met"
        );
    }

    #[test]
    fn the_table_shows_missed_goals() {
        let row = Row::new("a", "µs", vec![2_000.0]).beside_udp([5.0]).below(1_000.0);
        let report = Report { rows: vec![row], ..Report::default() };
        let table = report.table();
        assert!(table.contains("| a   | 2,000 | µs   |"), "{table}");
        assert!(table.contains("| 5.00 |           | below 1,000: **missed** |"), "{table}");
        assert_eq!(report.goals(), (0, 1));
    }

    #[test]
    fn a_row_without_runs_is_shown_as_not_measured() {
        let row = Row::new("a", "µs", Vec::new()).below(1_000.0);
        let table = Report { rows: vec![row], ..Report::default() }.table();
        assert!(table.contains("| a   | not measured | µs   |"), "{table}");
        assert!(table.contains("below 1,000: not measured"), "{table}");
    }
}
