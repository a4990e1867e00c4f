//! Composition of data datagrams.

use super::queue::QueueId;
use super::{Sender, SentBytes, bytes_a_second};
use crate::cursor::{WireError, Writer};
use crate::endpoint::Outcome;
use crate::raknet::config::SPLITTING;
use crate::raknet::connection::block_header::{
    BlockHeader, Context, OutgoingMessage, SendSource, SendStatus,
};
use crate::raknet::connection::recovery::{PathProbe, SentDatagram};
use crate::raknet::delivery::Reliability;
use crate::raknet::stats::DropReason;
use crate::raknet::wire::control::Control;
use crate::raknet::wire::datagram::{CONTINUOUS_SEND, DATA_HEADER, DatagramHeader, SLOW_START};
use crate::raknet::wire::{IP_UDP_OVERHEAD, Wire};
use crate::storage::{Block, Queue, ZERO_COPY};

/// The maximum difference between the reliable numbers of two lost messages in one datagram.
const MAX_RESEND_GAP: u32 = 32;
/// The size in bytes of the longest message that is sent without being queued, which is a pong.
const MAX_UNQUEUED: usize = 17;
/// The size of an unreliable ping with its header, in bytes.
const UNRELIABLE_PING: usize = 9 + 3;
/// The total size of a ping and a pong with their headers, in bytes.
const PINGS: usize = UNRELIABLE_PING + MAX_UNQUEUED + 3;

impl Sender {
    /// Writes a data datagram.
    ///
    /// Pings come first, unless a message has to precede them. Messages follow, as far as the congestion window,
    /// pacing and the send rate limit allow.
    pub(in super::super) fn compose(&mut self, cx: &mut Context<'_, '_>, buffer: &mut [u8]) -> Option<usize> {
        let limit = self.path.data_datagram().min(buffer.len());
        let mut writer = Writer::new(buffer);
        let number = self.recovery.next_number();
        DatagramHeader::Data { hints: self.hints(), number }.write(&mut writer).ok()?;
        let header = writer.written();
        let follows = self.pings.follows_messages();
        if !follows {
            self.compose_pings(cx, &mut writer).ok()?;
        }
        let (mut tracked, mut source) = (Queue::default(), SendSource::Usual);
        if self.may_send(cx) {
            source =
                if self.recovery.has_path_probe() && self.compose_path_probe(cx, &mut writer, &mut tracked) {
                    SendSource::PathProbe
                } else {
                    self.compose_capsules(cx, &mut writer, limit, &mut tracked)
                };
        }
        if writer.written() == header {
            return None;
        }
        if follows {
            self.pings.on_messages_sent();
            if writer.written() + PINGS <= limit {
                self.compose_pings(cx, &mut writer).ok()?;
            }
        }
        self.recovery.take_number();
        self.datagrams_sent.add_one();
        let bytes = writer.written();
        if let Some(first) = tracked.front() {
            self.unacked_since.get_or_insert(cx.now);
            self.last_sent = cx.now;
            self.recovery.track(cx, first, SentDatagram { number, bytes, source });
            self.pacer.spend(bytes);
        }
        self.limiter.spend(bytes + usize::from(IP_UDP_OVERHEAD));
        if self.has_more() {
            let hints = self.hints() | CONTINUOUS_SEND;
            DatagramHeader::Data { hints, number }.write(&mut Writer::new(buffer)).ok()?;
        }
        Some(bytes)
    }

    /// Returns the hints that C++ RakNet writes into the header of a data datagram.
    fn hints(&self) -> u8 {
        if self.recovery.is_in_slow_start() { SLOW_START } else { 0 }
    }

    /// Appends the ping and the pong that are due.
    ///
    /// They are exempt from the congestion window, and contain the time of sending.
    fn compose_pings(&mut self, cx: &Context<'_, '_>, writer: &mut Writer<'_>) -> Result<(), WireError> {
        if self.pings.take_ping(cx.now) {
            let ping = self.ping_now(cx);
            self.compose_unqueued(cx, writer, &ping)?;
        }
        if let Some(pong) = self.pings.take_pong(cx.now) {
            self.compose_unqueued(cx, writer, &pong)?;
        }
        Ok(())
    }

