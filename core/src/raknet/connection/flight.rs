//! Datagrams in flight: acknowledgement, loss, round-trip time (supplement 4.5 to 4.8).

use core::time::Duration;

use super::Context;
use super::congestion::Congestion;
use super::envelope::{Role, key};
use super::outbox::Outbox;
use super::round_trip::RoundTrip;
use crate::planted::{self, Planted};
use crate::raknet::stats::DropReason;
use crate::raknet::wire::datagram::Record;
use crate::serial::U24;
use crate::storage::{Block, Link, List};
use crate::time::Instant;

/// Numbers that one datagram of records may make us look up; a peer within reason needs far fewer.
pub(super) const LOOKUPS_PER_DATAGRAM: u32 = 8_192;
/// A datagram counts as lost when one sent this many later was acknowledged, and time has passed too.
const REORDERING: u32 = 3;
/// Timeouts in a row after which the window falls to its smallest.
const SILENT_TIMEOUTS: u8 = 2;

/// Datagrams in flight that carry reliable messages, and what their acknowledgements tell of the path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flight {
    datagrams: List,
    next: U24,
    bytes: u32,
    backoff: u8,
    pub(super) round_trip: RoundTrip,
    pub(super) congestion: Congestion,
    pub(super) lost: u64,
    pub(super) acknowledged: u64,
}

impl Flight {
    pub(super) fn new(datagram_bytes: usize) -> Self {
        let bytes = u32::try_from(datagram_bytes).unwrap_or(u32::MAX);
        Self { congestion: Congestion::new(bytes), ..Self::default() }
    }

    pub(super) fn starting_at(self, next: U24) -> Self {
        Self { next, ..self }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.datagrams.is_empty()
    }

    pub(super) const fn bytes(&self) -> u32 {
        self.bytes
    }

