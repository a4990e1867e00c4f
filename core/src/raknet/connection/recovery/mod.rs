//! Loss recovery: datagrams in flight, their acknowledgement and their loss (docs/raknet.md#acknowledgements, RFC
//! 9002); the round-trip time and the timeouts that follow from it (docs/raknet.md#round-trip); and the lost datagrams whose
//! messages were sent again already.

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
use crate::raknet::config::{Config, CongestionControl, PRIORITIES, SPLITTING};
use crate::raknet::shared_state::LOST_WORDS;
use crate::raknet::stats::{ConnectionStats, Count};
use crate::raknet::wire::datagram::{Record, Sizes};
use crate::serial::U24;
use crate::storage::{Block, BlockLink, List};
use crate::time::{Instant, micros};

/// Timeouts in a row after which the congestion is persistent: the one that only probes, and three after which datagrams
/// counted as lost. Similar to RFC 9002 section 7.6, which has no count but a time, of three probe timeouts, over which
/// everything was lost.
const PERSISTENT_CONGESTION_TIMEOUTS: u8 = 4;
/// Whether a receiver whose memory is full may need something other than the oldest lost messages: parts of a longer message,
/// or messages that others were sent before.
const MAY_BE_BLOCKED: bool = SPLITTING || PRIORITIES;
/// Timeouts in a row after which the receiver may be blocked, so that lost messages no longer go first.
const BLOCKED_RECEIVER_TIMEOUTS: u8 = 2;
/// Datagrams that the first timeout sends again as probes (RFC 9002 section 6.2.4), and that may leave after any timeout
/// although the window is full.
const PROBES: u8 = 2;
/// Datagrams that probe the sizes that a path carries: a large one and a small one.
const PATH_PROBES: u8 = 2;
/// The longest time over which a window is paced, in microseconds. A machine that slept measures an RTT that the path never
/// had, and must not crawl because of it.
const MAX_PACING_RTT: u32 = 1_000_000;
/// The reciprocal of the part of an RTT that the time threshold adds to it: 9/8 of an RTT (RFC 9002 section 6.1.2).
const TIME_THRESHOLD_DIVISOR: u32 = 8;
/// The shortest time threshold in microseconds, since timers are coarse (`kGranularity` in RFC 9002 section 6.1.2).
const GRANULARITY: u32 = 1_000;

/// Datagrams in flight that carry messages to acknowledge, and what their acknowledgements say of the path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossRecovery {
    in_flight: List,
    /// Datagrams that were declared lost and whose messages were not sent again yet.
    lost: List,
    /// The number of the next datagram.
    next: U24,
    bytes_in_flight: u32,
    /// Timeouts in a row.
    backoff: u8,
    /// Datagrams that may leave although the congestion window is full (RFC 9002 section 7.5): after a timeout nothing else
    /// may be on its way that could open it.
    probes: u8,
    /// Set while the receiver seems to be blocked, until no lost datagram is left.
    blocked_receiver: Option<BlockedReceiver>,
    /// How much longer than the time threshold a datagram may be late, in 256ths of an RTT.
    reordering_window: u8,
    /// The newest number that was acknowledged.
    newest_acked: Option<U24>,
    recently_lost: RecentlyLost,
    /// None where messages cannot be cut.
    black_hole: [BlackHoleDetector; SPLITTING as usize],
    rtt: RttEstimator,
    congestion: Congestion,
    datagrams_lost: u64,
    datagrams_late: Count,
    datagrams_acknowledged: Count,
}

/// A datagram that is about to leave.
#[derive(Clone, Copy)]
pub(super) struct SentDatagram {
    pub(super) number: U24,
    pub(super) bytes: usize,
    pub(super) source: SendSource,
}

impl LossRecovery {
    /// Chooses the congestion control for datagrams of this length, before anything was sent.
    pub(super) fn set_congestion_control(&mut self, control: CongestionControl, datagram_bytes: usize) {
        let bytes = u32::try_from(datagram_bytes).unwrap_or(u32::MAX);
        self.congestion = Congestion::new(control, bytes);
    }

    /// Watches for a path on which the larger ones of the datagrams with this MTU are lost.
    pub(super) fn watch_for_black_hole(&mut self, now: Instant, path: Sizes) {
        if let Some(black_hole) = self.black_hole.first_mut() {
            let smaller = path.smaller();
            let smaller = [smaller, smaller.and_then(Sizes::smaller)];
            black_hole.begin(now, smaller.map(|path| path.map(Sizes::data_datagram)), path.datagram());
        }
    }

