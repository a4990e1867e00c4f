//! Congestion control by queueing delay: a standing queue is congestion, a loss without one need not be.
//!
//! `docs/congestion.md` describes the algorithm and the measurements behind its constants.

use super::new_reno::{AckSample, INITIAL_DATAGRAMS, Loss, LossTrigger, MAX_DATAGRAMS, MIN_DATAGRAMS, Pace};
use crate::serial::U24;
use crate::time::Instant;

/// The lower bound of the queueing delay that counts as too long, a quarter of the base RTT, in microseconds.
const MIN_QUEUE_DELAY: u32 = 5_000;
/// Its upper bound.
const MAX_QUEUE_DELAY: u32 = 12_000;
/// The same over a stream, whose base RTT it is: while the stream repeats what was lost, everything waits for an RTT.
const MIN_STREAM_DELAY: u32 = 30_000;
const MAX_STREAM_DELAY: u32 = 200_000;
/// Datagrams in a window whose queueing delay is limited just so. A larger window has a lower limit and is reduced earlier,
/// which lets flows become equal that started at different times (flow scaling of Swift, SIGCOMM 2020).
const SCALED_FROM_DATAGRAMS: u32 = 128;
/// By how much each doubling of the window lowers the limit, and each halving raises it, in per cent.
const PERCENT_PER_DOUBLING: u32 = 25;
/// By how much at most.
const MAX_SCALING_PERCENT: u32 = 50;
/// How long a lowest RTT counts as the base RTT, in microseconds: routes change.
const BASE_RTT_WINDOW: u32 = 10_000_000;
/// The same while another flow keeps the queue long and so hides the base RTT. LEDBAT keeps minutes of it (RFC 6817).
const CONTESTED_BASE_RTT_WINDOW: u32 = 60_000_000;
/// How long a peer waits for more datagrams before it acknowledges, in microseconds (docs/raknet.md#acknowledgements).
const ACK_DELAY: u32 = 10_000;
/// Datagrams in flight of which so many arrive that the peer does not wait: it acknowledges eight at once, and of this many
/// half may be lost.
const UNDELAYED_DATAGRAMS: u32 = 16;
/// RTT samples after which slow start may end within a round.
const MIN_ROUND_SAMPLES: u8 = 4;
/// Datagrams, acknowledged or lost, of which a loss rate is computed.
const LOSS_RATE_SAMPLE: u32 = 128;
/// A loss rate of 100 %: rates are counted in 65,536ths.
const ALL: u32 = 1 << 16;
/// The highest loss rate that counts as random. Losses of datagrams and of acknowledgements add up in it.
const MAX_RANDOM_LOSS: u32 = ALL / 5;
/// A loss rate this far above one and a half times the random one is congestion.
const LOSS_MARGIN: u32 = ALL / 16;
/// The same during slow start.
const SLOW_START_LOSS_MARGIN: u32 = ALL / 3;
/// Loss rates after which the lowest one of the rates before is forgotten.
const LOSS_RATE_WINDOW: u8 = 8;
/// Reductions in a row without effect on the queue after which another flow must be what keeps it long.
const MAX_FUTILE_REDUCTIONS: u8 = 3;
/// Those that count already when competitive state ends: the other flow is probably still there.
const FUTILE_REDUCTIONS_AFTER_COMPETING: u8 = 2;
/// Rounds in competitive state after which steady state is tried again: more than `NewReno` needs from loss to loss.
const MAX_COMPETITIVE_ROUNDS: u8 = 128;
/// Rounds in competitive state after which the window grows by one datagram more in each round.
const ROUNDS_PER_STEP: u8 = 10;
/// The largest part of the window by which it grows in a round of competitive state.
const MAX_COMPETITIVE_GROWTH: u32 = 16;

/// The part of the window that a mark of ECN leaves, in per cent: such a mark reports a short queue (RFC 8511 section 3.1).
const ECN_PERCENT_LEFT: u32 = 85;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// The window doubles each round until a queue forms.
    #[default]
    SlowStart,
    /// The window grows until a queue forms, and then shrinks by what stands in it.
    Steady,
    /// Another flow keeps the queue long: the window grows until something is lost or the queue becomes shorter.
    Competitive,
}

