//! Datagrams in flight: acknowledgement, loss, round-trip time (supplement 4.5 to 4.8).

use super::Context;
use super::block_header::{BlockHeader, Role, key};
use super::blocked_receiver::{BlockedReceiver, SendSource};
use super::congestion::{AckSample, Congestion, Loss, LossTrigger};
use super::rtt::RttEstimator;
use super::send_queue::SendQueue;
use crate::raknet::config::CongestionControl;
use crate::raknet::event::Outcome;
use crate::raknet::stats::DropReason;
use crate::raknet::wire::datagram::Record;
use crate::serial::U24;
use crate::storage::{Block, Link, List};
use crate::time::Instant;

/// Numbers that one datagram of records may make us look up; a peer within reason needs far fewer.
pub(super) const LOOKUPS_PER_DATAGRAM: u32 = 8_192;
/// Timeouts in a row after which the window falls to its smallest.
const PERSISTENT_CONGESTION_TIMEOUTS: u8 = 3;
/// Timeouts in a row after which what was lost no longer goes before everything else.
const BLOCKED_RECEIVER_TIMEOUTS: u8 = 2;
/// Datagrams that the first timeout sends again, to find out what became of the others.
const PROBES: u8 = 2;
/// Among how many lost datagrams one that is lost again finds its place. The oldest message is what others wait for.
const SORTED: usize = 128;
/// How many lost datagrams are searched for the one that is to go first while nothing gets through.
const SEARCHED: usize = 1_024;
/// The longest time, in microseconds, over which a window is spread: a machine that slept measures round trips that
/// never were, and must not crawl for it.
const LONGEST_PACE: u32 = 1_000_000;
/// Lost datagrams that are recently_lost after their messages were sent again.
const RECENTLY_LOST: usize = 16;
/// How much more reordering_window one datagram that came late teaches, in 256ths of a round trip, and how much can be learnt.
const REORDERING_STEP: u8 = 16;
const MAX_REORDERING_EXTRA: u8 = 128;

/// Datagrams in flight that carry reliable messages, and what their acknowledgements tell of the path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossRecovery {
    datagrams: List,
    /// Datagrams taken for lost whose messages were not sent again yet.
    lost: List,
    next: U24,
    bytes: u32,
    backoff: u8,
    /// Nothing got through for a while, and something that seems lost is left of that.
    blocked_receiver: Option<BlockedReceiver>,
    /// What datagrams that came late taught, in 256ths of a round trip.
    reordering_window: u8,
    /// The newest number that was acknowledged.
    newest: Option<U24>,
    recently_lost: RecentlyLost,
    pub(super) rtt: RttEstimator,
    pub(super) congestion: Congestion,
    pub(super) datagrams_lost: u64,
    pub(super) datagrams_late: u64,
    pub(super) datagrams_acknowledged: u64,
}

/// A datagram that is about to leave with reliable messages.
#[derive(Clone, Copy)]
pub(super) struct Sent {
    pub(super) number: U24,
    pub(super) bytes: usize,
    pub(super) source: SendSource,
}

/// What the records of an acknowledgement say together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckSummary {
    bytes: u32,
    /// When the oldest datagram was sent, and the newest one's number and time.
    sent: Option<(Instant, (U24, Instant))>,
}

/// The numbers of the last lost datagrams, and the ordinals of their losses.
#[derive(Clone, Copy, Debug, Default)]
struct RecentlyLost {
    numbers: [U24; RECENTLY_LOST],
    /// The low bits of the ordinals. One that is 65,536 losses old seems new, which may undo a reduction of the new_reno
    /// window too early.
    ordinals: [u16; RECENTLY_LOST],
    /// Which places hold one, a bit for each.
    held: u16,
    at: u8,
}

impl LossRecovery {
    pub(super) fn new(control: CongestionControl, datagram_bytes: usize) -> Self {
        let bytes = u32::try_from(datagram_bytes).unwrap_or(u32::MAX);
        Self { congestion: Congestion::new(control, bytes), ..Self::default() }
    }

