//! What was counted in the last second and since the beginning (supplement 4.19).

use crate::time::Instant;

/// What is counted, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Metric {
    /// Of the application, accepted by `send`.
    Pushed,
    /// Of capsules sent for the first time, without headers.
    Sent,
    /// Of capsules sent again.
    Resent,
    /// Of messages delivered.
    Processed,
    /// Of capsules that arrived and were of no use: duplicates, outdated.
    Ignored,
    /// Of datagrams sent, without IP and UDP headers.
    ActualSent,
    /// Of datagrams that arrived.
    ActualReceived,
}

const COUNT: usize = 7;

/// Seven sums: in all, in the second that is running, in the last whole one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Metrics {
    total: [u64; COUNT],
    running: [u32; COUNT],
    last: [u32; COUNT],
    second: u32,
}

impl Metrics {
    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(super) fn add(&mut self, now: Instant, metric: Metric, bytes: usize) {
        self.turn(now);
        let index = metric as usize;
        if let (Some(total), Some(running)) = (self.total.get_mut(index), self.running.get_mut(index)) {
            *total += bytes as u64;
            *running = running.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        }
    }

    fn turn(&mut self, now: Instant) {
        let second = second_of(now);
        if second != self.second {
            self.last = if second == self.second.wrapping_add(1) { self.running } else { [0; COUNT] };
            self.running = [0; COUNT];
            self.second = second;
        }
    }

    pub(super) fn total(&self, metric: Metric) -> u64 {
        self.total.get(metric as usize).copied().unwrap_or(0)
    }

    /// What was counted in the last whole second before `now`.
    pub(super) fn last_second(&self, now: Instant, metric: Metric) -> u32 {
        let mut turned = *self;
        turned.turn(now);
        turned.last.get(metric as usize).copied().unwrap_or(0)
    }
}

fn second_of(now: Instant) -> u32 {
    u32::try_from((now.as_micros() / 1_000_000) & u64::from(u32::MAX)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_micros(millis * 1_000)
    }

    #[test]
    fn seconds_turn_into_the_last_one() {
        let mut metrics = Metrics::default();
        metrics.add(at(100), Metric::Sent, 10);
        metrics.add(at(900), Metric::Sent, 5);
        assert_eq!(metrics.last_second(at(999), Metric::Sent), 0);
        assert_eq!(metrics.last_second(at(1_000), Metric::Sent), 15);
        metrics.add(at(1_500), Metric::Sent, 1);
        assert_eq!(metrics.last_second(at(1_999), Metric::Sent), 15);
        assert_eq!(metrics.last_second(at(2_000), Metric::Sent), 1);
        assert_eq!(metrics.last_second(at(3_000), Metric::Sent), 0);
        assert_eq!((metrics.total(Metric::Sent), metrics.total(Metric::Resent)), (16, 0));
    }
}