/// What was measured in the round trip that is under way.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    since: Instant,
    /// The acknowledgement of this number ends the round.
    end: U24,
    /// The lowest RTT, in microseconds; zero before the first sample.
    min_rtt: u32,
    samples: u8,
    /// Bytes that were acknowledged.
    bytes: u32,
    /// Whether the sender ever used half of the window. If not, the round says nothing about the window.
    window_used: bool,
}

/// A window of bytes that follows the queueing delay.
///
/// Once a round it compares the lowest RTT of the round with the base RTT. The difference is the delay of the queue that
/// stands at the bottleneck; the lowest RTT counts because an acknowledgement may wait. Losses without a queue are random
/// unless their rate rises: a random loss rate does not depend on what this end sends.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DelayBased {
    state: State,
    window: u32,
    /// Bytes of a full datagram.
    datagram: u32,
    round: Round,
    /// The lowest RTTs of this and of the last `BASE_RTT_WINDOW`.
    min_rtts: [u32; 2],
    min_rtt_since: Instant,
    /// How long the other peer waits before it acknowledges, smoothed.
    ack_span: u32,
    /// Datagrams by which the window grows in the next round.
    step: u32,
    /// Bytes acknowledged since the last loss rate was computed.
    acked_bytes: u32,
    /// Bytes lost since then.
    lost_bytes: u32,
    /// The lowest loss rates of this and of the last `LOSS_RATE_WINDOW`.
    min_loss_rates: [u32; 2],
    /// Loss rates in this window so far.
    loss_rates: u8,
    /// Whether the other peer has ever reported a loss with a negative acknowledgement.
    peer_sends_nacks: bool,
    /// Reductions in a row after which half of the longest queue that is tolerated was still there.
    futile_reductions: u8,
    /// The window that there would be without them.
    window_before: u32,
    /// Rounds in competitive state.
    competitive_rounds: u8,
    /// The longest delay of the queue in them, in microseconds.
    max_competitive_queue: u32,
    /// Whether a stream carries the datagrams.
    is_over_stream: bool,
    /// When the window was last reduced: a round that began before saw the larger window.
    reduced_at: Instant,
}

impl DelayBased {
    pub(super) fn new(datagram: u32) -> Self {
        Self { window: INITIAL_DATAGRAMS * datagram, datagram, step: 1, ..Self::default() }
    }

    pub(super) const fn window(&self) -> u32 {
        self.window
    }

    /// The smallest window, in bytes.
    pub(super) const fn min_window(&self) -> u32 {
        MIN_DATAGRAMS * self.datagram
    }

    /// Changes the length of a full datagram.
    pub(super) const fn set_datagram(&mut self, datagram: u32) {
        self.datagram = datagram;
    }

    /// Cuts a window that has grown beyond a bound, which a larger one could never use.
    pub(super) fn bound_window(&mut self, max: u32) {
        self.window = self.window.min(max.max(self.min_window()));
    }

    pub(super) const fn pace(&self) -> Pace {
        match self.state {
            State::SlowStart => Pace::SlowStart,
            State::Steady | State::Competitive => Pace::Steady,
        }
    }

    pub(super) fn on_ack(&mut self, sample: &AckSample) {
        self.update_base_rtt(sample);
        self.is_over_stream = sample.is_over_stream;
        self.ack_span = self.ack_span - self.ack_span / 8 + sample.ack_span / 8;
        let round = &mut self.round;
        round.min_rtt = if round.min_rtt == 0 { sample.rtt } else { round.min_rtt.min(sample.rtt) };
        round.samples = round.samples.saturating_add(1);
        round.bytes = round.bytes.saturating_add(sample.bytes);
        self.acked_bytes = self.acked_bytes.saturating_add(sample.bytes);
        if sample.in_flight.saturating_mul(2) >= self.window {
            self.round.window_used = true;
            if self.state == State::SlowStart {
                self.grow(sample.bytes);
            }
        }
        if !sample.newest.is_older_than(self.round.end) {
            self.on_round_end(sample);
            self.round = Round { since: sample.now, end: sample.next, ..Round::default() };
        } else if self.state == State::SlowStart
            && self.round.samples == MIN_ROUND_SAMPLES
            && self.queue_delay() > self.slow_start_queue_delay(sample)
        {
            self.leave_slow_start(sample);
        }
    }

