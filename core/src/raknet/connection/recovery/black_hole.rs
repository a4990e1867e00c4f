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

/// Timeouts in a row before a path is probed: one may be an acknowledgement that was lost.
const FIRST_PROBE: u8 = 1;
/// Timeouts before a path is probed again that carries large datagrams. So a receiver without memory, which refuses large messages
/// alone, is hardly disturbed.
const NEXT_PROBE: u8 = 32;

/// Datagrams that a path does not carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum BlackHole {
    /// Those that are larger than at the next smaller MTU.
    Large,
    /// Those with a part that was cut before the MTU was lowered, also in fragments.
    Oversized,
}

/// Datagrams that are to show which sizes a path carries. Their pings need no memory, so that a receiver that lacks memory
/// acknowledges both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) enum PathProbe {
    #[default]
    None,
    /// One as long as one that was lost, in bytes, and then a small one.
    Large(u16),
    Small,
}

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BlackHoleDetector {
    /// Bytes above which a datagram is large, and those of the longest one for the MTU, which are the same where no smaller MTU exists.
    /// Longer ones hold parts that were cut before the MTU was lowered.
    above: u16,
    longest: u16,
    /// Since the last one that arrived: rounds in which large and longer ones were lost; and small datagrams that arrived and that
    /// were lost.
    rounds: u8,
    oversized_rounds: u8,
    arrived: u8,
    lost: u8,
    /// What was sent earlier belongs to rounds that were counted.
    since: Instant,
    /// Whether a small datagram that was sent later has arrived: the next loss of a large one counts. So an outage counts once.
    is_path_open: bool,
    /// Whether a longer one was lost and none has arrived.
    has_oversized: bool,
    /// Bytes of the longest datagram that has ever arrived.
    longest_arrived: u16,
    /// Timeouts before the next probe.
    until_probe: u8,
    probe: PathProbe,
    /// Whether a large probe was lost, and no large datagram has arrived since. A receiver without memory for large messages, which
    /// takes small ones, takes probes too.
    is_probe_lost: bool,
}

impl BlackHoleDetector {
    /// Starts anew with an MTU whose longest datagram has `longest` bytes, where that of the next smaller one has `above`.
    pub(super) fn begin(&mut self, now: Instant, above: Option<usize>, longest: usize) {
        let bytes = |bytes| u16::try_from(bytes).unwrap_or(u16::MAX);
        *self = Self {
            above: bytes(above.unwrap_or(longest)),
            longest: bytes(longest),
            since: now,
            longest_arrived: self.longest_arrived,
            until_probe: FIRST_PROBE,
            ..Self::default()
        };
    }

    /// Whether a datagram counts for one of the two kinds.
    fn is_large(&self, bytes: u32) -> bool {
        bytes > self.above.into()
    }

    /// Bytes of the longest datagram that has ever been acknowledged.
    pub(super) const fn longest_arrived(&self) -> u16 {
        self.longest_arrived
    }

    /// A datagram that was sent then has arrived.
    pub(super) fn on_acked(&mut self, sent_at: Instant, bytes: u32, is_probe: bool) {
        if bytes > self.longest_arrived.into() {
            self.longest_arrived = u16::try_from(bytes).unwrap_or(u16::MAX);
        }
        if self.is_large(bytes) {
            self.until_probe = if is_probe { NEXT_PROBE } else { FIRST_PROBE };
            self.is_probe_lost = false;
            let is_oversized = bytes > self.longest.into();
            if is_oversized {
                (self.oversized_rounds, self.has_oversized) = (0, false);
            }
            // Beside an oversized one it is a smaller one that arrives.
            self.is_path_open = self.has_oversized;
            (self.rounds, self.arrived, self.lost) = (0, u8::from(self.has_oversized), 0);
            if !self.has_oversized {
                self.since = Instant::ZERO;
            }
        } else if sent_at >= self.since {
            self.is_path_open = true;
            self.arrived = self.arrived.saturating_add(1);
        }
    }

    /// A datagram that was sent then is declared lost now.
    pub(super) fn on_lost(&mut self, now: Instant, sent_at: Instant, bytes: u32, is_probe: bool) {
        if sent_at < self.since {
            return;
        }
        let is_oversized = bytes > self.longest.into();
        self.has_oversized |= is_oversized;
        self.is_probe_lost |= is_probe && is_oversized;
        if !self.is_large(bytes) {
            self.lost = self.lost.saturating_add(1);
        } else if self.is_path_open {
            if self.rounds == 0 && self.oversized_rounds == 0 {
                (self.arrived, self.lost) = (1, 0);
            }
            let rounds = if is_oversized { &mut self.oversized_rounds } else { &mut self.rounds };
            *rounds = rounds.saturating_add(1);
            (self.since, self.is_path_open) = (now, false);
            if is_oversized && u32::from(self.oversized_rounds) > LOST_ROUNDS && !self.is_probe_lost {
                self.probe = PathProbe::Large(u16::try_from(bytes).unwrap_or(u16::MAX));
            }
        }
    }

