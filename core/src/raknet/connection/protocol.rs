//! The implementation of the endpoint's connection trait.

use super::block_header::Context;
use super::handshake::State;
use super::{Connection, ConnectionProtection};
use crate::endpoint::{
    self, ConnectError, ConnectionEvent, ConnectionState, Incoming, MessageToSend, Occupant, Receipt,
    SendError, Side,
};
use crate::raknet::config::{ConnectOptions, RakNet, SERVER};
use crate::raknet::delivery::Delivery;
use crate::raknet::reason::{ConnectFailure, DisconnectReason};
use crate::raknet::stats::ConnectionStats;
use crate::raknet::wire::{Guid, MAX_MTU, MIN_MTU, id};
use crate::storage::Share;
use crate::time::Instant;

impl endpoint::Connection<RakNet> for Connection {
    fn open(&mut self, cx: &mut Context<'_, '_>, options: &ConnectOptions<'_>) -> Result<(), ConnectError> {
        if !(MIN_MTU..=MAX_MTU).contains(&cx.config.mtu) || cx.config.interface_mtu < MIN_MTU {
            return Err(ConnectError::InvalidMtu);
        }
        let protection = ConnectionProtection::dial(cx, options)?;
        self.begin(cx, cx.config.mtu, protection);
        self.set_timeout(options.timeout.unwrap_or(cx.config.timeout));
        self.handshake.open(cx, options)
    }

    fn open_simultaneously(
        &mut self,
        cx: &mut Context<'_, '_>,
        options: &ConnectOptions<'_>,
    ) -> Result<bool, ConnectError> {
        if self.handshake.side() == Side::Client || self.protection.is_secure() || options.is_secure() {
            return Ok(false);
        }
        // Validates the options as for a new connection; for example, an identity requires `trust`.
        ConnectionProtection::dial(cx, options)?;
        if self.is_unverified() {
            self.handshake.open(cx, options)?;
        } else if !self.handshake.open_simultaneously() {
            return Ok(false);
        }
        self.set_timeout(options.timeout.unwrap_or(cx.config.timeout));
        Ok(true)
    }

    fn send(
        &mut self,
        cx: &mut Context<'_, '_>,
        message: MessageToSend<'_>,
        delivery: Delivery,
    ) -> Result<Option<Receipt>, SendError> {
        if self.handshake.state() != State::Connected {
            return Err(SendError::NotConnected);
        }
        let first = message.bytes.first().ok_or(SendError::Empty)?;
        if *first < id::TIMESTAMP {
            return Err(SendError::ReservedId);
        }
        self.sender.send(cx, message, delivery)
    }

    fn can_send(&self, cx: &Context<'_, '_>, length: usize, delivery: Delivery) -> Result<(), SendError> {
        if self.handshake.state() != State::Connected {
            return Err(SendError::NotConnected);
        }
        self.sender.can_send(cx, length, delivery)
    }

    fn max_message_len(&self, cx: &Context<'_, '_>) -> usize {
        self.sender.max_message_len(cx)
    }

    fn refuse_data(&mut self, refuses: bool) {
        self.refuses_data = refuses;
    }

    fn disconnect(&mut self, cx: &mut Context<'_, '_>) {
        let result = self.handshake.disconnect(cx, &mut self.sender);
        self.end_on_error(cx, result);
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_, '_>) {
        // Checked before the idle timeout, after which the remote peer would not be notified. An application that does
        // not wait passes a time after all deadlines, and its notification must still be sent.
        if self.handshake.is_close_overdue(cx) {
            let result = self.handshake.on_timeout(cx, &self.protection, &mut self.sender);
            return self.end_on_error(cx, result);
        }
        if self.silence_deadline().is_some_and(|at| at <= cx.now) {
            return self.abort(cx, DisconnectReason::Lost, ConnectFailure::HandshakeTimeout);
        }
        if self.memory_deadline().is_some_and(|at| at <= cx.now) {
            return self.abort(cx, DisconnectReason::ReceiveMemory, ConnectFailure::Closed);
        }
        self.sender.on_timeout(cx);
        if self.is_stuck() {
            return self.end_stuck(cx);
        }
        if self.handshake.state() == State::Connected {
            self.sender.keep_alive(cx, self.last_received, self.timeout_micros());
        } else {
            let result = self.handshake.on_timeout(cx, &self.protection, &mut self.sender);
            self.end_on_error(cx, result);
        }
    }

