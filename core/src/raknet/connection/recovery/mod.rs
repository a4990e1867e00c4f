//! Loss recovery: datagrams in flight, their acknowledgement and their loss (RFC 9002).
//!
//! See docs/raknet.md#acknowledgements. The module also contains the RTT estimator with its timeouts
//! (docs/raknet.md#round-trip), and the history of lost datagrams that detects spurious losses.

mod acknowledgements;
mod black_hole;
mod blocked_receiver;

pub(super) use acknowledgements::AckSummary;
use black_hole::BlackHoleDetector;
pub(super) use black_hole::{BlackHole, PathProbe};
use blocked_receiver::BlockedReceiver;

use super::block_header::{BlockHeader, Context, Datagram, SendSource, SendStatus, key};
use super::congestion::{Congestion, LossTrigger};
use crate::endpoint::{Carrier, MIN_STREAM_TIMEOUT};
use crate::raknet::config::{Config, CongestionControl, SPLITTING};
use crate::raknet::shared_state::LOST_WORDS;
use crate::raknet::stats::{ConnectionStats, Count};
use crate::raknet::wire::datagram::{Record, Sizes};
use crate::serial::U24;
use crate::storage::{Block, BlockLink, List};
use crate::time::{Instant, micros};

/// The number of consecutive timeouts that indicates persistent congestion.
///
/// The first timeout only probes, and three more declare datagrams lost. RFC 9002 section 7.6 instead requires that all
/// datagrams sent within three probe timeouts were lost.
const PERSISTENT_CONGESTION_TIMEOUTS: u8 = 4;
/// True if a receiver with full memory may need messages other than the oldest lost ones.
///
/// It may need parts of a split message, or messages that messages of a higher priority have overtaken.
const MAY_BE_BLOCKED: bool = cfg!(feature = "full");
/// The number of consecutive timeouts after which the receiver may be blocked.
///
/// Lost messages then no longer take precedence.
const BLOCKED_RECEIVER_TIMEOUTS: u8 = 2;
/// The number of datagrams that the first timeout retransmits as probes (RFC 9002 section 6.2.4).
///
/// After every timeout, this many datagrams may exceed the congestion window.
const PROBES: u8 = 2;
/// The number of datagrams that probe the path MTU: a large and a small one.
const PATH_PROBES: u8 = 2;
/// The maximum time over which a window is paced, in microseconds.
///
/// When a suspended process resumes, its next RTT sample is far too long and must not slow the connection down.
const MAX_PACING_RTT: u32 = 1_000_000;
/// The divisor in the time threshold, which is 9/8 of an RTT (RFC 9002 section 6.1.2).
const TIME_THRESHOLD_DIVISOR: u32 = 8;
/// The minimum time threshold in microseconds (`kGranularity` in RFC 9002 section 6.1.2).
const GRANULARITY: u32 = 1_000;

/// Ack-eliciting datagrams in flight, and the path state derived from their acknowledgements.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossRecovery {
    in_flight: List,
    /// Datagrams declared lost, until their messages are retransmitted.
    lost: List,
    /// The number of the next datagram.
    next: U24,
    bytes_in_flight: u32,
    /// The number of consecutive timeouts.
    backoff: u8,
    /// The number of datagrams that may exceed the congestion window (RFC 9002 section 7.5).
    ///
    /// After a timeout the window may be full although nothing in flight will be acknowledged.
    probes: u8,
    /// Set while the receiver seems to be blocked, until all lost datagrams are retransmitted.
    blocked_receiver: Option<BlockedReceiver>,
    /// The tolerated delay of a reordered datagram beyond the time threshold, in 256ths of an RTT.
    reordering_window: u8,
    /// The highest acknowledged number.
    newest_acked: Option<U24>,
    recently_lost: RecentlyLost,
    /// Empty without the feature `full`.
    black_hole: [BlackHoleDetector; SPLITTING as usize],
    rtt: RttEstimator,
    congestion: Congestion,
    datagrams_lost: u64,
    datagrams_late: Count,
    datagrams_acknowledged: Count,
}

