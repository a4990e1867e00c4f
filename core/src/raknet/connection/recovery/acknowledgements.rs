//! Handling of acknowledgements: loss detection and the choice of retransmissions.

use core::ops::RangeInclusive;

use super::{LossRecovery, MAY_BE_BLOCKED, datagram, for_each_message};
use crate::endpoint::Carrier;
use crate::raknet::connection::block_header::{
    BlockHeader, Context, OutgoingMessage, SendSource, SendStatus,
};
use crate::raknet::connection::congestion::{AckSample, Loss, LossTrigger};
use crate::raknet::stats::DropReason;
use crate::raknet::wire::datagram::Record;
use crate::serial::U24;
use crate::storage::{Block, BlockLink};
use crate::time::{Instant, micros};

/// The maximum number of lookups that one acknowledgement may cause; a conforming peer needs far fewer.
const LOOKUPS_PER_ACK: u32 = 8_192;
/// The increase of the reordering window for one spurious loss, in 256ths of an RTT.
///
/// RFC 8985 section 6.2 adapts its window similarly, but in steps of a quarter of the minimum RTT, at most one per
/// round trip, and resets the window after 16 recoveries. Here every spurious loss adds a step, and every genuine loss
/// removes 1/256.
const REORDERING_STEP: u8 = 16;
/// The maximum reordering window, in 256ths of an RTT.
const MAX_REORDERING_WINDOW: u8 = 128;

/// The accumulated result of the records in one acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct AckSummary {
    /// Newly acknowledged bytes that were in flight.
    bytes: u32,
    /// The part of `bytes` that was sent outside a recovery period.
    bytes_after_recovery: u32,
    /// The send time of the oldest acknowledged datagram, then the number and send time of the newest one.
    sent: Option<(Instant, (U24, Instant))>,
    /// The number of lookups left.
    lookups: u32,
}

impl Default for AckSummary {
    fn default() -> Self {
        Self { bytes: 0, bytes_after_recovery: 0, sent: None, lookups: LOOKUPS_PER_ACK }
    }
}

impl LossRecovery {
    /// Returns the oldest number that is still tracked.
    fn oldest(&self, cx: &Context<'_, '_>) -> Option<U24> {
        let number = |first| datagram(cx, first).map(|datagram| datagram.number);
        match (self.in_flight.oldest().and_then(number), self.lost.oldest().and_then(number)) {
            (Some(sent), Some(lost)) => Some(if lost.is_older_than(sent) { lost } else { sent }),
            (sent, lost) => sent.or(lost),
        }
    }

