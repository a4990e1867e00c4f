//! Loss recovery: datagrams in flight, their acknowledgement and their loss (docs/raknet.md#acknowledgements, RFC
//! 9002).

mod blocked_receiver;
mod recently_lost;
mod rtt;

use blocked_receiver::BlockedReceiver;
use recently_lost::RecentlyLost;
use rtt::RttEstimator;

use super::block_header::{BlockHeader, Datagram, OutgoingMessage, SendStatus, key};
use super::congestion::{AckSample, Congestion, Loss, LossTrigger};
use super::context::Context;
use super::send_source::SendSource;
use crate::raknet::config::CongestionControl;
use crate::raknet::stats::{ConnectionStats, DropReason};
use crate::raknet::wire::datagram::Record;
use crate::serial::U24;
use crate::storage::{Block, Link, List};
use crate::time::{Instant, micros};

/// Numbers that one acknowledgement may make this end look up; a correct peer needs far fewer.
const LOOKUPS_PER_ACK: u32 = 8_192;
/// Timeouts in a row after which the congestion is persistent (RFC 9002 section 7.6.1: the timeout and two backoffs).
const PERSISTENT_CONGESTION_TIMEOUTS: u8 = 3;
/// Timeouts in a row after which the receiver may be blocked, so that lost messages no longer go first.
const BLOCKED_RECEIVER_TIMEOUTS: u8 = 2;
/// Datagrams that the first timeout sends again as probes (RFC 9002 section 6.2.4).
const PROBES: u8 = 2;
/// How many of the oldest lost datagrams a newly lost one is compared with to find its place. Messages wait for the oldest
/// one, so it should be sent first.
const SORTED_LOST: usize = 128;
/// How many lost datagrams are searched for the next one to send while the receiver seems to be blocked.
const SEARCHED_LOST: usize = 1_024;
/// The longest time over which a window is paced, in microseconds. A machine that slept measures an RTT that the path never
/// had, and must not crawl because of it.
const MAX_PACING_RTT: u32 = 1_000_000;
/// The reciprocal of the part of an RTT that the time threshold adds to it: 9/8 of an RTT (RFC 9002 section 6.1.2).
const TIME_THRESHOLD_DIVISOR: u32 = 8;
/// What one spurious loss adds to the reordering window, in 256ths of an RTT (RFC 8985 section 6.2 adapts its window the
/// same way).
const REORDERING_STEP: u8 = 16;
/// The largest reordering window, in the same unit.
const MAX_REORDERING_WINDOW: u8 = 128;

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
    /// Set while the receiver seems to be blocked, until no lost datagram is left.
    blocked_receiver: Option<BlockedReceiver>,
    /// How much longer than the time threshold a datagram may be late, in 256ths of an RTT.
    reordering_window: u8,
    /// The newest number that was acknowledged.
    newest_acked: Option<U24>,
    recently_lost: RecentlyLost,
    rtt: RttEstimator,
    congestion: Congestion,
    datagrams_lost: u64,
    datagrams_late: u64,
    datagrams_acknowledged: u64,
}

/// A datagram that is about to leave.
#[derive(Clone, Copy)]
pub(super) struct SentDatagram {
    pub(super) number: U24,
    pub(super) bytes: usize,
    pub(super) source: SendSource,
}

/// What the records of one acknowledgement say together.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckSummary {
    /// Bytes that were in flight.
    bytes: u32,
    /// The oldest datagram's time of sending, and the newest one's number and time of sending.
    sent: Option<(Instant, (U24, Instant))>,
    /// Numbers that may still be looked up.
    lookups: u32,
}

impl Default for AckSummary {
    fn default() -> Self {
        Self { bytes: 0, sent: None, lookups: LOOKUPS_PER_ACK }
    }
}