    pub(super) fn starting_at(self, next: U24) -> Self {
        Self { next, ..self }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.datagrams.is_empty() && self.lost.is_empty()
    }

    pub(super) const fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    pub(super) const fn bytes(&self) -> u32 {
        self.bytes
    }

    pub(super) fn has_room(&self) -> bool {
        self.bytes < self.congestion.window()
    }

    /// Bytes a second at which datagrams leave; before anything is known of the path, at once.
    pub(super) fn rate(&self) -> u32 {
        self.congestion.rate(self.rtt.srtt().min(LONGEST_PACE))
    }

    pub(super) const fn take_number(&mut self) -> U24 {
        let number = self.next;
        self.next = number.next();
        number
    }

    pub(super) const fn next_number(&self) -> U24 {
        self.next
    }

    /// Keeps a datagram until it is acknowledged or lost. Its reliable messages hang on `first`.
    pub(super) fn track(&mut self, cx: &mut Context<'_, '_>, first: Block, sent: Sent) {
        let Sent { number, bytes, source } = sent;
        let header = cx.pool.header_mut(first);
        header.role = Role::Datagram;
        header.datagram = number;
        header.since = cx.now;
        header.virtual_time = source.code();
        header.count = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.bytes += header.count;
        self.datagrams.push(cx.pool, first);
        cx.index.insert(cx.pool, key::datagram(cx.slot, number), first);
    }

    fn find(cx: &mut Context<'_, '_>, number: U24) -> Link {
        let owner = cx.slot;
        cx.index.find(cx.pool, key::datagram(owner, number), |header| {
            let is_datagram = matches!(header.role, Role::Datagram | Role::LostDatagram);
            is_datagram && header.owner == owner && header.datagram == number
        })
    }

    /// The oldest number of which anything is kept.
    fn oldest(&self, cx: &Context<'_, '_>) -> Option<U24> {
        let number = |first| cx.pool.header(first).datagram;
        match (self.datagrams.oldest().map(number), self.lost.oldest().map(number)) {
            (Some(sent), Some(lost)) => Some(if lost.is_older_than(sent) { lost } else { sent }),
            (sent, lost) => sent.or(lost),
        }
    }

