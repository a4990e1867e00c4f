//! A connection: everything between the datagrams of one remote peer and the application.
//!
//! ```text
//!              challenge                disconnect            delivered, or 1 s
//! Opening ────────────────> Connected ──────────────> Closing ────────────────> Closed ──> (free)
//!    │                        ^  │                      │        END sent         ^  lingers and
//!    │ timeout, cancelled     │  └── END, timeout ──────┴─────────────────────────┤  repeats END
//!    └──────────────────────────────────────────────────────────────────────────>─┘
//!                 correct answer to a challenge (server)
//! ```
//!
//! Each part depends only on the parts listed below it. They interact only in this module:
//!
//! ```text
//!   handshake            state, opening
//!   sender   receiver    outgoing and incoming messages
//!   rtt                  the resend interval
//!   block_header         shared types; window bits
//! ```

mod block_header;
mod handshake;
mod receiver;
mod rtt;
mod sender;

use core::time::Duration;

use block_header::{Context, Ending};
use handshake::{Handshake, State};
use receiver::{ArrivedChunk, ReceiveError, Receiver};
use sender::Sender;

use super::config::{ConnectFailure, ConnectionStats, DisconnectReason, DropReason, GameProtocol};
use super::responder::Acknowledgement;
use super::wire::{HandshakeWord, Header, Reliability};
use crate::cursor::Writer;
use crate::endpoint::{
    self, ConnectError, ConnectionEvent, ConnectionState, Incoming, MessageToSend, Occupant, Receipt,
    SendError, Side,
};
use crate::storage::Share;
use crate::time::Instant;

pub(crate) use block_header::BlockHeader;

/// A connection.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    side: Side,
    handshake: Handshake,
    sender: Sender,
    receiver: Receiver,
    /// The time at which the last packet from the remote peer was received.
    last_received: Instant,
    /// Set while END is to be sent.
    end_is_due: bool,
    /// The time until which a closed connection retransmits END.
    lingers_until: Instant,
    /// Set while chunks are dropped at the request of the application.
    refuses_data: bool,
}

impl Connection {
    fn begin(&mut self, cx: &Context<'_, '_>, side: Side) {
        self.side = side;
        self.last_received = cx.now;
        self.sender.start_sequences_at(cx.state.first_sequence);
    }

    /// Server: creates a connection with a client that answered its challenge with `token`.
    pub(crate) fn accept(&mut self, cx: &Context<'_, '_>, token: HandshakeWord) {
        self.begin(cx, Side::Server);
        self.handshake.accept(cx.now, token);
    }

    /// Closes a connection for which `disconnect` was called, once everything is delivered or `close_timeout` has
    /// passed.
    ///
    /// `poll_transmit` must not call this function: a driver polls events before datagrams, so the event would be
    /// reported late.
    fn end_if_delivered(&mut self, cx: &mut Context<'_, '_>) {
        let is_late = self.handshake.since() + cx.config.close_timeout <= cx.now;
        if self.handshake.state() == State::Closing && (self.sender.is_delivered() || is_late) {
            self.end(cx, Ending::Disconnected(DisconnectReason::Local));
        }
    }

    /// Handles a datagram from the remote peer.
    pub(crate) fn handle_datagram(&mut self, cx: &mut Context<'_, '_>, datagram: &[u8]) {
        match self.handshake.state() {
            State::Free => {}
            State::Opening => {
                if self.handshake.on_challenge(cx, datagram) {
                    self.last_received = cx.now;
                }
            }
            State::Connected | State::Closing => self.on_packet(cx, datagram),
            State::Closed => self.on_late_datagram(cx, datagram),
        }
    }

    fn on_packet(&mut self, cx: &mut Context<'_, '_>, datagram: &[u8]) {
        let Ok((header, body)) = Header::read(datagram) else {
            cx.stats.drop(DropReason::TooShort);
            return;
        };
        if body.is_empty() && self.handshake.is_repeated(datagram) {
            cx.stats.drop(DropReason::Unexpected);
            self.handshake.on_repetition(cx, datagram);
            return;
        }
        self.handshake.confirm();
        if header != Header::End {
            self.last_received = cx.now;
        }
        match header {
            Header::End => {
                self.end(cx, Ending::Disconnected(DisconnectReason::Remote));
                self.end_is_due = false;
            }
            Header::Acknowledgement { chunk, sequence } => {
                if !self.sender.on_ack(cx, sequence, chunk) {
                    cx.stats.drop(DropReason::UnknownAcknowledgement);
                }
                self.end_if_delivered(cx);
            }
            Header::Chunk { reliability, position, chunk: index, sequence } => {
                self.on_chunk(cx, ArrivedChunk { reliability, position, index, sequence, body });
            }
        }
    }