/// A datagram about to be sent.
#[derive(Clone, Copy)]
pub(super) struct SentDatagram {
    pub(super) number: U24,
    pub(super) bytes: usize,
    pub(super) source: SendSource,
}

impl LossRecovery {
    /// Selects the congestion controller for datagrams of this size. Must be called before anything is sent.
    pub(super) fn set_congestion_control(&mut self, control: CongestionControl, datagram_bytes: usize) {
        let bytes = u32::try_from(datagram_bytes).unwrap_or(u32::MAX);
        self.congestion = Congestion::new(control, bytes);
    }

    /// Restarts black hole detection for the current MTU.
    pub(super) fn watch_for_black_hole(&mut self, now: Instant, path: Sizes) {
        if let Some(black_hole) = self.black_hole.first_mut() {
            let smaller = path.smaller();
            let smaller = [smaller, smaller.and_then(Sizes::smaller)];
            black_hole.begin(now, smaller.map(|path| path.map(Sizes::data_datagram)), path.datagram());
        }
    }

    /// Returns the class of datagrams that are lost while smaller ones arrive.
    pub(super) fn black_hole(&self) -> Option<BlackHole> {
        self.black_hole.first()?.detected()
    }

    /// Returns the size of the longest datagram acknowledged so far, in bytes.
    pub(super) fn longest_arrived(&self) -> u16 {
        self.black_hole.first().map_or(0, BlackHoleDetector::longest_arrived)
    }

    pub(super) fn has_path_probe(&self) -> bool {
        self.black_hole.first().is_some_and(BlackHoleDetector::has_probe)
    }

    /// Returns the path probe that is due.
    pub(super) fn path_probe(&self) -> PathProbe {
        self.black_hole.first().map_or(PathProbe::None, BlackHoleDetector::probe)
    }

    /// Called when the due path probe was sent.
    pub(super) fn on_path_probe(&mut self) {
        if let Some(black_hole) = self.black_hole.first_mut() {
            black_hole.on_probe();
        }
    }

    /// Declares all datagrams longer than `longest` lost, because the path does not carry them.
    pub(super) fn lose_longer(&mut self, cx: &mut Context<'_, '_>, longest: usize) {
        let mut next = self.in_flight.oldest();
        while let Some(first) = next {
            next = List::newer(cx.pool, first);
            if datagram(cx, first).is_some_and(|datagram| datagram.bytes as usize > longest) {
                self.declare_lost(cx, first, None);
            }
        }
    }

    /// Returns the age in microseconds from which a datagram has certainly been received or lost.
    pub(super) fn settling_time(&self, cx: &Context<'_, '_>) -> u32 {
        self.loss_delay(cx).max(self.rtt.probe_timeout(cx.config))
    }

    /// Sets the number of the first datagram.
    pub(super) const fn start_numbers_at(&mut self, start: U24) {
        self.next = start;
    }

    /// Returns true if no datagram is in flight or awaits retransmission.
    pub(super) const fn is_empty(&self) -> bool {
        self.in_flight.is_empty() && self.lost.is_empty()
    }

    pub(super) const fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Returns true if the congestion window allows another datagram, or a probe is due.
    pub(super) fn has_room(&self) -> bool {
        self.probes > 0 || self.bytes_in_flight < self.congestion.window()
    }

    /// Returns the pacing rate in bytes per second; unlimited before the first RTT sample.
    pub(super) fn rate(&self) -> u32 {
        self.congestion.rate(self.rtt.srtt().min(MAX_PACING_RTT))
    }

    /// Returns true in slow start.
    pub(super) fn is_in_slow_start(&self) -> bool {
        self.congestion.is_in_slow_start()
    }

    pub(super) const fn has_rtt(&self) -> bool {
        self.rtt.is_known()
    }

    pub(super) const fn take_number(&mut self) -> U24 {
        let number = self.next;
        self.next = number.next();
        number
    }