    /// The part of a record that can be in flight, as numbers after the oldest one.
    fn in_flight(
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

    /// Takes a record of an acknowledgement into the summary of all; `lookups` is what the whole datagram may still cost.
    pub(super) fn on_acknowledged(
        &mut self,
        cx: &mut Context<'_, '_>,
        send_queue: &mut SendQueue,
        record: Record,
        lookups: &mut u32,
        summary: &mut AckSummary,
    ) {
        while let Some(ordinal) = self.recently_lost.take(record) {
            let since = (self.datagrams_lost as u16).wrapping_sub(ordinal);
            self.on_spurious_loss((self.datagrams_lost as u32).wrapping_sub(since.into()));
        }
        let Some((oldest, offsets)) = self.in_flight(cx, record) else {
            return;
        };
        for offset in offsets {
            if !spend(cx, lookups) {
                break;
            }
            let number = oldest.plus(offset);
            if let Some(first) = Self::find(cx, number) {
                self.acknowledge(cx, send_queue, first, summary);
            }
        }
    }

    /// Frees an acknowledged datagram.
    fn acknowledge(
        &mut self,
        cx: &mut Context<'_, '_>,
        send_queue: &mut SendQueue,
        first: Block,
        summary: &mut AckSummary,
    ) {
        let header = cx.pool.header(first);
        let (number, bytes, sent_at) = (header.datagram, header.count, header.since);
        match header.role {
            Role::LostDatagram => self.on_spurious_loss(header.virtual_time),
            Role::Datagram | Role::Message | Role::Partial | Role::Part | Role::Sending | Role::Receipt => {
                summary.bytes += bytes;
                if let Some(blocked_receiver) = &mut self.blocked_receiver {
                    blocked_receiver.on_acknowledged(header);
                }
            }
        }
        self.datagrams_acknowledged += 1;
        let sent = (number, sent_at);
        let (oldest, newest) = summary.sent.unwrap_or((sent_at, sent));
        summary.sent = Some((oldest.min(sent_at), if newest.1 <= sent_at { sent } else { newest }));
        self.forget(cx, first);
        let mut at = Some(first);
        while let Some(message) = at {
            at = cx.pool.after(message);
            send_queue.settle(cx, message, Outcome::Acknowledged);
        }
    }

    /// Draws the conclusions from all records of an acknowledgement.
    pub(super) fn conclude(&mut self, cx: &mut Context<'_, '_>, summary: AckSummary) {
        let Some((oldest_sent_at, (newest, sent_at))) = summary.sent else {
            return;
        };
        let round_trip = cx.now.micros_since(sent_at);
        self.rtt.sample(round_trip);
        self.backoff = 0;
        if self.newest.is_none_or(|known| newest.is_newer_than(known)) {
            self.newest = Some(newest);
        }
        let summary = AckSample {
            now: cx.now,
            bytes: summary.bytes,
            in_flight: self.bytes.saturating_add(summary.bytes),
            newest,
            next: self.next,
            round_trip: round_trip.max(1),
            ack_span: sent_at.micros_since(oldest_sent_at),
        };
        self.congestion.on_acknowledged(&summary);
        self.detect_lost(cx);
    }

    /// A datagram that was taken for lost had only been late: so may others.
    fn on_spurious_loss(&mut self, ordinal: u32) {
        self.datagrams_late += 1;
        self.reordering_window =
            self.reordering_window.saturating_add(REORDERING_STEP).min(MAX_REORDERING_EXTRA);
        self.congestion.on_spurious_loss(ordinal);
    }

    fn forget(&mut self, cx: &mut Context<'_, '_>, first: Block) {
        let header = cx.pool.header(first);
        let (number, bytes, role) = (header.datagram, header.count, header.role);
        cx.index.remove(cx.pool, key::datagram(cx.slot, number), first);
        if role == Role::LostDatagram {
            self.lost.remove(cx.pool, first);
        } else {
            self.datagrams.remove(cx.pool, first);
            self.bytes = self.bytes.saturating_sub(bytes);
        }
        cx.pool.header_mut(first).role = Role::Message;
    }

    /// How old a datagram must be to count as lost when a later one arrived, in microseconds. Never more than without
    /// that sign: a machine that slept measures round trips that never were.
    fn reordering_window(&self, cx: &Context<'_, '_>) -> u32 {
        let round_trip = self.rtt.srtt();
        let learnt = round_trip / 256 * u32::from(self.reordering_window);
        let most = crate::time::micros(cx.config.max_resend_timeout);
        round_trip.saturating_add(round_trip / 8).saturating_add(learnt).min(most)
    }

    /// When the oldest datagram counts as lost, if a later one arrived.
    fn time_threshold_at(&self, cx: &Context<'_, '_>) -> Option<Instant> {
        let header = cx.pool.header(self.datagrams.oldest()?);
        let overtaken = self.newest?.is_newer_than(header.datagram);
        overtaken.then(|| header.since.plus_micros(self.reordering_window(cx)))
    }

    /// Gives up what was sent well before a datagram that arrived.
    fn detect_lost(&mut self, cx: &mut Context<'_, '_>) {
        while self.time_threshold_at(cx).is_some_and(|at| at <= cx.now) {
            let Some(first) = self.datagrams.oldest() else {
                return;
            };
            self.lose(cx, first, Some(LossTrigger::TimeThreshold));
        }
    }

    /// Takes a record of a negative acknowledgement.
    pub(super) fn on_nack_record(&mut self, cx: &mut Context<'_, '_>, record: Record, lookups: &mut u32) {
        let Some((oldest, offsets)) = self.in_flight(cx, record) else {
            return;
        };
        // A datagram cannot be missing before one sent after it had the time to arrive, so a flood of records costs
        // one resend of a datagram in a round trip. The shortest one measured may contain a wait before acknowledging,
        // which a negative acknowledgement does not. Where datagrams come late, the first gap proves nothing.
        let lowest = self.rtt.min_rtt();
        let reordering_window = if self.reordering_window == 0 {
            lowest.saturating_sub(crate::time::micros(cx.config.ack_delay)).max(lowest / 2)
        } else {
            self.reordering_window(cx)
        };
        for offset in offsets {
            if !spend(cx, lookups) {
                break;
            }
            let Some(first) = Self::find(cx, oldest.plus(offset)) else {
                continue;
            };
            let header = cx.pool.header(first);
            if header.role == Role::Datagram && cx.now.micros_since(header.since) >= reordering_window {
                self.lose(cx, first, Some(LossTrigger::Nack));
            }
        }
    }

    /// Notes that the messages of a datagram are to be sent again. Without trigger it may be only late.
    fn lose(&mut self, cx: &mut Context<'_, '_>, first: Block, trigger: Option<LossTrigger>) {
        let ordinal = self.datagrams_lost as u32;
        let header = cx.pool.header_mut(first);
        if let Some(blocked_receiver) = &mut self.blocked_receiver {
            blocked_receiver.on_lost(header);
        }
        header.role = Role::LostDatagram;
        header.virtual_time = ordinal;
        let (bytes, sent_at) = (header.count, header.since);
        if let Some(trigger) = trigger {
            self.congestion.on_lost(&Loss { now: cx.now, sent_at, bytes, ordinal, trigger });
        }
        self.datagrams_lost += 1;
        self.datagrams.remove(cx.pool, first);
        self.bytes = self.bytes.saturating_sub(bytes);
        self.lost.insert(cx.pool, first, SORTED, |this, other| this.reliable.is_older_than(other.reliable));
    }

    /// Where the messages of the next datagram come from.
    pub(super) fn source(&mut self) -> SendSource {
        self.blocked_receiver.as_mut().map_or(SendSource::Usual, BlockedReceiver::source)
    }

    /// The same if there was nothing on the last source.
    pub(super) fn explore(&mut self) -> SendSource {
        self.blocked_receiver.as_mut().map_or(SendSource::Usual, BlockedReceiver::explore)
    }

    /// Hands the messages of the datagram that was lost first to the send_queue, or what the source says, unless that has
    /// some to send again.
    pub(super) fn resend(
        &mut self,
        cx: &mut Context<'_, '_>,
        send_queue: &mut SendQueue,
        source: SendSource,
    ) {
        if send_queue.has_resends() {
            return;
        }
        let next = match source {
            SendSource::Usual => self.lost.oldest(),
            SendSource::OldestLost => self.oldest_lost(cx),
            SendSource::PartlyDelivered => {
                let blocked_receiver = self.blocked_receiver;
                let prefers = |header: &_| {
                    blocked_receiver.is_some_and(|blocked_receiver| blocked_receiver.prefers(header))
                };
                self.searched(cx).find(|(_, header)| prefers(header)).map(|(first, _)| first)
            }
            SendSource::NewestLost => self.lost.newest(),
            SendSource::New(_) => return,
        };
        if self.lost.is_empty() {
            self.blocked_receiver = None;
        }
        let Some(first) = next else {
            return;
        };
        let header = cx.pool.header(first);
        self.reordering_window = self
            .reordering_window
            .saturating_sub(self.recently_lost.push(header.datagram, header.virtual_time));
        self.forget(cx, first);
        let mut at = Some(first);
        while let Some(message) = at {
            at = cx.pool.after(message);
            send_queue.push_resend(cx, message);
        }
    }

    /// What was lost, as far as one datagram may search it.
    fn searched<'c>(&self, cx: &'c Context<'_, '_>) -> impl Iterator<Item = (Block, &'c BlockHeader)> {
        self.lost.members(cx.pool).take(SEARCHED)
    }