    /// Returns the part of a record that may name tracked datagrams, as offsets from the oldest number.
    fn known_range(&self, cx: &Context<'_, '_>, record: Record) -> Option<(U24, RangeInclusive<u32>)> {
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

    /// Handles one record of an acknowledgement; calls `acked` for every message in the datagrams that the record
    /// covers.
    pub(in super::super) fn on_ack_record(
        &mut self,
        cx: &mut Context<'_, '_>,
        record: Record,
        summary: &mut AckSummary,
        mut acked: impl FnMut(&mut Context<'_, '_>, Block),
    ) {
        while let Some(ordinal) = self.take_spurious(cx, record) {
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

    /// Removes a lost datagram that `record` names from the history; returns the low bits of its ordinal.
    #[inline]
    fn take_spurious(&mut self, cx: &mut Context<'_, '_>, record: Record) -> Option<u16> {
        if self.recently_lost.is_empty() {
            return None;
        }
        self.recently_lost.take(cx.state.loss_history.lost(cx.slot)?, record)
    }

    fn on_datagram_acked(&mut self, cx: &mut Context<'_, '_>, first: Block, summary: &mut AckSummary) {
        let BlockHeader::Outgoing(message, status) = cx.pool.header(first) else { return };
        let sent = match *status {
            SendStatus::Queued { .. } => return,
            SendStatus::InFlight { number, bytes, sent_at, source, .. } => {
                self.on_arrived(sent_at, bytes, source == SendSource::PathProbe);
                summary.bytes += bytes;
                if !self.congestion.is_in_recovery(sent_at) {
                    summary.bytes_after_recovery += bytes;
                }
                if let (true, Some(blocked)) = (MAY_BE_BLOCKED, &mut self.blocked_receiver) {
                    blocked.on_ack(source, message);
                }
                (number, sent_at)
            }
            SendStatus::Lost { number, sent_at, bytes, ordinal, .. } => {
                self.on_arrived(sent_at, bytes, false);
                self.on_spurious_loss(ordinal);
                (number, sent_at)
            }
        };
        let (_, sent_at) = sent;
        self.datagrams_acknowledged.add_one();
        let (oldest, newest) = summary.sent.unwrap_or((sent_at, sent));
        summary.sent = Some((oldest.min(sent_at), if newest.1 <= sent_at { sent } else { newest }));
        self.untrack(cx, first);
    }

    fn on_arrived(&mut self, sent_at: Instant, bytes: u32, is_probe: bool) {
        if let Some(black_hole) = self.black_hole.first_mut() {
            black_hole.on_acked(sent_at, bytes, is_probe);
        }
    }

    /// Takes an RTT sample and detects losses, after all records of an acknowledgement.
    pub(in super::super) fn on_ack_end(&mut self, cx: &mut Context<'_, '_>, summary: AckSummary) {
        let Some((oldest_sent_at, (newest, sent_at))) = summary.sent else {
            return;
        };
        let rtt = cx.now.micros_since(sent_at);
        self.rtt.sample(rtt);
        self.backoff = 0;
        self.probes = 0;
        if self.newest_acked.is_none_or(|known| newest.is_newer_than(known)) {
            self.newest_acked = Some(newest);
        }
        self.congestion.on_ack(&AckSample {
            now: cx.now,
            bytes: summary.bytes,
            bytes_after_recovery: summary.bytes_after_recovery,
            in_flight: self.bytes_in_flight.saturating_add(summary.bytes),
            newest,
            next: self.next,
            rtt: rtt.max(1),
            ack_span: sent_at.micros_since(oldest_sent_at),
            is_over_stream: cx.config.carrier == Carrier::Stream,
        });
        self.detect_lost(cx);
    }

    /// Handles a spurious loss: the path reorders, so the reordering window grows.
    fn on_spurious_loss(&mut self, ordinal: u32) {
        self.datagrams_late.add_one();
        self.reordering_window =
            self.reordering_window.saturating_add(REORDERING_STEP).min(MAX_REORDERING_WINDOW);
        self.congestion.on_spurious_loss(ordinal);
    }

    /// Handles a record of a negative acknowledgement.
    pub(in super::super) fn on_nack_record(
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

    /// Returns the minimum age of a datagram at which a negative acknowledgement for it counts, in microseconds.
    ///
    /// A genuine negative acknowledgement takes at least an RTT: the remote peer notices the gap when a later datagram
    /// arrives. A flood of records therefore causes at most one retransmission per round trip. The minimum RTT may
    /// contain an acknowledgement delay, but a negative acknowledgement is not delayed. On a path that reorders, a gap
    /// alone does not prove a loss.
    fn min_nack_age(&self, cx: &Context<'_, '_>) -> u32 {
        let min_rtt = self.rtt.min_rtt();
        if self.reordering_window == 0 {
            min_rtt.saturating_sub(micros(cx.config.ack_delay)).max(min_rtt / 2)
        } else {
            self.loss_delay(cx)
        }
    }
}

/// Counts one of the lookups that an acknowledgement may cause; returns false if none is left.
fn spend(cx: &mut Context<'_, '_>, lookups: &mut u32) -> bool {
    let left = lookups.checked_sub(1);
    match left {
        Some(left) => *lookups = left,
        None => cx.stats.drop(DropReason::TooManyRecords),
    }
    left.is_some()
}

/// The number of lost datagrams, from the oldest on, among which a newly lost datagram is inserted in order.
///
/// The receiver buffers later messages until the oldest arrives, so the oldest is retransmitted first.
const SORTED_LOST: usize = 128;
/// The number of lost datagrams searched for the next retransmission while the receiver seems to be blocked.
const SEARCHED_LOST: usize = 1_024;

impl LossRecovery {
    /// Declares a datagram lost and queues its messages for retransmission.
    ///
    /// Without a trigger the retransmission is only a probe, and the congestion window does not change.
    pub(super) fn declare_lost(
        &mut self,
        cx: &mut Context<'_, '_>,
        first: Block,
        trigger: Option<LossTrigger>,
    ) {
        let ordinal = self.datagrams_lost as u32;
        let BlockHeader::Outgoing(_, status) = cx.pool.header_mut(first) else { return };
        let SendStatus::InFlight { owner, number, bytes, sent_at, source } = *status else {
            debug_assert!(false, "not in flight: {status:?}");
            return;
        };
        *status = SendStatus::Lost { owner, number, bytes, sent_at, ordinal };
        if let (true, Some(blocked)) = (MAY_BE_BLOCKED, &mut self.blocked_receiver) {
            blocked.on_lost(source);
        }
        if let Some(black_hole) = self.black_hole.first_mut() {
            black_hole.on_lost(cx.now, sent_at, bytes, source == SendSource::PathProbe);
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

    /// Returns the send source for the next datagram.
    pub(in super::super) fn source(&mut self) -> SendSource {
        match &mut self.blocked_receiver {
            Some(blocked) if MAY_BE_BLOCKED => blocked.source(),
            Some(_) | None => SendSource::Usual,
        }
    }

    /// Returns another send source, because the last source had nothing to send.
    pub(in super::super) fn next_source(&mut self) -> SendSource {
        match &mut self.blocked_receiver {
            Some(blocked) if MAY_BE_BLOCKED => blocked.next_probe(),
            Some(_) | None => SendSource::Usual,
        }
    }

    /// Returns true if no lost datagram awaits retransmission and the receiver does not seem to be blocked.
    pub(in super::super) fn is_calm(&self) -> bool {
        self.lost.is_empty() && self.blocked_receiver.is_none()
    }

    /// Takes the next lost datagram of `source`; its messages are chained to the returned block.
    pub(in super::super) fn take_lost(&mut self, cx: &mut Context<'_, '_>, source: SendSource) -> BlockLink {
        let next = match source {
            SendSource::Usual => self.lost.oldest(),
            SendSource::OldestLost => self.oldest_lost(cx),
            SendSource::PartlyAcknowledged => self.preferred_lost(cx),
            SendSource::NewestLost => self.lost.newest(),
            SendSource::New(_) | SendSource::PathProbe => return None,
        };
        if MAY_BE_BLOCKED && self.lost.is_empty() {
            self.blocked_receiver = None;
        }
        let first = next?;
        self.untrack(cx, first);
        let BlockHeader::Outgoing(_, status) = cx.pool.header_mut(first) else { return None };
        if let SendStatus::Lost { number, ordinal, .. } = core::mem::replace(status, SendStatus::RESEND) {
            let replaced = self.recently_lost.push(cx.state.loss_history.lost(cx.slot), number, ordinal);
            self.reordering_window = self.reordering_window.saturating_sub(replaced);
        }
        Some(first)
    }

    /// Returns the lost datagrams to search for the next retransmission.
    fn searched<'c>(
        &self,
        cx: &'c Context<'_, '_>,
    ) -> impl Iterator<Item = (Block, &'c OutgoingMessage)> + use<'c> {
        let lost = self.lost.members(cx.pool).take(SEARCHED_LOST);
        lost.filter_map(|(first, header)| Some((first, header.outgoing()?)))
    }

    /// Returns the lost datagram that begins with the oldest message.
    ///
    /// The list of lost datagrams is not fully sorted, because that would be expensive. A blocked receiver may need
    /// exactly this message, so it is searched for.
    fn oldest_lost(&self, cx: &Context<'_, '_>) -> BlockLink {
        let oldest = self.searched(cx).reduce(|oldest, other| {
            if other.1.reliable.is_older_than(oldest.1.reliable) { other } else { oldest }
        });
        oldest.map(|(first, _)| first)
    }

    fn preferred_lost(&self, cx: &Context<'_, '_>) -> BlockLink {
        let blocked = self.blocked_receiver?;
        self.searched(cx).find(|(_, message)| blocked.prefers(message)).map(|(first, _)| first)
    }
}
