//! Delay-based congestion control: a standing queue indicates congestion; a loss without a queue may be random.
//!
//! `docs/congestion.md` describes the algorithm and the measurements behind its constants.

use super::new_reno::{AckSample, INITIAL_DATAGRAMS, Loss, LossTrigger, MAX_DATAGRAMS, MIN_DATAGRAMS, Pace};
use crate::serial::U24;
use crate::time::Instant;

/// The minimum of the queueing delay limit in microseconds; the limit is a quarter of the base RTT.
const MIN_QUEUE_DELAY: u32 = 5_000;
/// The maximum of the queueing delay limit in microseconds.
const MAX_QUEUE_DELAY: u32 = 12_000;
/// The minimum queueing delay limit over a stream in microseconds; the limit is then the whole base RTT.
///
/// While a stream retransmits, all data is delayed by an RTT.
const MIN_STREAM_DELAY: u32 = 30_000;
const MAX_STREAM_DELAY: u32 = 200_000;
/// The window size in datagrams at which the queueing delay limit is not scaled.
///
/// A larger window has a lower limit and is reduced earlier, so that flows that started at different times converge
/// (flow scaling of Swift, SIGCOMM 2020).
const SCALED_FROM_DATAGRAMS: u32 = 128;
/// The change of the limit in per cent: a decrease for each doubling of the window, an increase for each halving.
const PERCENT_PER_DOUBLING: u32 = 25;
/// The maximum change of the limit in per cent.
const MAX_SCALING_PERCENT: u32 = 50;
/// The time in microseconds for which a minimum RTT counts as base RTT. It is limited because routes change.
const BASE_RTT_WINDOW: u32 = 10_000_000;
/// [`BASE_RTT_WINDOW`] while a competing flow keeps the queue filled and hides the base RTT, in microseconds.
///
/// LEDBAT keeps base delays for minutes (RFC 6817).
const CONTESTED_BASE_RTT_WINDOW: u32 = 60_000_000;
/// The acknowledgement delay of a peer in microseconds (docs/raknet.md#acknowledgements).
const ACK_DELAY: u32 = 10_000;
/// The number of datagrams in flight from which the peer is assumed not to delay acknowledgements.
///
/// The remote peer acknowledges every eighth datagram immediately; twice eight allows for 50 % loss.
const UNDELAYED_DATAGRAMS: u32 = 16;
/// The minimum number of RTT samples in a round that can end slow start.
const MIN_ROUND_SAMPLES: u8 = 4;
/// The number of acknowledged and lost datagrams in a loss rate sample.
const LOSS_RATE_SAMPLE: u32 = 128;
/// A loss rate of 100 %, in units of 1/65,536.
const ALL: u32 = 1 << 16;
/// The maximum loss rate that is treated as random.
///
/// The rate includes lost acknowledgements.
const MAX_RANDOM_LOSS: u32 = ALL / 5;
/// The margin above 1.5 times the random loss rate from which losses indicate congestion.
const LOSS_MARGIN: u32 = ALL / 16;
/// [`LOSS_MARGIN`] during slow start.
const SLOW_START_LOSS_MARGIN: u32 = ALL / 3;
/// The number of loss rate samples in a window; minima are kept for the current and the previous window.
const LOSS_RATE_WINDOW: u8 = 8;
/// The number of consecutive reductions without effect on the queue from which a competing flow is assumed.
const MAX_FUTILE_REDUCTIONS: u8 = 3;
/// The initial number of futile reductions after competitive state: the competing flow is probably still active.
const FUTILE_REDUCTIONS_AFTER_COMPETING: u8 = 2;
/// The maximum number of consecutive rounds in competitive state; steady state follows.
///
/// It is more than the number of rounds between two losses of a competing NewReno flow.
const MAX_COMPETITIVE_ROUNDS: u8 = 128;
/// The number of rounds in competitive state after which the growth per round increases by one datagram.
const ROUNDS_PER_STEP: u8 = 10;
/// The reciprocal of the maximum growth per round in competitive state.
const MAX_COMPETITIVE_GROWTH: u32 = 16;

