//! The goals of the measured rows. A goal that refers to another row is omitted until that row has been measured.

use crate::report::{Better, Goal, Report, Row, number};

/// The reference value that a row has to reach.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Target {
    /// A limit in the unit of the row: the minimum if higher values are better, otherwise the maximum.
    Limit(f64),
    /// The minimum and the maximum in the unit of the row.
    Between(f64, f64),
    /// A multiple of the best result of a pairing without rakwire.
    OfBestPairing(f64),
    /// A multiple of the UDP baseline.
    OfBaseline(f64),
    /// A multiple of the row with this name.
    OfRow(&'static str, f64),
    /// At least as good as every pairing of rakwire with another implementation.
    MixedPairings,
}

use Target::{Between, Limit, MixedPairings, OfBaseline, OfBestPairing, OfRow};

/// A fair share of a bottleneck between two flows, in percent.
const FAIR: Target = Between(40.0, 60.0);
/// The goal for Jain's index of two flows.
const JAIN: Target = Limit(0.95);

const GOALS: [(&str, &[Target]); 27] = [
    ("messages_100b", &[OfBestPairing(3.0), OfBaseline(0.5)]),
    ("bulk_10mb", &[OfBestPairing(2.0), OfBaseline(0.65)]),
    ("bulk_10kb", &[OfBestPairing(2.0), OfBaseline(0.65)]),
    ("pingpong_64b", &[OfBestPairing(1.0), OfBaseline(1.15)]),
    ("pingpong_64b_p99", &[OfBestPairing(1.0)]),
    ("pingpong_64b_busy", &[OfBaseline(1.3)]),
    ("loss_0", &[OfBestPairing(1.0)]),
    ("loss_1", &[OfBestPairing(3.0), MixedPairings, OfRow("loss_0", 0.85)]),
    ("loss_5", &[OfBestPairing(3.0), MixedPairings, OfRow("loss_0", 0.75)]),
    ("loss_5_p99", &[OfRow("loss_0_p99", 1.5)]),
    ("loss_15", &[OfRow("loss_0", 0.5)]),
    ("loss_bursts", &[OfRow("loss_0", 0.5)]),
    ("core_100b", &[Limit(120.0)]),
    ("core_100b_instructions", &[Limit(1_500.0)]),
    ("fair_delay_based", &[Limit(60.0)]),
    ("fair_beside_new_reno_25ms", &[FAIR]),
    ("fair_beside_new_reno_50ms", &[FAIR]),
    ("fair_beside_new_reno_200ms", &[FAIR]),
    ("fair_queueing", &[Limit(25.0)]),
    ("fair_jitter_10ms", &[JAIN]),
    ("fair_rtt_200ms", &[JAIN]),
    ("fair_500mbit", &[JAIN]),
    ("clients_1000_per_core", &[OfBaseline(0.5)]),
    ("clients_1000_tick_p99", &[Limit(2_000.0)]),
    ("shards_scaling", &[Limit(1.8)]),
    ("idle_memory", &[Limit(1_600.0)]),
    ("idle_connections", &[Limit(10_000.0)]),
];

/// Sets the goals of all rows of a report, and whether each is met.
pub(crate) fn judge(report: &mut Report) {
    let mut rows = std::mem::take(&mut report.rows);
    let others = rows.clone();
    for row in &mut rows {
        let targets =
            GOALS.iter().find(|(name, _)| *name == row.name).map_or(&[][..], |(_, targets)| targets);
        row.goals = targets.iter().filter_map(|target| target.goal(row, &others)).collect();
    }
    report.rows = rows;
}

impl Target {
    fn goal(self, row: &Row, others: &[Row]) -> Option<Goal> {
        let bound = bound_words(row.better);
        let goal = match self {
            Limit(limit) => within_limit(row, limit),
            Between(least, most) => between(row, least, most),
            OfBestPairing(times) => {
                let met = row.ratio_to_best_peer.is_some_and(|ratio| reaches(row.better, ratio, times));
                Goal::new(format!("{bound} {times} x the best of others"), met)
            }
            OfBaseline(times) => {
                let met = row.ratio_to_baseline.is_some_and(|ratio| reaches(row.better, ratio, times));
                Goal::new(format!("{bound} {times} x the UDP baseline"), met)
            }
            OfRow(name, times) => {
                let other = others.iter().find(|other| other.name == name)?;
                let met = reaches(row.better, row.value, times * other.value);
                Goal::new(format!("{bound} {times} x `{name}`"), met)
            }
            MixedPairings => as_good_as_mixed_pairings(row),
        };
        Some(goal)
    }
}

/// Returns the words that precede the reference value of a goal.
const fn bound_words(better: Better) -> &'static str {
    match better {
        Better::Higher => "at least",
        Better::Lower | Better::Even => "at most",
    }
}

fn reaches(better: Better, value: f64, target: f64) -> bool {
    value.is_finite() && target.is_finite() && better.compare(value, target).is_ge()
}

fn within_limit(row: &Row, limit: f64) -> Goal {
    let text = format!("{} {} {}", bound_words(row.better), number(limit), row.unit);
    let goal = Goal::new(text, reaches(row.better, row.value, limit));
    match row.better {
        Better::Higher => Goal { at_least: Some(limit), ..goal },
        Better::Lower | Better::Even => Goal { at_most: Some(limit), ..goal },
    }
}

