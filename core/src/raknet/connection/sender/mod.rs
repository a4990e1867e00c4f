//! The sending side of a connection: the send queue, datagrams and their acknowledgement.

mod compose;
mod pings;
mod queue;
mod recut;
mod scheduling;

use pings::{AddressValidation, Pings};
use queue::SendQueue;
use recut::{Fit, Recut};
use scheduling::Pacer;

use super::block_header::{Context, SendSource};
use super::congestion::INITIAL_DATAGRAMS;
use super::recovery::{AckSummary, BlackHole, LossRecovery};
use crate::cursor::{Reader, WireError, Writer};
use crate::endpoint::{MessageToSend, Outcome, Progress, Receipt, SendError};
use crate::raknet::config::{SERVER, SPLITTING};
use crate::raknet::delivery::{Delivery, Priority};
use crate::raknet::stats::{ConnectionStats, Count, Metrics};
use crate::raknet::wire::control::{Control, MAX_CONTROL};
use crate::raknet::wire::datagram::{Record, Sizes};
use crate::raknet::wire::{IP_UDP_OVERHEAD, Wire};
use crate::storage::{Purpose, Queue, Share};
use crate::time::Instant;

/// The sent bytes that are counted.
#[derive(Clone, Copy)]
enum SentBytes {
    /// Bytes of messages accepted by `send`.
    Pushed,
    /// Payload bytes of capsules sent for the first time.
    Sent,
    /// Payload bytes of retransmitted capsules.
    Resent,
    /// Bytes of datagrams, without IP and UDP headers.
    Datagrams,
}

/// The handling of messages that exceed a reduced path MTU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Narrowing {
    /// Send them unchanged, with IP fragmentation.
    #[default]
    None,
    /// Split them again once no datagram in flight can still arrive. Until then nothing else is sent.
    Waiting(BlackHole),
    /// A part that cannot be split again exceeds the path MTU.
    Stuck,
}

/// The sending side of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sender {
    /// The sizes for new messages and datagrams.
    ///
    /// Parts split before the path MTU was reduced are sent unchanged, with IP fragmentation.
    path: Sizes,
    /// Set until a new MTU has been reported to the application.
    has_new_mtu: bool,
    narrowing: Narrowing,
    queue: SendQueue,
    validation: AddressValidation,
    recovery: LossRecovery,
    /// Paces datagrams by the congestion window.
    pacer: Pacer,
    /// Paces datagrams by the configured send rate limit.
    limiter: Pacer,
    pub(super) pings: Pings,
    metrics: Metrics<4>,
    messages_sent: Count,
    datagrams_sent: Count,
    /// The time since which at least one acknowledgement from the remote peer has been outstanding; `None` if none is.
    unacked_since: Option<Instant>,
    /// When an ack-eliciting datagram was last sent.
    last_sent: Instant,
}

impl Sender {
    /// Initializes the sender of a new connection.
    pub(super) fn begin(&mut self, cx: &Context<'_, '_>, sizes: Sizes) {
        self.set_path(cx.now, sizes);
        self.pacer = Pacer::new(INITIAL_DATAGRAMS * u32::from(sizes.mtu()));
        self.last_sent = cx.now;
        self.queue.start_numbers_at(cx.state.first_number);
        self.recovery.start_numbers_at(cx.state.first_number);
        self.recovery.set_congestion_control(cx.config.congestion_control, sizes.data_datagram());
    }

    /// Sets the negotiated MTU, before anything is sent.
    pub(super) fn set_mtu(&mut self, cx: &Context<'_, '_>, mtu: u16) {
        self.set_path(cx.now, self.path.with_mtu(mtu));
        self.recovery.set_congestion_control(cx.config.congestion_control, self.path.data_datagram());
    }

    fn set_path(&mut self, now: Instant, path: Sizes) {
        self.path = path;
        self.recovery.watch_for_black_hole(now, path);
    }

    /// Reduces the MTU for new messages and datagrams; returns false if there is no smaller one.
    fn shrink(&mut self, now: Instant) -> bool {
        let smaller = self.path.smaller();
        if let Some(smaller) = smaller {
            self.set_path(now, smaller);
            self.has_new_mtu = true;
        }
        smaller.is_some()
    }

    fn mend_black_hole(&mut self, cx: &mut Context<'_, '_>) {
        if SPLITTING && (self.narrowing != Narrowing::None || self.recovery.black_hole().is_some()) {
            self.avoid(cx);
        }
    }