    fn update_base_rtt(&mut self, sample: &AckSample) {
        let window = if self.is_contested() { CONTESTED_BASE_RTT_WINDOW } else { BASE_RTT_WINDOW };
        let [current, last] = &mut self.min_rtts;
        if *current == 0 || sample.now.micros_since(self.min_rtt_since) > window {
            *last = if *current == 0 { sample.rtt } else { *current };
            *current = sample.rtt;
            self.min_rtt_since = sample.now;
        }
        *current = (*current).min(sample.rtt);
    }

    /// Whether another flow may be what keeps the queue long.
    const fn is_contested(&self) -> bool {
        self.futile_reductions > 0
    }

    /// The RTT of the path without a queue, in microseconds.
    fn base_rtt(&self) -> u32 {
        let [current, last] = self.min_rtts;
        current.min(last)
    }

    /// The delay of the standing queue, in microseconds.
    fn queue_delay(&self) -> u32 {
        self.round.min_rtt.saturating_sub(self.base_rtt())
    }

    /// The queueing delay that is too long. The other peer's wait before it acknowledges looks like a queue.
    fn max_queue_delay(&self) -> u32 {
        if self.is_over_stream {
            return self.base_rtt().clamp(MIN_STREAM_DELAY, MAX_STREAM_DELAY);
        }
        let tolerated = (self.base_rtt() / 4).clamp(MIN_QUEUE_DELAY, MAX_QUEUE_DELAY);
        let scaled = tolerated / 100 * self.queue_delay_percent();
        scaled.max(self.ack_span - self.ack_span / 4)
    }

    /// What part of the limit of the queueing delay holds for this window.
    fn queue_delay_percent(&self) -> u32 {
        let datagrams = self.window / self.datagram.max(1);
        let (window, reference) = (log2_in_16ths(datagrams), log2_in_16ths(SCALED_FROM_DATAGRAMS));
        let change = (window.abs_diff(reference) * PERCENT_PER_DOUBLING / 16).min(MAX_SCALING_PERCENT);
        if window > reference { 100 - change } else { 100 + change }
    }

    /// The queueing delay that ends slow start.
    fn slow_start_queue_delay(&self, sample: &AckSample) -> u32 {
        let is_delayed = sample.in_flight < UNDELAYED_DATAGRAMS * self.datagram;
        self.max_queue_delay() / 2 + if is_delayed { ACK_DELAY } else { 0 }
    }

    /// A window that has grown. It stays within what may be in flight: a larger one would never count as used.
    fn grown(&self, window: u32, bytes: u32) -> u32 {
        window.saturating_add(bytes).min(MAX_DATAGRAMS * self.datagram)
    }

    fn grow(&mut self, bytes: u32) {
        self.window = self.grown(self.window, bytes);
    }

    fn reduce(&mut self, window: u32, now: Instant) {
        self.window = window.max(self.min_window());
        self.reduced_at = now;
        self.step = 1;
    }

    /// Sets the window to what the path carried in this round.
    fn leave_slow_start(&mut self, sample: &AckSample) {
        let elapsed = sample.now.micros_since(self.round.since).max(self.base_rtt());
        let carried = scale(self.round.bytes, self.base_rtt(), elapsed);
        self.end_slow_start();
        self.reduce(carried.max(self.window / 4), sample.now);
    }

    const fn end_slow_start(&mut self) {
        self.state = State::Steady;
        // Slow start causes losses itself, so the random loss rate is found from here on.
        self.min_loss_rates = [ALL; 2];
        self.loss_rates = 0;
    }