    pub(super) const fn next_number(&self) -> U24 {
        self.next
    }

    /// Adds the figures of loss recovery to the statistics.
    pub(super) fn fill_stats(&self, stats: &mut ConnectionStats) {
        stats.datagrams_lost = self.datagrams_lost;
        stats.datagrams_late = self.datagrams_late.get();
        stats.datagrams_acknowledged = self.datagrams_acknowledged.get();
        stats.round_trip = core::time::Duration::from_micros(self.rtt.srtt().into());
        stats.congestion_window = self.congestion.window();
        stats.in_flight = self.bytes_in_flight;
    }

    /// Tracks a datagram until it is acknowledged or lost. Its reliable messages are chained to `first`.
    pub(super) fn track(&mut self, cx: &mut Context<'_, '_>, first: Block, sent: SentDatagram) {
        let SentDatagram { number, bytes, source } = sent;
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let (owner, sent_at) = (cx.slot, cx.now);
        if let BlockHeader::Outgoing(_, status) = cx.pool.header_mut(first) {
            *status = SendStatus::InFlight { owner, number, bytes, sent_at, source };
        }
        self.probes = self.probes.saturating_sub(1);
        self.bytes_in_flight += bytes;
        self.in_flight.push(cx.pool, first);
        cx.index.insert(cx.pool, key::datagram(owner, number), first);
    }

    fn find(cx: &mut Context<'_, '_>, number: U24) -> BlockLink {
        let owner = cx.slot;
        cx.index.find(cx.pool, key::datagram(owner, number), |header| {
            header.datagram().is_some_and(|datagram| datagram.owner == owner && datagram.number == number)
        })
    }

    /// Removes a datagram from the index and its list, and leaves its header unchanged.
    fn untrack(&mut self, cx: &mut Context<'_, '_>, first: Block) {
        let header = cx.pool.header(first);
        let Some(Datagram { number, bytes, .. }) = header.datagram() else {
            debug_assert!(false, "not a datagram: {header:?}");
            return;
        };
        let is_lost = matches!(header, BlockHeader::Outgoing(_, SendStatus::Lost { .. }));
        cx.index.remove(cx.pool, key::datagram(cx.slot, number), first);
        if is_lost {
            self.lost.remove(cx.pool, first);
        } else {
            self.in_flight.remove(cx.pool, first);
            self.bytes_in_flight = self.bytes_in_flight.saturating_sub(bytes);
        }
    }

    /// Returns the age in microseconds at which a datagram is lost once a later one was acknowledged.
    ///
    /// It is the time threshold plus the reordering window. It is bounded by the maximum retransmission timeout,
    /// because the RTT sample after a suspended process resumes is far too long.
    fn loss_delay(&self, cx: &Context<'_, '_>) -> u32 {
        let rtt = self.rtt.srtt().max(self.rtt.latest());
        let threshold = rtt.saturating_add(rtt / TIME_THRESHOLD_DIVISOR).max(GRANULARITY);
        let reordering = self.rtt.srtt() / 256 * u32::from(self.reordering_window);
        let longest = micros(cx.config.max_resend_timeout);
        threshold.saturating_add(reordering).min(longest)
    }

    /// Returns when the oldest datagram is lost by the time threshold, if a later one was acknowledged.
    fn loss_time(&self, cx: &Context<'_, '_>) -> Option<Instant> {
        let oldest = datagram(cx, self.in_flight.oldest()?)?;
        let is_overtaken = self.newest_acked?.is_newer_than(oldest.number);
        is_overtaken.then(|| oldest.sent_at.plus_micros(self.loss_delay(cx)))
    }

    /// Declares datagrams lost by the time threshold.
    fn detect_lost(&mut self, cx: &mut Context<'_, '_>) {
        while self.loss_time(cx).is_some_and(|at| at <= cx.now) {
            let Some(first) = self.in_flight.oldest() else {
                return;
            };
            self.declare_lost(cx, first, Some(LossTrigger::TimeThreshold));
        }
    }

