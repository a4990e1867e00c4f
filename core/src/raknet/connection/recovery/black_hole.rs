//! Black hole detection: datagrams above a size are lost while smaller ones arrive (RFC 8899 section 4.3).

use crate::time::Instant;

/// The number of consecutive rounds with a lost large datagram after which the MTU is reduced.
///
/// It applies if no large datagram arrives and no small one is lost. RFC 8899 section 5.1.2 uses three probes. Here
/// the datagrams are not dedicated probes, and their acknowledgements may be lost too.
const LOST_ROUNDS: u32 = 4;
/// The number of additional rounds if all small datagrams are lost. At a lower loss rate, it is proportionally smaller.
///
/// Random losses affect large and small datagrams alike. With this number, fewer than one in 5,000 large datagrams
/// starts a series that is mistaken for a black hole, at random losses of up to 60 % in both directions together.
const ROUNDS_BY_CHANCE: u32 = 24;

/// The number of consecutive timeouts that are tolerated before the path is probed, because an acknowledgement may have
/// been lost.
const FIRST_PROBE: u8 = 1;
/// [`FIRST_PROBE`] after a probe has arrived, because then the path carries large datagrams.
///
/// It is high, to avoid disturbing a receiver that drops large messages because its memory is full.
const NEXT_PROBE: u8 = 32;

/// The number of consecutive losses of middle-sized datagrams that are tolerated; the next loss triggers a probe of a
/// larger size.
///
/// Middle-sized datagrams fit the next smaller MTU, but not the MTU below it. Forged NACKs cannot cause this many
/// losses in one round trip, and later acknowledgements reset the count.
const FIRST_MIDDLE_PROBE: u8 = 16;
/// [`FIRST_MIDDLE_PROBE`] after a probe has arrived, because then the receiver may lack memory.
const NEXT_MIDDLE_PROBE: u8 = u8::MAX;
/// The weight of a timeout in the count of middle-sized losses. Once the path has been probed, every loss has this
/// weight.
///
/// Without this weight, detection would take too long when little is sent.
const COUNTED_LOSSES: u8 = 4;

/// The class of datagrams that the path does not carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum BlackHole {
    /// Datagrams that exceed the next smaller MTU.
    Large,
    /// Datagrams with a part that was split before the MTU was reduced, even with IP fragmentation.
    Oversized,
}

/// A probe that shows which sizes the path carries.
///
/// It consists of pings, which take no memory at the receiver, so a receiver without free memory acknowledges it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) enum PathProbe {
    #[default]
    None,
    /// A probe as long as a lost datagram, in bytes; a small probe follows it.
    Large(u16),
    Small,
}

/// Detects black holes, as the module describes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BlackHoleDetector {
    /// The size above which a datagram is large, in bytes.
    ///
    /// It equals `longest` if there is no smaller MTU.
    above: u16,
    /// The maximum datagram size at the MTU, in bytes.
    ///
    /// Longer datagrams contain parts that were split before the MTU was reduced.
    longest: u16,
    /// The size above which a datagram would be large at the next smaller MTU, in bytes.
    ///
    /// At the minimum MTU it equals `above`.
    middle: u16,
    /// The number of further losses of middle-sized datagrams that are tolerated before the path is probed.
    until_middle_probe: u8,
    /// Set if the path was probed since a middle-sized or large datagram was last acknowledged.
    is_middle_probed: bool,
    /// The number of rounds in which a large datagram was lost, since a large datagram was last acknowledged.
    rounds: u8,
    /// The number of rounds in which an oversized datagram was lost, since an oversized datagram was last acknowledged.
    oversized_rounds: u8,
    /// The number of small datagrams acknowledged since the first counted round.
    arrived: u8,
    /// The number of small datagrams lost since the first counted round.
    lost: u8,
    /// Datagrams sent before this time belong to rounds already counted.
    since: Instant,
    /// Set once a small datagram sent after the last counted round was acknowledged. Only then does the next loss of a
    /// large datagram count.
    ///
    /// An outage of the whole path therefore counts as one round.
    is_path_open: bool,
    /// Set if an oversized datagram was lost, and no oversized datagram was acknowledged since.
    has_oversized: bool,
    /// The size of the longest datagram acknowledged so far, in bytes.
    longest_arrived: u16,
    /// The number of further timeouts of large datagrams that are tolerated before the path is probed.
    until_probe: u8,
    probe: PathProbe,
    /// The size in bytes of the shortest large probe that was lost since a datagram of that size was acknowledged; 0
    /// for none.
    ///
    /// A receiver that lacks memory for large messages acknowledges probes, so a lost probe proves a black hole.
    lost_probe: u16,
}

