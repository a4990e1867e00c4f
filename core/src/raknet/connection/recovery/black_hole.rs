//! Detection of a black hole: datagrams above a size are lost while smaller ones arrive (RFC 8899 section 4.3).

use crate::time::Instant;

/// Rounds in a row in which a large datagram is lost and none arrives, before the MTU is lowered where no small datagram is
/// lost. RFC 8899 section 5.1.2 counts three probes; these are not made for the purpose, and their acknowledgements are lost,
/// too.
const LOST_ROUNDS: u32 = 4;
/// How many more if all small datagrams were lost; fewer by the part of them that arrives. Losses by chance meet large and
/// small ones alike: at these numbers fewer than one in 5,000 large datagrams begins a series that is taken for a black hole
/// where up to 60 % are lost by chance, both ways together.
const ROUNDS_BY_CHANCE: u32 = 24;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BlackHole {
    /// Bytes above which a datagram is large, and those of the longest one for the MTU; both are 0 where no smaller MTU exists.
    /// Longer ones were made before the MTU was lowered, and are known to be lost.
    above: u16,
    longest: u16,
    /// Since the last large datagram that arrived: rounds in which large ones were lost, and small datagrams that arrived and
    /// that were lost.
    rounds: u8,
    arrived: u8,
    lost: u8,
    /// What was sent earlier belongs to rounds that were counted.
    since: Instant,
    /// Whether a small datagram that was sent later has arrived: the next loss of a large one counts. So an outage counts once.
    is_path_open: bool,
}

impl BlackHole {
    /// Starts anew with an MTU whose longest datagram has `longest` bytes, where that of the next smaller one has `above`.
    pub(super) fn begin(&mut self, above: Option<usize>, longest: usize) {
        let bytes = |bytes| u16::try_from(bytes).unwrap_or(u16::MAX);
        let (above, longest) = above.map_or((0, 0), |above| (bytes(above), bytes(longest)));
        *self = Self { above, longest, ..Self::default() };
    }

    /// A datagram that was sent then has arrived.
    pub(super) fn on_acked(&mut self, sent_at: Instant, bytes: u32) {
        if bytes > self.above.into() {
            *self = Self { above: self.above, longest: self.longest, ..Self::default() };
        } else if sent_at >= self.since {
            self.is_path_open = true;
            self.arrived = self.arrived.saturating_add(1);
        }
    }

    /// A datagram that was sent then is declared lost now.
    pub(super) fn on_lost(&mut self, now: Instant, sent_at: Instant, bytes: u32) {
        if bytes > self.longest.into() || sent_at < self.since {
            return;
        }
        if bytes <= self.above.into() {
            self.lost = self.lost.saturating_add(1);
        } else if self.is_path_open {
            if self.rounds == 0 {
                (self.arrived, self.lost) = (1, 0);
            }
            self.rounds = self.rounds.saturating_add(1);
            (self.since, self.is_path_open) = (now, false);
        }
    }

    /// Whether the MTU has to be lowered. One small datagram more is taken for lost: a few that arrived say little.
    pub(super) fn is_certain(&self) -> bool {
        let lost = u32::from(self.lost) + 1;
        let small = u32::from(self.arrived) + lost;
        let rounds = u32::from(self.rounds).saturating_sub(LOST_ROUNDS);
        rounds * small >= ROUNDS_BY_CHANCE * lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds before the MTU is lowered where one small datagram arrives in each.
    const ROUNDS: u64 = 7;

    fn at(millis: u64) -> Instant {
        Instant::from_micros(millis * 1_000)
    }

    fn detector() -> BlackHole {
        let mut detector = BlackHole::default();
        detector.begin(Some(1_000), 1_400);
        detector
    }

    /// A small datagram arrives; a large one is sent at the same time and lost.
    fn lose_large(detector: &mut BlackHole, sent_at: u64) {
        detector.on_acked(at(sent_at), 1_000);
        detector.on_lost(at(sent_at + 1), at(sent_at), 1_400);
    }

    #[test]
    fn large_datagrams_that_are_lost_beside_small_ones_that_arrive_are_a_black_hole() {
        let mut detector = detector();
        for round in 1..=ROUNDS {
            assert!(!detector.is_certain());
            lose_large(&mut detector, 10 * round);
        }
        assert!(detector.is_certain());
    }

    #[test]
    fn where_many_small_datagrams_arrive_fewer_losses_suffice() {
        let mut detector = detector();
        for round in 1..=u64::from(LOST_ROUNDS) + 1 {
            assert!(!detector.is_certain());
            (0..9).for_each(|millis| detector.on_acked(at(10 * round + millis), 20));
            lose_large(&mut detector, 10 * round + 9);
        }
        assert!(detector.is_certain());
    }

    #[test]
    fn where_small_datagrams_are_lost_too_more_losses_are_needed() {
        let mut detector = detector();
        for round in 1..=2 * ROUNDS {
            assert!(!detector.is_certain());
            detector.on_lost(at(10 * round), at(10 * round), 1_000);
            lose_large(&mut detector, 10 * round);
        }
    }

    #[test]
    fn a_large_datagram_that_arrives_ends_the_suspicion() {
        let mut detector = detector();
        (1..ROUNDS).for_each(|round| lose_large(&mut detector, 10 * round));
        detector.on_acked(at(5), 1_001);
        (100..100 + ROUNDS).for_each(|round| {
            assert!(!detector.is_certain());
            lose_large(&mut detector, 10 * round);
        });
        assert!(detector.is_certain());
    }

    #[test]
    fn an_outage_counts_once() {
        let mut detector = detector();
        for outage in [0, 1_000, 2_000] {
            detector.on_acked(at(outage), 50);
            (1..100).for_each(|sent_at| detector.on_lost(at(outage + 100), at(outage + sent_at), 1_400));
        }
        assert!(!detector.is_certain());
    }

    #[test]
    fn without_a_smaller_mtu_nothing_is_detected() {
        let mut detector = BlackHole::default();
        detector.begin(None, 548);
        (1..100).for_each(|round| lose_large(&mut detector, 10 * round));
        assert!(!detector.is_certain());
    }
}