    /// The lost datagram whose first message is the oldest. The list is not sorted further than is cheap, but while
    /// nothing gets through everything may depend on this one.
    fn oldest_lost(&self, cx: &Context<'_, '_>) -> Link {
        let oldest = self.searched(cx).reduce(|oldest, other| {
            if other.1.reliable.is_older_than(oldest.1.reliable) { other } else { oldest }
        });
        oldest.map(|(first, _)| first)
    }

    fn timeout(&self, cx: &Context<'_, '_>) -> u32 {
        match self.backoff.checked_sub(1) {
            None => self.rtt.probe_timeout(cx.config),
            Some(backoff) => self.rtt.timeout(cx.config, backoff),
        }
    }

    /// When the oldest datagram is given up.
    pub(super) fn deadline(&self, cx: &Context<'_, '_>) -> Option<Instant> {
        let first = self.datagrams.oldest()?;
        let silent = || cx.pool.header(first).since.plus_micros(self.timeout(cx));
        Some(self.time_threshold_at(cx).unwrap_or_else(silent))
    }

    /// Gives up the datagrams whose time is over. The first time that are only a few: if the others are lost too, the
    /// answers will tell.
    pub(super) fn on_timeout(&mut self, cx: &mut Context<'_, '_>) {
        self.detect_lost(cx);
        if self.time_threshold_at(cx).is_some() {
            return;
        }
        let timeout = self.timeout(cx);
        let (most, trigger) =
            if self.backoff == 0 { (PROBES, None) } else { (u8::MAX, Some(LossTrigger::TimeThreshold)) };
        let mut given_up = 0;
        while let Some(first) = self.datagrams.oldest() {
            if given_up == most || cx.pool.header(first).since.plus_micros(timeout) > cx.now {
                break;
            }
            self.lose(cx, first, trigger);
            given_up += 1;
        }
        if given_up > 0 {
            self.backoff = self.backoff.saturating_add(1);
            if self.backoff >= BLOCKED_RECEIVER_TIMEOUTS {
                self.blocked_receiver.get_or_insert_default();
            }
            if self.backoff > PERSISTENT_CONGESTION_TIMEOUTS {
                self.congestion.on_persistent_congestion();
            }
        }
    }