    fn on_chunk(&mut self, cx: &mut Context<'_, '_>, chunk: ArrivedChunk<'_>) {
        // Handled like a lost datagram: the remote peer retransmits a reliable chunk.
        if self.refuses_data {
            cx.stats.on_refused();
            return;
        }
        let is_reliable = chunk.reliability.is_reliable();
        if is_reliable && cx.state.acknowledgements.is_full() {
            cx.stats.drop(DropReason::AcknowledgementsFull);
            return;
        }
        match self.receiver.on_chunk(cx, chunk) {
            Ok(()) => {}
            Err(ReceiveError::Dropped(reason)) => {
                cx.stats.drop(reason);
                if reason == DropReason::NoMemory {
                    return;
                }
            }
            Err(ReceiveError::MessageTooLarge) => {
                self.end(cx, Ending::Disconnected(DisconnectReason::MessageTooLarge));
                return;
            }
        }
        if is_reliable {
            let (slot, generation) = (cx.slot, cx.generation);
            // Cannot fail: the capacity was checked above.
            cx.state.acknowledgements.push(Acknowledgement {
                slot,
                generation,
                sequence: chunk.sequence,
                chunk: chunk.index,
            });
        }
    }

    /// Answers a packet that is received after the connection has closed with END, because the remote peer has not
    /// received END.
    fn on_late_datagram(&mut self, cx: &mut Context<'_, '_>, datagram: &[u8]) {
        cx.stats.drop(DropReason::Ended);
        let is_packet = matches!(Header::read(datagram), Ok((header, _)) if header != Header::End);
        if is_packet && self.lingers_until > cx.now {
            self.end_is_due = true;
        }
    }

    /// Closes the connection. If it was open, END is sent to the remote peer.
    fn end(&mut self, cx: &mut Context<'_, '_>, ending: Ending) {
        let was_open = matches!(ending, Ending::Disconnected(_));
        self.handshake.end(cx.now, ending);
        self.end_is_due = was_open;
        self.lingers_until = if was_open { cx.now + cx.config.linger } else { cx.now };
        self.sender.clear(cx);
        self.receiver.clear_partial(cx);
    }

    /// Records that the carrier of the datagrams has changed.
    pub(crate) const fn on_new_carrier(&mut self, cx: &Context<'_, '_>) {
        self.sender.on_new_carrier(cx.now);
    }

    /// Records that the remote peer was challenged again after the connection closed.
    pub(crate) const fn on_challenged_again(&mut self) {
        self.handshake.on_challenged_again();
    }

    /// Returns true if the answer that opened this closed connection was received again.
    ///
    /// The remote peer did not ask for a new connection, which would deliver messages a second time.
    pub(crate) fn is_duplicate(&self, token: HandshakeWord) -> bool {
        self.handshake.is_duplicate(token)
    }
}

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

    fn poll_event(&mut self, cx: &mut Context<'_, '_>) -> Option<ConnectionEvent<GameProtocol>> {
        if self.handshake.take_opened() {
            Some(ConnectionEvent::Opened)
        } else if let Some(message) = self.receiver.take_message(cx) {
            Some(ConnectionEvent::Message(message))
        } else {
            self.handshake.take_ending().map(ConnectionEvent::Ended)
        }
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

    fn identity(&self) {}

    fn stats(&self, _now: Instant) -> ConnectionStats {
        let mut stats = ConnectionStats::default();
        self.sender.fill_stats(&mut stats);
        self.receiver.fill_stats(&mut stats);
        stats
    }
}

impl Occupant for Connection {
    fn state(&self) -> ConnectionState {
        self.handshake.public_state()
    }

    fn has_events(&self) -> bool {
        self.handshake.has_events() || self.receiver.has_messages()
    }

    fn send_share(&self) -> &Share {
        self.sender.share()
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
        // A client has validated its address before it gets a slot.
        let is_counted = self.side == Side::Server && self.handshake.is_open();
        if is_counted { Incoming::new(false, false) } else { Incoming::NO }
    }
}
