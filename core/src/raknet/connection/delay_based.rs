//! A window that follows the queue: it tells congestion, which makes datagrams wait, from chance, which does not.

use super::congestion::{AckSample, INITIAL_DATAGRAMS, Loss, LossTrigger, MIN_DATAGRAMS, Pace};
use crate::serial::U24;
use crate::time::Instant;

/// No window is larger than this; it only keeps the arithmetic from overflowing.
const MAX_WINDOW: u32 = 1 << 28;
/// The queue that is too long, in microseconds: a quarter of the empty path's round trip, within these bounds.
const MIN_QUEUE_DELAY: u32 = 5_000;
const MAX_QUEUE_DELAY: u32 = 12_000;
/// How long the lowest round-trip time counts, in microseconds; paths change.
const BASE_RTT_WINDOW: u32 = 10_000_000;
/// Samples after which a round of the search can be loss_rates_seen before it is over.
const MIN_ROUND_SAMPLES: u8 = 4;
/// Datagrams whose fate is known before a share of losses means anything.
const MIN_LOSS_SAMPLE: u32 = 128;
/// The largest share of losses that is taken for chance, in 65,536ths: of datagrams and their acknowledgements together.
const MAX_RANDOM_LOSS: u32 = (1 << 16) / 5;
/// What may be lost beyond one and a half times the share of chance before it is congestion, and during the search.
const LOSS_MARGIN: u32 = (1 << 16) / 16;
const SLOW_START_LOSS_MARGIN: u32 = (1 << 16) / 3;
/// Judgements after which an old share is forgotten.
const LOSS_RATE_WINDOW: u8 = 8;
/// Reductions in a row that do not drain_queue the queue: somebody else keeps it long.
const MAX_FUTILE_REDUCTIONS: u8 = 3;
/// Rounds against a competitor after which it is time to see whether it is still there.
const MAX_COMPETITIVE_ROUNDS: u8 = 32;

/// What the window is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    /// Doubling each round until a queue forms.
    #[default]
    SlowStart,
    /// Keeping the queue short: growing until it forms, then giving up as much as stands in it.
    Steady,
    /// Sharing the path with somebody who keeps the queue long: as the new_reno window does.
    Competitive,
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
pub(super) struct DelayBased {
    mode: Mode,
    window: u32,
    datagram: u32,
    round: Round,
    /// Lowest round-trip times of this and of the last `BASE_RTT_WINDOW`.
    base: [u32; 2],
    base_since: Instant,
    /// How long the other peer waits before it acknowledges.
    ack_span: u32,
    /// Datagrams by which the window grows in the next round.
    step: u32,
    /// Datagrams' total that are not loss_rates_seen yet, in bytes.
    arrived: u32,
    lost: u32,
    /// Least shares of losses of these and of the last `LOSS_RATE_WINDOW` judgements, in 65,536ths.
    loss_rates: [u32; 2],
    loss_rates_seen: u8,
    /// The best trigger of losses that the other peer gives.
    trigger: LossTrigger,
    /// Reductions in a row, and the window before the first of them.
    futile: u8,
    before: u32,
    rounds: u8,
    /// What was sent before saw the window before its last reduction.
    reduced_at: Instant,
}

impl DelayBased {
    pub(super) fn new(datagram: u32) -> Self {
        Self { window: INITIAL_DATAGRAMS * datagram, datagram, step: 1, ..Self::default() }
    }

    pub(super) const fn window(&self) -> u32 {
        self.window
    }

    pub(super) const fn pace(&self) -> Pace {
        match self.mode {
            Mode::SlowStart => Pace::SlowStart,
            Mode::Steady | Mode::Competitive => Pace::Steady,
        }
    }

    pub(super) fn on_acknowledged(&mut self, sample: &AckSample) {
        self.update_base_rtt(sample);
        self.ack_span = self.ack_span - self.ack_span / 8 + sample.ack_span / 8;
        let round = &mut self.round;
        round.lowest =
            if round.lowest == 0 { sample.round_trip } else { round.lowest.min(sample.round_trip) };
        round.samples = round.samples.saturating_add(1);
        round.bytes = round.bytes.saturating_add(sample.bytes);
        self.arrived = self.arrived.saturating_add(sample.bytes);
        if sample.in_flight.saturating_mul(2) >= self.window {
            self.round.used = Used::Yes;
            if self.mode == Mode::SlowStart {
                self.grow(sample.bytes);
            }
        }
        if !sample.newest.is_older_than(self.round.end) {
            self.on_round_end(sample);
            self.round = Round { since: sample.now, end: sample.next, ..Round::default() };
        } else if self.mode == Mode::SlowStart
            && self.round.samples == MIN_ROUND_SAMPLES
            && self.queue_delay() > self.max_queue_delay() / 2
        {
            self.leave_slow_start(sample);
        }
    }

