//! Draws the rows of a report as charts.

use crate::chart::{Bar, BarKind};
use crate::report::{Better, Goal, Report, Row, names_in_markdown};

/// A chart of one row or of a family of rows.
#[derive(Debug)]
pub(crate) struct Chart {
    pub(crate) name: String,
    unit: String,
    better: Better,
    /// The names of the rows in the chart.
    rows: Vec<String>,
    pub(crate) bars: Vec<Bar>,
}

impl Chart {
    /// Returns the names of the rows in the chart, as Markdown.
    pub(crate) fn row_names(&self) -> String {
        names_in_markdown(&self.rows)
    }

    pub(crate) fn title(&self) -> String {
        format!("{}, {} ({})", self.name, self.unit, self.better.words())
    }
}

/// Returns one chart per row, or per family of rows.
pub(crate) fn charts(report: &Report) -> Vec<Chart> {
    let mut charts: Vec<Chart> = Vec::new();
    for row in &report.rows {
        let (name, bars) = match shared(row) {
            Some((name, bar)) => (name, vec![bar]),
            None => (row.name.as_str(), bars(row)),
        };
        let index = charts.iter().position(|chart| chart.name == name).unwrap_or_else(|| {
            let (name, unit) = (name.to_owned(), row.unit.clone());
            charts.push(Chart { name, unit, better: row.better, rows: Vec::new(), bars: Vec::new() });
            charts.len() - 1
        });
        charts[index].rows.push(row.name.clone());
        charts[index].bars.extend(bars);
    }
    charts
}

/// Returns the name of the chart of the row's family and the row's bar in it, or `None` if the row has its own chart.
fn shared(row: &Row) -> Option<(&'static str, Bar)> {
    let baseline =
        |chart, what| Some((chart, Bar::new(format!("UDP baseline, {what}"), row.value, BarKind::Others)));
    match row.name.as_str() {
        "udp_flood" => baseline("udp_flood", "one datagram per call"),
        "udp_flood_batched" => baseline("udp_flood", "many datagrams per call"),
        "udp_pingpong_64b" => baseline("udp_pingpong_64b", "median"),
        "udp_pingpong_64b_p99" => baseline("udp_pingpong_64b", "99th percentile"),
        "udp_pingpong_64b_busy" => baseline("udp_pingpong_64b", "median, busy cores"),
        "udp_clients_1000_per_core" => baseline("clients_1000_per_core", "without control messages"),
        _ => ["core_connections", "core_queue"].into_iter().find_map(|family| {
            let number = number_in(family, row)?;
            Some((family, Bar::new(format!("rakwire, {number}"), row.value, BarKind::Ours)))
        }),
    }
}

/// Returns the number in the name of a row of a family: 10 in `core_queue_10`.
fn number_in<'r>(family: &str, row: &'r Row) -> Option<&'r str> {
    let number = row.name.strip_prefix(family)?.strip_prefix('_')?;
    number.parse::<u32>().is_ok().then_some(number)
}

/// Returns the bars of the row's own chart, the best first.
fn bars(row: &Row) -> Vec<Bar> {
    let mut bars = if row.pairings.is_empty() { with_best_peer(row) } else { paired(row) };
    bars.extend(row.goals.iter().flat_map(goal_bars));
    bars.sort_by(|a, b| row.better.compare(b.value, a.value));
    bars
}

fn with_best_peer(row: &Row) -> Vec<Bar> {
    let ours = Bar::new("rakwire", row.value, BarKind::Ours);
    let best = row.best_peer.as_ref().map(|best| Bar::new(&best.name, best.value, BarKind::Others));
    [ours].into_iter().chain(best).collect()
}

/// Returns a bar for every pairing that has a value, and for the UDP baseline.
fn paired(row: &Row) -> Vec<Bar> {
    let pairings = row.pairings.iter().filter_map(|entry| {
        let kind = if entry.pairing.is_foreign() { BarKind::Others } else { BarKind::Ours };
        Some(Bar::new(entry.pairing.to_string(), entry.value?, kind))
    });
    pairings.chain(row.baseline.map(|baseline| Bar::new("UDP baseline", baseline, BarKind::Others))).collect()
}

