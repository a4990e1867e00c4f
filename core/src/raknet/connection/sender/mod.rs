//! What a connection sends: the queue, its datagrams, and what becomes of them.

mod pacing;
mod ping_stats;
mod pings;
mod priority;
mod queue;
mod split_sends;

use pacing::Pacer;
use pings::Pings;
use queue::{QueueId, SendQueue};

use super::block_header::{BlockHeader, OutgoingMessage, SendStatus};
use super::congestion::INITIAL_DATAGRAMS;
use super::context::Context;
use super::metrics::Metrics;
use super::recovery::{AckSummary, LossRecovery, SentDatagram};
use super::send_source::SendSource;
use super::sizes::Sizes;
use crate::cursor::{Reader, WireError, Writer};
use crate::endpoint::SendError;
use crate::endpoint::{Outcome, Progress, Receipt};
use crate::raknet::config::Resends;
use crate::raknet::delivery::{Delivery, Priority, Reliability};
use crate::raknet::stats::{ConnectionStats, DropReason};
use crate::raknet::wire::control::{Control, MAX_CONTROL};
use crate::raknet::wire::datagram::{CONTINUOUS_SEND, DatagramHeader, Record, SLOW_START};
use crate::raknet::wire::{IP_UDP_OVERHEAD, Wire};
use crate::storage::{Block, Purpose, Queue};
use crate::time::Instant;

/// How far the reliable numbers of two lost messages in the same datagram may be apart.
const MAX_RESEND_GAP: u32 = 32;
/// Bytes of the longest message that is sent without being queued: a pong.
const MAX_UNQUEUED: usize = 17;

/// Bytes that are counted.
#[derive(Clone, Copy)]
enum SentBytes {
    /// Of messages accepted by `send`.
    Pushed,
    /// Of capsules sent for the first time, without headers.
    Sent,
    /// Of capsules sent again, without headers.
    Resent,
    /// Of datagrams, without IP and UDP headers.
    Datagrams,
}

/// The sending side of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sender {
    sizes: Sizes,
    queue: SendQueue,
    recovery: LossRecovery,
    /// Paces datagrams by what the path carries.
    pacer: Pacer,
    /// Paces datagrams by the application's limit.
    limiter: Pacer,
    pub(super) pings: Pings,
    metrics: Metrics<4>,
    messages_sent: u64,
    datagrams_sent: u64,
    /// Since when there has always been something that the other peer had not acknowledged.
    unacked_since: Option<Instant>,
    /// When something to acknowledge was last sent.
    last_sent: Instant,
}

impl Sender {
    /// Makes a new sender what a connection that begins needs.
    pub(super) fn begin(&mut self, cx: &Context<'_, '_>, sizes: Sizes) {
        self.sizes = sizes;
        self.pacer = Pacer::new(INITIAL_DATAGRAMS * u32::from(sizes.mtu()));
        self.last_sent = cx.now;
        self.queue.start_numbers_at(cx.state.first_number);
        self.recovery.start_numbers_at(cx.state.first_number);
        self.recovery.set_congestion_control(cx.config.congestion_control, sizes.data_datagram());
    }

    /// Sets the MTU that the peers agreed on, before anything was sent.
    pub(super) fn set_mtu(&mut self, cx: &Context<'_, '_>, mtu: u16) {
        self.sizes = self.sizes.with_mtu(mtu);
        self.recovery.set_congestion_control(cx.config.congestion_control, self.sizes.data_datagram());
    }

    pub(super) const fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Adds its figures to the statistics.
    pub(super) fn fill_stats(&self, now: Instant, stats: &mut ConnectionStats) {
        let [pushed, sent, resent, datagrams] = self.metrics.amounts(now);
        stats.messages_sent = self.messages_sent;
        stats.datagrams_sent = self.datagrams_sent;
        stats.bytes_pushed = pushed;
        stats.bytes_sent = sent;
        stats.bytes_resent = resent;
        stats.actual_bytes_sent = datagrams;
        stats.waiting = self.queue.waiting_new();
        stats.waiting_resends = self.queue.waiting_resends();
        stats.mtu = self.sizes.mtu();
        self.recovery.fill_stats(stats);
        self.pings.fill_stats(stats);
    }

    fn count(&mut self, now: Instant, metric: SentBytes, bytes: usize) {
        self.metrics.add(now, metric as usize, bytes);
    }

