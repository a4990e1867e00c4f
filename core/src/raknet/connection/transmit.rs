//! What a connection sends: acknowledgements first, then what was lost, then what is new.

use super::arrivals::RecordKind;
use super::envelope::Envelope;
use super::handshake::Farewell;
use super::metrics::Metric;
use super::outbox::Turn;
use super::{Connection, Context, State};
use crate::cursor::{WireError, Writer};
use crate::planted::{self, Planted};
use crate::raknet::config::Resends;
use crate::raknet::stats::DropReason;
use crate::raknet::wire::Wire;
use crate::raknet::wire::datagram::{CONTINUOUS_SEND, DatagramHeader, SLOW_START};
use crate::storage::{Block, Queue};

impl Connection {
    /// Composes the next datagram at the front of `buffer` and returns its length.
    pub(crate) fn poll_transmit(&mut self, cx: &mut Context<'_, '_>, buffer: &mut [u8]) -> Option<usize> {
        let length = self.compose(cx, buffer)?;
        self.metrics.add(cx.now, Metric::ActualSent, length);
        Some(length)
    }

    fn compose(&mut self, cx: &mut Context<'_, '_>, buffer: &mut [u8]) -> Option<usize> {
        let limit = self.sizes.datagram();
        let buffer = buffer.split_at_mut_checked(limit).map(|(front, _)| front)?;
        match self.state {
            State::Free | State::Gone => return None,
            State::Opening(mut opening) => {
                let length = opening.poll_transmit(cx, self.remote?, buffer);
                self.state = State::Opening(opening);
                return length;
            }
            State::Requested
            | State::Unverified
            | State::Handling
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
                Farewell::Due => self.compose_data(cx, buffer),
                Farewell::Said => None,
            };
        }
        data
    }

    fn compose_acknowledgement(&mut self, cx: &Context<'_, '_>, buffer: &mut [u8]) -> Option<usize> {
        if self.arrivals.unacknowledged() == 0 || self.times.acknowledge_at.is_some_and(|at| at > cx.now) {
            return None;
        }
        let length = self.compose_records(RecordKind::Ack, buffer);
        if self.arrivals.unacknowledged() == 0 {
            self.times.acknowledge_at = None;
        }
        length
    }

    fn compose_missing(&mut self, buffer: &mut [u8]) -> Option<usize> {
        if self.arrivals.missing() == 0 { None } else { self.compose_records(RecordKind::Nack, buffer) }
    }

    fn compose_records(&mut self, kind: RecordKind, buffer: &mut [u8]) -> Option<usize> {
        let limit = self.sizes.body();
        let mut writer = Writer::new(buffer);
        self.arrivals.write(kind, &mut writer, limit).ok()?;
        Some(writer.written())
    }

    fn compose_data(&mut self, cx: &mut Context<'_, '_>, buffer: &mut [u8]) -> Option<usize> {
        if !self.flight.has_room() {
            return None;
        }
        let limit = self.sizes.data_datagram().min(buffer.len());
        let mut writer = Writer::new(buffer);
        let number = self.flight.next_number();
        DatagramHeader::Data { hints: SLOW_START, number }.write(&mut writer).ok()?;
        let header = writer.written();
        let mut tracked = Queue::default();
        while self.compose_capsule(cx, &mut writer, limit, &mut tracked) {}
        if writer.written() == header {
            return None;
        }
        self.flight.take_number();
        self.counters.datagrams_sent += 1;
        if let Some(first) = tracked.front() {
            self.track(cx, first, number, writer.written());
        }
        let length = writer.written();
        if !self.outbox.is_empty() {
            let hints = SLOW_START | CONTINUOUS_SEND;
            DatagramHeader::Data { hints, number }.write(&mut Writer::new(buffer)).ok()?;
        }
        Some(length)
    }

    fn track(&mut self, cx: &mut Context<'_, '_>, first: Block, number: crate::U24, bytes: usize) {
        self.times.owed_since.get_or_insert(cx.now);
        self.times.reliable_sent = cx.now;
        self.flight.track(cx, first, number, bytes);
    }

    /// Appends the message whose turn it is; false when there is none or it does not fit.
    fn compose_capsule(
        &mut self,
        cx: &mut Context<'_, '_>,
        writer: &mut Writer<'_>,
        limit: usize,
        tracked: &mut Queue,
    ) -> bool {
        let Some((turn, message)) = self.outbox.next(cx) else {
            return false;
        };
        let bytes = cx.pool.size(message);
        let envelope = *cx.pool.header(message);
        if writer.written() + envelope.header_size() + bytes > limit {
            return false;
        }
        self.outbox.pop(cx, turn);
        if turn == Turn::Resend {
            self.metrics.add(cx.now, Metric::Resent, bytes);
            return self.compose_resend(cx, writer, message, &envelope, tracked);
        }
        self.metrics.add(cx.now, Metric::Sent, bytes);
        if envelope.reliability.is_reliable() {
            let reliable = self.outbox.take_reliable_number();
            cx.pool.header_mut(message).reliable = reliable;
            tracked.push(cx.pool, message);
            return write_capsule(cx, writer, message, &Envelope { reliable, ..envelope }).is_ok();
        }
        let expired = envelope.since + cx.config.unreliable_timeout < cx.now;
        let written = if expired {
            cx.stats.drop(DropReason::Expired);
            true
        } else {
            write_capsule(cx, writer, message, &envelope).is_ok()
        };
        self.outbox.free(cx, message);
        written
    }

    fn compose_resend(
        &mut self,
        cx: &mut Context<'_, '_>,
        writer: &mut Writer<'_>,
        message: Block,
        envelope: &Envelope,
        tracked: &mut Queue,
    ) -> bool {
        match planted::or(Planted::LostForgotten, Resends::Off, cx.config.resends) {
            Resends::On => {
                tracked.push(cx.pool, message);
                write_capsule(cx, writer, message, envelope).is_ok()
            }
            Resends::Off => {
                self.outbox.free(cx, message);
                true
            }
        }
    }
}

fn write_capsule(
    cx: &Context<'_, '_>,
    writer: &mut Writer<'_>,
    message: Block,
    envelope: &Envelope,
) -> Result<(), WireError> {
    envelope.capsule(cx.pool.size(message)).write(writer)?;
    let mut at = Some(message);
    while let Some(block) = at {
        writer.bytes(cx.pool.bytes(block))?;
        at = cx.pool.next(block);
    }
    Ok(())
}
