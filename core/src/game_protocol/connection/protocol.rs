//! A connection as the endpoint knows it.

use core::time::Duration;

use super::Connection;
use super::context::{Context, Ending};
use super::handshake::State;
use crate::cursor::Writer;
use crate::endpoint::{
    self, ConnectError, ConnectionEvent, ConnectionState, Incoming, MessageToSend, Receipt, SendError, Side,
};
use crate::game_protocol::reason::{ConnectFailure, DisconnectReason};
use crate::game_protocol::stats::ConnectionStats;
use crate::game_protocol::types::GameProtocol;
use crate::game_protocol::wire::{HandshakeWord, Header, Reliability};
use crate::storage::Share;
use crate::time::Instant;

impl endpoint::Connection<GameProtocol> for Connection {
    fn open(&mut self, cx: &mut Context<'_, '_>, (): &()) -> Result<(), ConnectError> {
        let salt = HandshakeWord(cx.state.responder.salt(cx.config));
        self.begin(cx, Side::Client);
        self.handshake.open(cx.now, salt);
        Ok(())
    }

    fn send(
        &mut self,
        cx: &mut Context<'_, '_>,
        message: MessageToSend<'_>,
        delivery: Reliability,
    ) -> Result<Option<Receipt>, SendError> {
        match self.handshake.state() {
            State::Connected => self.sender.push(cx, message.bytes, delivery).map(|()| None),
            State::Free | State::Opening | State::Closing | State::Closed => Err(SendError::NotConnected),
        }
    }

    fn can_send(&self, cx: &Context<'_, '_>, length: usize, delivery: Reliability) -> Result<(), SendError> {
        match self.handshake.state() {
            State::Connected => self.sender.can_push(cx, length, delivery),
            State::Free | State::Opening | State::Closing | State::Closed => Err(SendError::NotConnected),
        }
    }

    fn max_message_len(&self, cx: &Context<'_, '_>) -> usize {
        self.sender.max_message_len(cx)
    }

    fn refuse_data(&mut self, refuses: bool) {
        self.refuses_data = refuses;
    }

    fn disconnect(&mut self, cx: &mut Context<'_, '_>) {
        match self.handshake.state() {
            State::Opening => self.end(cx, Ending::Failed(ConnectFailure::Cancelled)),
            State::Connected => {
                self.handshake.close(cx.now);
                self.sender.close();
                self.end_if_delivered(cx);
            }
            State::Free | State::Closing | State::Closed => {}
        }
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_, '_>) {
        match self.handshake.state() {
            State::Free | State::Closed => {}
            State::Opening if self.handshake.since() + cx.config.handshake_timeout <= cx.now => {
                self.end(cx, Ending::Failed(ConnectFailure::NoAnswer));
            }
            State::Opening => self.handshake.on_timeout(cx),
            State::Connected | State::Closing => {
                self.handshake.on_timeout(cx);
                self.end_if_delivered(cx);
                if self.handshake.state() == State::Closed {
                    return;
                }
                if self.last_received + cx.config.timeout <= cx.now {
                    self.end(cx, Ending::Disconnected(DisconnectReason::Lost));
                } else if !self.receiver.expire(cx) {
                    self.end(cx, Ending::Disconnected(DisconnectReason::MessageUnfinished));
                }
            }
        }
    }

    fn poll_transmit(&mut self, cx: &mut Context<'_, '_>, buffer: &mut [u8]) -> Option<usize> {
        let mut writer = Writer::new(buffer);
        if let Some(message) = self.handshake.poll_transmit(cx.now) {
            message.write(&mut writer).ok()?;
        } else if !self.handshake.is_open() || self.sender.poll_transmit(cx, &mut writer).is_none() {
            if !core::mem::take(&mut self.end_is_due) {
                return None;
            }
            Header::End.write(&mut writer).ok()?;
        }
        Some(writer.written())
    }

    fn on_unreachable(&mut self, cx: &mut Context<'_, '_>) {
        if self.handshake.state() == State::Opening {
            self.end(cx, Ending::Failed(ConnectFailure::Unreachable));
        }
    }

    fn deadline(&self, cx: &Context<'_, '_>) -> Option<Instant> {
        let since = self.handshake.since();
        let handshake = self.handshake.deadline(cx);
        match self.handshake.state() {
            State::Free => None,
            State::Closed => (self.lingers_until > cx.now).then_some(self.lingers_until),
            State::Opening => handshake.into_iter().chain([since + cx.config.handshake_timeout]).min(),
            State::Connected | State::Closing => {
                let silence = self.last_received + cx.config.timeout;
                let wait = if self.sender.is_delivered() { Duration::ZERO } else { cx.config.close_timeout };
                let closed = (self.handshake.state() == State::Closing).then_some(since + wait);
                let resend = self.sender.resend_at(cx).map(|(at, _)| at);
                let receiver = self.receiver.deadline(cx);
                [Some(silence), closed, resend, handshake, receiver].into_iter().flatten().min()
            }
        }
    }

    fn has_events(&self) -> bool {
        self.handshake.has_events() || self.receiver.has_messages()
    }

    fn poll_event(&mut self, cx: &mut Context<'_, '_>) -> Option<ConnectionEvent<GameProtocol>> {
        if self.handshake.take_opened() {
            Some(ConnectionEvent::Opened)
        } else if let Some(message) = self.receiver.take_message(cx) {
            Some(ConnectionEvent::Message(message))
        } else {
            self.handshake.take_ending().map(ConnectionEvent::Ended)
        }
    }

    fn send_share(&self) -> &Share {
        self.sender.share()
    }

    fn on_read(&mut self, cx: &mut Context<'_, '_>, blocks: usize) -> bool {
        self.receiver.on_read(cx, blocks);
        false
    }

    fn release(&mut self, cx: &mut Context<'_, '_>) {
        self.sender.clear(cx);
        self.receiver.clear(cx);
    }

    fn side(&self) -> Side {
        self.side
    }

    fn state(&self) -> ConnectionState {
        self.handshake.public_state()
    }

    fn identity(&self) {}

    fn stats(&self, _now: Instant) -> ConnectionStats {
        let mut stats = ConnectionStats::default();
        self.sender.fill_stats(&mut stats);
        self.receiver.fill_stats(&mut stats);
        stats
    }

    fn is_over(&self) -> bool {
        self.handshake.state() == State::Closed
    }

    fn is_finished(&self, now: Instant) -> bool {
        self.is_lingering() && self.lingers_until <= now
    }

    fn is_lingering(&self) -> bool {
        self.handshake.state() == State::Closed && !self.end_is_due && !self.has_events()
    }

    fn incoming(&self) -> Incoming {
        // A client has proved its address before it gets a slot.
        let is_counted = self.side == Side::Server && self.handshake.is_open();
        if is_counted { Incoming::new(false, false) } else { Incoming::NO }
    }
}