    fn on_round_end(&mut self, sample: &AckSample) {
        let (queue, limit) = (self.queue_delay(), self.max_queue_delay());
        self.grow_window_before();
        if self.round.since <= self.reduced_at {
            (self.acked_bytes, self.lost_bytes) = (0, 0);
            return;
        }
        let congestion_loss = self.congestion_loss();
        if self.state == State::Steady && queue < limit / 2 {
            self.futile_reductions = 0;
        }
        if !self.round.window_used {
            return;
        }
        match self.state {
            State::SlowStart if congestion_loss.is_some() || queue > self.slow_start_queue_delay(sample) => {
                self.leave_slow_start(sample)
            }
            State::SlowStart => {}
            State::Steady if queue > limit => self.drain_queue(queue, sample.now),
            State::Steady => {
                if let Some(rate) = congestion_loss {
                    let left = scale(self.window, ALL - rate, ALL);
                    self.reduce(self.bounded_reduction(left), sample.now);
                } else {
                    self.step = self.next_step(queue, limit);
                    self.grow(self.step * self.datagram);
                }
            }
            State::Competitive => self.compete(queue),
        }
    }

    /// The window without the reductions grows as `NewReno`'s does, while it is used. One of few datagrams does not grow: it may
    /// fill the queue alone.
    fn grow_window_before(&mut self) {
        let is_used = self.is_contested() && self.round.window_used;
        if is_used && self.window_before >= 2 * MIN_DATAGRAMS * self.datagram {
            self.window_before = self.grown(self.window_before, self.datagram);
        }
    }

    /// Lets the window grow until the queue becomes shorter. `NewReno` shortens it only after a loss, so another flow of this
    /// kind may be trying whether it becomes empty, which takes all of them at once.
    fn compete(&mut self, queue: u32) {
        self.competitive_rounds = self.competitive_rounds.saturating_add(1);
        self.max_competitive_queue = self.max_competitive_queue.max(queue);
        let step = u32::from(1 + self.competitive_rounds / ROUNDS_PER_STEP) * self.datagram;
        self.grow(step.min(self.window / MAX_COMPETITIVE_GROWTH).max(self.datagram));
        if queue < self.max_competitive_queue / 4 * 3 || self.competitive_rounds > MAX_COMPETITIVE_ROUNDS {
            self.enter_steady();
        }
    }

    /// By how many datagrams the window grows next: faster while the queue is short, and slower near its limit. Beside another
    /// flow it takes no more than `NewReno` would.
    const fn next_step(&self, queue: u32, limit: u32) -> u32 {
        if self.is_contested() {
            1
        } else if queue < limit / 2 {
            self.step + 1
        } else if queue <= limit / 4 * 3 {
            self.step
        } else {
            self.step.div_ceil(2)
        }
    }

    /// The window after a reduction to `wanted`: by an eighth at least, and by half at most.
    fn bounded_reduction(&self, wanted: u32) -> u32 {
        wanted.max(self.window / 2).min(self.window - self.window / 8)
    }

    fn enter_steady(&mut self) {
        self.state = State::Steady;
        self.futile_reductions = FUTILE_REDUCTIONS_AFTER_COMPETING;
        self.window_before = self.window;
        self.step = 1;
    }

    /// Reduces the window by what stands in the queue. If that did not help before, another flow fills the queue.
    fn drain_queue(&mut self, queue: u32, now: Instant) {
        if !self.is_contested() {
            self.window_before = self.window;
        }
        self.futile_reductions += 1;
        if self.futile_reductions > MAX_FUTILE_REDUCTIONS {
            self.state = State::Competitive;
            self.competitive_rounds = 0;
            self.max_competitive_queue = 0;
            self.window = self.window.max(self.window_before);
            self.reduced_at = now;
            return;
        }
        let base = self.base_rtt();
        let window = scale(self.window, base, base.saturating_add(queue).max(1));
        self.reduce(self.bounded_reduction(window + self.datagram), now);
    }