    /// Counts a datagram of any kind that leaves.
    pub(super) fn on_datagram(&mut self, now: Instant, bytes: usize) {
        self.count(now, SentBytes::Datagrams, bytes);
    }

    /// Queues a message of the application.
    pub(super) fn send(
        &mut self,
        cx: &mut Context<'_, '_>,
        payload: &[u8],
        delivery: Delivery,
    ) -> Result<Option<Receipt>, SendError> {
        let receipt = self.queue.push(cx, self.sizes, payload, delivery, Purpose::Send)?;
        self.messages_sent += 1;
        self.count(cx.now, SentBytes::Pushed, payload.len());
        Ok(receipt)
    }

    /// Queues a message of RakNet itself; false when there is no memory for it.
    pub(super) fn send_control(
        &mut self,
        cx: &mut Context<'_, '_>,
        control: &Control<'_>,
        delivery: Delivery,
    ) -> bool {
        let mut buffer = [0; MAX_CONTROL];
        let mut writer = Writer::new(&mut buffer);
        if control.write(&mut writer).is_err() {
            return false;
        }
        self.queue.push(cx, self.sizes, writer.finish(), delivery, Purpose::Receive).is_ok()
    }

    /// Sends a ping. An unreliable one takes no memory and carries the time at which it leaves.
    pub(super) fn ping(&mut self, cx: &mut Context<'_, '_>, delivery: Delivery) {
        self.pings.schedule(cx.now, cx.config);
        if !delivery.reliability.is_reliable() {
            self.pings.request_ping();
            return;
        }
        self.pings.on_ping_sent(cx.now);
        let ping = Control::Ping { time: cx.now.as_millis() };
        self.send_control(cx, &ping, delivery.with_priority(Priority::Immediate));
    }

    /// Handles an acknowledgement of so many records.
    pub(super) fn on_ack(
        &mut self,
        cx: &mut Context<'_, '_>,
        records: u16,
        mut reader: Reader<'_>,
    ) -> Result<(), WireError> {
        let mut summary = AckSummary::default();
        let queue = &mut self.queue;
        let parsed = (0..records).try_for_each(|_| {
            let record = Record::read(&mut reader)?;
            self.recovery.on_ack_record(cx, record, &mut summary, |cx, message| {
                queue.resolve(cx, message, Outcome::Acknowledged);
            });
            Ok(())
        });
        self.recovery.on_ack_end(cx, summary);
        if self.recovery.is_empty() && !self.queue.has_resends() {
            self.unacked_since = None;
        }
        parsed
    }

    /// Handles a negative acknowledgement of so many records.
    pub(super) fn on_nack(
        &mut self,
        cx: &mut Context<'_, '_>,
        records: u16,
        mut reader: Reader<'_>,
    ) -> Result<(), WireError> {
        let mut summary = AckSummary::default();
        for _ in 0..records {
            let record = Record::read(&mut reader)?;
            self.recovery.on_nack_record(cx, record, &mut summary);
        }
        Ok(())
    }

    /// Whether there was an RTT sample.
    pub(super) const fn has_rtt(&self) -> bool {
        self.recovery.has_rtt()
    }

    /// Whether everything sent was acknowledged.
    pub(super) fn is_delivered(&self) -> bool {
        self.queue.is_empty() && self.recovery.is_empty()
    }

    /// Since when the other peer has owed acknowledgements without a break.
    pub(super) const fn unacked_since(&self) -> Option<Instant> {
        self.unacked_since
    }

    fn has_more(&self) -> bool {
        !self.queue.is_empty() || self.recovery.has_lost()
    }

    /// When a datagram is due to be sent or to count as lost.
    pub(super) fn deadline(&self, cx: &Context<'_, '_>) -> Option<Instant> {
        [self.recovery.deadline(cx), self.send_deadline(cx)].into_iter().flatten().min()
    }

    /// When a datagram may leave that waits for nothing but the pace or the limit.
    fn send_deadline(&self, cx: &Context<'_, '_>) -> Option<Instant> {
        if !self.has_more() || !self.recovery.has_room() {
            return None;
        }
        let paced = self.pacer.ready_at(self.recovery.rate());
        let limited = cx.config.outgoing_limit.map(|limit| self.limiter.ready_at(bytes_a_second(limit)));
        limited.into_iter().chain([paced]).max()
    }

    /// Declares datagrams lost whose time is over.
    pub(super) fn on_timeout(&mut self, cx: &mut Context<'_, '_>) {
        self.recovery.on_timeout(cx);
    }