/// The percentage of the window that remains after an ECN mark.
///
/// A mark indicates a short queue (RFC 8511 section 3.1), so the reduction is smaller than for a loss.
const ECN_PERCENT_LEFT: u32 = 85;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// The window doubles each round until a queue builds up.
    #[default]
    SlowStart,
    /// The window grows until a queue builds up, and is then reduced by the size of the queue.
    Steady,
    /// A competing flow keeps the queue filled: the window grows until a loss occurs or the queue shrinks.
    Competitive,
}

/// The measurements of the current round trip.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    since: Instant,
    /// The round ends when this datagram is acknowledged.
    end: U24,
    /// The minimum RTT in microseconds; 0 before the first sample.
    min_rtt: u32,
    samples: u8,
    /// Bytes acknowledged in this round.
    bytes: u32,
    /// Set once at least half of the window was in flight in this round.
    ///
    /// Otherwise the round does not measure the window.
    window_used: bool,
}

/// A congestion window in bytes, controlled by the queueing delay.
///
/// Once per round it compares the minimum RTT of the round with the base RTT. The difference is the delay of the
/// standing queue at the bottleneck; the minimum excludes delayed acknowledgements. Losses without a queue are random
/// unless their rate rises, because a random loss rate does not depend on the sending rate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DelayBased {
    state: State,
    window: u32,
    /// The size of a full datagram in bytes.
    datagram: u32,
    round: Round,
    /// The minimum RTTs of the current and the previous `BASE_RTT_WINDOW`.
    min_rtts: [u32; 2],
    min_rtt_since: Instant,
    /// The smoothed acknowledgement delay of the peer, in microseconds.
    ack_span: u32,
    /// The growth of the window for the next round, in datagrams.
    step: u32,
    /// Bytes acknowledged since the last loss rate sample.
    acked_bytes: u32,
    /// Bytes lost since the last loss rate sample.
    lost_bytes: u32,
    /// The minimum loss rates of the current and the previous `LOSS_RATE_WINDOW`.
    min_loss_rates: [u32; 2],
    /// The number of loss rate samples in the current window.
    loss_rates: u8,
    /// Set once the peer has sent a negative acknowledgement.
    peer_sends_nacks: bool,
    /// The number of consecutive reductions after which the queueing delay was still at least half of the limit.
    futile_reductions: u8,
    /// The window that this flow would have without the futile reductions.
    window_before: u32,
    /// The number of rounds in competitive state.
    competitive_rounds: u8,
    /// The maximum queueing delay in competitive state, in microseconds.
    max_competitive_queue: u32,
    /// Set if the carrier is a stream.
    is_over_stream: bool,
    /// The time of the last reduction. A round that began earlier measured the larger window.
    reduced_at: Instant,
}

impl DelayBased {
    pub(super) fn new(datagram: u32) -> Self {
        Self { window: INITIAL_DATAGRAMS * datagram, datagram, step: 1, ..Self::default() }
    }

    pub(super) const fn window(&self) -> u32 {
        self.window
    }

    /// Returns the minimum window in bytes.
    pub(super) const fn min_window(&self) -> u32 {
        MIN_DATAGRAMS * self.datagram
    }

    /// Changes the size of a full datagram.
    pub(super) const fn set_datagram(&mut self, datagram: u32) {
        self.datagram = datagram;
    }

    /// Clamps the window to `max`; the excess could never be used.
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

    /// Returns true if a competing flow may be keeping the queue filled.
    const fn is_contested(&self) -> bool {
        self.futile_reductions > 0
    }

    /// Returns the RTT without queueing delay, in microseconds.
    fn base_rtt(&self) -> u32 {
        let [current, last] = self.min_rtts;
        current.min(last)
    }