    /// Replaces datagrams that are too large for the path with smaller ones, once the old datagrams can no longer
    /// arrive.
    ///
    /// Otherwise their messages could be delivered twice, or the remote peer would keep parts of them indefinitely.
    #[cold]
    #[inline(never)]
    fn avoid(&mut self, cx: &mut Context<'_, '_>) {
        if self.narrowing == Narrowing::None
            && let Some(black_hole) = self.recovery.black_hole()
            && (black_hole == BlackHole::Oversized || self.shrink(cx.now))
        {
            self.narrowing = Narrowing::Waiting(black_hole);
        }
        if let Narrowing::Waiting(black_hole) = self.narrowing
            && self.settles_at(cx) <= cx.now
        {
            self.narrowing = Narrowing::None;
            self.cut_again(cx, black_hole);
        }
    }

    /// Returns the time at which every datagram sent so far has been received or is lost.
    fn settles_at(&self, cx: &Context<'_, '_>) -> Instant {
        self.last_sent.plus_micros(self.recovery.settling_time(cx))
    }

    const fn waits_to_settle(&self) -> bool {
        SPLITTING && matches!(self.narrowing, Narrowing::Waiting(_))
    }

    fn cut_again(&mut self, cx: &mut Context<'_, '_>, black_hole: BlackHole) {
        self.recovery.lose_longer(cx, self.path.data_datagram());
        while self.recovery.has_lost() {
            self.take_lost(cx, SendSource::Usual);
        }
        let ping = self.ping_now(cx);
        let longest_arrived = self.recovery.longest_arrived().into();
        let how = Recut { sizes: self.path, ping: &ping, longest_arrived };
        let fit = self.queue.recut(cx, how);
        self.recovery.watch_for_black_hole(cx.now, self.path);
        // After the MTU was first reduced, parts that cannot be split again may still arrive as IP fragments.
        if black_hole == BlackHole::Oversized && fit == Fit::Never {
            self.narrowing = Narrowing::Stuck;
        }
    }

    /// Queues the messages of the next lost datagram that has any to retransmit.
    ///
    /// Path probes and unreliable messages are not retransmitted.
    fn take_lost(&mut self, cx: &mut Context<'_, '_>, source: SendSource) {
        while let Some(first) = self.recovery.take_lost(cx, source) {
            let mut at = Some(first);
            while let Some(message) = at {
                at = cx.pool.after(message);
                self.queue.push_resend(cx, message);
            }
            if self.queue.has_resends() {
                break;
            }
        }
    }

    /// Returns true if a part that cannot be split again exceeds the path MTU.
    pub(super) const fn is_stuck(&self) -> bool {
        SPLITTING && matches!(self.narrowing, Narrowing::Stuck)
    }

    /// Called when the operating system refused a datagram of `length` bytes as too large for the path.
    pub(super) fn on_too_large(&mut self, now: Instant, length: usize) {
        let fits = |mtu| length + usize::from(IP_UDP_OVERHEAD) <= usize::from(mtu);
        while SPLITTING && fits(self.path.mtu()) && self.shrink(now) {
            self.narrowing = Narrowing::Waiting(BlackHole::Large);
        }
    }

    pub(super) const fn has_new_mtu(&self) -> bool {
        SPLITTING && self.has_new_mtu
    }

    /// Takes the new MTU if it is to be reported to the application.
    pub(super) const fn take_new_mtu(&mut self) -> Option<u16> {
        if !self.has_new_mtu() {
            return None;
        }
        self.has_new_mtu = false;
        Some(self.path.mtu())
    }

    /// Returns the sizes at the negotiated MTU.
    pub(super) const fn sizes(&self) -> Sizes {
        self.path.agreed()
    }

    /// Adds the sender's figures to the statistics.
    pub(super) fn fill_stats(&self, now: Instant, stats: &mut ConnectionStats) {
        let [pushed, sent, resent, datagrams] = self.metrics.amounts(now);
        stats.messages_sent = self.messages_sent.get();
        stats.datagrams_sent = self.datagrams_sent.get();
        stats.bytes_pushed = pushed;
        stats.bytes_sent = sent;
        stats.bytes_resent = resent;
        stats.actual_bytes_sent = datagrams;
        (stats.waiting, stats.waiting_resends) = self.queue.waiting();
        stats.mtu = self.path.mtu();
        self.recovery.fill_stats(stats);
        self.pings.fill_stats(stats);
    }

    fn count(&mut self, now: Instant, metric: SentBytes, bytes: usize) {
        self.metrics.add(now, metric as usize, bytes);
    }

    /// Counts a sent datagram of any kind.
    pub(super) fn on_datagram(&mut self, now: Instant, bytes: usize) {
        self.count(now, SentBytes::Datagrams, bytes);
        self.validation.on_sent(bytes);
    }