    /// The datagrams that are lost while smaller ones arrive.
    pub(super) fn black_hole(&self) -> Option<BlackHole> {
        self.black_hole.first()?.detected()
    }

    /// Bytes of the longest datagram that has ever been acknowledged.
    pub(super) fn longest_arrived(&self) -> u16 {
        self.black_hole.first().map_or(0, BlackHoleDetector::longest_arrived)
    }

    pub(super) fn has_path_probe(&self) -> bool {
        self.black_hole.first().is_some_and(BlackHoleDetector::has_probe)
    }

    /// The probe of the path that is due.
    pub(super) fn path_probe(&self) -> PathProbe {
        self.black_hole.first().map_or(PathProbe::None, BlackHoleDetector::probe)
    }

    /// The probe of the path that is due leaves.
    pub(super) fn on_path_probe(&mut self) {
        if let Some(black_hole) = self.black_hole.first_mut() {
            black_hole.on_probe();
        }
    }

    /// Declares datagrams lost that are longer than this, which the path does not carry.
    pub(super) fn lose_longer(&mut self, cx: &mut Context<'_, '_>, longest: usize) {
        let mut next = self.in_flight.oldest();
        while let Some(first) = next {
            next = List::newer(cx.pool, first);
            if datagram(cx, first).is_some_and(|datagram| datagram.bytes as usize > longest) {
                self.declare_lost(cx, first, None);
            }
        }
    }

    /// How long after it was sent a datagram hardly arrives any more, or its acknowledgement, in microseconds.
    pub(super) fn settling_time(&self, cx: &Context<'_, '_>) -> u32 {
        self.loss_delay(cx).max(self.rtt.probe_timeout(cx.config))
    }

    /// Lets the numbers of datagrams start at `start`.
    pub(super) const fn start_numbers_at(&mut self, start: U24) {
        self.next = start;
    }

    /// Whether everything was acknowledged, or queued to be sent again.
    pub(super) const fn is_empty(&self) -> bool {
        self.in_flight.is_empty() && self.lost.is_empty()
    }

    pub(super) const fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Whether the congestion window has room for another datagram, or a probe is due.
    pub(super) fn has_room(&self) -> bool {
        self.probes > 0 || self.bytes_in_flight < self.congestion.window()
    }

    /// The pacing rate in bytes a second; unlimited before the first RTT sample.
    pub(super) fn rate(&self) -> u32 {
        self.congestion.rate(self.rtt.srtt().min(MAX_PACING_RTT))
    }

    /// Whether the window grows as fast as it can.
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

    /// Adds its figures to the statistics.
    pub(super) fn fill_stats(&self, stats: &mut ConnectionStats) {
        stats.datagrams_lost = self.datagrams_lost;
        stats.datagrams_late = self.datagrams_late.get();
        stats.datagrams_acknowledged = self.datagrams_acknowledged.get();
        stats.round_trip = core::time::Duration::from_micros(self.rtt.srtt().into());
        stats.congestion_window = self.congestion.window();
        stats.in_flight = self.bytes_in_flight;
    }

    /// Keeps a datagram until it is acknowledged or lost. The messages to acknowledge in it hang on `first`.
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

    /// Takes a datagram out of the index and out of its list. Its header stays as it is.
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

    /// How old a datagram must be to count as lost once a later one was acknowledged, in microseconds: the time threshold
    /// and the reordering window. Never more than the longest timeout: a machine that slept measures an RTT that the path
    /// never had.
    fn loss_delay(&self, cx: &Context<'_, '_>) -> u32 {
        let rtt = self.rtt.srtt().max(self.rtt.latest());
        let threshold = rtt.saturating_add(rtt / TIME_THRESHOLD_DIVISOR).max(GRANULARITY);
        let reordering = self.rtt.srtt() / 256 * u32::from(self.reordering_window);
        let longest = micros(cx.config.max_resend_timeout);
        threshold.saturating_add(reordering).min(longest)
    }

    /// When the oldest datagram counts as lost, if a later one was acknowledged.
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