    /// When [`keep_alive`](Self::keep_alive) is due, where the other peer may be silent for `timeout` microseconds.
    pub(super) fn keep_alive_deadline(&self, timeout: u64) -> Option<Instant> {
        let probe = self.is_delivered().then(|| self.probe_at(timeout));
        [self.pings.deadline(), probe].into_iter().flatten().min()
    }

    /// Pings at the configured interval, and makes sure that an idle peer still acknowledges.
    pub(super) fn keep_alive(&mut self, cx: &mut Context<'_, '_>, timeout: u64) {
        if self.pings.deadline().is_some_and(|at| at <= cx.now) {
            self.ping(cx, Delivery::UNRELIABLE);
        }
        if self.is_delivered() && self.probe_at(timeout) <= cx.now {
            self.last_sent = cx.now;
            self.ping(cx, Delivery::RELIABLE);
        }
    }

    fn probe_at(&self, timeout: u64) -> Instant {
        self.last_sent.plus_long(timeout / 2)
    }

    /// Composes a data datagram: pings first, then messages as the window, the pace and the limit allow.
    pub(super) fn compose(&mut self, cx: &mut Context<'_, '_>, buffer: &mut [u8]) -> Option<usize> {
        let limit = self.sizes.data_datagram().min(buffer.len());
        let mut writer = Writer::new(buffer);
        let number = self.recovery.next_number();
        DatagramHeader::Data { hints: SLOW_START, number }.write(&mut writer).ok()?;
        let header = writer.written();
        self.compose_pings(cx, &mut writer).ok()?;
        let (mut tracked, mut source) = (Queue::default(), SendSource::Usual);
        if self.may_send(cx) {
            source = self.compose_capsules(cx, &mut writer, limit, &mut tracked);
        }
        if writer.written() == header {
            return None;
        }
        self.recovery.take_number();
        self.datagrams_sent += 1;
        let bytes = writer.written();
        if let Some(first) = tracked.front() {
            self.unacked_since.get_or_insert(cx.now);
            self.last_sent = cx.now;
            self.recovery.track(cx, first, SentDatagram { number, bytes, source });
            self.pacer.spend(bytes);
        }
        self.limiter.spend(bytes + usize::from(IP_UDP_OVERHEAD));
        if self.has_more() {
            let hints = SLOW_START | CONTINUOUS_SEND;
            DatagramHeader::Data { hints, number }.write(&mut Writer::new(buffer)).ok()?;
        }
        Some(bytes)
    }

    /// Appends the ping and the pong that are due. They wait for no window, and carry the time at which they leave.
    fn compose_pings(&mut self, cx: &Context<'_, '_>, writer: &mut Writer<'_>) -> Result<(), WireError> {
        if let Some(ping) = self.pings.take_ping(cx.now) {
            self.compose_unqueued(cx, writer, &ping)?;
        }
        if let Some(pong) = self.pings.take_pong(cx.now) {
            self.compose_unqueued(cx, writer, &pong)?;
        }
        Ok(())
    }

    /// Composes a disconnection notification that waits for no window and is not sent again.
    pub(super) fn compose_closing_notification(
        &mut self,
        cx: &Context<'_, '_>,
        buffer: &mut [u8],
    ) -> Option<usize> {
        let mut writer = Writer::new(buffer);
        let number = self.recovery.take_number();
        DatagramHeader::Data { hints: SLOW_START, number }.write(&mut writer).ok()?;
        self.compose_unqueued(cx, &mut writer, &Control::Disconnect).ok()?;
        self.datagrams_sent += 1;
        Some(writer.written())
    }

    /// Appends an unreliable message of RakNet itself.
    fn compose_unqueued(
        &mut self,
        cx: &Context<'_, '_>,
        writer: &mut Writer<'_>,
        control: &Control<'_>,
    ) -> Result<(), WireError> {
        let mut buffer = [0; MAX_UNQUEUED];
        let mut payload = Writer::new(&mut buffer);
        control.write(&mut payload)?;
        let payload = payload.finish();
        self.count(cx.now, SentBytes::Sent, payload.len());
        let message = OutgoingMessage { reliability: Reliability::Unreliable, ..OutgoingMessage::default() };
        message.capsule(payload.len()).write(writer)?;
        writer.bytes(payload)
    }

