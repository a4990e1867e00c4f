//! What acknowledgements and negative ones say of the datagrams in flight.

use core::ops::RangeInclusive;

use super::{LossRecovery, MAY_BE_BLOCKED, datagram, for_each_message};
use crate::endpoint::Carrier;
use crate::raknet::connection::block_header::{BlockHeader, SendStatus};
use crate::raknet::connection::congestion::{AckSample, LossTrigger};
use crate::raknet::connection::context::Context;
use crate::raknet::connection::send_source::SendSource;
use crate::raknet::stats::DropReason;
use crate::raknet::wire::datagram::Record;
use crate::serial::U24;
use crate::storage::Block;
use crate::time::{Instant, micros};

/// Numbers that one acknowledgement may make this end look up; a correct peer needs far fewer.
const LOOKUPS_PER_ACK: u32 = 8_192;
/// What one spurious loss adds to the reordering window, in 256ths of an RTT. RFC 8985 section 6.2 adapts its window
/// similarly, but in steps of a quarter of the lowest RTT, at most one a round trip, and goes back to the first step after
/// sixteen recoveries. Here every spurious loss adds a step, and every other one takes a 256th off.
const REORDERING_STEP: u8 = 16;
/// The largest reordering window, in the same unit.
const MAX_REORDERING_WINDOW: u8 = 128;

/// What the records of one acknowledgement say together.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct AckSummary {
    /// Bytes that were in flight.
    bytes: u32,
    /// Those of them that were not sent before a recovery period.
    bytes_after_recovery: u32,
    /// The oldest datagram's time of sending, and the newest one's number and time of sending.
    sent: Option<(Instant, (U24, Instant))>,
    /// Numbers that may still be looked up.
    lookups: u32,
}

impl Default for AckSummary {
    fn default() -> Self {
        Self { bytes: 0, bytes_after_recovery: 0, sent: None, lookups: LOOKUPS_PER_ACK }
    }
}

impl LossRecovery {
    /// The oldest number of which anything is kept.
    fn oldest(&self, cx: &Context<'_, '_>) -> Option<U24> {
        let number = |first| datagram(cx, first).map(|datagram| datagram.number);
        match (self.in_flight.oldest().and_then(number), self.lost.oldest().and_then(number)) {
            (Some(sent), Some(lost)) => Some(if lost.is_older_than(sent) { lost } else { sent }),
            (sent, lost) => sent.or(lost),
        }
    }

    /// The part of a record that may name datagrams that are kept, as numbers after the oldest one.
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

    /// Handles a record of an acknowledgement; every message of the datagrams that it names goes to `acked`.
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

    /// Takes a lost datagram that `record` names; returns the low bits of its ordinal.
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

    /// Takes the RTT sample and detects losses, after all records of an acknowledgement.
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

    /// A datagram that was declared lost was acknowledged: the path reorders, so others may be late, too.
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