    /// When [`on_timeout`](Self::on_timeout) is due.
    pub(super) fn deadline(&self, cx: &Context<'_, '_>) -> Option<Instant> {
        let oldest = datagram(cx, self.in_flight.oldest()?)?;
        let timeout = || oldest.sent_at.plus_micros(self.timeout(cx));
        Some(self.loss_time(cx).unwrap_or_else(timeout))
    }

    /// Declares datagrams lost whose timeout is over. The first timeout only probes: if the other datagrams are lost, too,
    /// the acknowledgements of the probes will show it.
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
                // The probes of the path are beside those that send messages again.
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

    /// Forgets all datagrams; every message of them goes to `free`.
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
        // Nothing is probed after the end.
        self.black_hole = Default::default();
    }
}

fn datagram(cx: &Context<'_, '_>, first: Block) -> Option<Datagram> {
    cx.pool.header(first).datagram()
}

/// Calls `take` with every message that hangs on `first`; `take` may free the message.
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

/// What a timeout allows for the other peer's wait before it acknowledges, in microseconds (docs/raknet.md#round-trip;
/// `max_ack_delay` in RFC 9002 section 6.2.1).
const MAX_ACK_DELAY: u32 = 30_000;
/// What the probe timeout allows for it, in microseconds. Peers acknowledge after 10 ms (docs/raknet.md#acknowledgements),
/// and a probe that leaves too early costs two datagrams and not the window, so less will do.
const PROBE_ACK_DELAY: u32 = 15_000;
/// The inverse of the gain of both averages: the original's (docs/raknet.md#round-trip), where RFC 6298 has 1/8 and
/// 1/4.
const GAIN: u32 = 20;

/// The round-trip time in microseconds: the averages of RFC 6298 section 2, the lowest sample and the latest one.
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

    /// Whether there was a sample.
    const fn is_known(&self) -> bool {
        self.srtt != 0
    }

    /// In microseconds; zero before the first sample.
    const fn srtt(&self) -> u32 {
        self.srtt
    }

    /// In microseconds; zero before the first sample.
    const fn min_rtt(&self) -> u32 {
        self.min_rtt
    }

    /// In microseconds; zero before the first sample.
    const fn latest(&self) -> u32 {
        self.latest
    }

    /// The probe timeout in microseconds, similar to RFC 9002 section 6.2.1: after it the oldest datagrams are sent again to
    /// elicit an acknowledgement.
    fn probe_timeout(&self, config: &Config) -> u32 {
        let plain = self.srtt.saturating_add(4 * self.rttvar).saturating_add(PROBE_ACK_DELAY);
        self.bounded(plain, config)
    }

    /// The retransmission timeout in microseconds (docs/raknet.md#round-trip), doubled `backoff` times (RFC 6298
    /// section 5.5): after it every datagram counts as lost.
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

/// An average after another sample.
const fn smooth(average: u32, sample: u32) -> u32 {
    if sample >= average { average + (sample - average) / GAIN } else { average - (average - sample) / GAIN }
}

/// How many recently lost datagrams are kept: one and a half words for each.
const CAPACITY: usize = LOST_WORDS * 2 / 3;

/// Which of the words that [`LossHistory`](crate::raknet::shared_state::LossHistory) has for a connection hold a datagram: the
/// numbers of those that were lost last, and the ordinals of their losses. An acknowledgement of one of them shows that the
/// loss was spurious.
#[derive(Clone, Copy, Debug, Default)]
struct RecentlyLost {
    /// One bit for each place that is taken.
    taken: u16,
    /// The place that is written next.
    next: u8,
}

impl RecentlyLost {
    /// Adds a datagram, in place of the oldest one if all places are taken; returns how many that replaced.
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

    /// Whether a datagram is kept.
    #[inline]
    const fn is_empty(self) -> bool {
        self.taken == 0
    }

    /// Takes out a datagram that `record` names and returns the low 16 bits of its ordinal. An ordinal that is 65,536 losses
    /// old looks new, which may undo a reduction of the `NewReno` window too early.
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

/// Where in its word an ordinal stands.
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
    fn the_timeout_follows_the_samples() {
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
    fn absurd_samples_do_not_overflow() {
        let mut rtt = RttEstimator::default();
        for _ in 0..100 {
            rtt.sample(u32::MAX);
            rtt.sample(0);
        }
        assert!(rtt.timeout(&config(), 4) <= millis(2_000));
        assert!(rtt.probe_timeout(&config()) <= millis(2_000));
    }
}
