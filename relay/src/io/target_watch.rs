//! Notices when a game server answers no more pings, and when it does again, for one line of the log each.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::protocol::PONG_LIFETIME;
use crate::target::TargetName;

/// The shortest time between two lines about one game server, which may come and go all the time.
const LINE_INTERVAL: Duration = Duration::from_secs(60);

/// A change that is to be logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// It does not answer.
    Down,
    /// It answers again, after this time.
    Up(Duration),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct TargetWatch {
    /// Since when it has not answered; none while it does.
    silent_since: Option<Instant>,
    /// The last line: whether it said that the server is down, when, and since when.
    logged: Option<(Change, Instant, Instant)>,
}

impl TargetWatch {
    pub(crate) const fn new(now: Instant) -> Self {
        Self { silent_since: Some(now), logged: None }
    }

    /// Notes whether the server has answered of late.
    pub(crate) fn note(&mut self, now: Instant, answers: bool) -> Option<Change> {
        self.silent_since = if answers { None } else { Some(self.silent_since.unwrap_or(now)) };
        let change = match (self.silent_since, self.logged) {
            // From the start of the relay on it has that long.
            (Some(since), None | Some((Change::Up(_), ..)))
                if now.saturating_duration_since(since) >= PONG_LIFETIME || self.logged.is_some() =>
            {
                (Change::Down, since)
            }
            (None, Some((Change::Down, _, since))) => (Change::Up(now.saturating_duration_since(since)), now),
            _ => return None,
        };
        let is_early =
            |(_, at, _): (Change, Instant, Instant)| now.saturating_duration_since(at) < LINE_INTERVAL;
        if self.logged.is_some_and(is_early) {
            return None;
        }
        self.logged = Some((change.0, now, change.1));
        Some(change.0)
    }
}

/// The lines about targets whose new clients go to another address.
#[derive(Debug, Default)]
pub(crate) struct MoveLog(BTreeMap<TargetName, Moves>);

/// When a target had its last line, and how often its clients have moved since.
#[derive(Debug, Clone, Copy)]
struct Moves {
    logged: Instant,
    left_out: u64,
}

impl MoveLog {
    /// Notes that a target has moved. If that has a line, returns how many had none since the last one.
    pub(crate) fn note(&mut self, now: Instant, target: &TargetName) -> Option<u64> {
        match self.0.get_mut(target) {
            Some(moves) if now.saturating_duration_since(moves.logged) < LINE_INTERVAL => {
                moves.left_out += 1;
                None
            }
            last => {
                let left_out = last.map_or(0, |moves| moves.left_out);
                self.0.insert(target.clone(), Moves { logged: now, left_out: 0 });
                Some(left_out)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_server_that_goes_and_returns_is_logged_once_each() {
        let start = Instant::now();
        let mut watch = TargetWatch::new(start);
        assert_eq!(watch.note(start, false), None, "it has had no time to answer");
        assert_eq!(watch.note(start + SECOND, true), None);
        assert_eq!(watch.note(start + 100 * SECOND, false), None);
        assert_eq!(watch.note(start + 103 * SECOND, false), Some(Change::Down));
        assert_eq!(watch.note(start + 104 * SECOND, false), None);
        assert_eq!(watch.note(start + 200 * SECOND, true), Some(Change::Up(100 * SECOND)));
        assert_eq!(watch.note(start + 201 * SECOND, true), None);
    }

    #[test]
    fn a_server_that_was_never_there_is_logged() {
        let start = Instant::now();
        let mut watch = TargetWatch::new(start);
        assert_eq!(watch.note(start + 2 * SECOND, false), None);
        assert_eq!(watch.note(start + 3 * SECOND, false), Some(Change::Down));
    }

    #[test]
    fn a_target_that_moves_all_the_time_has_a_line_a_minute() {
        let start = Instant::now();
        let mut log = MoveLog::default();
        let (game, other) = ("game".parse().unwrap(), "other".parse().unwrap());
        let lines: Vec<u64> =
            (0..121).filter_map(|second| log.note(start + second * SECOND, &game)).collect();
        assert_eq!(lines, [0, 59, 59]);
        assert_eq!(log.note(start + 121 * SECOND, &other), Some(0), "each target has its own");
    }

    #[test]
    fn a_server_that_comes_and_goes_has_a_line_a_minute() {
        let start = Instant::now();
        let mut watch = TargetWatch::new(start);
        let lines = (0..600).filter(|second: &u32| {
            watch.note(start + *second * SECOND, (second / 10).is_multiple_of(2)).is_some()
        });
        assert!((5..=10).contains(&lines.count()));
    }
}
