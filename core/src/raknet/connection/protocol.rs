//! A connection as the endpoint knows it.

use super::Connection;
use super::context::Context;
use super::handshake::State;
use crate::endpoint::{self, ConnectError, ConnectionState, Notice, Receipt, SendError, Side};
use crate::raknet::delivery::Delivery;
use crate::raknet::stats::ConnectionStats;
use crate::raknet::types::{ConnectOptions, RakNet};
use crate::raknet::wire::Guid;
use crate::storage::Share;
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
        self.has_events()
    }

    fn poll_event(&mut self, cx: &mut Context<'_, '_>) -> Option<Notice<RakNet>> {
        if self.handshake.take_opened() {
            Some(Notice::Opened)
        } else if let Some(progress) = self.receiver.take_progress().or_else(|| self.sender.take_progress()) {
            Some(Notice::Progress(progress))
        } else if let Some(message) = self.receiver.take_message(cx, || self.sender.pings.clock_difference())
        {
            Some(Notice::Message(message))
        } else {
            self.handshake.take_ending().map(Notice::Ended)
        }
    }

    fn send_share(&self) -> &Share {
        self.sender.share()
    }

    fn on_receipt_read(&mut self, cx: &mut Context<'_, '_>, blocks: usize) {
        self.sender.on_receipt_read(cx, blocks);
    }

    fn on_read(&mut self, cx: &mut Context<'_, '_>, blocks: usize) -> bool {
        self.receiver.on_read(cx, blocks);
        self.receiver.has_deferred()
    }

    fn nack_deferred(&mut self, cx: &mut Context<'_, '_>) {
        self.receiver.nack_deferred(cx);
    }

    fn release(&mut self, cx: &mut Context<'_, '_>) {
        self.receiver.clear(cx);
        self.sender.release(cx);
        self.handshake.release(cx);
    }

    fn side(&self) -> Side {
        self.side
    }

    fn state(&self) -> ConnectionState {
        self.handshake.public_state()
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

    fn is_over(&self) -> bool {
        self.handshake.state().is_over()
    }

    fn is_finished(&self, _now: Instant) -> bool {
        matches!(self.handshake.state(), State::Closed) && !self.has_notices() && self.receiver.is_read()
    }

    fn is_lingering(&self) -> bool {
        false
    }

    fn is_half_open(&self) -> bool {
        self.is_unverified()
    }

    fn is_incoming(&self) -> bool {
        self.side == Side::Server && self.handshake.takes_incoming_slot()
    }
}
