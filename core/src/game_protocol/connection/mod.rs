//! A connection: everything about one other peer.
//!
//! ```text
//!              challenge                disconnect            delivered, or 1 s
//! Opening ────────────────────> Open ──────────────> Closing ──────────────────> Over ──> (free)
//!    │                        ^  │                      │        END sent         ^  lingers and
//!    │ too late, cancelled    │  └── END, silence ──────┴─────────────────────────┤  repeats END
//!    └──────────────────────────────────────────────────────────────────────────>─┘
//!                 right answer to a challenge of ours (server)
//! ```

mod block_header;
mod handshake;
mod protocol;
mod receiver;
mod round_trip;
mod sender;
mod sequences;

use core::time::Duration;

pub(crate) use block_header::BlockHeader;

use super::reason::{ConnectFailure, DisconnectReason};
use super::state::Acknowledgement;
use super::stats::{ConnectionStats, DropReason};
use super::types::GameProtocol;
use super::wire::{Handshake, Header, Reliability};
use crate::cursor::Writer;
use crate::endpoint::{self, ConnectionState, SendError, Side};
use crate::storage::Block;
use crate::time::Instant;
use receiver::{Chunk, Receiver, Refusal};
use sender::Sender;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// The slot belongs to nobody.
    #[default]
    Free,
    Opening,
    Open,
    Closing,
    Over,
}

type Ending = endpoint::Ending<GameProtocol>;

/// What a connection borrows from its peer for the time of one call.
pub(crate) type Context<'x, 'a> = endpoint::Context<'x, 'a, GameProtocol>;

/// One connection, or a free slot.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    state: State,
    side: Side,
    /// The salt of a client.
    salt: Handshake,
    /// What the other peer sent last in the handshake, to know it when it comes again.
    token: Handshake,
    /// Whether anything came back since the handshake.
    confirmed: bool,
    /// Whether a message of the handshake is to be sent.
    greeting: bool,
    /// Whether END is to be sent.
    farewell: bool,
    opened: bool,
    /// Whether the other peer was challenged again since the connection is over.
    invited: bool,
    ending: Option<Ending>,
    state_since: Instant,
    heard_at: Instant,
    greeted_at: Instant,
    /// When the slot may be given away.
    lingers_until: Instant,
    sender: Sender,
    receiver: Receiver,
}

impl Connection {
    fn begin(&mut self, cx: &Context<'_, '_>, side: Side) {
        *self = Self { side, state_since: cx.now, heard_at: cx.now, ..Self::default() };
        self.sender.start_at(cx.state.first_sequence);
    }

    /// Begins to open a connection.
    fn open(&mut self, cx: &mut Context<'_, '_>) {
        self.begin(cx, Side::Client);
        self.state = State::Opening;
        self.salt = Handshake(cx.state.responder.salt(cx.config));
        self.greeting = true;
    }

    /// Takes a client that has answered its challenge with `token`.
    pub(crate) fn accept(&mut self, cx: &Context<'_, '_>, token: Handshake) {
        self.begin(cx, Side::Server);
        self.state = State::Open;
        self.token = token;
        self.opened = true;
    }

    /// Ends the connection as its application wants.
    pub(crate) fn disconnect(&mut self, cx: &mut Context<'_, '_>) {
        match self.state {
            State::Opening => self.end(cx, Ending::Failed(ConnectFailure::Cancelled)),
            State::Open => {
                self.state = State::Closing;
                self.state_since = cx.now;
                self.end_if_done(cx);
            }
            State::Free | State::Closing | State::Over => {}
        }
    }

    /// Ends a connection that its application wants to end, once nothing is under way or its patience is over. News of
    /// that come from what goes in, never from taking datagrams: whoever takes them has taken the events before.
    fn end_if_done(&mut self, cx: &mut Context<'_, '_>) {
        let is_late = self.state_since + cx.config.close_timeout <= cx.now;
        if self.state == State::Closing && (self.sender.is_done() || is_late) {
            self.end(cx, Ending::Disconnected(DisconnectReason::Local));
        }
    }

    /// Takes a datagram of the other peer.
    pub(crate) fn handle_datagram(&mut self, cx: &mut Context<'_, '_>, datagram: &[u8]) {
        match self.state {
            State::Free => {}
            State::Opening => self.on_challenge(cx, datagram),
            State::Open | State::Closing => self.on_packet(cx, datagram),
            State::Over => self.on_late(cx, datagram),
        }
    }

