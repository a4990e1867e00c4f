//! What a connection sends: acknowledgements first, then what was lost, then what is new.

use super::ack_tracker::RecordKind;
use super::block_header::BlockHeader;
use super::blocked_receiver::SendSource;
use super::handshake::ClosingNotification;
use super::metrics::Metric;
use super::recovery::Sent;
use super::send_queue::QueueId;
use super::{Connection, Context, State};
use crate::cursor::{WireError, Writer};
use crate::raknet::config::Resends;
use crate::raknet::delivery::Reliability;
use crate::raknet::event::Outcome;
use crate::raknet::stats::DropReason;
use crate::raknet::wire::control::Control;
use crate::raknet::wire::datagram::{CONTINUOUS_SEND, DatagramHeader, SLOW_START};
use crate::raknet::wire::{IP_UDP_OVERHEAD, Wire};
use crate::storage::{Block, Queue};
use crate::time::Instant;

/// How far a message that is sent again may be from the one before it in its datagram, in reliable numbers.
const MAX_GAP: u32 = 32;
/// Bytes of a pong.
const LONGEST_PING: usize = 17;

impl Connection {
    /// Composes the next datagram at the front of `buffer` and returns its length.
    pub(crate) fn poll_transmit(&mut self, cx: &mut Context<'_, '_>, buffer: &mut [u8]) -> Option<usize> {
        if let State::Opening(mut opening) = self.state {
            let length = opening.poll_transmit(cx, self.remote?, buffer);
            self.state = State::Opening(opening);
            return self.count_sent(cx, length?);
        }
        let length = self.compose(cx, buffer);
        self.collect_receipts(cx);
        let length = self.mode.seal(buffer, length?)?;
        self.count_sent(cx, length)
    }

    fn count_sent(&mut self, cx: &Context<'_, '_>, length: usize) -> Option<usize> {
        self.metrics.add(cx.now, Metric::ActualSent, length);
        Some(length)
    }

    fn compose(&mut self, cx: &mut Context<'_, '_>, buffer: &mut [u8]) -> Option<usize> {
        let limit = self.sizes.datagram();
        let buffer = buffer.split_at_mut_checked(limit).map(|(front, _)| front)?;
        match self.state {
            State::Free | State::Opening(_) | State::Gone => return None,
            State::Aborting => return self.compose_closing_notification(cx, buffer),
            State::Requested
            | State::Unverified
            | State::AwaitingNewIncoming
            | State::Refusing
            | State::Connected
            | State::Closing
            | State::Draining => {}
        }
        // Neither waits for the congestion window: they are what opens it.
        let records = self.compose_acknowledgement(cx, buffer).or_else(|| self.compose_missing(buffer));
        if records.is_some() {
            return records;
        }
        let data = self.compose_data(cx, buffer);
        if data.is_none() && matches!(self.state, State::Closing | State::Refusing) && self.is_delivered() {
            return match self.leave(cx) {
                ClosingNotification::Due => self.compose_data(cx, buffer),
                ClosingNotification::Sent => None,
            };
        }
        data
    }

    fn compose_acknowledgement(&mut self, cx: &Context<'_, '_>, buffer: &mut [u8]) -> Option<usize> {
        if self.ack_tracker.unacknowledged() == 0 || self.times.acknowledge_at.is_some_and(|at| at > cx.now) {
            return None;
        }
        let length = self.compose_records(RecordKind::Ack, buffer);
        if self.ack_tracker.unacknowledged() == 0 {
            self.times.acknowledge_at = None;
        }
        length
    }

    fn compose_missing(&mut self, buffer: &mut [u8]) -> Option<usize> {
        if self.ack_tracker.missing() == 0 { None } else { self.compose_records(RecordKind::Nack, buffer) }
    }

    fn compose_records(&mut self, kind: RecordKind, buffer: &mut [u8]) -> Option<usize> {
        let limit = self.sizes.body();
        let mut writer = Writer::new(buffer);
        self.ack_tracker.write(kind, &mut writer, limit).ok()?;
        Some(writer.written())
    }