    /// The loss rate, if it is higher than random losses explain.
    fn congestion_loss(&mut self) -> Option<u32> {
        let total = self.acked_bytes.saturating_add(self.lost_bytes);
        if total < LOSS_RATE_SAMPLE * self.datagram {
            return None;
        }
        let rate = scale(ALL, self.lost_bytes, total);
        (self.acked_bytes, self.lost_bytes) = (0, 0);
        let random = self.random_loss();
        self.note_loss_rate(rate);
        if rate > random + LOSS_MARGIN / 2 {
            self.step = 1;
        }
        let margin = match self.state {
            State::SlowStart => SLOW_START_LOSS_MARGIN,
            // Losses while there is a queue are hardly random.
            State::Steady | State::Competitive if self.queue_delay() > MAX_QUEUE_DELAY => LOSS_MARGIN / 4,
            State::Steady | State::Competitive => LOSS_MARGIN,
        };
        (rate > random + random / 2 + margin).then_some(rate)
    }

    /// The random loss rate: the lowest recent one, since losses that this end causes come on top of it.
    fn random_loss(&self) -> u32 {
        let [current, last] = self.min_loss_rates;
        current.min(last).min(MAX_RANDOM_LOSS)
    }

    fn note_loss_rate(&mut self, rate: u32) {
        let [current, last] = &mut self.min_loss_rates;
        *current = (*current).min(rate);
        self.loss_rates += 1;
        if self.loss_rates >= LOSS_RATE_WINDOW {
            self.loss_rates = 0;
            *last = core::mem::replace(current, rate);
        }
    }

    pub(super) fn on_lost(&mut self, loss: &Loss) {
        let bytes = match loss.trigger {
            LossTrigger::Nack => {
                self.peer_sends_nacks = true;
                loss.bytes
            }
            // A peer that sends negative acknowledgements would have sent one: the acknowledgement was lost, rather.
            LossTrigger::TimeThreshold | LossTrigger::Timeout if self.peer_sends_nacks => loss.bytes / 4,
            LossTrigger::TimeThreshold | LossTrigger::Timeout => loss.bytes,
        };
        self.lost_bytes = self.lost_bytes.saturating_add(bytes);
        if self.state == State::Competitive && loss.sent_at > self.reduced_at {
            self.reduce(self.window / 2, loss.now);
            self.enter_steady();
        }
    }

    /// A mark of ECN reports a queue before anything is lost. One of a datagram that was sent before the last reduction reports the
    /// queue that this has answered.
    pub(super) fn on_ecn_mark(&mut self, now: Instant, sent_at: Instant) {
        if sent_at <= self.reduced_at {
            return;
        }
        self.reduce(scale(self.window, ECN_PERCENT_LEFT, 100), now);
        match self.state {
            State::SlowStart => self.end_slow_start(),
            State::Steady => {}
            State::Competitive => self.enter_steady(),
        }
    }

    pub(super) const fn on_spurious_loss(&mut self, _ordinal: u32) {
        self.lost_bytes = self.lost_bytes.saturating_sub(self.datagram);
    }

    pub(super) fn on_persistent_congestion(&mut self) {
        self.state = State::SlowStart;
        self.window = self.min_window();
        self.futile_reductions = 0;
    }
}