    /// Returns the queueing delay of this round, in microseconds.
    fn queue_delay(&self) -> u32 {
        self.round.min_rtt.saturating_sub(self.base_rtt())
    }

    /// Returns the queueing delay limit in microseconds.
    ///
    /// A delayed acknowledgement looks like a queueing delay, so the limit is at least three quarters of the
    /// acknowledgement delay.
    fn max_queue_delay(&self) -> u32 {
        if self.is_over_stream {
            return self.base_rtt().clamp(MIN_STREAM_DELAY, MAX_STREAM_DELAY);
        }
        let tolerated = (self.base_rtt() / 4).clamp(MIN_QUEUE_DELAY, MAX_QUEUE_DELAY);
        let scaled = tolerated / 100 * self.queue_delay_percent();
        scaled.max(self.ack_span - self.ack_span / 4)
    }

    /// Returns the scale of the queueing delay limit for this window, in per cent.
    fn queue_delay_percent(&self) -> u32 {
        let datagrams = self.window / self.datagram.max(1);
        let (window, reference) = (log2_in_16ths(datagrams), log2_in_16ths(SCALED_FROM_DATAGRAMS));
        let change = (window.abs_diff(reference) * PERCENT_PER_DOUBLING / 16).min(MAX_SCALING_PERCENT);
        if window > reference { 100 - change } else { 100 + change }
    }

    /// Returns the queueing delay that ends slow start, in microseconds.
    fn slow_start_queue_delay(&self, sample: &AckSample) -> u32 {
        let is_delayed = sample.in_flight < UNDELAYED_DATAGRAMS * self.datagram;
        self.max_queue_delay() / 2 + if is_delayed { ACK_DELAY } else { 0 }
    }

    /// Returns `window + bytes`, limited to the maximum number of bytes in flight.
    ///
    /// A larger window could never be used in full.
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

    /// Sets the window to the bytes acknowledged in this round, and ends slow start.
    fn leave_slow_start(&mut self, sample: &AckSample) {
        let elapsed = sample.now.micros_since(self.round.since).max(self.base_rtt());
        let carried = scale(self.round.bytes, self.base_rtt(), elapsed);
        self.end_slow_start();
        self.reduce(carried.max(self.window / 4), sample.now);
    }

    const fn end_slow_start(&mut self) {
        self.state = State::Steady;
        // Slow start itself causes losses, so the random loss rate is measured only from here on.
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

    /// Grows `window_before` by one datagram, as NewReno would, if the window was used.
    ///
    /// A window of few datagrams does not grow, because this flow may have filled the queue alone.
    fn grow_window_before(&mut self) {
        let is_used = self.is_contested() && self.round.window_used;
        if is_used && self.window_before >= 2 * MIN_DATAGRAMS * self.datagram {
            self.window_before = self.grown(self.window_before, self.datagram);
        }
    }

    /// Grows the window until the queue shrinks.
    ///
    /// A NewReno flow shrinks the queue only after a loss. If the queue shrinks without a loss, the competing flow is
    /// probably delay-based and tries to drain the queue. That succeeds only if all flows drain it at the same time.
    fn compete(&mut self, queue: u32) {
        self.competitive_rounds = self.competitive_rounds.saturating_add(1);
        self.max_competitive_queue = self.max_competitive_queue.max(queue);
        let step = u32::from(1 + self.competitive_rounds / ROUNDS_PER_STEP) * self.datagram;
        self.grow(step.min(self.window / MAX_COMPETITIVE_GROWTH).max(self.datagram));
        if queue < self.max_competitive_queue / 4 * 3 || self.competitive_rounds > MAX_COMPETITIVE_ROUNDS {
            self.enter_steady();
        }
    }

    /// Returns the growth in datagrams: faster while the queue is short, slower near the limit.
    ///
    /// With a competing flow the growth is no faster than that of NewReno.
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

    /// Clamps a reduction to `wanted` to between one eighth and one half of the window.
    fn bounded_reduction(&self, wanted: u32) -> u32 {
        wanted.max(self.window / 2).min(self.window - self.window / 8)
    }

    fn enter_steady(&mut self) {
        self.state = State::Steady;
        self.futile_reductions = FUTILE_REDUCTIONS_AFTER_COMPETING;
        self.window_before = self.window;
        self.step = 1;
    }

    /// Reduces the window by the size of the queue.
    ///
    /// If earlier reductions had no effect, a competing flow is assumed.
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

    /// Returns the loss rate if it is too high to be random.
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
            // While there is a queue, losses are unlikely to be random.
            State::Steady | State::Competitive if self.queue_delay() > MAX_QUEUE_DELAY => LOSS_MARGIN / 4,
            State::Steady | State::Competitive => LOSS_MARGIN,
        };
        (rate > random + random / 2 + margin).then_some(rate)
    }

    /// Returns the random loss rate: the recent minimum, because congestion only adds losses.
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
            // A peer that sends negative acknowledgements would have sent one for a lost datagram, so the
            // acknowledgement was probably lost instead.
            LossTrigger::TimeThreshold | LossTrigger::Timeout if self.peer_sends_nacks => loss.bytes / 4,
            LossTrigger::TimeThreshold | LossTrigger::Timeout => loss.bytes,
        };
        self.lost_bytes = self.lost_bytes.saturating_add(bytes);
        if self.state == State::Competitive && loss.sent_at > self.reduced_at {
            self.reduce(self.window / 2, loss.now);
            self.enter_steady();
        }
    }

    /// Handles an ECN mark, which indicates a queue before losses occur.
    ///
    /// A mark on a datagram sent before the last reduction is ignored: the reduction has already reacted to that
    /// queue.
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