    fn compose_data(&mut self, cx: &mut Context<'_, '_>, buffer: &mut [u8]) -> Option<usize> {
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
        self.counters.datagrams_sent += 1;
        let length = writer.written();
        if let Some(first) = tracked.front() {
            self.track(cx, first, Sent { number, bytes: length, source });
            self.pacer.spend(length);
        }
        self.limiter.spend(length + usize::from(IP_UDP_OVERHEAD));
        if self.has_more() {
            let hints = SLOW_START | CONTINUOUS_SEND;
            DatagramHeader::Data { hints, number }.write(&mut Writer::new(buffer)).ok()?;
        }
        Some(length)
    }

    /// Appends the ping and the pong that are due. They wait for no window, take no memory and are written with the
    /// time at which they leave.
    fn compose_pings(&mut self, cx: &Context<'_, '_>, writer: &mut Writer<'_>) -> Result<(), WireError> {
        let time = cx.now.as_millis();
        if core::mem::take(&mut self.times.ping_due) {
            self.times.pinged = Some(cx.now);
            self.compose_control(cx, writer, &Control::Ping { time })?;
        }
        if core::mem::take(&mut self.times.pong_due) {
            let ping_time = self.times.pong_time;
            self.compose_control(cx, writer, &Control::Pong { ping_time, time })?;
        }
        Ok(())
    }

    /// Composes a goodbye that waits for nothing and that nobody repeats.
    fn compose_closing_notification(&mut self, cx: &Context<'_, '_>, buffer: &mut [u8]) -> Option<usize> {
        if core::mem::replace(&mut self.closing_notification, ClosingNotification::Sent)
            == ClosingNotification::Sent
        {
            return None;
        }
        let mut writer = Writer::new(buffer);
        let number = self.recovery.take_number();
        DatagramHeader::Data { hints: SLOW_START, number }.write(&mut writer).ok()?;
        self.compose_control(cx, &mut writer, &Control::Disconnect).ok()?;
        self.counters.datagrams_sent += 1;
        Some(writer.written())
    }

    /// Appends an unreliable message of RakNet itself.
    fn compose_control(
        &mut self,
        cx: &Context<'_, '_>,
        writer: &mut Writer<'_>,
        control: &Control<'_>,
    ) -> Result<(), WireError> {
        let mut buffer = [0; LONGEST_PING];
        let mut payload = Writer::new(&mut buffer);
        control.write(&mut payload)?;
        let payload = payload.finish();
        self.metrics.add(cx.now, Metric::Sent, payload.len());
        let header = BlockHeader { reliability: Reliability::Unreliable, ..BlockHeader::default() };
        header.capsule(payload.len()).write(writer)?;
        writer.bytes(payload)
    }

    fn has_more(&self) -> bool {
        !self.send_queue.is_empty() || self.recovery.has_lost()
    }

    /// Whether window, pace and limit let a datagram of messages leave now.
    fn may_send(&mut self, cx: &Context<'_, '_>) -> bool {
        let (datagram, recovery) = (u32::from(self.sizes.mtu()), &self.recovery);
        recovery.has_room()
            && self.pacer.allows(cx.now, datagram, || recovery.rate())
            && cx
                .config
                .outgoing_limit
                .is_none_or(|limit| self.limiter.allows(cx.now, datagram, || bytes_a_second(limit)))
    }

    /// When a datagram may leave that only waits for the pace or the limit.
    pub(super) fn send_deadline(&self, cx: &Context<'_, '_>) -> Option<Instant> {
        if !self.has_more() || !self.recovery.has_room() {
            return None;
        }
        let paced = self.pacer.ready_at(self.recovery.rate());
        let limited = cx.config.outgoing_limit.map(|limit| self.limiter.ready_at(bytes_a_second(limit)));
        limited.into_iter().chain([paced]).max()
    }

