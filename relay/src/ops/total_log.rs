//! A line about datagrams that were dropped as all clients together had more than they may: at most once a minute.

use std::time::{Duration, Instant};

/// How often the counts are looked at.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);

/// The least time between two lines.
const LINES: Duration = Duration::from_secs(60);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct TotalLog {
    told: u64,
    last: Option<Instant>,
}

impl TotalLog {
    /// The datagrams that a line is due about, of so many that were dropped since the start.
    pub(crate) fn poll(&mut self, now: Instant, dropped: u64) -> Option<u64> {
        let is_due = self.last.is_none_or(|last| now.saturating_duration_since(last) >= LINES);
        let more = dropped.saturating_sub(self.told);
        if more == 0 || !is_due {
            return None;
        }
        (self.told, self.last) = (dropped, Some(now));
        Some(more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_drop_has_a_line_and_later_ones_one_a_minute() {
        let (mut log, now) = (TotalLog::default(), Instant::now());
        let at = |seconds| now + Duration::from_secs(seconds);
        assert_eq!(log.poll(at(0), 0), None);
        assert_eq!(log.poll(at(1), 3), Some(3));
        assert_eq!(log.poll(at(2), 10), None);
        assert_eq!(log.poll(at(60), 12), None);
        assert_eq!(log.poll(at(61), 12), Some(9));
        assert_eq!(log.poll(at(200), 12), None, "nothing more was dropped");
    }
}