fn between(row: &Row, least: f64, most: f64) -> Goal {
    let text = format!("{} to {} {}", number(least), number(most), row.unit);
    let met = (least..=most).contains(&row.value);
    Goal { at_least: Some(least), at_most: Some(most), ..Goal::new(text, met) }
}

fn as_good_as_mixed_pairings(row: &Row) -> Goal {
    let mixed = row.pairings.iter().filter(|entry| entry.pairing.is_mixed());
    let met = mixed.filter_map(|entry| entry.value).all(|value| reaches(row.better, row.value, value));
    Goal::new("as fast as every pairing of rakwire with another library".to_owned(), met)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairing::{Pairing, Peer};
    use crate::report::{Best, Entry};

    fn compared(name: &str, value: f64, better: Better) -> Row {
        Row::new(name, value, "messages/s", better)
            .compared_with_peer(Some(Best { name: "b".to_owned(), value: 100.0 }))
            .compared_with_baseline(Some(400.0))
    }

    /// Returns the goals of the rows in order: each as text, and whether it is met.
    fn goals(rows: Vec<Row>) -> Vec<(String, bool)> {
        let mut report = Report { rows, ..Report::default() };
        judge(&mut report);
        report.rows.into_iter().flat_map(|row| row.goals).map(|goal| (goal.text, goal.met)).collect()
    }

    fn met(rows: Vec<Row>) -> Vec<bool> {
        goals(rows).into_iter().map(|(_, met)| met).collect()
    }

    #[test]
    fn a_goal_is_met_only_by_a_value_on_the_better_side_of_its_limit() {
        assert_eq!(met(vec![compared("messages_100b", 300.0, Better::Higher)]), [true, true]);
        assert_eq!(met(vec![compared("messages_100b", 199.0, Better::Higher)]), [false, false]);
        assert_eq!(met(vec![compared("pingpong_64b", 100.0, Better::Lower)]), [true, true]);
        assert_eq!(met(vec![compared("pingpong_64b", 461.0, Better::Lower)]), [false, false]);
        let unmeasured = Row::new("loss_0_p99", f64::NAN, "µs", Better::Lower);
        let beside = Row::new("loss_5_p99", 1.0, "µs", Better::Lower);
        assert_eq!(
            met(vec![unmeasured, beside]),
            [false],
            "a goal must not be met if the other row has no value"
        );
        let unpaired = Row::new("loss_0", 1e9, "", Better::Higher);
        assert_eq!(met(vec![unpaired]), [false], "a goal without a comparison must not be met");
    }

    #[test]
    fn a_share_from_40_to_60_percent_is_fair() {
        let share = |value| Row::new("fair_beside_new_reno_50ms", value, "%", Better::Even);
        for (value, fair) in [(19.2, false), (40.0, true), (60.0, true), (61.0, false), (f64::NAN, false)] {
            assert_eq!(met(vec![share(value)]), [fair], "{value}");
        }
        assert_eq!(goals(vec![share(50.0)])[0].0, "40.0 to 60.0 %");
    }

    #[test]
    fn a_relative_goal_is_judged_only_if_its_reference_row_exists() {
        let row = |name, value| Row::new(name, value, "", Better::Higher);
        assert_eq!(goals(vec![row("loss_15", 50.0)]), []);
        let [goal] = &goals(vec![row("loss_15", 50.0), row("loss_0", 100.0)])[..1] else { panic!("no goal") };
        assert_eq!(*goal, ("at least 0.5 x `loss_0`".to_owned(), true));
        assert!(!met(vec![row("loss_bursts", 49.0), row("loss_0", 100.0)])[0]);
        let late = |name, value| Row::new(name, value, "µs", Better::Lower);
        assert_eq!(met(vec![late("loss_0_p99", 300.0), late("loss_5_p99", 451.0)]), [false]);
    }

    #[test]
    fn a_row_misses_its_goal_if_a_mixed_pairing_is_faster() {
        let entry = |client, server, value| Entry {
            pairing: Pairing { client, server },
            value,
            error: None,
            runs: Vec::new(),
        };
        let mut row = compared("loss_1", 300.0, Better::Higher);
        row.pairings = vec![
            entry(Peer::Rakwire, Peer::Cpp, Some(300.0)),
            entry(Peer::Cpp, Peer::Cpp, Some(301.0)),
            entry(Peer::TokioRaknet, Peer::Rakwire, None),
        ];
        assert_eq!(met(vec![row.clone()]), [true, true]);
        row.pairings.push(entry(Peer::Rakwire, Peer::RustRaknet, Some(301.0)));
        assert_eq!(met(vec![row]), [true, false]);
    }

    #[test]
    fn a_goal_with_a_limit_stores_its_minimum_and_maximum() {
        let mut report = Report::default();
        report.rows.push(Row::new("core_100b", 130.0, "ns/message", Better::Lower));
        report.rows.push(Row::new("fair_beside_new_reno_25ms", 50.0, "%", Better::Even));
        judge(&mut report);
        let limits: Vec<_> =
            report.rows.iter().flat_map(|row| &row.goals).map(|goal| (goal.at_least, goal.at_most)).collect();
        assert_eq!(limits, [(None, Some(120.0)), (Some(40.0), Some(60.0))]);
    }
}