/// Returns one bar for the minimum and one for the maximum of a goal, if the goal has them.
fn goal_bars(goal: &Goal) -> impl Iterator<Item = Bar> + use<> {
    let limits = [("goal: at least", goal.at_least), ("goal: at most", goal.at_most)];
    limits.into_iter().filter_map(|(name, limit)| Some(Bar::new(name, limit?, BarKind::Goal)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairing::Pairing;
    use crate::report::{Best, Entry};

    fn row(name: &str, value: f64) -> Row {
        Row::new(name, value, "ns/message", Better::Lower)
    }

    fn with_goal(row: Row, at_least: Option<f64>, at_most: Option<f64>) -> Row {
        let goal = Goal { at_least, at_most, ..Goal::new(String::new(), false) };
        Row { goals: vec![goal], ..row }
    }

    fn report(rows: Vec<Row>) -> Report {
        Report { rows, ..Report::default() }
    }

    #[test]
    fn rows_that_differ_only_in_a_number_share_a_chart() {
        let rows = vec![row("core_100b", 1.0), row("core_queue_1", 2.0), row("core_queue_1000", 3.0)];
        let charts = charts(&report(rows));
        assert_eq!(charts.len(), 2);
        assert_eq!(charts[1].name, "core_queue");
        let bars =
            [Bar::new("rakwire, 1", 2.0, BarKind::Ours), Bar::new("rakwire, 1000", 3.0, BarKind::Ours)];
        assert_eq!(charts[1].bars, bars);
    }

    #[test]
    fn every_row_is_in_exactly_one_plot_with_its_value() {
        let pairing = Entry { pairing: Pairing::OURS, value: Some(1.0), error: None, runs: Vec::new() };
        let peer = Best { name: "other".to_owned(), value: 20.0 };
        let report = report(vec![
            row("udp_flood", 5.0),
            row("udp_flood_batched", 6.0),
            row("udp_pingpong_64b", 7.0),
            row("udp_pingpong_64b_p99", 8.0),
            Row { pairings: vec![pairing], ..row("pingpong_64b", 1.0).compared_with_baseline(Some(9.0)) },
            with_goal(row("core_100b", 2.0), None, Some(150.0)),
            row("core_queue_1", 3.0),
            row("idle_memory", 4.0).compared_with_peer(Some(peer)),
            row("neither_goal_nor_peer", 10.0),
        ]);
        let charts = charts(&report);
        for row in &report.rows {
            let mut with = charts.iter().filter(|chart| chart.rows.contains(&row.name));
            let chart = with.next().unwrap_or_else(|| panic!("{} has no chart", row.name));
            assert!(chart.bars.iter().any(|bar| bar.value == row.value), "{} in {chart:?}", row.name);
            assert!(with.next().is_none(), "{} has two charts", row.name);
        }
        assert_eq!(charts[0].row_names(), "`udp_flood`, `udp_flood_batched`");
    }

    #[test]
    fn a_title_shows_the_better_direction() {
        let charts = charts(&report(vec![row("idle_memory", 1.0)]));
        assert_eq!(charts[0].title(), "idle_memory, ns/message (lower is better)");
    }

    #[test]
    fn a_goal_is_drawn_next_to_the_measured_value() {
        let charts = charts(&report(vec![with_goal(row("core_100b", 175.0), None, Some(150.0))]));
        let bars =
            [Bar::new("goal: at most", 150.0, BarKind::Goal), Bar::new("rakwire", 175.0, BarKind::Ours)];
        assert_eq!(charts[0].bars, bars);
    }

    #[test]
    fn a_goal_with_a_minimum_and_a_maximum_has_two_bars() {
        let share = Row::new("fair_beside_new_reno_50ms", 19.0, "%", Better::Even);
        let charts = charts(&report(vec![with_goal(share, Some(40.0), Some(60.0))]));
        let names: Vec<&str> = charts[0].bars.iter().map(|bar| bar.name.as_str()).collect();
        assert_eq!(names, ["goal: at least", "goal: at most", "rakwire"]);
        assert!(charts[0].title().ends_with("(an even share is best)"));
    }
}
