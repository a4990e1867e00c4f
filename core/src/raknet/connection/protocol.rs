//! A connection as the endpoint knows it.

use super::Connection;
use super::context::Context;
use super::handshake::State;
use crate::endpoint::{self, ConnectError, ConnectionState, Notice, Receipt, SendError, Side};
use crate::raknet::delivery::Delivery;
use crate::raknet::stats::ConnectionStats;
use crate::raknet::types::{ConnectOptions, RakNet};
use crate::raknet::wire::Guid;
use crate::time::Instant;

impl endpoint::Connection<RakNet> for Connection {
    fn open(&mut self, cx: &mut Context<'_, '_>, options: &ConnectOptions<'_>) -> Result<(), ConnectError> {
        self.open(cx, options)
    }

    fn send(
        &mut self,
        cx: &mut Context<'_, '_>,
        message: &[u8],
        delivery: Delivery,
    ) -> Result<Option<Receipt>, SendError> {
        self.send(cx, message, delivery)
    }

    fn disconnect(&mut self, cx: &mut Context<'_, '_>) {
        self.disconnect(cx);
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_, '_>) {
        self.on_timeout(cx);
    }

    fn poll_transmit(&mut self, cx: &mut Context<'_, '_>, buffer: &mut [u8]) -> Option<usize> {
        self.poll_transmit(cx, buffer)
    }

    fn deadline(&self, cx: &Context<'_, '_>) -> Option<Instant> {
        self.deadline(cx)
    }

    fn has_events(&self) -> bool {
        self.has_news()
    }

    fn poll_event(&mut self, cx: &mut Context<'_, '_>) -> Option<Notice<RakNet>> {
        if self.take_opened() {
            Some(Notice::Opened)
        } else if let Some(progress) = self.take_progress() {
            Some(Notice::Progress(progress))
        } else if let Some(message) = self.take_message(cx) {
            Some(Notice::Message(message))
        } else {
            self.take_ending().map(Notice::Ended)
        }
    }

    fn on_read(&mut self, blocks: usize) -> bool {
        self.on_read(blocks);
        self.has_refused()
    }

    fn nack_deferred(&mut self, cx: &mut Context<'_, '_>) {
        self.recall(cx);
    }

    fn release(&mut self, cx: &mut Context<'_, '_>) {
        self.release(cx);
    }

    fn side(&self) -> Side {
        self.side
    }

    fn state(&self) -> ConnectionState {
        self.public_state()
    }

    fn identity(&self) -> Guid {
        self.guid()
    }

    fn stats(&self, now: Instant) -> ConnectionStats {
        self.stats(now)
    }

    fn is_over(&self) -> bool {
        self.handshake.state().is_over()
    }

    fn is_finished(&self, _now: Instant) -> bool {
        matches!(self.handshake.state(), State::Closed) && !self.has_own_news() && self.receiver.is_read()
    }

    fn is_lingering(&self) -> bool {
        false
    }

    fn is_incoming(&self) -> bool {
        self.is_incoming()
    }
}
