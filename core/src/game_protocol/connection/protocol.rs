//! A connection as the endpoint knows it.

use super::Connection;
use super::context::Context;
use super::handshake::{Handshake, State};
use crate::cursor::Writer;
use crate::endpoint::{self, ConnectError, ConnectionState, Notice, Receipt, SendError, Side};
use crate::game_protocol::stats::ConnectionStats;
use crate::game_protocol::types::GameProtocol;
use crate::game_protocol::wire::{HandshakeWord, Reliability};
use crate::time::Instant;

impl endpoint::Connection<GameProtocol> for Connection {
    fn open(&mut self, cx: &mut Context<'_, '_>, (): &()) -> Result<(), ConnectError> {
        let salt = HandshakeWord(cx.state.responder.salt(cx.config));
        self.begin(cx, Side::Client, Handshake::open(cx.now, salt));
        Ok(())
    }

    fn send(
        &mut self,
        cx: &mut Context<'_, '_>,
        message: &[u8],
        delivery: Reliability,
    ) -> Result<Option<Receipt>, SendError> {
        match self.handshake.state() {
            State::Connected => self.sender.push(cx, message, delivery).map(|()| None),
            State::Free | State::Opening | State::Closing | State::Closed => Err(SendError::NotConnected),
        }
    }

    fn can_send(&self, cx: &Context<'_, '_>, length: usize, delivery: Reliability) -> Result<(), SendError> {
        match self.handshake.state() {
            State::Connected => self.sender.admit(cx, length, delivery).map(|_| ()),
            State::Free | State::Opening | State::Closing | State::Closed => Err(SendError::NotConnected),
        }
    }

    fn disconnect(&mut self, cx: &mut Context<'_, '_>) {
        self.disconnect(cx);
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_, '_>) {
        self.on_timeout(cx);
    }

    fn poll_transmit(&mut self, cx: &mut Context<'_, '_>, buffer: &mut [u8]) -> Option<usize> {
        let mut writer = Writer::new(buffer);
        self.poll_transmit(cx, &mut writer)?;
        Some(writer.written())
    }

    fn deadline(&self, cx: &Context<'_, '_>) -> Option<Instant> {
        self.deadline(cx)
    }

    fn has_events(&self) -> bool {
        self.has_events()
    }

    fn poll_event(&mut self, cx: &mut Context<'_, '_>) -> Option<Notice<GameProtocol>> {
        if self.handshake.take_opened() {
            Some(Notice::Opened)
        } else if let Some(message) = self.receiver.take_message(cx) {
            Some(Notice::Message(message))
        } else {
            self.handshake.take_ending().map(Notice::Ended)
        }
    }

    fn on_read(&mut self, blocks: usize) -> bool {
        self.receiver.on_read(blocks);
        false
    }

    fn release(&mut self, cx: &mut Context<'_, '_>) {
        self.sender.clear(cx);
        self.receiver.clear(cx);
        self.handshake.release();
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

    fn is_incoming(&self) -> bool {
        self.side == Side::Server && self.handshake.is_open()
    }
}