    /// Gives everything in flight back to the pool.
    pub(super) fn clear(&mut self, cx: &mut Context<'_, '_>, send_queue: &mut SendQueue) {
        while let Some(first) = self.datagrams.oldest().or_else(|| self.lost.oldest()) {
            self.forget(cx, first);
            let mut at = Some(first);
            while let Some(message) = at {
                at = cx.pool.after(message);
                send_queue.free(cx, message);
            }
        }
    }
}

impl RecentlyLost {
    /// Remembers a datagram in place of the one that was recently_lost longest; returns how many are forgotten for it.
    fn push(&mut self, number: U24, ordinal: u32) -> u8 {
        let at = usize::from(self.at);
        if let (Some(place), Some(beside)) = (self.numbers.get_mut(at), self.ordinals.get_mut(at)) {
            (*place, *beside) = (number, ordinal as u16);
        }
        let bit = 1 << self.at;
        let forgotten = u8::from(self.held & bit != 0);
        self.held |= bit;
        self.at = (self.at + 1) % RECENTLY_LOST as u8;
        forgotten
    }

    /// Forgets a datagram of the record and returns the low bits of its ordinal.
    #[inline]
    fn take(&mut self, record: Record) -> Option<u16> {
        if self.held == 0 {
            return None;
        }
        let length = record.last.since(record.first);
        let mut places = self.numbers.iter().zip(self.ordinals).zip(0..);
        let ((_, ordinal), at) = places
            .find(|((number, _), at)| self.held & 1 << at != 0 && number.since(record.first) <= length)?;
        self.held &= !(1 << at);
        Some(ordinal)
    }
}

fn spend(cx: &mut Context<'_, '_>, lookups: &mut u32) -> bool {
    let left = lookups.checked_sub(1);
    match left {
        Some(left) => *lookups = left,
        None => cx.stats.drop(DropReason::TooManyRecords),
    }
    left.is_some()
}