    pub(super) const fn has_room(&self) -> bool {
        self.bytes < self.congestion.window()
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
    pub(super) fn track(&mut self, cx: &mut Context<'_, '_>, first: Block, number: U24, bytes: usize) {
        let header = cx.pool.header_mut(first);
        header.role = Role::Datagram;
        header.datagram = number;
        header.since = cx.now;
        header.count = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.bytes += header.count;
        self.datagrams.push(cx.pool, first);
        cx.index.insert(cx.pool, key::datagram(cx.slot, number), first);
    }

    fn find(cx: &mut Context<'_, '_>, number: U24) -> Link {
        let owner = cx.slot;
        cx.index.find(cx.pool, key::datagram(owner, number), |header| {
            header.role == Role::Datagram && header.owner == owner && header.datagram == number
        })
    }

    /// The part of a record that can be in flight, as numbers after the oldest one.
    fn in_flight(
        &self,
        cx: &Context<'_, '_>,
        record: Record,
    ) -> Option<(U24, core::ops::RangeInclusive<u32>)> {
        let oldest = cx.pool.header(self.datagrams.oldest()?).datagram;
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

    /// Takes a record of an acknowledgement; `lookups` is what the whole datagram may still cost.
    pub(super) fn on_acknowledged(
        &mut self,
        cx: &mut Context<'_, '_>,
        outbox: &mut Outbox,
        record: Record,
        lookups: &mut u32,
    ) {
        let Some((oldest, offsets)) = self.in_flight(cx, record) else {
            return;
        };
        let mut newest: Option<(U24, Instant)> = None;
        for offset in offsets {
            if !spend(cx, lookups) {
                break;
            }
            let number = oldest.plus(planted::or(Planted::AckOffByOne, offset + 1, offset));
            let Some(first) = Self::find(cx, number) else {
                continue;
            };
            newest = Some((number, self.acknowledge(cx, outbox, first)));
        }
        let Some((number, sent_at)) = newest else {
            return;
        };
        self.round_trip.sample(cx.now.saturating_since(sent_at));
        self.backoff = 0;
        self.lose_before(cx, outbox, number);
    }

    /// Frees an acknowledged datagram and returns when it was sent.
    fn acknowledge(&mut self, cx: &mut Context<'_, '_>, outbox: &mut Outbox, first: Block) -> Instant {
        let (bytes, sent_at) = (cx.pool.header(first).count, cx.pool.header(first).since);
        self.congestion.on_acknowledged(bytes, self.bytes);
        self.acknowledged += 1;
        self.forget(cx, first);
        let mut at = Some(first);
        while let Some(message) = at {
            at = cx.pool.after(message);
            outbox.free(cx, message);
        }
        sent_at
    }

    fn forget(&mut self, cx: &mut Context<'_, '_>, first: Block) {
        let (number, bytes) = (cx.pool.header(first).datagram, cx.pool.header(first).count);
        cx.index.remove(cx.pool, key::datagram(cx.slot, number), first);
        self.datagrams.remove(cx.pool, first);
        self.bytes = self.bytes.saturating_sub(bytes);
        cx.pool.header_mut(first).role = Role::Message;
    }

    /// Gives up what was sent well before a datagram that arrived.
    fn lose_before(&mut self, cx: &mut Context<'_, '_>, outbox: &mut Outbox, arrived: U24) {
        let patience = self.round_trip.smoothed() * 9 / 8;
        while let Some(first) = self.datagrams.oldest() {
            let header = cx.pool.header(first);
            let overtaken = arrived.minus(REORDERING - 1).is_newer_than(header.datagram);
            if !overtaken || cx.now.saturating_since(header.since) < patience {
                return;
            }
            self.lose(cx, outbox, first);
        }
    }

    /// Takes a record of a negative acknowledgement.
    pub(super) fn on_missing(
        &mut self,
        cx: &mut Context<'_, '_>,
        outbox: &mut Outbox,
        record: Record,
        lookups: &mut u32,
    ) {
        let Some((oldest, offsets)) = self.in_flight(cx, record) else {
            return;
        };
        // A datagram cannot be missing before one sent after it had the time to arrive, so a flood of records costs
        // one resend of a datagram in a round trip.
        let patience = self.round_trip.lowest() / 2;
        for offset in offsets {
            if !spend(cx, lookups) {
                break;
            }
            let Some(first) = Self::find(cx, oldest.plus(offset)) else {
                continue;
            };
            if cx.now.saturating_since(cx.pool.header(first).since) >= patience {
                self.lose(cx, outbox, first);
            }
        }
    }

    /// Queues the messages of a lost datagram again.
    fn lose(&mut self, cx: &mut Context<'_, '_>, outbox: &mut Outbox, first: Block) {
        self.congestion.on_lost(cx.pool.header(first).since, cx.now);
        self.lost += 1;
        self.forget(cx, first);
        let mut at = Some(first);
        while let Some(message) = at {
            at = cx.pool.after(message);
            outbox.push_resend(cx, message);
        }
    }

    fn timeout(&self, cx: &Context<'_, '_>) -> Duration {
        self.round_trip.timeout(cx.config.min_resend_timeout, self.backoff)
    }

    /// When the oldest datagram counts as lost.
    pub(super) fn deadline(&self, cx: &Context<'_, '_>) -> Option<Instant> {
        let first = self.datagrams.oldest()?;
        Some(cx.pool.header(first).since + self.timeout(cx))
    }

    /// Gives up the datagrams whose time is over.
    pub(super) fn on_timeout(&mut self, cx: &mut Context<'_, '_>, outbox: &mut Outbox) {
        let timeout = self.timeout(cx);
        let mut any = false;
        while let Some(first) = self.datagrams.oldest() {
            if cx.pool.header(first).since + timeout > cx.now {
                break;
            }
            self.lose(cx, outbox, first);
            any = true;
        }
        if any {
            self.backoff = self.backoff.saturating_add(1);
            if self.backoff > SILENT_TIMEOUTS {
                self.congestion.on_silence();
            }
        }
    }

    /// Gives everything in flight back to the pool.
    pub(super) fn clear(&mut self, cx: &mut Context<'_, '_>, outbox: &mut Outbox) {
        while let Some(first) = self.datagrams.oldest() {
            self.forget(cx, first);
            let mut at = Some(first);
            while let Some(message) = at {
                at = cx.pool.after(message);
                if !planted::is_on(Planted::LeakAtEnd) {
                    outbox.free(cx, message);
                }
            }
        }
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