/// The binary logarithm of a number in sixteenths, with straight lines between the powers of two; that of 16 for smaller ones.
fn log2_in_16ths(number: u32) -> u32 {
    let number = number.max(16);
    let exponent = number.ilog2();
    16 * exponent + (number >> (exponent - 4)) % 16
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

    /// A path: its time, and the next number.
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
                self.acknowledge(first.plus(number), queue, window);
            }
            self.delay_based.window()
        }

        /// An acknowledgement of one datagram.
        fn acknowledge(&mut self, newest: U24, queue: u32, in_flight: u32) {
            self.delay_based.on_ack(&AckSample {
                now: self.now,
                bytes: DATAGRAM,
                bytes_after_recovery: DATAGRAM,
                in_flight,
                newest,
                next: self.next,
                rtt: EMPTY + queue,
                ack_span: 0,
                is_over_stream: false,
            });
        }

        /// The same for an application that sends two datagrams in each round trip, which are acknowledged.
        fn quiet_rounds(&mut self, rounds: u32, queue: u32) {
            for _ in 0..rounds {
                self.now = self.now.plus_micros(EMPTY + queue);
                let newest = self.next.plus(1);
                self.next = self.next.plus(2);
                self.acknowledge(newest, queue, 2 * DATAGRAM);
            }
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
        assert_eq!(path.delay_based.state, State::Competitive);
        let after = path.round(30_000, 1);
        assert!(after <= contested / 2 + DATAGRAM, "{after} after {contested}");
        assert_eq!(path.delay_based.state, State::Steady);
    }

    /// The flow's own reductions bring the queue below the limit, and what stays of it is the other flow's.
    #[test]
    fn a_queue_that_becomes_shorter_but_not_short_is_not_this_flows_alone() {
        let mut path = Path::new();
        path.rounds(4, 0);
        path.rounds(2, 10_000);
        let before = path.rounds(3, 0);
        for _ in 0..4 {
            path.rounds(2, 25_000);
            path.rounds(2, 9_000);
        }
        assert_eq!(path.delay_based.state, State::Competitive);
        assert!(path.delay_based.window() >= before, "{} after {before}", path.delay_based.window());
    }

    /// A window that is not used says nothing of what another flow has left to this one.
    #[test]
    fn a_connection_with_little_to_send_claims_no_window() {
        let mut path = Path::new();
        path.rounds(4, 0);
        path.rounds(2, 10_000);
        path.rounds(4, 25_000);
        assert!(path.delay_based.is_contested());
        // The first one ends a round in which the window was used.
        path.quiet_rounds(1, 9_000);
        let before = path.delay_based.window_before;
        path.quiet_rounds(1_000, 9_000);
        assert_eq!(path.delay_based.window_before, before);
        path.quiet_rounds(1, 0);
        assert!(!path.delay_based.is_contested(), "a short queue shows that nobody else fills it");
    }

    #[test]
    fn the_largest_window_is_one_that_can_be_used() {
        let mut path = Path::new();
        let largest = MAX_DATAGRAMS * DATAGRAM;
        assert_eq!(path.rounds(12, 0), largest);
        let after = path.rounds(3, 30_000);
        assert!(after < largest / 4 * 3, "{after}");
    }

    #[test]
    fn reductions_that_leave_a_short_queue_are_no_competition() {
        let mut path = Path::new();
        path.rounds(4, 0);
        path.rounds(5, 10_000);
        for _ in 0..8 {
            path.rounds(2, 25_000);
            path.rounds(2, 3_000);
            assert_eq!(path.delay_based.state, State::Steady);
        }
    }

    #[test]
    fn competition_ends_when_others_shorten_the_queue() {
        let mut path = Path::new();
        path.rounds(9, 10_000);
        path.rounds(20, 60_000);
        assert_eq!(path.delay_based.state, State::Competitive);
        path.rounds(2, 48_000);
        assert_eq!(path.delay_based.state, State::Competitive);
        path.rounds(2, 40_000);
        assert_eq!(path.delay_based.state, State::Steady);
    }

    #[test]
    fn the_window_grows_faster_the_longer_nothing_is_lost() {
        let mut path = Path::new();
        path.rounds(9, 0);
        path.rounds(20, 60_000);
        assert_eq!(path.delay_based.state, State::Competitive);
        let slow = path.round(60_000, 0);
        let slow = path.round(60_000, 0) - slow;
        let fast = path.rounds(40, 60_000);
        let fast = path.round(60_000, 0) - fast;
        assert!(fast > 2 * slow, "{fast}, at first {slow}");
    }

    #[test]
    fn persistent_congestion_begins_slow_start_again() {
        let mut path = Path::new();
        path.rounds(6, 0);
        path.delay_based.on_persistent_congestion();
        assert_eq!((path.delay_based.window(), path.delay_based.pace()), (8 * DATAGRAM, Pace::SlowStart));
    }
}