/// Returns the binary logarithm in sixteenths, linearly interpolated between powers of two.
///
/// Numbers below 16 are treated as 16.
fn log2_in_16ths(number: u32) -> u32 {
    let number = number.max(16);
    let exponent = number.ilog2();
    16 * exponent + (number >> (exponent - 4)) % 16
}

/// Returns `whole * numerator / denominator`. Precondition: `numerator <= denominator`.
fn scale(whole: u32, numerator: u32, denominator: u32) -> u32 {
    let product = u64::from(whole) * u64::from(numerator);
    u32::try_from(product / u64::from(denominator.max(1))).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATAGRAM: u32 = 1_000;
    const EMPTY: u32 = 50_000;

    /// A simulated path: its clock and the next datagram number.
    struct Path {
        delay_based: DelayBased,
        now: Instant,
        next: U24,
    }

    impl Path {
        fn new() -> Self {
            Self { delay_based: DelayBased::new(DATAGRAM), now: Instant::ZERO, next: U24::new(0) }
        }

        /// Simulates a round trip with a full window, `lost` losses and a queue of `queue` microseconds.
        ///
        /// Returns the new window.
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

        /// Acknowledges one datagram.
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

        /// Simulates round trips of an application-limited flow that sends two datagrams in each.
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
    fn slow_start_doubles_until_a_queue_forms() {
        let mut path = Path::new();
        assert_eq!(path.round(0, 0), 20 * DATAGRAM);
        assert_eq!(path.round(0, 0), 40 * DATAGRAM);
        assert_eq!(path.delay_based.pace(), Pace::SlowStart);
        let window = path.rounds(2, 10_000);
        assert_eq!(path.delay_based.pace(), Pace::Steady);
        assert!((10 * DATAGRAM..80 * DATAGRAM).contains(&window), "{window}");
    }

    #[test]
    fn random_losses_do_not_shrink_the_window() {
        let mut path = Path::new();
        for _ in 0..6 {
            let before = path.delay_based.window();
            let after = path.round(0, before / DATAGRAM / 10);
            assert!(after > before, "window {after} after {before}");
        }
    }

    #[test]
    fn a_rising_loss_rate_reduces_the_window() {
        let mut path = Path::new();
        path.rounds(4, 0);
        path.rounds(2, 10_000);
        let before = path.rounds(10, 0);
        let after = (0..4).map(|_| path.round(0, path.delay_based.window() / DATAGRAM / 3)).min();
        assert!(after < Some(before * 7 / 8), "window {after:?} after {before}");
    }

    #[test]
    fn the_window_shrinks_by_the_size_of_the_queue() {
        let mut path = Path::new();
        path.rounds(4, 0);
        path.rounds(2, 10_000);
        let before = path.rounds(3, 0);
        let after = path.rounds(2, 25_000);
        assert!(after.abs_diff(before * 2 / 3) <= 8 * DATAGRAM, "window {after} after {before}");
    }

    #[test]
    fn a_persistent_queue_leads_to_competitive_state_until_a_loss() {
        let mut path = Path::new();
        path.rounds(4, 0);
        path.rounds(2, 10_000);
        let before = path.rounds(3, 0);
        let contested = path.rounds(20, 30_000);
        assert!(contested >= before, "window {contested} after {before}");
        assert_eq!(path.delay_based.state, State::Competitive);
        let after = path.round(30_000, 1);
        assert!(after <= contested / 2 + DATAGRAM, "window {after} after {contested}");
        assert_eq!(path.delay_based.state, State::Steady);
    }

    /// This flow's reductions bring the queueing delay below the limit; the competing flow causes the remaining delay.
    #[test]
    fn a_queue_that_reductions_shorten_but_do_not_drain_leads_to_competitive_state() {
        let mut path = Path::new();
        path.rounds(4, 0);
        path.rounds(2, 10_000);
        let before = path.rounds(3, 0);
        for _ in 0..4 {
            path.rounds(2, 25_000);
            path.rounds(2, 9_000);
        }
        assert_eq!(path.delay_based.state, State::Competitive);
        assert!(path.delay_based.window() >= before, "window {} after {before}", path.delay_based.window());
    }

    /// A flow that does not use its window cannot measure the capacity that a competing flow leaves.
    #[test]
    fn an_application_limited_flow_does_not_compete() {
        let mut path = Path::new();
        path.rounds(4, 0);
        path.rounds(2, 10_000);
        path.rounds(4, 25_000);
        assert!(path.delay_based.is_contested());
        // The first application-limited round trip still ends a round in which the window was used.
        path.quiet_rounds(1, 9_000);
        let before = path.delay_based.window_before;
        path.quiet_rounds(1_000, 9_000);
        assert_eq!(path.delay_based.window_before, before);
        path.quiet_rounds(1, 0);
        assert!(!path.delay_based.is_contested(), "a short queue is not contested");
    }

    #[test]
    fn the_window_does_not_exceed_8192_datagrams() {
        let mut path = Path::new();
        let largest = MAX_DATAGRAMS * DATAGRAM;
        assert_eq!(path.rounds(12, 0), largest);
        let after = path.rounds(3, 30_000);
        assert!(after < largest / 4 * 3, "{after}");
    }

    #[test]
    fn a_short_queue_after_each_reduction_keeps_steady_state() {
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
    fn competitive_state_ends_when_the_queue_shortens() {
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
    fn competitive_growth_accelerates_without_losses() {
        let mut path = Path::new();
        path.rounds(9, 0);
        path.rounds(20, 60_000);
        assert_eq!(path.delay_based.state, State::Competitive);
        let slow = path.round(60_000, 0);
        let slow = path.round(60_000, 0) - slow;
        let fast = path.rounds(40, 60_000);
        let fast = path.round(60_000, 0) - fast;
        assert!(fast > 2 * slow, "a growth of {fast}, at first {slow}");
    }

    #[test]
    fn persistent_congestion_restarts_slow_start() {
        let mut path = Path::new();
        path.rounds(6, 0);
        path.delay_based.on_persistent_congestion();
        assert_eq!((path.delay_based.window(), path.delay_based.pace()), (8 * DATAGRAM, Pace::SlowStart));
    }
}
