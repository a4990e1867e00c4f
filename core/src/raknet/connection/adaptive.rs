//! A window that follows the queue: it tells congestion, which makes datagrams wait, from chance, which does not.

use super::congestion::{Acknowledged, Evidence, INITIAL_DATAGRAMS, Loss, MIN_DATAGRAMS, Pace};
use crate::serial::U24;
use crate::time::Instant;

/// No window is larger than this; it only keeps the arithmetic from overflowing.
const MAX_WINDOW: u32 = 1 << 28;
/// The queue that is too long, in microseconds: a quarter of the empty path's round trip, within these bounds.
const MIN_QUEUE: u32 = 5_000;
const MAX_QUEUE: u32 = 12_000;
/// How long the lowest round-trip time counts, in microseconds; paths change.
const MEMORY: u32 = 10_000_000;
/// Samples after which a round of the search can be judged before it is over.
const SAMPLES: u8 = 4;
/// Datagrams whose fate is known before a share of losses means anything.
const FATES: u32 = 128;
/// The largest share of losses that is taken for chance, in 65,536ths: of datagrams and their acknowledgements together.
const MAX_CHANCE: u32 = (1 << 16) / 5;
/// What may be lost beyond one and a half times the share of chance before it is congestion, and during the search.
const MARGIN: u32 = (1 << 16) / 16;
const SEARCH_MARGIN: u32 = (1 << 16) / 3;
/// Judgements after which an old share is forgotten.
const JUDGED: u8 = 8;
/// Reductions in a row that do not shorten the queue: somebody else keeps it long.
const FUTILE: u8 = 3;
/// Rounds against a competitor after which it is time to see whether it is still there.
const CONTEST: u8 = 32;

/// What the window is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Doubling each round until a queue forms.
    #[default]
    Search,
    /// Keeping the queue short: growing until it forms, then giving up as much as stands in it.
    Follow,
    /// Sharing the path with somebody who keeps the queue long: as the classic window does.
    Contest,
}

/// What a round trip brought.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    since: Instant,
    /// The number whose acknowledgement ends it.
    end: U24,
    /// The lowest round-trip time, in microseconds; zero before the first sample.
    lowest: u32,
    samples: u8,
    bytes: u32,
    /// Whether the window was the limit, so that the round says something of it.
    used: Used,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Used {
    #[default]
    No,
    Yes,
}

/// A window of bytes.
///
/// Each round it compares the lowest round-trip time of the round with the lowest of the last seconds. The difference
/// is the queue that stands on the path; the lowest, because acknowledgements may wait. Without a queue losses are
/// chance, unless their share rises: chance does not depend on what we send. `docs/congestion.md` says more.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Adaptive {
    phase: Phase,
    window: u32,
    datagram: u32,
    round: Round,
    /// Lowest round-trip times of this and of the last `MEMORY`.
    base: [u32; 2],
    base_since: Instant,
    /// How long the other peer waits before it acknowledges.
    span: u32,
    /// Datagrams by which the window grows in the next round.
    step: u32,
    /// Datagrams' fates that are not judged yet, in bytes.
    arrived: u32,
    lost: u32,
    /// Least shares of losses of these and of the last `JUDGED` judgements, in 65,536ths.
    chance: [u32; 2],
    judged: u8,
    /// The best evidence of losses that the other peer gives.
    evidence: Evidence,
    /// Reductions in a row, and the window before the first of them.
    futile: u8,
    before: u32,
    rounds: u8,
    /// What was sent before saw the window before its last reduction.
    reduced_at: Instant,
}

impl Adaptive {
    pub(super) fn new(datagram: u32) -> Self {
        Self { window: INITIAL_DATAGRAMS * datagram, datagram, step: 1, ..Self::default() }
    }

    pub(super) const fn window(&self) -> u32 {
        self.window
    }

    pub(super) const fn pace(&self) -> Pace {
        match self.phase {
            Phase::Search => Pace::Searching,
            Phase::Follow | Phase::Contest => Pace::Steady,
        }
    }

    pub(super) fn on_acknowledged(&mut self, news: &Acknowledged) {
        self.note_base(news);
        self.span = self.span - self.span / 8 + news.span / 8;
        let round = &mut self.round;
        round.lowest = if round.lowest == 0 { news.round_trip } else { round.lowest.min(news.round_trip) };
        round.samples = round.samples.saturating_add(1);
        round.bytes = round.bytes.saturating_add(news.bytes);
        self.arrived = self.arrived.saturating_add(news.bytes);
        if news.in_flight.saturating_mul(2) >= self.window {
            self.round.used = Used::Yes;
            if self.phase == Phase::Search {
                self.grow(news.bytes);
            }
        }
        if !news.newest.is_older_than(self.round.end) {
            self.judge(news);
            self.round = Round { since: news.now, end: news.next, ..Round::default() };
        } else if self.phase == Phase::Search
            && self.round.samples == SAMPLES
            && self.queue() > self.limit() / 2
        {
            self.settle(news);
        }
    }