    /// Writes a disconnection notification that is exempt from the congestion window and not retransmitted.
    pub(in super::super) fn compose_disconnection_notification(
        &mut self,
        cx: &Context<'_, '_>,
        notification: &Control<'_>,
        buffer: &mut [u8],
    ) -> Option<usize> {
        let mut writer = Writer::new(buffer);
        let number = self.recovery.take_number();
        DatagramHeader::Data { hints: self.hints(), number }.write(&mut writer).ok()?;
        self.compose_unqueued(cx, &mut writer, notification).ok()?;
        self.datagrams_sent.add_one();
        Some(writer.written())
    }

    /// Appends an unreliable control message of RakNet.
    fn compose_unqueued(
        &mut self,
        cx: &Context<'_, '_>,
        writer: &mut Writer<'_>,
        control: &Control<'_>,
    ) -> Result<(), WireError> {
        let mut buffer = [0; MAX_UNQUEUED];
        let mut payload = Writer::new(&mut buffer);
        control.write_of_client(&mut payload)?;
        let payload = payload.finish();
        self.count(cx.now, SentBytes::Sent, payload.len());
        let message = OutgoingMessage::new(Reliability::Unreliable, 0);
        message.capsule(payload.len()).write(writer)?;
        writer.bytes(payload)
    }

    /// Returns true if the congestion window, pacing and the send rate limit allow a datagram of messages.
    fn may_send(&mut self, cx: &Context<'_, '_>) -> bool {
        let (datagram, recovery) = (u32::from(self.path.mtu()), &self.recovery);
        !self.waits_to_settle()
            && !self.validation.is_blocked()
            && recovery.has_room()
            && self.pacer.allows(cx.now, datagram, || recovery.rate())
            && cx
                .config
                .outgoing_limit
                .is_none_or(|limit| self.limiter.allows(cx.now, datagram, || bytes_a_second(limit)))
    }

    /// Pads a path probe with pings up to its size, as far as the MTU allows.
    ///
    /// All implementations accept pings, but not all accept padding (RFC 8899 section 4.1). Returns false if
    /// there is no memory, or if the anti-amplification limit does not allow so many bytes.
    #[cold]
    #[inline(never)]
    fn compose_path_probe(
        &mut self,
        cx: &mut Context<'_, '_>,
        writer: &mut Writer<'_>,
        tracked: &mut Queue,
    ) -> bool {
        let length = match self.recovery.path_probe() {
            PathProbe::None => return false,
            PathProbe::Large(bytes) => usize::from(bytes),
            PathProbe::Small => 0,
        };
        if !self.validation.allows(length + PINGS) {
            return false;
        }
        // The probe is at least as long as the lost datagram, because the path may carry a shorter one. If that
        // datagram was fragmented, the probe may exceed the MTU too.
        let longest =
            if length > self.path.datagram() { length + UNRELIABLE_PING } else { self.path.datagram() };
        let longest = longest.min(writer.written() + writer.room());
        let ping = self.ping_now(cx);
        let Some(block) = self.queue.store_probe(cx, &ping) else { return false };
        let Some(message) = cx.pool.header(block).outgoing().copied() else { return false };
        self.recovery.on_path_probe();
        tracked.push(cx.pool, block);
        let mut written = write_capsule(cx, writer, block, &message);
        while written.is_ok() && writer.written() < length && writer.written() + UNRELIABLE_PING <= longest {
            written = self.compose_unqueued(cx, writer, &ping);
        }
        written.is_ok()
    }

    /// Appends as many messages as fit; returns their source.
    fn compose_capsules(
        &mut self,
        cx: &mut Context<'_, '_>,
        writer: &mut Writer<'_>,
        limit: usize,
        tracked: &mut Queue,
    ) -> SendSource {
        let mut source = self.recovery.source();
        for _ in 0..=SendSource::PROBED.len() {
            while self.compose_capsule(cx, writer, limit, source, tracked) {}
            if source == SendSource::Usual || !tracked.is_empty() {
                break;
            }
            source = self.recovery.next_source();
        }
        source
    }