    /// Whether the window, the pace and the limit let a datagram of messages leave now.
    fn may_send(&mut self, cx: &Context<'_, '_>) -> bool {
        let (datagram, recovery) = (u32::from(self.sizes.mtu()), &self.recovery);
        recovery.has_room()
            && self.pacer.allows(cx.now, datagram, || recovery.rate())
            && cx
                .config
                .outgoing_limit
                .is_none_or(|limit| self.limiter.allows(cx.now, datagram, || bytes_a_second(limit)))
    }

    /// Appends as many messages as fit, and returns where they come from.
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

    /// Appends the next message; false when there is none or it does not fit.
    fn compose_capsule(
        &mut self,
        cx: &mut Context<'_, '_>,
        writer: &mut Writer<'_>,
        limit: usize,
        source: SendSource,
        tracked: &mut Queue,
    ) -> bool {
        // The other sources search all lost datagrams, which is done once for each datagram.
        if source == SendSource::Usual || tracked.is_empty() {
            self.queue_lost(cx, source);
        }
        let Some((queue, block)) = self.queue.next(cx, source) else {
            return false;
        };
        let bytes = cx.pool.size(block);
        let Some(&message) = cx.pool.header(block).outgoing() else { return false };
        if writer.written() + message.header_size() + bytes > limit {
            return false;
        }
        if queue == QueueId::Resend && !may_share_datagram(cx, tracked, &message) {
            return false;
        }
        self.queue.pop(cx, queue);
        if queue == QueueId::Resend {
            self.count(cx.now, SentBytes::Resent, bytes);
            return self.compose_resend(cx, writer, block, &message, tracked);
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
        let status = cx.pool.header(block);
        if let BlockHeader::Outgoing(_, SendStatus::Queued { queued_at, .. }) = status
            && *queued_at + cx.config.unreliable_timeout < cx.now
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

    fn compose_resend(
        &mut self,
        cx: &mut Context<'_, '_>,
        writer: &mut Writer<'_>,
        block: Block,
        message: &OutgoingMessage,
        tracked: &mut Queue,
    ) -> bool {
        match cx.config.resends {
            Resends::On => {
                tracked.push(cx.pool, block);
                write_capsule(cx, writer, block, message).is_ok()
            }
            Resends::Off => {
                self.queue.free(cx, block);
                true
            }
        }
    }

    /// Queues the messages of the next lost datagram, unless lost messages are queued already.
    fn queue_lost(&mut self, cx: &mut Context<'_, '_>, source: SendSource) {
        if self.queue.has_resends() {
            return;
        }
        let mut at = self.recovery.take_lost(cx, source);
        while let Some(message) = at {
            at = cx.pool.after(message);
            self.queue.push_resend(cx, message);
        }
    }

    /// Takes the receipts for the application, one block each, and how many they are.
    pub(super) fn take_receipts(&mut self) -> (Queue, usize) {
        self.queue.take_receipts()
    }

    pub(super) const fn has_progress(&self) -> bool {
        self.queue.has_progress()
    }

    /// Takes the progress of a message that is sent in parts.
    pub(super) const fn take_progress(&mut self) -> Option<Progress> {
        self.queue.take_progress()
    }

    /// Gives everything back to the pool: nothing is sent any more.
    pub(super) fn clear(&mut self, cx: &mut Context<'_, '_>) {
        let queue = &mut self.queue;
        self.recovery.clear(cx, |cx, message| queue.free(cx, message));
        self.queue.clear(cx);
        self.unacked_since = None;
    }
}

/// Whether a lost message may be sent in the same datagram as those in `tracked`. A receiver whose memory is full drops new
/// messages and takes old ones; in one datagram it would drop the old ones for the sake of the new ones.
fn may_share_datagram(cx: &Context<'_, '_>, tracked: &Queue, message: &OutgoingMessage) -> bool {
    let last = tracked.back().and_then(|last| cx.pool.header(last).outgoing());
    last.is_none_or(|last| message.reliable.since(last.reliable) <= MAX_RESEND_GAP)
}

fn bytes_a_second(bits: u64) -> u32 {
    u32::try_from(bits / 8).unwrap_or(u32::MAX)
}

#[cfg_attr(target_pointer_width = "64", inline)]
fn write_capsule(
    cx: &Context<'_, '_>,
    writer: &mut Writer<'_>,
    first: Block,
    message: &OutgoingMessage,
) -> Result<(), WireError> {
    message.capsule(cx.pool.size(first)).write(writer)?;
    let mut at = Some(first);
    while let Some(block) = at {
        writer.bytes(cx.pool.bytes(block))?;
        at = cx.pool.next(block);
    }
    Ok(())
}