impl BlackHoleDetector {
    /// Restarts for a new MTU.
    ///
    /// `longest` is the maximum datagram size at that MTU, and `smaller` are the maximum datagram sizes at the next
    /// smaller MTUs.
    pub(super) fn begin(&mut self, now: Instant, smaller: [Option<usize>; 2], longest: usize) {
        let bytes = |bytes| u16::try_from(bytes).unwrap_or(u16::MAX);
        let [above, middle] = smaller;
        let above = above.unwrap_or(longest);
        *self = Self {
            above: bytes(above),
            longest: bytes(longest),
            middle: bytes(middle.unwrap_or(above)),
            until_middle_probe: FIRST_MIDDLE_PROBE,
            since: now,
            longest_arrived: self.longest_arrived,
            until_probe: FIRST_PROBE,
            ..Self::default()
        };
    }

    /// Returns true if a datagram is large or oversized.
    fn is_large(&self, bytes: u32) -> bool {
        bytes > self.above.into()
    }

    /// Returns true if a datagram is not large, but would be at the next smaller MTU.
    fn is_middle(&self, bytes: u32) -> bool {
        !self.is_large(bytes) && bytes > self.middle.into()
    }

    /// Probes the path with the shortest large datagram.
    const fn probe_above(&mut self) {
        self.probe = PathProbe::Large(self.above.saturating_add(1));
    }

    /// Counts losses of middle-sized datagrams: a path that carries none of them carries no large datagrams either.
    fn count_middle(&mut self, losses: u8) {
        if let Some(left) = self.until_middle_probe.checked_sub(losses) {
            self.until_middle_probe = left;
        } else {
            (self.until_middle_probe, self.is_middle_probed) = (FIRST_MIDDLE_PROBE, true);
            self.probe_above();
        }
    }

    /// Returns the size of the longest datagram acknowledged so far, in bytes.
    pub(super) const fn longest_arrived(&self) -> u16 {
        self.longest_arrived
    }

    /// Handles the acknowledgement of a datagram sent at `sent_at`.
    pub(super) fn on_acked(&mut self, sent_at: Instant, bytes: u32, is_probe: bool) {
        if bytes > self.longest_arrived.into() {
            self.longest_arrived = u16::try_from(bytes).unwrap_or(u16::MAX);
        }
        if bytes > self.middle.into() {
            if self.is_middle_probed && self.is_middle(bytes) && self.rounds > 0 {
                // The last probe may have been lost in an outage, so another one is sent.
                self.probe_above();
            }
            self.until_middle_probe = if is_probe { NEXT_MIDDLE_PROBE } else { FIRST_MIDDLE_PROBE };
            self.is_middle_probed = false;
        }
        if self.is_large(bytes) {
            self.until_probe = if is_probe { NEXT_PROBE } else { FIRST_PROBE };
            if bytes >= self.lost_probe.into() {
                self.lost_probe = 0;
            }
            if bytes > self.longest.into() {
                (self.oversized_rounds, self.has_oversized) = (0, false);
            }
            self.rounds = 0;
            if !self.has_oversized {
                (self.arrived, self.lost) = (0, 0);
                (self.since, self.is_path_open) = (Instant::ZERO, false);
                return;
            }
            // While an oversized datagram is suspected, an acknowledged large one counts like a small one.
        }
        if sent_at >= self.since {
            self.is_path_open = true;
            self.arrived = self.arrived.saturating_add(1);
        }
    }

    /// Handles the loss of a datagram sent at `sent_at`.
    pub(super) fn on_lost(&mut self, now: Instant, sent_at: Instant, bytes: u32, is_probe: bool) {
        // Datagrams that the path does not carry are not random losses.
        let was_middle_probed = self.is_middle_probed;
        if self.is_middle(bytes) {
            self.count_middle(if was_middle_probed { COUNTED_LOSSES } else { 1 });
        }
        if sent_at >= self.since && !(was_middle_probed && self.is_middle(bytes)) {
            self.count_lost(now, bytes);
        }
        let is_suspected = self.rounds > 0 || self.oversized_rounds > 0;
        if is_probe && is_suspected && self.is_large(bytes) {
            let bytes = u16::try_from(bytes).unwrap_or(u16::MAX);
            self.lost_probe = if self.lost_probe > 0 { self.lost_probe.min(bytes) } else { bytes };
        }
    }