    fn on_packet(&mut self, cx: &mut Context<'_, '_>, datagram: &[u8]) {
        let Ok((header, body)) = Header::read(datagram) else {
            cx.stats.drop(DropReason::TooShort);
            return;
        };
        if body.is_empty() && self.is_handshake(datagram) {
            cx.stats.drop(DropReason::Unexpected);
            self.answer_again(cx);
            return;
        }
        self.confirmed = true;
        if header != Header::End {
            self.heard_at = cx.now;
        }
        match header {
            Header::End => {
                self.end(cx, Ending::Disconnected(DisconnectReason::Remote));
                self.farewell = false;
            }
            Header::Acknowledgement { chunk, sequence } => {
                if !self.sender.acknowledge(cx, sequence, chunk) {
                    cx.stats.drop(DropReason::UnknownAcknowledgement);
                }
                self.end_if_done(cx);
            }
            Header::Chunk { reliability, position, chunk: number, sequence } => {
                self.on_chunk(cx, Chunk { reliability, position, number, sequence, body });
            }
        }
    }

    fn on_chunk(&mut self, cx: &mut Context<'_, '_>, chunk: Chunk<'_>) {
        let is_reliable = chunk.reliability.is_reliable();
        if is_reliable && cx.state.acknowledgements.is_full() {
            cx.stats.drop(DropReason::AcknowledgementsFull);
            return;
        }
        match self.receiver.take(cx, chunk) {
            Ok(()) => {}
            Err(Refusal::Dropped(reason)) => {
                cx.stats.drop(reason);
                if reason == DropReason::NoMemory {
                    return;
                }
            }
            Err(Refusal::TooLarge) => {
                self.end(cx, Ending::Disconnected(DisconnectReason::MessageTooLarge));
                return;
            }
        }
        if is_reliable {
            let (slot, generation) = (cx.slot, cx.generation);
            // There is room, as was just seen.
            cx.state.acknowledgements.push(Acknowledgement {
                slot,
                generation,
                sequence: chunk.sequence,
                chunk: chunk.number,
            });
        }
    }

    /// Whoever still talks did not hear END.
    fn on_late(&mut self, cx: &mut Context<'_, '_>, datagram: &[u8]) {
        cx.stats.drop(DropReason::Ended);
        let is_talk = matches!(Header::read(datagram), Ok((header, _)) if header != Header::End);
        if is_talk && self.lingers_until > cx.now {
            self.farewell = true;
        }
    }

    /// Takes a message for sending.
    pub(crate) fn send(
        &mut self,
        cx: &mut Context<'_, '_>,
        payload: &[u8],
        reliability: Reliability,
    ) -> Result<(), SendError> {
        match self.state {
            State::Open => self.sender.push(cx, payload, reliability),
            State::Free | State::Opening | State::Closing | State::Over => Err(SendError::NotConnected),
        }
    }

    /// Writes the next datagram.
    pub(crate) fn poll_transmit(&mut self, cx: &mut Context<'_, '_>, writer: &mut Writer<'_>) -> Option<()> {
        if core::mem::take(&mut self.greeting) {
            self.greeted_at = cx.now;
            let greeting =
                if self.state == State::Opening { self.salt } else { self.salt.season(self.token) };
            return greeting.write(writer).ok();
        }
        if matches!(self.state, State::Open | State::Closing) && self.sender.poll(cx, writer).is_some() {
            return Some(());
        }
        let says_farewell = core::mem::take(&mut self.farewell);
        if says_farewell { Header::End.write(writer).ok() } else { None }
    }

    /// Does what is due.
    pub(crate) fn on_timeout(&mut self, cx: &mut Context<'_, '_>) {
        match self.state {
            State::Free | State::Over => {}
            State::Opening if self.state_since + cx.config.handshake_timeout <= cx.now => {
                self.end(cx, Ending::Failed(ConnectFailure::NoAnswer));
            }
            State::Opening => self.greet_again(cx),
            State::Open | State::Closing => {
                self.greet_again(cx);
                self.end_if_done(cx);
                if self.state == State::Over {
                    return;
                }
                if self.heard_at + cx.config.timeout <= cx.now {
                    self.end(cx, Ending::Disconnected(DisconnectReason::Lost));
                } else if !self.receiver.expire(cx) {
                    self.end(cx, Ending::Disconnected(DisconnectReason::MessageUnfinished));
                }
            }
        }
    }