    fn timeout(&self, cx: &Context<'_, '_>) -> u32 {
        match self.backoff.checked_sub(1) {
            None => self.rtt.probe_timeout(cx.config),
            Some(backoff) => self.rtt.timeout(cx.config, backoff),
        }
    }

    /// Returns when [`on_timeout`](Self::on_timeout) is due.
    pub(super) fn deadline(&self, cx: &Context<'_, '_>) -> Option<Instant> {
        let oldest = datagram(cx, self.in_flight.oldest()?)?;
        let timeout = || oldest.sent_at.plus_micros(self.timeout(cx));
        Some(self.loss_time(cx).unwrap_or_else(timeout))
    }

    /// Declares datagrams lost after the retransmission timeout.
    ///
    /// The first timeout only probes: the acknowledgements of the probes will show whether other datagrams are lost.
    pub(super) fn on_timeout(&mut self, cx: &mut Context<'_, '_>) {
        self.detect_lost(cx);
        if self.loss_time(cx).is_some() {
            return;
        }
        let timeout = self.timeout(cx);
        let only_probes = self.backoff == 0 || cx.config.carrier == Carrier::Stream;
        let (most, trigger) =
            if only_probes { (PROBES, None) } else { (u8::MAX, Some(LossTrigger::Timeout)) };
        let (mut declared, mut longest) = (0, 0);
        while let Some(first) = self.in_flight.oldest() {
            let is_over = |datagram: &Datagram| datagram.sent_at.plus_micros(timeout) <= cx.now;
            let Some(datagram) = datagram(cx, first).filter(is_over) else { break };
            if declared == most {
                break;
            }
            longest = datagram.bytes.max(longest);
            self.declare_lost(cx, first, trigger);
            declared += 1;
        }
        if declared > 0 {
            self.probes = PROBES;
            if let (Carrier::Datagrams, Some(black_hole)) = (cx.config.carrier, self.black_hole.first_mut()) {
                black_hole.on_timeout(longest);
                // Path probes are sent in addition to the retransmissions.
                self.probes += if black_hole.has_probe() { PATH_PROBES } else { 0 };
            }
            self.backoff = self.backoff.saturating_add(1);
            if MAY_BE_BLOCKED && self.backoff >= BLOCKED_RECEIVER_TIMEOUTS {
                self.blocked_receiver.get_or_insert_default();
            }
            if self.backoff >= PERSISTENT_CONGESTION_TIMEOUTS && trigger.is_some() {
                self.congestion.on_persistent_congestion();
            }
        }
    }

    /// Removes all datagrams; calls `free` with every message.
    pub(super) fn clear(
        &mut self,
        cx: &mut Context<'_, '_>,
        mut free: impl FnMut(&mut Context<'_, '_>, Block),
    ) {
        while let Some(first) = self.in_flight.oldest().or_else(|| self.lost.oldest()) {
            if datagram(cx, first).is_none() {
                debug_assert!(false, "not a datagram: {:?}", cx.pool.header(first));
                return;
            }
            self.untrack(cx, first);
            for_each_message(cx, first, &mut free);
        }
        // A closed connection sends no probes.
        self.black_hole = Default::default();
    }
}

fn datagram(cx: &Context<'_, '_>, first: Block) -> Option<Datagram> {
    cx.pool.header(first).datagram()
}

/// Calls `take` with every message chained to `first`; `take` may free the message.
fn for_each_message(
    cx: &mut Context<'_, '_>,
    first: Block,
    take: &mut impl FnMut(&mut Context<'_, '_>, Block),
) {
    let mut at = Some(first);
    while let Some(message) = at {
        at = cx.pool.after(message);
        take(cx, message);
    }
}