    fn count_lost(&mut self, now: Instant, bytes: u32) {
        let is_oversized = bytes > self.longest.into();
        self.has_oversized |= is_oversized;
        if !self.is_large(bytes) {
            self.lost = self.lost.saturating_add(1);
        } else if self.is_path_open {
            if self.rounds == 0 && self.oversized_rounds == 0 {
                (self.arrived, self.lost) = (1, 0);
            }
            let (rounds, longest) = if is_oversized {
                (&mut self.oversized_rounds, u16::MAX)
            } else {
                (&mut self.rounds, self.longest)
            };
            *rounds = rounds.saturating_add(1);
            let needs_probe = u32::from(*rounds) >= LOST_ROUNDS && !self.is_probe_lost(longest);
            (self.since, self.is_path_open) = (now, false);
            if needs_probe {
                self.probe = PathProbe::Large(u16::try_from(bytes).unwrap_or(u16::MAX));
            }
        }
    }

    /// Returns true if a probe of at most this size was lost.
    const fn is_probe_lost(&self, longest: u16) -> bool {
        self.lost_probe > 0 && self.lost_probe <= longest
    }

    /// Handles a timeout after which a datagram of `bytes` bytes was declared lost.
    pub(super) fn on_timeout(&mut self, bytes: u32) {
        if !self.is_large(bytes) {
            if self.is_middle(bytes) {
                self.count_middle(COUNTED_LOSSES);
            }
        } else if let Some(left) = self.until_probe.checked_sub(1) {
            self.until_probe = left;
        } else {
            self.probe = PathProbe::Large(u16::try_from(bytes).unwrap_or(u16::MAX));
        }
    }

    pub(super) const fn has_probe(&self) -> bool {
        !matches!(self.probe, PathProbe::None)
    }

    /// Returns the probe that is due.
    pub(super) const fn probe(&self) -> PathProbe {
        self.probe
    }

    /// Called when the due probe was sent.
    pub(super) const fn on_probe(&mut self) {
        self.probe = match self.probe {
            PathProbe::Large(_) => PathProbe::Small,
            PathProbe::None | PathProbe::Small => PathProbe::None,
        };
    }

    /// Returns the detected black hole: large or oversized datagrams are lost. Returns `None` while that is uncertain.
    #[inline]
    pub(super) fn detected(&self) -> Option<BlackHole> {
        let is_suspected = u32::from(self.rounds.max(self.oversized_rounds)) > LOST_ROUNDS;
        if is_suspected { self.certain() } else { None }
    }

