//! What pongs say of the path and of the other peer's clock (docs/raknet.md#pings).

use core::time::Duration;

/// How many pings the average and the clock difference are computed from.
const SAMPLES: usize = 5;

/// The last pings, and the shortest of all. Packed, since each connection has one for as long as it lasts.
#[derive(Clone, Copy, Debug, Default)]
#[repr(Rust, packed(4))]
pub(super) struct PingStats {
    /// How long they took, in microseconds; zero for none yet.
    micros: [u32; SAMPLES],
    /// The other clock minus ours, in milliseconds, at the first of them.
    difference: i64,
    /// How much more it was at each of them.
    drifts: [i16; SAMPLES],
    count: u8,
    lowest: u32,
}

impl PingStats {
    /// A ping took so many microseconds; the other clock read `remote` milliseconds when ours read `local`, half of it before now.
    pub(super) fn sample(&mut self, ping: u32, local: u64, remote: u64) {
        let micros = ping.max(1);
        let drift = self.drift(remote.wrapping_sub(local) as i64);
        let at = usize::from(self.count) % SAMPLES;
        if let (Some(place), Some(beside)) = (self.micros.get_mut(at), self.drifts.get_mut(at)) {
            (*place, *beside) = (micros, drift);
        }
        self.lowest = if self.count == 0 { micros } else { self.lowest.min(micros) };
        self.count = self.count.wrapping_add(1).max(1);
    }

    /// How much more a difference of the clocks is than the first. A clock that is set by more than half a minute makes
    /// all earlier pings worthless.
    fn drift(&mut self, difference: i64) -> i16 {
        let drift = i16::try_from(difference.wrapping_sub(self.difference));
        drift.ok().filter(|_| self.count > 0).unwrap_or_else(|| {
            self.micros = [0; SAMPLES];
            self.difference = difference;
            0
        })
    }

    fn filled(&self) -> impl Iterator<Item = (u32, i16)> {
        let samples = self.micros.iter().copied().zip(self.drifts);
        samples.filter(|(micros, _)| *micros > 0)
    }

    pub(super) fn last(&self) -> Duration {
        let last = usize::from(self.count.wrapping_sub(1)) % SAMPLES;
        Duration::from_micros(self.micros.get(last).copied().unwrap_or(0).into())
    }

    pub(super) const fn lowest(&self) -> Duration {
        Duration::from_micros(self.lowest as u64)
    }

    pub(super) fn average(&self) -> Duration {
        let sum: u64 = self.filled().map(|(micros, _)| u64::from(micros)).sum();
        let count = self.filled().count() as u64;
        Duration::from_micros(sum.checked_div(count).unwrap_or(0))
    }

    /// The other clock minus ours in milliseconds, by the ping that was the fastest of the last five.
    pub(super) fn difference(&self) -> Option<i64> {
        let fastest = self.filled().min_by_key(|(micros, _)| *micros);
        fastest.map(|(_, drift)| self.difference.wrapping_add(drift.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_of_the_last_five_sets_the_clock() {
        let mut ping_stats = PingStats::default();
        assert_eq!(
            (ping_stats.last(), ping_stats.average(), ping_stats.difference()),
            (Duration::ZERO, Duration::ZERO, None)
        );
        for (millis, remote) in [(50, 9_000), (10, 5_500), (30, 7_000)] {
            ping_stats.sample(millis * 1_000, 5_000, remote);
        }
        assert_eq!(ping_stats.last(), Duration::from_millis(30));
        assert_eq!(ping_stats.average(), Duration::from_millis(30));
        assert_eq!(ping_stats.difference(), Some(500));
        for _ in 0..5 {
            ping_stats.sample(20 * 1_000, 5_000, 4_000);
        }
        assert_eq!(ping_stats.difference(), Some(-1_000));
        assert_eq!(ping_stats.lowest(), Duration::from_millis(10));
        for remote in [1 << 63, 0, u64::MAX >> 1, 5_000] {
            ping_stats.sample(40 * 1_000, 5_000, remote);
            assert_eq!(ping_stats.difference(), Some(remote.wrapping_sub(5_000) as i64));
            assert_eq!(ping_stats.lowest(), Duration::from_millis(10));
        }
    }
}