/// The acknowledgement delay that the retransmission timeout allows for, in microseconds (docs/raknet.md#round-trip).
///
/// It corresponds to `max_ack_delay` in RFC 9002 section 6.2.1.
const MAX_ACK_DELAY: u32 = 30_000;
/// The acknowledgement delay that the probe timeout allows for, in microseconds.
///
/// Peers acknowledge within 10 ms (docs/raknet.md#acknowledgements). A premature probe costs two datagrams but does
/// not reduce the window, so a smaller allowance suffices.
const PROBE_ACK_DELAY: u32 = 15_000;
/// The reciprocal of the gain of both moving averages.
///
/// C++ RakNet has the same gain (docs/raknet.md#round-trip); RFC 6298 uses gains of 1/8 and 1/4.
const GAIN: u32 = 20;

/// RTT estimates in microseconds: the averages of RFC 6298 section 2, the minimum and the latest sample.
#[derive(Clone, Copy, Debug, Default)]
struct RttEstimator {
    srtt: u32,
    rttvar: u32,
    min_rtt: u32,
    latest: u32,
}

impl RttEstimator {
    fn sample(&mut self, micros: u32) {
        let rtt = micros.clamp(1, u32::MAX / 16);
        if self.srtt == 0 {
            *self = Self { srtt: rtt, rttvar: rtt / 2, min_rtt: rtt, latest: rtt };
            return;
        }
        self.latest = rtt;
        self.min_rtt = self.min_rtt.min(rtt);
        let difference = rtt.abs_diff(self.srtt);
        self.srtt = smooth(self.srtt, rtt);
        self.rttvar = smooth(self.rttvar, difference);
    }

    /// Returns true if there was a sample.
    const fn is_known(&self) -> bool {
        self.srtt != 0
    }

    /// Returns the smoothed RTT in microseconds; 0 before the first sample.
    const fn srtt(&self) -> u32 {
        self.srtt
    }

    /// Returns the minimum RTT in microseconds; 0 before the first sample.
    const fn min_rtt(&self) -> u32 {
        self.min_rtt
    }

    /// Returns the latest RTT in microseconds; 0 before the first sample.
    const fn latest(&self) -> u32 {
        self.latest
    }

    /// Returns the probe timeout in microseconds, similar to RFC 9002 section 6.2.1.
    ///
    /// When it expires, the oldest datagrams are retransmitted to elicit an acknowledgement.
    fn probe_timeout(&self, config: &Config) -> u32 {
        let plain = self.srtt.saturating_add(4 * self.rttvar).saturating_add(PROBE_ACK_DELAY);
        self.bounded(plain, config)
    }

    /// Returns the retransmission timeout in microseconds (docs/raknet.md#round-trip).
    ///
    /// It is doubled `backoff` times (RFC 6298 section 5.5). When it expires, every datagram of at least that age is
    /// declared lost.
    fn timeout(&self, config: &Config, backoff: u8) -> u32 {
        let plain = (2 * self.srtt).saturating_add(4 * self.rttvar).saturating_add(MAX_ACK_DELAY);
        self.bounded(plain.saturating_mul(1 << backoff.min(config.resend_backoff).min(16)), config)
    }

    fn bounded(&self, plain: u32, config: &Config) -> u32 {
        let most = micros(config.max_resend_timeout);
        let timeout = if self.is_known() { plain } else { most };
        let least = match config.carrier {
            Carrier::Datagrams => micros(config.min_resend_timeout),
            Carrier::Stream => micros(config.min_resend_timeout).max(MIN_STREAM_TIMEOUT),
        };
        timeout.max(least).min(most)
    }
}

/// Returns a moving average after another sample.
const fn smooth(average: u32, sample: u32) -> u32 {
    if sample >= average { average + (sample - average) / GAIN } else { average - (average - sample) / GAIN }
}

/// The number of lost datagrams to remember, with one and a half words for each.
const CAPACITY: usize = LOST_WORDS * 2 / 3;

/// The history of lost datagrams, in the words that [`LossHistory`](crate::raknet::shared_state::LossHistory)
/// provides for a connection.
///
/// It stores the numbers of the last lost datagrams and the ordinals of their losses. An acknowledgement of one of
/// them proves that its loss was spurious.
#[derive(Clone, Copy, Debug, Default)]
struct RecentlyLost {
    /// A bit for each entry in use.
    taken: u16,
    /// The entry to write next.
    next: u8,
}