    fn note_base(&mut self, news: &Acknowledged) {
        let [current, last] = &mut self.base;
        if *current == 0 || news.now.micros_since(self.base_since) > MEMORY {
            *last = if *current == 0 { news.round_trip } else { *current };
            *current = news.round_trip;
            self.base_since = news.now;
        }
        *current = (*current).min(news.round_trip);
    }

    /// The round-trip time of the empty path, in microseconds.
    fn base(&self) -> u32 {
        let [current, last] = self.base;
        current.min(last)
    }

    /// How long the queue is, in microseconds.
    fn queue(&self) -> u32 {
        self.round.lowest.saturating_sub(self.base())
    }

    /// The queue that is too long. What the other peer waits before it acknowledges looks like one.
    fn limit(&self) -> u32 {
        (self.base() / 4).clamp(MIN_QUEUE, MAX_QUEUE).max(self.span - self.span / 4)
    }

    fn grow(&mut self, bytes: u32) {
        self.window = self.window.saturating_add(bytes).min(MAX_WINDOW);
    }

    fn reduce(&mut self, window: u32, now: Instant) {
        self.window = window.max(MIN_DATAGRAMS * self.datagram);
        self.reduced_at = now;
        self.step = 1;
    }

    /// Ends the search with what the path carried in the round.
    fn settle(&mut self, news: &Acknowledged) {
        let took = news.now.micros_since(self.round.since).max(self.base());
        let carried = part(self.round.bytes, self.base(), took);
        self.phase = Phase::Follow;
        self.reduce(carried.max(self.window / 4), news.now);
    }

    fn judge(&mut self, news: &Acknowledged) {
        let (queue, limit) = (self.queue(), self.limit());
        // What was sent before the last reduction says nothing of it.
        if self.round.since <= self.reduced_at {
            (self.arrived, self.lost) = (0, 0);
            return;
        }
        let crowded = self.judge_losses();
        if self.round.used == Used::No {
            return;
        }
        match self.phase {
            Phase::Search if crowded.is_some() || queue > limit / 2 => self.settle(news),
            Phase::Search => {}
            Phase::Follow if queue > limit => self.shorten(queue, news.now),
            Phase::Follow => {
                self.futile = 0;
                if let Some(share) = crowded {
                    let left = part(self.window, (1 << 16) - share, 1 << 16);
                    self.reduce(left.max(self.window / 2).min(self.window - self.window / 8), news.now);
                } else {
                    self.step = if queue < limit / 2 { self.step + 1 } else { self.step.div_ceil(2) };
                    self.grow(self.step * self.datagram);
                }
            }
            Phase::Contest => {
                self.rounds = self.rounds.saturating_add(1);
                self.grow(self.datagram);
                if queue < limit / 2 || self.rounds > CONTEST {
                    self.follow();
                }
            }
        }
    }

    fn follow(&mut self) {
        self.phase = Phase::Follow;
        self.futile = 0;
        self.step = 1;
    }

    /// Gives up as much of the window as stands in the queue, unless that has been in vain.
    fn shorten(&mut self, queue: u32, now: Instant) {
        if self.futile == 0 {
            self.before = self.window;
        }
        self.futile += 1;
        if self.futile > FUTILE {
            self.phase = Phase::Contest;
            self.rounds = 0;
            self.window = self.window.max(self.before);
            self.reduced_at = now;
            return;
        }
        let window = part(self.window, self.base(), self.base().saturating_add(queue).max(1));
        self.reduce((window + self.datagram).max(self.window / 2).min(self.window - self.window / 8), now);
    }

    /// The share of losses, in 65,536ths, if more is lost than by chance.
    fn judge_losses(&mut self) -> Option<u32> {
        let fates = self.arrived.saturating_add(self.lost);
        if fates < FATES * self.datagram {
            return None;
        }
        let share = part(1 << 16, self.lost, fates);
        (self.arrived, self.lost) = (0, 0);
        let usual = self.chance();
        self.note_chance(share);
        if share > usual + MARGIN / 2 {
            self.step = 1;
        }
        let margin = match self.phase {
            Phase::Search => SEARCH_MARGIN,
            // A queue and losses together are no chance.
            Phase::Follow | Phase::Contest if self.queue() > MAX_QUEUE => MARGIN / 4,
            Phase::Follow | Phase::Contest => MARGIN,
        };
        (share > usual + usual / 2 + margin).then_some(share)
    }

    /// The share of losses that is chance: the least of late, since ours come on top of it.
    fn chance(&self) -> u32 {
        let [current, last] = self.chance;
        current.min(last).min(MAX_CHANCE)
    }

    fn note_chance(&mut self, share: u32) {
        let [current, last] = &mut self.chance;
        *current = (*current).min(share);
        self.judged += 1;
        if self.judged >= JUDGED {
            self.judged = 0;
            *last = core::mem::replace(current, share);
        }
    }