    fn update_base_rtt(&mut self, sample: &AckSample) {
        let [current, last] = &mut self.base;
        if *current == 0 || sample.now.micros_since(self.base_since) > BASE_RTT_WINDOW {
            *last = if *current == 0 { sample.round_trip } else { *current };
            *current = sample.round_trip;
            self.base_since = sample.now;
        }
        *current = (*current).min(sample.round_trip);
    }

    /// The round-trip time of the empty path, in microseconds.
    fn base_rtt(&self) -> u32 {
        let [current, last] = self.base;
        current.min(last)
    }

    /// How long the queue is, in microseconds.
    fn queue_delay(&self) -> u32 {
        self.round.lowest.saturating_sub(self.base_rtt())
    }

    /// The queue that is too long. What the other peer waits before it acknowledges looks like one.
    fn max_queue_delay(&self) -> u32 {
        (self.base_rtt() / 4).clamp(MIN_QUEUE_DELAY, MAX_QUEUE_DELAY).max(self.ack_span - self.ack_span / 4)
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
    fn leave_slow_start(&mut self, sample: &AckSample) {
        let took = sample.now.micros_since(self.round.since).max(self.base_rtt());
        let carried = scale(self.round.bytes, self.base_rtt(), took);
        self.mode = Mode::Steady;
        self.reduce(carried.max(self.window / 4), sample.now);
    }

    fn on_round_end(&mut self, sample: &AckSample) {
        let (queue, limit) = (self.queue_delay(), self.max_queue_delay());
        // What was sent before the last reduction says nothing of it.
        if self.round.since <= self.reduced_at {
            (self.arrived, self.lost) = (0, 0);
            return;
        }
        let crowded = self.congestion_loss();
        if self.round.used == Used::No {
            return;
        }
        match self.mode {
            Mode::SlowStart if crowded.is_some() || queue > limit / 2 => self.leave_slow_start(sample),
            Mode::SlowStart => {}
            Mode::Steady if queue > limit => self.drain_queue(queue, sample.now),
            Mode::Steady => {
                self.futile = 0;
                if let Some(share) = crowded {
                    let left = scale(self.window, (1 << 16) - share, 1 << 16);
                    self.reduce(left.max(self.window / 2).min(self.window - self.window / 8), sample.now);
                } else {
                    self.step = if queue < limit / 2 { self.step + 1 } else { self.step.div_ceil(2) };
                    self.grow(self.step * self.datagram);
                }
            }
            Mode::Competitive => {
                self.rounds = self.rounds.saturating_add(1);
                self.grow(self.datagram);
                if queue < limit / 2 || self.rounds > MAX_COMPETITIVE_ROUNDS {
                    self.enter_steady();
                }
            }
        }
    }

    fn enter_steady(&mut self) {
        self.mode = Mode::Steady;
        self.futile = 0;
        self.step = 1;
    }

    /// Gives up as much of the window as stands in the queue, unless that has been in vain.
    fn drain_queue(&mut self, queue: u32, now: Instant) {
        if self.futile == 0 {
            self.before = self.window;
        }
        self.futile += 1;
        if self.futile > MAX_FUTILE_REDUCTIONS {
            self.mode = Mode::Competitive;
            self.rounds = 0;
            self.window = self.window.max(self.before);
            self.reduced_at = now;
            return;
        }
        let window = scale(self.window, self.base_rtt(), self.base_rtt().saturating_add(queue).max(1));
        self.reduce((window + self.datagram).max(self.window / 2).min(self.window - self.window / 8), now);
    }

    /// The share of losses, in 65,536ths, if more is lost than by chance.
    fn congestion_loss(&mut self) -> Option<u32> {
        let total = self.arrived.saturating_add(self.lost);
        if total < MIN_LOSS_SAMPLE * self.datagram {
            return None;
        }
        let share = scale(1 << 16, self.lost, total);
        (self.arrived, self.lost) = (0, 0);
        let usual = self.random_loss();
        self.update_random_loss(share);
        if share > usual + LOSS_MARGIN / 2 {
            self.step = 1;
        }
        let margin = match self.mode {
            Mode::SlowStart => SLOW_START_LOSS_MARGIN,
            // A queue and losses together are no chance.
            Mode::Steady | Mode::Competitive if self.queue_delay() > MAX_QUEUE_DELAY => LOSS_MARGIN / 4,
            Mode::Steady | Mode::Competitive => LOSS_MARGIN,
        };
        (share > usual + usual / 2 + margin).then_some(share)
    }

    /// The share of losses that is chance: the least of late, since ours come on top of it.
    fn random_loss(&self) -> u32 {
        let [current, last] = self.loss_rates;
        current.min(last).min(MAX_RANDOM_LOSS)
    }

    fn update_random_loss(&mut self, share: u32) {
        let [current, last] = &mut self.loss_rates;
        *current = (*current).min(share);
        self.loss_rates_seen += 1;
        if self.loss_rates_seen >= LOSS_RATE_WINDOW {
            self.loss_rates_seen = 0;
            *last = core::mem::replace(current, share);
        }
    }

    pub(super) fn on_lost(&mut self, loss: &Loss) {
        let virtual_time = match (self.trigger, loss.trigger) {
            // Rather the acknowledgement was lost, or the other peer would miss the datagram as it missed others.
            (LossTrigger::Nack, LossTrigger::TimeThreshold) => loss.bytes / 4,
            (LossTrigger::TimeThreshold, _) | (_, LossTrigger::Nack) => loss.bytes,
        };
        if loss.trigger == LossTrigger::Nack {
            self.trigger = LossTrigger::Nack;
        }
        self.lost = self.lost.saturating_add(virtual_time);
        if self.mode == Mode::Competitive && loss.sent_at >= self.reduced_at {
            self.enter_steady();
            self.reduce(self.window / 2, loss.now);
        }
    }

    pub(super) const fn on_spurious_loss(&mut self) {
        self.lost = self.lost.saturating_sub(self.datagram);
    }

    pub(super) fn on_persistent_congestion(&mut self) {
        self.mode = Mode::SlowStart;
        self.window = MIN_DATAGRAMS * self.datagram;
        self.futile = 0;
    }
}

/// `whole * numerator / denominator`, for a numerator that is not larger.
fn scale(whole: u32, numerator: u32, denominator: u32) -> u32 {
    let product = u64::from(whole) * u64::from(numerator);
    u32::try_from(product / u64::from(denominator.max(1))).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATAGRAM: u32 = 1_000;
    const EMPTY: u32 = 50_000;

    /// A path: its ping_stats, and the next number.
    struct Path {
        delay_based: DelayBased,
        now: Instant,
        next: U24,
    }

    impl Path {
        fn new() -> Self {
            Self { delay_based: DelayBased::new(DATAGRAM), now: Instant::ZERO, next: U24::new(0) }
        }

        /// A round trip in which a window of datagrams leaves, of which `lost` are lost, and a queue of so many
        /// microseconds stands. The window after it.
        fn round(&mut self, queue: u32, lost: u32) -> u32 {
            let window = self.delay_based.window();
            let sent_at = self.now;
            self.now = self.now.plus_micros(EMPTY + queue);
            let first = self.next;
            self.next = self.next.plus(window / DATAGRAM);
            for ordinal in 0..lost {
                let (now, trigger) = (self.now, LossTrigger::Nack);
                self.delay_based.on_lost(&Loss { now, sent_at, bytes: DATAGRAM, ordinal, trigger });
            }
            for number in lost..window / DATAGRAM {
                self.delay_based.on_acknowledged(&AckSample {
                    now: self.now,
                    bytes: DATAGRAM,
                    in_flight: window,
                    newest: first.plus(number),
                    next: self.next,
                    round_trip: EMPTY + queue,
                    ack_span: 0,
                });
            }
            self.delay_based.window()
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
        assert_eq!(path.delay_based.pace(), Pace::SlowStart);
        let window = path.rounds(2, 10_000);
        assert_eq!(path.delay_based.pace(), Pace::Steady);
        assert!((10 * DATAGRAM..80 * DATAGRAM).contains(&window), "{window}");
    }

    #[test]
    fn chance_costs_nothing() {
        let mut path = Path::new();
        for _ in 0..6 {
            let before = path.delay_based.window();
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
        let after = (0..4).map(|_| path.round(0, path.delay_based.window() / DATAGRAM / 3)).min();
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
        assert_eq!(path.delay_based.mode, Mode::Competitive);
        let after = path.round(30_000, 1);
        assert!(after <= contested / 2 + DATAGRAM, "{after} after {contested}");
        assert_eq!(path.delay_based.mode, Mode::Steady);
    }

    #[test]
    fn silence_begins_the_search_anew() {
        let mut path = Path::new();
        path.rounds(6, 0);
        path.delay_based.on_persistent_congestion();
        assert_eq!((path.delay_based.window(), path.delay_based.pace()), (8 * DATAGRAM, Pace::SlowStart));
    }
}