    fn track(&mut self, cx: &mut Context<'_, '_>, first: Block, sent: Sent) {
        self.times.owed_since.get_or_insert(cx.now);
        self.times.reliable_sent = cx.now;
        self.recovery.track(cx, first, sent);
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
        for _ in 0..=SendSource::COUNT {
            while self.compose_capsule(cx, writer, limit, source, tracked) {}
            if source == SendSource::Usual || !tracked.is_empty() {
                break;
            }
            source = self.recovery.explore();
        }
        source
    }

    /// Appends the message whose turn it is; false when there is none or it does not fit.
    fn compose_capsule(
        &mut self,
        cx: &mut Context<'_, '_>,
        writer: &mut Writer<'_>,
        limit: usize,
        source: SendSource,
        tracked: &mut Queue,
    ) -> bool {
        // Who searches all that was lost searches once for a datagram.
        if source == SendSource::Usual || tracked.is_empty() {
            self.recovery.resend(cx, &mut self.send_queue, source);
        }
        let Some((queue, message)) = self.send_queue.next(cx, source) else {
            return false;
        };
        let bytes = cx.pool.size(message);
        let mut header = *cx.pool.header(message);
        if writer.written() + header.header_size() + bytes > limit {
            return false;
        }
        if queue == QueueId::Resend && !continues(cx, tracked, &header) {
            return false;
        }
        self.send_queue.pop(cx, queue);
        if queue == QueueId::Resend {
            self.metrics.add(cx.now, Metric::Resent, bytes);
            return self.compose_resend(cx, writer, message, &header, tracked);
        }
        self.metrics.add(cx.now, Metric::Sent, bytes);
        if header.reliability.is_reliable() {
            header.reliable = self.send_queue.take_reliable_number();
            cx.pool.header_mut(message).reliable = header.reliable;
            tracked.push(cx.pool, message);
            return write_capsule(cx, writer, message, &header).is_ok();
        }
        if header.since + cx.config.unreliable_timeout < cx.now {
            cx.stats.drop(DropReason::Expired);
            self.send_queue.settle(cx, message, Outcome::Lost);
            return true;
        }
        let written = write_capsule(cx, writer, message, &header).is_ok();
        if header.receipt == 0 {
            self.send_queue.free(cx, message);
        } else {
            tracked.push(cx.pool, message);
        }
        written
    }

    fn compose_resend(
        &mut self,
        cx: &mut Context<'_, '_>,
        writer: &mut Writer<'_>,
        message: Block,
        header: &BlockHeader,
        tracked: &mut Queue,
    ) -> bool {
        match cx.config.resends {
            Resends::On => {
                tracked.push(cx.pool, message);
                write_capsule(cx, writer, message, header).is_ok()
            }
            Resends::Off => {
                self.send_queue.free(cx, message);
                true
            }
        }
    }
}

/// Whether a message that is sent again may share a datagram with those before it. Old ones and new ones apart have
/// different fates at a peer that runs out of room: it would refuse the old ones for the sake of the new ones.
fn continues(cx: &Context<'_, '_>, tracked: &Queue, header: &BlockHeader) -> bool {
    let last = tracked.back().map(|last| cx.pool.header(last).reliable);
    last.is_none_or(|last| header.reliable.since(last) <= MAX_GAP)
}

fn bytes_a_second(bits: u64) -> u32 {
    u32::try_from(bits / 8).unwrap_or(u32::MAX)
}

#[cfg_attr(target_pointer_width = "64", inline)]
fn write_capsule(
    cx: &Context<'_, '_>,
    writer: &mut Writer<'_>,
    message: Block,
    header: &BlockHeader,
) -> Result<(), WireError> {
    header.capsule(cx.pool.size(message)).write(writer)?;
    let mut at = Some(message);
    while let Some(block) = at {
        writer.bytes(cx.pool.bytes(block))?;
        at = cx.pool.next(block);
    }
    Ok(())
}