impl LossRecovery {
    /// Chooses the congestion control for datagrams of this length, before anything was sent.
    pub(super) fn set_congestion_control(&mut self, control: CongestionControl, datagram_bytes: usize) {
        let bytes = u32::try_from(datagram_bytes).unwrap_or(u32::MAX);
        self.congestion = Congestion::new(control, bytes);
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

    /// Whether the congestion window has room for another datagram.
    pub(super) fn has_room(&self) -> bool {
        self.bytes_in_flight < self.congestion.window()
    }

    /// The pacing rate in bytes a second; unlimited before the first RTT sample.
    pub(super) fn rate(&self) -> u32 {
        self.congestion.rate(self.rtt.srtt().min(MAX_PACING_RTT))
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
        stats.datagrams_late = self.datagrams_late;
        stats.datagrams_acknowledged = self.datagrams_acknowledged;
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
        self.bytes_in_flight += bytes;
        self.in_flight.push(cx.pool, first);
        cx.index.insert(cx.pool, key::datagram(owner, number), first);
    }

    fn find(cx: &mut Context<'_, '_>, number: U24) -> Link {
        let owner = cx.slot;
        cx.index.find(cx.pool, key::datagram(owner, number), |header| {
            header.datagram().is_some_and(|datagram| datagram.owner == owner && datagram.number == number)
        })
    }

    /// The oldest number of which anything is kept.
    fn oldest(&self, cx: &Context<'_, '_>) -> Option<U24> {
        let number = |first| datagram(cx, first).map(|datagram| datagram.number);
        match (self.in_flight.oldest().and_then(number), self.lost.oldest().and_then(number)) {
            (Some(sent), Some(lost)) => Some(if lost.is_older_than(sent) { lost } else { sent }),
            (sent, lost) => sent.or(lost),
        }
    }

    /// The part of a record that may name datagrams that are kept, as numbers after the oldest one.
    fn known_range(
        &self,
        cx: &Context<'_, '_>,
        record: Record,
    ) -> Option<(U24, core::ops::RangeInclusive<u32>)> {
        let oldest = self.oldest(cx)?;
        let newest = self.next.since(oldest).checked_sub(1)?;
        let first = record.first.since(oldest);
        let start = if first <= newest {
            first
        } else if oldest.since(record.first) <= record.last.since(record.first) {
            0
        } else {
            return None;
        };
        let end = start.saturating_add(record.last.since(oldest.plus(start)));
        Some((oldest, start..=newest.min(end)))
    }

    /// Handles a record of an acknowledgement; every message of the datagrams that it names goes to `acked`.
    pub(super) fn on_ack_record(
        &mut self,
        cx: &mut Context<'_, '_>,
        record: Record,
        summary: &mut AckSummary,
        mut acked: impl FnMut(&mut Context<'_, '_>, Block),
    ) {
        while let Some(ordinal) = self.recently_lost.take(record) {
            let since = (self.datagrams_lost as u16).wrapping_sub(ordinal);
            self.on_spurious_loss((self.datagrams_lost as u32).wrapping_sub(since.into()));
        }
        let Some((oldest, offsets)) = self.known_range(cx, record) else {
            return;
        };
        for offset in offsets {
            if !spend(cx, &mut summary.lookups) {
                break;
            }
            let number = oldest.plus(offset);
            if let Some(first) = Self::find(cx, number) {
                self.on_datagram_acked(cx, first, summary);
                for_each_message(cx, first, &mut acked);
            }
        }
    }

    fn on_datagram_acked(&mut self, cx: &mut Context<'_, '_>, first: Block, summary: &mut AckSummary) {
        let BlockHeader::Outgoing(message, status) = cx.pool.header(first) else { return };
        let sent = match *status {
            SendStatus::Queued { .. } => return,
            SendStatus::InFlight { number, bytes, sent_at, source, .. } => {
                summary.bytes += bytes;
                if let Some(blocked) = &mut self.blocked_receiver {
                    blocked.on_ack(source, message);
                }
                (number, sent_at)
            }
            SendStatus::Lost { number, sent_at, ordinal, .. } => {
                self.on_spurious_loss(ordinal);
                (number, sent_at)
            }
        };
        let (_, sent_at) = sent;
        self.datagrams_acknowledged += 1;
        let (oldest, newest) = summary.sent.unwrap_or((sent_at, sent));
        summary.sent = Some((oldest.min(sent_at), if newest.1 <= sent_at { sent } else { newest }));
        self.untrack(cx, first);
    }

    /// Takes the RTT sample and detects losses, after all records of an acknowledgement.
    pub(super) fn on_ack_end(&mut self, cx: &mut Context<'_, '_>, summary: AckSummary) {
        let Some((oldest_sent_at, (newest, sent_at))) = summary.sent else {
            return;
        };
        let rtt = cx.now.micros_since(sent_at);
        self.rtt.sample(rtt);
        self.backoff = 0;
        if self.newest_acked.is_none_or(|known| newest.is_newer_than(known)) {
            self.newest_acked = Some(newest);
        }
        self.congestion.on_ack(&AckSample {
            now: cx.now,
            bytes: summary.bytes,
            in_flight: self.bytes_in_flight.saturating_add(summary.bytes),
            newest,
            next: self.next,
            rtt: rtt.max(1),
            ack_span: sent_at.micros_since(oldest_sent_at),
        });
        self.detect_lost(cx);
    }

    /// A datagram that was declared lost was acknowledged: the path reorders, so others may be late, too.
    fn on_spurious_loss(&mut self, ordinal: u32) {
        self.datagrams_late += 1;
        self.reordering_window =
            self.reordering_window.saturating_add(REORDERING_STEP).min(MAX_REORDERING_WINDOW);
        self.congestion.on_spurious_loss(ordinal);
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
        let srtt = self.rtt.srtt();
        let reordering = srtt / 256 * u32::from(self.reordering_window);
        let longest = micros(cx.config.max_resend_timeout);
        srtt.saturating_add(srtt / TIME_THRESHOLD_DIVISOR).saturating_add(reordering).min(longest)
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

    /// Handles a record of a negative acknowledgement.
    pub(super) fn on_nack_record(
        &mut self,
        cx: &mut Context<'_, '_>,
        record: Record,
        summary: &mut AckSummary,
    ) {
        let Some((oldest, offsets)) = self.known_range(cx, record) else {
            return;
        };
        let min_age = self.min_nack_age(cx);
        for offset in offsets {
            if !spend(cx, &mut summary.lookups) {
                break;
            }
            let Some(first) = Self::find(cx, oldest.plus(offset)) else {
                continue;
            };
            if let BlockHeader::Outgoing(_, SendStatus::InFlight { sent_at, .. }) = cx.pool.header(first)
                && cx.now.micros_since(*sent_at) >= min_age
            {
                self.declare_lost(cx, first, Some(LossTrigger::Nack));
            }
        }
    }

    /// How old a datagram must be before a negative acknowledgement of it counts, in microseconds.
    ///
    /// The other peer misses a datagram when one sent later arrives, which takes the path's RTT. So a flood of records
    /// makes this end send a datagram again no more than once a round trip. The lowest RTT may contain a wait before an
    /// acknowledgement; a negative acknowledgement is sent without one. On a path that reorders, a gap alone proves
    /// nothing.
    fn min_nack_age(&self, cx: &Context<'_, '_>) -> u32 {
        let min_rtt = self.rtt.min_rtt();
        if self.reordering_window == 0 {
            min_rtt.saturating_sub(micros(cx.config.ack_delay)).max(min_rtt / 2)
        } else {
            self.loss_delay(cx)
        }
    }

    /// Queues the messages of a datagram to be sent again. Without a trigger the datagram is only probed for, and the
    /// congestion window stays.
    fn declare_lost(&mut self, cx: &mut Context<'_, '_>, first: Block, trigger: Option<LossTrigger>) {
        let ordinal = self.datagrams_lost as u32;
        let BlockHeader::Outgoing(_, status) = cx.pool.header_mut(first) else { return };
        let SendStatus::InFlight { owner, number, bytes, sent_at, source } = *status else {
            debug_assert!(false, "not in flight: {status:?}");
            return;
        };
        *status = SendStatus::Lost { owner, number, bytes, sent_at, ordinal };
        if let Some(blocked) = &mut self.blocked_receiver {
            blocked.on_lost(source);
        }
        if let Some(trigger) = trigger {
            self.congestion.on_lost(&Loss { now: cx.now, sent_at, bytes, ordinal, trigger });
        }
        self.datagrams_lost += 1;
        self.in_flight.remove(cx.pool, first);
        self.bytes_in_flight = self.bytes_in_flight.saturating_sub(bytes);
        self.lost.insert(cx.pool, first, SORTED_LOST, |this, other| {
            let (Some(this), Some(other)) = (this.outgoing(), other.outgoing()) else { return false };
            this.reliable.is_older_than(other.reliable)
        });
    }

    /// Where the messages of the next datagram come from.
    pub(super) fn source(&mut self) -> SendSource {
        self.blocked_receiver.as_mut().map_or(SendSource::Usual, BlockedReceiver::source)
    }

    /// Another source, if the last one had nothing to send.
    pub(super) fn next_source(&mut self) -> SendSource {
        self.blocked_receiver.as_mut().map_or(SendSource::Usual, BlockedReceiver::next_probe)
    }

    /// Takes the lost datagram whose messages `source` sends next; they hang on the block that is returned.
    pub(super) fn take_lost(&mut self, cx: &mut Context<'_, '_>, source: SendSource) -> Link {
        let next = match source {
            SendSource::Usual => self.lost.oldest(),
            SendSource::OldestLost => self.oldest_lost(cx),
            SendSource::PartlyAcknowledged => self.preferred_lost(cx),
            SendSource::NewestLost => self.lost.newest(),
            SendSource::New(_) => return None,
        };
        if self.lost.is_empty() {
            self.blocked_receiver = None;
        }
        let first = next?;
        self.untrack(cx, first);
        let BlockHeader::Outgoing(_, status) = cx.pool.header_mut(first) else { return None };
        if let SendStatus::Lost { number, ordinal, .. } = core::mem::replace(status, SendStatus::RESEND) {
            let replaced = self.recently_lost.push(number, ordinal);
            self.reordering_window = self.reordering_window.saturating_sub(replaced);
        }
        Some(first)
    }

    /// The lost datagrams that may be searched for one datagram to send.
    fn searched<'c>(
        &self,
        cx: &'c Context<'_, '_>,
    ) -> impl Iterator<Item = (Block, &'c OutgoingMessage)> + use<'c> {
        let lost = self.lost.members(cx.pool).take(SEARCHED_LOST);
        lost.filter_map(|(first, header)| Some((first, header.outgoing()?)))
    }

    /// The lost datagram whose first message has the oldest number. The list is sorted only as far as that is cheap, but
    /// while the receiver is blocked everything may depend on this message.
    fn oldest_lost(&self, cx: &Context<'_, '_>) -> Link {
        let oldest = self.searched(cx).reduce(|oldest, other| {
            if other.1.reliable.is_older_than(oldest.1.reliable) { other } else { oldest }
        });
        oldest.map(|(first, _)| first)
    }

    fn preferred_lost(&self, cx: &Context<'_, '_>) -> Link {
        let blocked = self.blocked_receiver?;
        self.searched(cx).find(|(_, message)| blocked.prefers(message)).map(|(first, _)| first)
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
        let (most, trigger) =
            if self.backoff == 0 { (PROBES, None) } else { (u8::MAX, Some(LossTrigger::TimeThreshold)) };
        let mut declared = 0;
        while let Some(first) = self.in_flight.oldest() {
            let is_over = |datagram: Datagram| datagram.sent_at.plus_micros(timeout) <= cx.now;
            if declared == most || !datagram(cx, first).is_some_and(is_over) {
                break;
            }
            self.declare_lost(cx, first, trigger);
            declared += 1;
        }
        if declared > 0 {
            self.backoff = self.backoff.saturating_add(1);
            if self.backoff >= BLOCKED_RECEIVER_TIMEOUTS {
                self.blocked_receiver.get_or_insert_default();
            }
            if self.backoff > PERSISTENT_CONGESTION_TIMEOUTS {
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
                return;
            }
            self.untrack(cx, first);
            for_each_message(cx, first, &mut free);
        }
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

/// Takes one of the lookups that an acknowledgement may cost; false when none is left.
fn spend(cx: &mut Context<'_, '_>, lookups: &mut u32) -> bool {
    let left = lookups.checked_sub(1);
    match left {
        Some(left) => *lookups = left,
        None => cx.stats.drop(DropReason::TooManyRecords),
    }
    left.is_some()
}
