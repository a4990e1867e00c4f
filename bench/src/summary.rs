//! The summary chart, which compares rakwire with the best other RakNet implementation.

use crate::chart::{Bar, BarKind};
use crate::report::{Better, Report};

pub(crate) const TITLE: &str = "rakwire: times as fast (memory: as small) as the best other RakNet library";

/// The rows of the chart, with short descriptions.
const ROWS: [(&str, &str); 8] = [
    ("messages_100b", "messages of 100 bytes, loopback"),
    ("bulk_10kb", "messages of 10 KB, loopback"),
    ("bulk_10mb", "one message of 10 MB, loopback"),
    ("pingpong_64b", "round trips, loopback"),
    ("loss_0", "messages, RTT of 50 ms"),
    ("loss_1", "messages, RTT of 50 ms, 1 % loss"),
    ("loss_5", "messages, RTT of 50 ms, 5 % loss"),
    ("idle_memory", "memory of an idle connection"),
];

/// Returns the bars: first the best other implementation, which is always 1, and then one for each row in `ROWS` that
/// has a result without rakwire.
pub(crate) fn bars(report: &Report) -> Vec<Bar> {
    let ours = ROWS.iter().filter_map(|(name, words)| {
        let row = report.rows.iter().find(|row| row.name == *name)?;
        let ratio = row.ratio_to_best_peer.filter(|ratio| *ratio > 0.0)?;
        let times = if row.better == Better::Higher { ratio } else { 1.0 / ratio };
        Some(Bar::new(*words, times, BarKind::Ours))
    });
    [Bar::new("best other library", 1.0, BarKind::Others)].into_iter().chain(ours).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Best, Row};

    #[test]
    fn the_ratio_is_inverted_when_lower_is_better() {
        let row = |name, value, better| {
            let other = Best { name: "other".to_owned(), value: 4.0 };
            Row::new(name, value, "", better).compared_with_peer(Some(other))
        };
        let rows = vec![
            row("idle_memory", 2.0, Better::Lower),
            row("messages_100b", 20.0, Better::Higher),
            Row::new("loss_5", 1.0, "", Better::Higher),
            row("core_100b", 1.0, Better::Lower),
        ];
        let bars = bars(&Report { rows, ..Report::default() });
        let values: Vec<_> = bars.iter().map(|bar| (bar.name.as_str(), bar.value)).collect();
        let expected = [
            ("best other library", 1.0),
            ("messages of 100 bytes, loopback", 5.0),
            ("memory of an idle connection", 2.0),
        ];
        assert_eq!(values, expected);
    }
}