    pub(super) fn on_lost(&mut self, loss: &Loss) {
        let weight = match (self.evidence, loss.evidence) {
            // Rather the acknowledgement was lost, or the other peer would miss the datagram as it missed others.
            (Evidence::Missed, Evidence::Overtaken) => loss.bytes / 4,
            (Evidence::Overtaken, _) | (_, Evidence::Missed) => loss.bytes,
        };
        if loss.evidence == Evidence::Missed {
            self.evidence = Evidence::Missed;
        }
        self.lost = self.lost.saturating_add(weight);
        if self.phase == Phase::Contest && loss.sent_at >= self.reduced_at {
            self.follow();
            self.reduce(self.window / 2, loss.now);
        }
    }

    pub(super) const fn on_found(&mut self) {
        self.lost = self.lost.saturating_sub(self.datagram);
    }

    pub(super) fn on_silence(&mut self) {
        self.phase = Phase::Search;
        self.window = MIN_DATAGRAMS * self.datagram;
        self.futile = 0;
    }
}

/// `whole * numerator / denominator`, for a numerator that is not larger.
fn part(whole: u32, numerator: u32, denominator: u32) -> u32 {
    let product = u64::from(whole) * u64::from(numerator);
    u32::try_from(product / u64::from(denominator.max(1))).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATAGRAM: u32 = 1_000;
    const EMPTY: u32 = 50_000;

    /// A path: its clock, and the next number.
    struct Path {
        adaptive: Adaptive,
        now: Instant,
        next: U24,
    }

    impl Path {
        fn new() -> Self {
            Self { adaptive: Adaptive::new(DATAGRAM), now: Instant::ZERO, next: U24::new(0) }
        }

        /// A round trip in which a window of datagrams leaves, of which `lost` are lost, and a queue of so many
        /// microseconds stands. The window after it.
        fn round(&mut self, queue: u32, lost: u32) -> u32 {
            let window = self.adaptive.window();
            let sent_at = self.now;
            self.now = self.now.plus_micros(EMPTY + queue);
            let first = self.next;
            self.next = self.next.plus(window / DATAGRAM);
            for ordinal in 0..lost {
                let (now, evidence) = (self.now, Evidence::Missed);
                self.adaptive.on_lost(&Loss { now, sent_at, bytes: DATAGRAM, ordinal, evidence });
            }
            for number in lost..window / DATAGRAM {
                self.adaptive.on_acknowledged(&Acknowledged {
                    now: self.now,
                    bytes: DATAGRAM,
                    in_flight: window,
                    newest: first.plus(number),
                    next: self.next,
                    round_trip: EMPTY + queue,
                    span: 0,
                });
            }
            self.adaptive.window()
        }

        fn rounds(&mut self, rounds: u32, queue: u32) -> u32 {
            (0..rounds).map(|_| self.round(queue, 0)).last().unwrap_or_default()
        }
    }

    #[test]
    fn the_search_doubles_until_a_queue_forms() {
        let mut path = Path::new();
        assert_eq!(path.round(0, 0), 20 * DATAGRAM);
        assert_eq!(path.round(0, 0), 40 * DATAGRAM);
        assert_eq!(path.adaptive.pace(), Pace::Searching);
        let window = path.rounds(2, 10_000);
        assert_eq!(path.adaptive.pace(), Pace::Steady);
        assert!((10 * DATAGRAM..80 * DATAGRAM).contains(&window), "{window}");
    }

    #[test]
    fn chance_costs_nothing() {
        let mut path = Path::new();
        for _ in 0..6 {
            let before = path.adaptive.window();
            let after = path.round(0, before / DATAGRAM / 10);
            assert!(after > before, "{after} after {before}");
        }
    }

    #[test]
    fn losses_that_grow_are_congestion() {
        let mut path = Path::new();
        path.rounds(4, 0);
        path.rounds(2, 10_000);
        let before = path.rounds(10, 0);
        let after = (0..4).map(|_| path.round(0, path.adaptive.window() / DATAGRAM / 3)).min();
        assert!(after < Some(before * 7 / 8), "{after:?} after {before}");
    }

    #[test]
    fn the_window_gives_up_what_stands_in_the_queue() {
        let mut path = Path::new();
        path.rounds(4, 0);
        path.rounds(2, 10_000);
        let before = path.rounds(3, 0);
        let after = path.rounds(2, 25_000);
        assert!(after.abs_diff(before * 2 / 3) <= 8 * DATAGRAM, "{after} after {before}");
    }

    #[test]
    fn a_queue_that_stays_is_shared_until_something_is_lost() {
        let mut path = Path::new();
        path.rounds(4, 0);
        path.rounds(2, 10_000);
        let before = path.rounds(3, 0);
        let contested = path.rounds(20, 30_000);
        assert!(contested >= before, "{contested} after {before}");
        assert_eq!(path.adaptive.phase, Phase::Contest);
        let after = path.round(30_000, 1);
        assert!(after <= contested / 2 + DATAGRAM, "{after} after {contested}");
        assert_eq!(path.adaptive.phase, Phase::Follow);
    }

    #[test]
    fn silence_begins_the_search_anew() {
        let mut path = Path::new();
        path.rounds(6, 0);
        path.adaptive.on_silence();
        assert_eq!((path.adaptive.window(), path.adaptive.pace()), (8 * DATAGRAM, Pace::Searching));
    }
}