    /// When something is due next.
    pub(crate) fn deadline(&self, cx: &Context<'_, '_>) -> Option<Instant> {
        match self.state {
            State::Free => None,
            State::Over => (self.lingers_until > cx.now).then_some(self.lingers_until),
            State::Opening => {
                let give_up = self.state_since + cx.config.handshake_timeout;
                self.greeting_at(cx).into_iter().chain([give_up]).min()
            }
            State::Open | State::Closing => {
                let silence = self.heard_at + cx.config.timeout;
                let patience = if self.sender.is_done() { Duration::ZERO } else { cx.config.close_timeout };
                let closed = (self.state == State::Closing).then_some(self.state_since + patience);
                let resend = self.sender.resend_at(cx).map(|(at, _)| at);
                let greeting = self.greeting_at(cx);
                let receiver = self.receiver.deadline(cx);
                [Some(silence), closed, resend, greeting, receiver].into_iter().flatten().min()
            }
        }
    }

    /// Ends the connection. A peer that it was open with is told.
    fn end(&mut self, cx: &mut Context<'_, '_>, ending: Ending) {
        let was_open = matches!(ending, Ending::Disconnected(_));
        self.state = State::Over;
        self.ending = Some(ending);
        self.greeting = false;
        self.farewell = was_open;
        self.lingers_until = if was_open { cx.now + cx.config.linger } else { cx.now };
        self.sender.clear(cx);
        self.receiver.clear(cx);
    }

    fn has_news(&self) -> bool {
        self.opened || self.receiver.has_messages() || self.ending.is_some()
    }

    /// Takes the news that the connection is open.
    pub(crate) fn take_opened(&mut self) -> bool {
        core::mem::take(&mut self.opened)
    }

    /// Takes the next message.
    pub(crate) fn take_message(&mut self, cx: &mut Context<'_, '_>) -> Option<Block> {
        self.receiver.pop(cx)
    }

    /// Takes the news that the connection is over.
    pub(crate) const fn take_ending(&mut self) -> Option<Ending> {
        self.ending.take()
    }

    /// The application has read a message of so many blocks.
    pub(crate) const fn on_read(&mut self, blocks: usize) {
        self.receiver.on_read(blocks);
    }

    /// Whether the slot can be given to another connection.
    pub(crate) fn is_finished(&self, now: Instant) -> bool {
        self.can_make_room() && self.lingers_until <= now
    }

    /// Whether nothing but lingering is left to do.
    pub(crate) fn can_make_room(&self) -> bool {
        self.state == State::Over && !self.farewell && !self.has_news()
    }

    /// Frees the slot. What the application did not read is lost with it.
    pub(crate) fn release(&mut self, cx: &mut Context<'_, '_>) {
        self.sender.clear(cx);
        self.receiver.clear(cx);
        self.receiver.clear_inbox(cx);
        self.state = State::Free;
    }

    /// The other peer, whose connection is over, was challenged again.
    pub(crate) const fn invite(&mut self) {
        self.invited = true;
    }

    /// Whether the answer that opened this connection, which is over, only arrived once more: opening another one for
    /// it would deliver late doubles of its messages again.
    pub(crate) fn is_doubled(&self, token: Handshake) -> bool {
        self.token == token && !self.invited
    }

    pub(crate) const fn public_state(&self) -> ConnectionState {
        match self.state {
            State::Opening => ConnectionState::Connecting,
            State::Open => ConnectionState::Connected,
            State::Closing => ConnectionState::Disconnecting,
            State::Free | State::Over => ConnectionState::Disconnected,
        }
    }

    pub(crate) const fn stats(&self) -> ConnectionStats {
        let sent = &self.sender.counts;
        ConnectionStats {
            messages_sent: sent.messages,
            messages_received: self.receiver.messages,
            chunks_sent: sent.sent,
            chunks_resent: sent.resent,
            chunks_received: self.receiver.chunks,
            chunks_acknowledged: sent.acknowledged,
            in_flight: sent.in_flight,
            waiting: sent.waiting,
            partial: self.receiver.partial,
            round_trip: self.sender.round_trip().smoothed(),
        }
    }
}