    fn poll_transmit(&mut self, cx: &mut Context<'_, '_>, buffer: &mut [u8]) -> Option<usize> {
        let mtu = self.mtu();
        let offline = self.handshake.compose_offline(cx, &mut self.protection, mtu, buffer);
        let length = if let Some(length) = offline {
            length
        } else {
            let place = self.protection.place(buffer);
            let length = self.compose(cx, place);
            self.collect_receipts(cx);
            self.protection.seal(cx.now, buffer, length?)?
        };
        self.sender.on_datagram(cx.now, length);
        Some(length)
    }

    fn on_too_large(&mut self, cx: &mut Context<'_, '_>, length: usize) {
        self.on_too_large(cx, length);
    }

    fn on_unreachable(&mut self, cx: &mut Context<'_, '_>) {
        let result = self.handshake.on_unreachable();
        self.end_on_error(cx, result);
    }

    fn deadline(&self, cx: &Context<'_, '_>) -> Option<Instant> {
        let state = self.handshake.state();
        if matches!(state, State::Free | State::Aborting | State::Closed) {
            return self.handshake.deadline(cx);
        }
        let in_state = if matches!(state, State::Connected) {
            self.sender.keep_alive_deadline(self.last_received, self.timeout_micros())
        } else {
            self.handshake.deadline(cx)
        };
        let (silence, memory) = (self.silence_deadline(), self.memory_deadline());
        let deadlines = [in_state, self.receiver.ack_deadline(), memory, self.sender.deadline(cx), silence];
        deadlines.into_iter().flatten().min()
    }

    fn poll_event(&mut self, cx: &mut Context<'_, '_>) -> Option<ConnectionEvent<RakNet>> {
        if self.handshake.take_opened() {
            return Some(ConnectionEvent::Opened);
        }
        self.handshake.forget_internal_addresses(cx);
        if let Some(reason) = self.handshake.take_refused() {
            return Some(ConnectionEvent::Refused { reason, is_validated: !self.is_unvalidated() });
        }
        if let Some(progress) = self.take_progress() {
            Some(ConnectionEvent::Progress(progress))
        } else if let Some(mtu) = self.take_new_mtu() {
            Some(ConnectionEvent::MtuChanged(mtu))
        } else if let Some(message) = self.receiver.take_message(cx, || self.sender.pings.clock_difference())
        {
            Some(ConnectionEvent::Message(message))
        } else {
            self.handshake.take_ending().map(ConnectionEvent::Ended)
        }
    }

    fn on_receipt_read(&mut self, cx: &mut Context<'_, '_>, blocks: usize) {
        self.sender.on_receipt_read(cx, blocks);
    }

    fn on_read(&mut self, cx: &mut Context<'_, '_>, blocks: usize) -> bool {
        self.receiver.on_read(cx, blocks);
        self.receiver.has_deferred()
    }

    fn resume_deferred(&mut self, cx: &mut Context<'_, '_>) {
        self.deliver_stalled(cx);
        self.receiver.nack_deferred(cx);
    }

    fn release(&mut self, cx: &mut Context<'_, '_>) {
        self.receiver.clear(cx);
        self.sender.release(cx);
        self.handshake.release(cx);
    }

    fn side(&self) -> Side {
        self.handshake.side()
    }

    fn identity(&self) -> Guid {
        self.guid()
    }

    fn stats(&self, now: Instant) -> ConnectionStats {
        let mut stats = ConnectionStats::default();
        self.sender.fill_stats(now, &mut stats);
        self.receiver.fill_stats(now, &mut stats);
        stats
    }
}

impl Occupant for Connection {
    fn state(&self) -> ConnectionState {
        self.handshake.public_state()
    }

    fn has_events(&self) -> bool {
        self.has_own_events() || self.handshake.was_open() && !self.receiver.is_read()
    }

    fn send_share(&self) -> &Share {
        self.sender.share()
    }

    fn is_over(&self) -> bool {
        self.handshake.state().is_over()
    }

    fn is_finished(&self, _now: Instant) -> bool {
        matches!(self.handshake.state(), State::Closed) && !self.has_own_events() && self.receiver.is_read()
    }

    fn is_lingering(&self) -> bool {
        false
    }

    fn is_evictable(&self) -> bool {
        let state = self.handshake.state();
        (state.is_over() || state == State::Rejecting) && !self.has_own_events() && self.receiver.is_read()
    }

    fn incoming(&self) -> Incoming {
        if !SERVER || self.handshake.side() != Side::Server || !self.handshake.takes_incoming_slot() {
            return Incoming::NO;
        }
        Incoming::new(self.is_unverified(), self.is_unvalidated())
    }

    fn unvalidated_since(&self) -> Instant {
        self.made_at
    }
}