    /// Counts one additional small datagram as lost, because the loss rate of few datagrams is uncertain.
    #[cold]
    fn certain(&self) -> Option<BlackHole> {
        let lost = u32::from(self.lost) + 1;
        let small = u32::from(self.arrived) + lost;
        let is_certain =
            |rounds: u8| u32::from(rounds).saturating_sub(LOST_ROUNDS) * small >= ROUNDS_BY_CHANCE * lost;
        if self.is_probe_lost(self.longest) && is_certain(self.rounds) {
            return Some(BlackHole::Large);
        }
        let is_oversized = self.is_probe_lost(u16::MAX) && is_certain(self.oversized_rounds);
        is_oversized.then_some(BlackHole::Oversized)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of rounds before the MTU is reduced if one small datagram arrives in each.
    const ROUNDS: u64 = 7;

    fn at(millis: u64) -> Instant {
        Instant::from_micros(millis * 1_000)
    }

    fn detector() -> BlackHoleDetector {
        let mut detector = BlackHoleDetector::default();
        detector.begin(at(0), [Some(1_000), Some(500)], 1_400);
        detector
    }

    /// Simulates a round in which a small datagram arrives and a large one is lost.
    fn lose_large(detector: &mut BlackHoleDetector, sent_at: u64) {
        detector.on_acked(at(sent_at), 1_000, false);
        detector.on_lost(at(sent_at + 1), at(sent_at), 1_400, false);
    }

    /// Simulates [`lose_large`], with the loss of the probe if one is due.
    fn lose_large_and_probe(detector: &mut BlackHoleDetector, sent_at: u64) {
        lose_large(detector, sent_at);
        if let PathProbe::Large(bytes) = detector.probe() {
            detector.on_probe();
            detector.on_lost(at(sent_at + 1), at(sent_at), bytes.into(), true);
        }
    }

    #[test]
    fn losses_of_large_datagrams_are_a_black_hole_if_small_datagrams_arrive() {
        let mut detector = detector();
        for round in 1..=ROUNDS {
            assert!(detector.detected().is_none());
            lose_large_and_probe(&mut detector, 10 * round);
        }
        assert_eq!(detector.detected(), Some(BlackHole::Large));
    }

    #[test]
    fn fewer_losses_suffice_if_many_small_datagrams_arrive() {
        let mut detector = detector();
        for round in 1..=u64::from(LOST_ROUNDS) + 1 {
            assert!(detector.detected().is_none());
            (0..9).for_each(|millis| detector.on_acked(at(10 * round + millis), 20, false));
            lose_large_and_probe(&mut detector, 10 * round + 9);
        }
        assert_eq!(detector.detected(), Some(BlackHole::Large));
    }

    #[test]
    fn more_losses_are_needed_if_small_datagrams_are_lost() {
        let mut detector = detector();
        for round in 1..=2 * ROUNDS {
            assert!(detector.detected().is_none());
            detector.on_lost(at(10 * round), at(10 * round), 1_000, false);
            lose_large_and_probe(&mut detector, 10 * round);
        }
    }

    /// A receiver without memory for the parts of a message drops them, but acknowledges probes.
    #[test]
    fn oversized_losses_are_a_black_hole_only_with_a_lost_probe() {
        let mut detector = detector();
        for round in 1..=100 {
            detector.on_acked(at(10 * round), 1_000, false);
            detector.on_lost(at(10 * round + 1), at(10 * round), 1_460, false);
            assert_eq!(detector.detected(), None);
        }
        assert_eq!(detector.probe(), PathProbe::Large(1_460));
        detector.on_acked(at(2_000), 1_000, false);
        detector.on_lost(at(2_001), at(2_000), 1_460, true);
        assert_eq!(detector.detected(), Some(BlackHole::Oversized));
        detector.on_acked(at(2_002), 1_460, true);
        assert_eq!(detector.detected(), None);
    }

    /// A receiver with little memory drops large messages at this MTU, but accepts small ones.
    #[test]
    fn large_losses_are_a_black_hole_only_with_a_lost_probe() {
        let mut detector = detector();
        for round in 1..=100 {
            lose_large(&mut detector, 10 * round);
            // A probe longer than the datagrams of this MTU does not count.
            detector.on_lost(at(10 * round + 1), at(10 * round), 1_460, true);
            assert_ne!(detector.detected(), Some(BlackHole::Large));
        }
        assert_eq!(detector.probe(), PathProbe::Large(1_400));
        // The probe is sent before the round ends, and its loss is detected after the end of the round.
        lose_large(&mut detector, 2_000);
        detector.on_lost(at(2_002), at(1_999), 1_400, true);
        assert_eq!(detector.detected(), Some(BlackHole::Large));
    }

    /// While oversized datagrams are lost, an acknowledged large one counts like a small one.
    #[test]
    fn an_acknowledged_large_datagram_does_not_reset_the_count_of_oversized_losses() {
        let mut detector = detector();
        for round in 1..=20 {
            (0..3).for_each(|_| detector.on_lost(at(10 * round), at(10 * round), 1_000, false));
            detector.on_acked(at(10 * round), 1_400, false);
            detector.on_lost(at(10 * round + 1), at(10 * round), 1_460, true);
            assert_eq!(detector.detected(), None, "{round}");
        }
        // Datagrams sent before a round cannot start the next one.
        let rounds = detector.oversized_rounds;
        detector.on_acked(at(1), 1_400, false);
        detector.on_lost(at(301), at(300), 1_460, false);
        assert_eq!(detector.oversized_rounds, rounds);
    }

    /// Simulates the loss of a datagram that fits the next smaller MTU.
    fn lose_middle(detector: &mut BlackHoleDetector, sent_at: u64) {
        detector.on_acked(at(sent_at), 500, false);
        detector.on_lost(at(sent_at + 1), at(sent_at), 900, false);
    }

    #[test]
    fn losses_of_middle_sized_datagrams_trigger_a_large_probe() {
        let mut detector = detector();
        let mut probes = 0;
        for loss in 1..=200 {
            lose_middle(&mut detector, 10 * loss);
            if let PathProbe::Large(bytes) = detector.probe() {
                assert_eq!((bytes, loss > FIRST_MIDDLE_PROBE.into()), (1_001, true));
                detector.on_probe();
                detector.on_lost(at(10 * loss + 2), at(10 * loss), bytes.into(), true);
                probes += 1;
            }
            if detector.detected().is_some() {
                break;
            }
        }
        assert_eq!((detector.detected(), probes > LOST_ROUNDS), (Some(BlackHole::Large), true));
    }

    #[test]
    fn an_acknowledged_middle_sized_datagram_resets_the_count_of_losses() {
        for (bytes, is_probe, losses) in [(501, false, FIRST_MIDDLE_PROBE), (1_001, true, NEXT_MIDDLE_PROBE)]
        {
            let mut detector = detector();
            for row in 1..=3 {
                detector.on_acked(at(10_000 * row), bytes, is_probe);
                (1..=losses.into()).for_each(|loss| lose_middle(&mut detector, 10_000 * row + 10 * loss));
                assert!(!detector.has_probe(), "{bytes}");
            }
            lose_middle(&mut detector, 40_000);
            assert!(detector.has_probe(), "{bytes}");
        }
    }

    #[test]
    fn a_middle_sized_acknowledgement_after_a_lost_probe_repeats_the_probe() {
        let mut detector = detector();
        let mut loss = 1;
        while !detector.has_probe() {
            lose_middle(&mut detector, 10 * loss);
            loss += 1;
        }
        detector.on_probe();
        detector.on_probe();
        detector.on_acked(at(10 * loss), 500, false);
        detector.on_lost(at(10 * loss + 1), at(10 * loss), 1_001, true);
        assert!(!detector.has_probe());
        detector.on_acked(at(10 * loss + 2), 900, false);
        assert_eq!((detector.probe(), detector.rounds), (PathProbe::Large(1_001), 1));
        detector.on_acked(at(10 * loss + 3), 1_001, true);
        assert_eq!(detector.rounds, 0);
    }

    #[test]
    fn an_acknowledged_large_datagram_resets_the_detection() {
        let mut detector = detector();
        (1..ROUNDS).for_each(|round| lose_large_and_probe(&mut detector, 10 * round));
        detector.on_acked(at(5), 1_001, false);
        (100..100 + ROUNDS).for_each(|round| {
            assert!(detector.detected().is_none());
            lose_large_and_probe(&mut detector, 10 * round);
        });
        assert_eq!(detector.detected(), Some(BlackHole::Large));
    }

    /// A probe stays due until `on_probe` is called, because memory or the congestion window may delay it.
    #[test]
    fn an_unsent_probe_stays_due() {
        let mut detector = detector();
        (0..=FIRST_PROBE).for_each(|_| detector.on_timeout(1_400));
        assert_eq!([detector.probe(), detector.probe()], [PathProbe::Large(1_400); 2]);
        detector.on_probe();
        assert_eq!([detector.probe(), detector.probe()], [PathProbe::Small; 2]);
        detector.on_probe();
        assert!(!detector.has_probe());
    }

    #[test]
    fn an_outage_counts_as_one_round() {
        let mut detector = detector();
        for outage in [0, 1_000, 2_000] {
            detector.on_acked(at(outage), 50, false);
            (1..100)
                .for_each(|sent_at| detector.on_lost(at(outage + 100), at(outage + sent_at), 1_400, false));
        }
        assert!(detector.detected().is_none());
    }

    #[test]
    fn no_black_hole_is_detected_without_a_smaller_mtu() {
        let mut detector = BlackHoleDetector::default();
        detector.begin(at(0), [None; 2], 548);
        (1..100).for_each(|round| lose_large_and_probe(&mut detector, 10 * round));
        assert!(detector.detected().is_none());
    }
}