impl RecentlyLost {
    /// Adds a datagram; replaces the oldest entry if all entries are in use.
    ///
    /// Returns the number of replaced entries.
    fn push(&mut self, words: Option<&mut [u32; LOST_WORDS]>, number: U24, ordinal: u32) -> u8 {
        let at = usize::from(self.next);
        if let Some((numbers, ordinals)) = words.map(|words| words.split_at_mut(CAPACITY))
            && let (Some(place), Some(pair)) = (numbers.get_mut(at), ordinals.get_mut(at / 2))
        {
            *place = number.get();
            let shift = shift(at);
            *pair = *pair & !(0xFFFF << shift) | (ordinal & 0xFFFF) << shift;
        }
        let bit = 1 << self.next;
        let replaced = u8::from(self.taken & bit != 0);
        self.taken |= bit;
        self.next = (self.next + 1) % CAPACITY as u8;
        replaced
    }

    /// Returns true if no datagram is remembered.
    #[inline]
    const fn is_empty(self) -> bool {
        self.taken == 0
    }

    /// Removes a datagram that `record` names; returns the low 16 bits of its ordinal.
    ///
    /// Only 16 bits are stored: an ordinal that is 65,536 losses old looks new, and may undo a reduction of the
    /// `NewReno` window too early.
    fn take(&mut self, words: &[u32; LOST_WORDS], record: Record) -> Option<u16> {
        let length = record.last.since(record.first);
        let (numbers, ordinals) = words.split_at(CAPACITY);
        let is_named = |number: u32, at: usize| {
            self.taken & 1 << at != 0 && U24::new(number).since(record.first) <= length
        };
        let at = numbers.iter().zip(0..).position(|(number, at)| is_named(*number, at))?;
        self.taken &= !(1 << at);
        ordinals.get(at / 2).map(|pair| (pair >> shift(at)) as u16)
    }
}

/// Returns the bit offset of an ordinal in its word.
const fn shift(at: usize) -> u32 {
    if at.is_multiple_of(2) { 0 } else { 16 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    fn millis(millis: u64) -> u32 {
        micros(Duration::from_millis(millis))
    }

    fn config() -> Config {
        let mut config = Config::new([0; 32]);
        config.min_resend_timeout = Duration::ZERO;
        config
    }

    #[test]
    fn the_retransmission_timeout_follows_the_rtt_samples() {
        let mut config = config();
        let mut rtt = RttEstimator::default();
        assert_eq!(rtt.timeout(&config, 0), millis(2_000));
        assert_eq!(rtt.probe_timeout(&config), millis(2_000));
        rtt.sample(millis(20));
        assert_eq!(rtt.timeout(&config, 0), millis(4 * 20 + 30));
        assert_eq!(rtt.probe_timeout(&config), millis(3 * 20 + 15));
        for _ in 0..500 {
            rtt.sample(millis(20));
        }
        assert!(rtt.timeout(&config, 0) < millis(72));
        assert!(rtt.timeout(&config, 1) > millis(138));
        assert_eq!(rtt.timeout(&config, 200), rtt.timeout(&config, 4));
        config.resend_backoff = 0;
        assert_eq!(rtt.timeout(&config, 200), rtt.timeout(&config, 0));
        config.min_resend_timeout = Duration::from_secs(1);
        assert_eq!(rtt.timeout(&config, 0), millis(1_000));
        config.max_resend_timeout = Duration::from_millis(60);
        assert_eq!(rtt.timeout(&config, 4), millis(60));
    }

    #[test]
    fn extreme_rtt_samples_do_not_overflow() {
        let mut rtt = RttEstimator::default();
        for _ in 0..100 {
            rtt.sample(u32::MAX);
            rtt.sample(0);
        }
        assert!(rtt.timeout(&config(), 4) <= millis(2_000));
        assert!(rtt.probe_timeout(&config()) <= millis(2_000));
    }
}