    /// Appends the next message; returns false if there is none or it does not fit.
    fn compose_capsule(
        &mut self,
        cx: &mut Context<'_, '_>,
        writer: &mut Writer<'_>,
        limit: usize,
        source: SendSource,
        tracked: &mut Queue,
    ) -> bool {
        // All other sources search the lost datagrams, so they queue lost messages only once per datagram.
        if source == SendSource::Usual || tracked.is_empty() {
            self.queue_lost(cx, source);
        }
        let Some((queue, block)) = self.queue.next(cx, source) else {
            return false;
        };
        let bytes = cx.pool.size(block);
        let Some(&message) = cx.pool.header(block).outgoing() else { return false };
        let length = writer.written() + message.header_size() + bytes;
        if length > limit || !self.validation.allows(length) {
            // A part split for a larger MTU is sent in a datagram of its own, with IP fragmentation.
            let is_alone = writer.written() == DATA_HEADER;
            if !SPLITTING || !is_alone || !self.validation.allows(length) {
                return false;
            }
            if queue == QueueId::Resend && self.queue.cut_lost(cx, self.path) {
                return self.compose_capsule(cx, writer, limit, source, tracked);
            }
            if message.header_size() + bytes > writer.room() {
                return false;
            }
        }
        if queue == QueueId::Resend && !may_share_datagram(cx, tracked, &message) {
            return false;
        }
        self.queue.pop(cx, queue);
        if queue == QueueId::Resend {
            self.count(cx.now, SentBytes::Resent, bytes);
            tracked.push(cx.pool, block);
            return write_capsule(cx, writer, block, &message).is_ok();
        }
        self.count(cx.now, SentBytes::Sent, bytes);
        self.compose_new(cx, writer, block, message, tracked)
    }

    fn compose_new(
        &mut self,
        cx: &mut Context<'_, '_>,
        writer: &mut Writer<'_>,
        block: Block,
        mut message: OutgoingMessage,
        tracked: &mut Queue,
    ) -> bool {
        if message.reliability.is_reliable() {
            message.reliable = self.queue.take_reliable_number();
            if let BlockHeader::Outgoing(queued, _) = cx.pool.header_mut(block) {
                queued.reliable = message.reliable;
            }
            tracked.push(cx.pool, block);
            return write_capsule(cx, writer, block, &message).is_ok();
        }
        if let BlockHeader::Outgoing(_, SendStatus::Queued { queued_at, .. }) = *cx.pool.header(block)
            && queued_at + cx.config.unreliable_timeout < cx.now
        {
            cx.stats.drop(DropReason::Expired);
            self.queue.resolve(cx, block, Outcome::Lost);
            return true;
        }
        let written = write_capsule(cx, writer, block, &message).is_ok();
        if message.receipt == 0 {
            self.queue.free(cx, block);
        } else {
            tracked.push(cx.pool, block);
        }
        written
    }

    /// Queues the messages of the next lost datagram, unless lost messages are already queued.
    fn queue_lost(&mut self, cx: &mut Context<'_, '_>, source: SendSource) {
        if !self.queue.has_resends() && !self.recovery.is_calm() {
            self.take_lost(cx, source);
        }
    }
}

/// Returns true if a lost message may be sent in the same datagram as those in `tracked`.
///
/// A receiver with full memory drops new messages and accepts only the oldest missing messages, for which the others
/// wait. If a datagram contains both, the receiver does not acknowledge it.
fn may_share_datagram(cx: &Context<'_, '_>, tracked: &Queue, message: &OutgoingMessage) -> bool {
    let last = tracked.back().and_then(|last| cx.pool.header(last).outgoing());
    last.is_none_or(|last| message.reliable.since(last.reliable) <= MAX_RESEND_GAP)
}

#[cfg_attr(target_pointer_width = "64", inline(always))]
fn write_capsule(
    cx: &Context<'_, '_>,
    writer: &mut Writer<'_>,
    first: Block,
    message: &OutgoingMessage,
) -> Result<(), WireError> {
    let length = cx.pool.size(first);
    message.capsule(length).write(writer)?;
    if ZERO_COPY && cx.pool.is_owned(first) {
        return write_part(writer, cx.pool.contents(first), message, length);
    }
    let mut at = Some(first);
    while let Some(block) = at {
        writer.bytes(cx.pool.bytes(block))?;
        at = cx.pool.next(block);
    }
    Ok(())
}

/// Writes a part of a message that is stored in a vector.
///
/// All parts but the last have the same length.
// Marked cold, so the compiler favours the path of the more common smaller messages.
#[cold]
fn write_part(
    writer: &mut Writer<'_>,
    whole: &[u8],
    message: &OutgoingMessage,
    length: usize,
) -> Result<(), WireError> {
    let index = usize::try_from(message.split_index()).unwrap_or(usize::MAX);
    let start = if message.is_last_part() {
        whole.len().saturating_sub(length)
    } else {
        index.saturating_mul(length)
    };
    let part = whole.get(start..).and_then(|rest| rest.get(..length));
    debug_assert!(part.is_some(), "no {length} bytes at {start} of {}", whole.len());
    writer.bytes(part.unwrap_or_default())
}