    /// Counts a received datagram of any kind.
    pub(super) fn on_received(&mut self, bytes: usize) {
        self.validation.on_received(bytes);
    }

    /// Applies the anti-amplification limit to a client with an unvalidated address.
    ///
    /// At most `budget` bytes plus three times the received bytes may be sent to it.
    pub(super) fn require_validation(&mut self, budget: usize) {
        self.validation.require(budget);
    }

    /// Returns true if the address of the client is not validated.
    pub(super) fn requires_validation(&self) -> bool {
        self.validation.is_required()
    }

    /// Returns the send time of the ping to which a pong with `ping_time` belongs.
    ///
    /// A pong with the secret number of a ping validates the address.
    pub(super) fn on_echo(&mut self, cx: &Context<'_, '_>, ping_time: u64) -> u64 {
        self.validation.on_echo(cx, ping_time)
    }

    /// Creates a ping for the current time.
    fn ping_now(&self, cx: &Context<'_, '_>) -> Control<'static> {
        Control::Ping { time: self.validation.mask(cx, cx.now.as_millis()) }
    }

    /// Queues a message from the application.
    pub(super) fn send(
        &mut self,
        cx: &mut Context<'_, '_>,
        message: MessageToSend<'_>,
        delivery: Delivery,
    ) -> Result<Option<Receipt>, SendError> {
        let receipt = self.queue.push(cx, self.path, message, delivery, Purpose::Send)?;
        self.messages_sent.add_one();
        self.count(cx.now, SentBytes::Pushed, message.bytes.len());
        Ok(receipt)
    }

    /// Checks whether a message from the application would be accepted.
    pub(super) fn can_send(
        &self,
        cx: &Context<'_, '_>,
        length: usize,
        delivery: Delivery,
    ) -> Result<(), SendError> {
        self.queue.can_push(cx, self.path, length, delivery)
    }

    /// Returns the maximum length of a message; a peer with the same configuration and memory can receive it.
    pub(super) fn max_message_len(&self, cx: &Context<'_, '_>) -> usize {
        self.queue.max_message_len(cx, self.path)
    }

    /// Queues a control message of RakNet; returns false if there is no memory for it.
    pub(super) fn send_control(
        &mut self,
        cx: &mut Context<'_, '_>,
        control: &Control<'_>,
        delivery: Delivery,
    ) -> bool {
        let mut buffer = [0; MAX_CONTROL];
        let mut writer = Writer::new(&mut buffer);
        let written = if SERVER { control.write(&mut writer) } else { control.write_of_client(&mut writer) };
        if written.is_err() {
            return false;
        }
        self.queue
            .push(cx, self.path, MessageToSend::copied(writer.finish()), delivery, Purpose::Control)
            .is_ok()
    }

    /// Sends a ping. An unreliable ping takes no memory and contains the time of sending.
    pub(super) fn ping(&mut self, cx: &mut Context<'_, '_>, delivery: Delivery) {
        self.pings.schedule(cx.now, self.validation.ping_interval(cx.config.ping_interval));
        if !delivery.reliability.is_reliable() {
            self.pings.request_ping();
            return;
        }
        self.pings.on_ping_sent(cx.now);
        let ping = self.ping_now(cx);
        self.send_control(cx, &ping, delivery.with_priority(Priority::Immediate));
    }

    /// Handles an acknowledgement with `records` records.
    pub(super) fn on_ack(
        &mut self,
        cx: &mut Context<'_, '_>,
        records: u16,
        mut reader: Reader<'_>,
    ) -> Result<(), WireError> {
        let mut summary = AckSummary::default();
        let (queue, next) = (&mut self.queue, self.recovery.next_number());
        let mut names_unsent = false;
        let parsed = (0..records).try_for_each(|_| {
            let record = Record::read(&mut reader)?;
            names_unsent |= SERVER && record.reaches(next);
            self.recovery.on_ack_record(cx, record, &mut summary, |cx, message| {
                queue.resolve(cx, message, Outcome::Acknowledged);
            });
            Ok(())
        });
        self.recovery.on_ack_end(cx, summary);
        self.mend_black_hole(cx);
        if self.recovery.is_empty() && !self.queue.has_resends() {
            self.unacked_since = None;
        }
        // Only a forged acknowledgement names datagrams that were never sent (RFC 9000 section 13.1).
        if names_unsent { Err(WireError::BadValue) } else { parsed }
    }

    /// Handles a negative acknowledgement with `records` records.
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
        self.mend_black_hole(cx);
        Ok(())
    }

    /// Returns true if there was an RTT sample.
    pub(super) const fn has_rtt(&self) -> bool {
        self.recovery.has_rtt()
    }

    /// Returns true if everything sent was acknowledged.
    pub(super) fn is_delivered(&self) -> bool {
        self.queue.is_empty() && self.recovery.is_empty()
    }

    /// Returns since when an acknowledgement from the remote peer has been outstanding without interruption.
    pub(super) const fn unacked_since(&self) -> Option<Instant> {
        self.unacked_since
    }

    fn has_more(&self) -> bool {
        !self.queue.is_empty() || self.recovery.has_lost()
    }

    /// Returns when a datagram is due to be sent or declared lost.
    pub(super) fn deadline(&self, cx: &Context<'_, '_>) -> Option<Instant> {
        [self.recovery.deadline(cx), self.send_deadline(cx)].into_iter().flatten().min()
    }

    /// Returns when pacing and the send rate limit allow the next datagram, if nothing else delays it.
    fn send_deadline(&self, cx: &Context<'_, '_>) -> Option<Instant> {
        if self.waits_to_settle() {
            return Some(self.settles_at(cx));
        }
        if !self.has_more() || self.validation.is_blocked() || !self.recovery.has_room() {
            return None;
        }
        let paced = self.pacer.ready_at(self.recovery.rate());
        let limited = cx.config.outgoing_limit.map(|limit| self.limiter.ready_at(bytes_a_second(limit)));
        limited.into_iter().chain([paced]).max()
    }

    /// Declares datagrams lost after the retransmission timeout.
    pub(super) fn on_timeout(&mut self, cx: &mut Context<'_, '_>) {
        self.recovery.on_timeout(cx);
        self.mend_black_hole(cx);
    }

    /// Returns when [`keep_alive`](Self::keep_alive) is due.
    ///
    /// The last datagram from the remote peer was received at `last_received`. `timeout` is the timeout of the
    /// connection in microseconds.
    pub(super) fn keep_alive_deadline(&self, last_received: Instant, timeout: u64) -> Option<Instant> {
        let probe = self.is_delivered().then(|| self.probe_at(last_received, timeout));
        [self.pings.deadline(), probe].into_iter().flatten().min()
    }

    /// Pings at the configured interval, and sends keep-alive probes while idle.
    pub(super) fn keep_alive(&mut self, cx: &mut Context<'_, '_>, last_received: Instant, timeout: u64) {
        if self.pings.deadline().is_some_and(|at| at <= cx.now) {
            self.ping(cx, Delivery::UNRELIABLE);
        }
        if self.is_delivered() && self.probe_at(last_received, timeout) <= cx.now {
            self.last_sent = cx.now;
            self.ping(cx, Delivery::RELIABLE);
        }
    }

    /// Returns when a keep-alive probe is due while nothing else is in flight.
    ///
    /// The probe is due half of the timeout after the last ack-eliciting datagram was sent. Once nothing has been
    /// received for half of the timeout, it is already due an eighth of the timeout after that datagram. It is
    /// therefore repeated during the second half of the timeout.
    fn probe_at(&self, last_received: Instant, timeout: u64) -> Instant {
        let silent = last_received.plus_long(timeout / 2).max(self.last_sent.plus_long(timeout / 8));
        self.last_sent.plus_long(timeout / 2).min(silent)
    }

    /// Takes the receipts for the application. Each receipt keeps one charged block.
    pub(super) fn take_receipts(&mut self) -> Queue {
        self.queue.take_receipts()
    }

    pub(super) const fn has_progress(&self) -> bool {
        self.queue.has_progress()
    }

    /// Takes the progress of a split message that is being sent.
    pub(super) const fn take_progress(&mut self) -> Option<Progress> {
        self.queue.take_progress()
    }

    /// Frees all messages; nothing more is sent.
    pub(super) fn clear(&mut self, cx: &mut Context<'_, '_>) {
        let queue = &mut self.queue;
        self.recovery.clear(cx, |cx, message| queue.free(cx, message));
        self.queue.clear(cx);
        self.unacked_since = None;
        self.narrowing = Narrowing::None;
    }

    /// Returns the share of blocks held by messages, queued or in flight, and by receipts.
    pub(super) const fn share(&self) -> &Share {
        self.queue.share()
    }

    /// Called when the application has read a receipt.
    pub(super) fn on_receipt_read(&mut self, cx: &mut Context<'_, '_>, blocks: usize) {
        self.queue.release(cx, blocks);
    }

    /// Frees everything, including unread receipts.
    pub(super) fn release(&mut self, cx: &mut Context<'_, '_>) {
        self.clear(cx);
        self.queue.close_share(cx);
    }
}

fn bytes_a_second(bits: u64) -> u32 {
    u32::try_from(bits / 8).unwrap_or(u32::MAX)
}