    /// A timeout after which a datagram of so many bytes counts as lost.
    pub(super) fn on_timeout(&mut self, bytes: u32) {
        if !self.is_large(bytes) {
            return;
        }
        if let Some(left) = self.until_probe.checked_sub(1) {
            self.until_probe = left;
        } else {
            self.probe = PathProbe::Large(u16::try_from(bytes).unwrap_or(u16::MAX));
        }
    }

    pub(super) const fn has_probe(&self) -> bool {
        !matches!(self.probe, PathProbe::None)
    }

    /// Takes the probe that is due.
    pub(super) const fn take_probe(&mut self) -> PathProbe {
        let next = match self.probe {
            PathProbe::Large(_) => PathProbe::Small,
            PathProbe::None | PathProbe::Small => PathProbe::None,
        };
        core::mem::replace(&mut self.probe, next)
    }

    /// What the path certainly does not carry.
    #[inline]
    pub(super) fn detected(&self) -> Option<BlackHole> {
        let is_suspected = u32::from(self.rounds.max(self.oversized_rounds)) > LOST_ROUNDS;
        if is_suspected { self.certain() } else { None }
    }

    /// One small datagram more is taken for lost: a few that arrived say little.
    #[cold]
    fn certain(&self) -> Option<BlackHole> {
        let lost = u32::from(self.lost) + 1;
        let small = u32::from(self.arrived) + lost;
        let is_certain =
            |rounds: u8| u32::from(rounds).saturating_sub(LOST_ROUNDS) * small >= ROUNDS_BY_CHANCE * lost;
        if is_certain(self.rounds) {
            return Some(BlackHole::Large);
        }
        (self.is_probe_lost && is_certain(self.oversized_rounds)).then_some(BlackHole::Oversized)
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

    fn detector() -> BlackHoleDetector {
        let mut detector = BlackHoleDetector::default();
        detector.begin(at(0), Some(1_000), 1_400);
        detector
    }

    /// A small datagram arrives; a large one is sent at the same time and lost.
    fn lose_large(detector: &mut BlackHoleDetector, sent_at: u64) {
        detector.on_acked(at(sent_at), 1_000, false);
        detector.on_lost(at(sent_at + 1), at(sent_at), 1_400, false);
    }

    #[test]
    fn large_datagrams_that_are_lost_beside_small_ones_that_arrive_are_a_black_hole() {
        let mut detector = detector();
        for round in 1..=ROUNDS {
            assert!(detector.detected().is_none());
            lose_large(&mut detector, 10 * round);
        }
        assert_eq!(detector.detected(), Some(BlackHole::Large));
    }

    #[test]
    fn where_many_small_datagrams_arrive_fewer_losses_suffice() {
        let mut detector = detector();
        for round in 1..=u64::from(LOST_ROUNDS) + 1 {
            assert!(detector.detected().is_none());
            (0..9).for_each(|millis| detector.on_acked(at(10 * round + millis), 20, false));
            lose_large(&mut detector, 10 * round + 9);
        }
        assert_eq!(detector.detected(), Some(BlackHole::Large));
    }

    #[test]
    fn where_small_datagrams_are_lost_too_more_losses_are_needed() {
        let mut detector = detector();
        for round in 1..=2 * ROUNDS {
            assert!(detector.detected().is_none());
            detector.on_lost(at(10 * round), at(10 * round), 1_000, false);
            lose_large(&mut detector, 10 * round);
        }
    }

    /// A receiver without memory for the parts of a message refuses them, and takes probes.
    #[test]
    fn longer_datagrams_are_a_black_hole_only_if_a_probe_as_long_is_lost() {
        let mut detector = detector();
        for round in 1..=100 {
            detector.on_acked(at(10 * round), 1_000, false);
            detector.on_lost(at(10 * round + 1), at(10 * round), 1_460, false);
            assert_eq!(detector.detected(), None);
        }
        assert_eq!(detector.take_probe(), PathProbe::Large(1_460));
        detector.on_acked(at(2_000), 1_000, false);
        detector.on_lost(at(2_001), at(2_000), 1_460, true);
        assert_eq!(detector.detected(), Some(BlackHole::Oversized));
        detector.on_acked(at(2_002), 1_460, true);
        assert_eq!(detector.detected(), None);
    }

    #[test]
    fn a_large_datagram_that_arrives_ends_the_suspicion() {
        let mut detector = detector();
        (1..ROUNDS).for_each(|round| lose_large(&mut detector, 10 * round));
        detector.on_acked(at(5), 1_001, false);
        (100..100 + ROUNDS).for_each(|round| {
            assert!(detector.detected().is_none());
            lose_large(&mut detector, 10 * round);
        });
        assert_eq!(detector.detected(), Some(BlackHole::Large));
    }

    #[test]
    fn an_outage_counts_once() {
        let mut detector = detector();
        for outage in [0, 1_000, 2_000] {
            detector.on_acked(at(outage), 50, false);
            (1..100)
                .for_each(|sent_at| detector.on_lost(at(outage + 100), at(outage + sent_at), 1_400, false));
        }
        assert!(detector.detected().is_none());
    }

    #[test]
    fn without_a_smaller_mtu_nothing_is_detected() {
        let mut detector = BlackHoleDetector::default();
        detector.begin(at(0), None, 548);
        (1..100).for_each(|round| lose_large(&mut detector, 10 * round));
        assert!(detector.detected().is_none());
    }
}
