//! A connection as the endpoint knows it.

use super::{Connection, Context, State};
use crate::cursor::Writer;
use crate::endpoint::{self, ConnectError, ConnectionState, Notice, Receipt, SendError, Side};
use crate::game_protocol::stats::ConnectionStats;
use crate::game_protocol::types::GameProtocol;
use crate::game_protocol::wire::Reliability;
use crate::time::Instant;

impl endpoint::Connection<GameProtocol> for Connection {
    fn open(&mut self, cx: &mut Context<'_, '_>, (): &()) -> Result<(), ConnectError> {
        self.open(cx);
        Ok(())
    }

    fn send(
        &mut self,
        cx: &mut Context<'_, '_>,
        message: &[u8],
        delivery: Reliability,
    ) -> Result<Option<Receipt>, SendError> {
        self.send(cx, message, delivery).map(|()| None)
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
        self.has_news()
    }

    fn poll_event(&mut self, cx: &mut Context<'_, '_>) -> Option<Notice<GameProtocol>> {
        if self.take_opened() {
            Some(Notice::Opened)
        } else if let Some(message) = self.take_message(cx) {
            Some(Notice::Message(message))
        } else {
            self.take_ending().map(Notice::Ended)
        }
    }

    fn on_read(&mut self, blocks: usize) -> bool {
        self.on_read(blocks);
        false
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

    fn identity(&self) {}

    fn stats(&self, _now: Instant) -> ConnectionStats {
        self.stats()
    }

    fn is_over(&self) -> bool {
        self.state == State::Over
    }

    fn is_finished(&self, now: Instant) -> bool {
        self.is_finished(now)
    }

    fn is_lingering(&self) -> bool {
        self.can_make_room()
    }

    fn is_incoming(&self) -> bool {
        self.side == Side::Server && matches!(self.state, State::Open | State::Closing)
    }
}
