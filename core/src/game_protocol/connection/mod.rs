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
mod receiver;
mod round_trip;
mod sender;
mod sequences;

use core::net::SocketAddr;
use core::time::Duration;

pub(crate) use block_header::BlockHeader;
pub use sender::SendError;

use super::config::Config;
use super::event::{ConnectFailure, DisconnectReason};
use super::stats::{ConnectionStats, DropReason, PeerStats};
use super::wire::{Handshake, Header, Reliability};
use crate::cursor::Writer;
use crate::storage::{Block, Index, Link, Pool, Ring};
use crate::time::Instant;
use receiver::{Chunk, Receiver, Refusal};
use sender::Sender;

/// Who opened a connection.
///
/// ```
/// assert_ne!(rakwire::game_protocol::Side::Client, rakwire::game_protocol::Side::Server);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Side {
    /// This peer.
    #[default]
    Client,
    /// The other peer.
    Server,
}

/// How far a connection has come.
///
/// ```
/// use rakwire::game_protocol::ConnectionState;
///
/// assert_ne!(ConnectionState::Connecting, ConnectionState::Connected);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConnectionState {
    /// No challenge came yet.
    Connecting,
    /// Messages go both ways.
    Connected,
    /// Ended by this peer; what was sent reliably is still delivered.
    Disconnecting,
    /// Over.
    Disconnected,
}

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

/// What the application is told at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Failed(ConnectFailure),
    Disconnected(DisconnectReason),
}

/// An acknowledgement that waits to be sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Acknowledgement {
    pub(crate) slot: u16,
    pub(crate) generation: u16,
    pub(crate) sequence: u16,
    pub(crate) chunk: u8,
}

/// What a connection works with but does not own.
pub(crate) struct Context<'c, 'p> {
    pub(crate) now: Instant,
    pub(crate) slot: u16,
    pub(crate) config: &'c Config,
    pub(crate) pool: &'c mut Pool<'p, BlockHeader>,
    pub(crate) index: &'c mut Index<'p>,
    pub(crate) acknowledgements: &'c mut Ring<'p, Acknowledgement>,
    pub(crate) stats: &'c mut PeerStats,
    pub(crate) send_quota: usize,
    pub(crate) receive_quota: usize,
}

impl Context<'_, '_> {
    /// The block that `name`, a header with a part, a slot, a sequence and a chunk, names.
    fn find(&mut self, name: &BlockHeader) -> Link {
        self.index.find(self.pool, name.key(), |header| header.is(name))
    }
}

/// One connection, or a free slot.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    state: State,
    side: Side,
    remote: Option<SocketAddr>,
    /// Tells this user of the slot from those before.
    pub(crate) generation: u16,
    pub(crate) ready: bool,
    pub(crate) noticed: bool,
    pub(crate) counted: bool,
    attached: bool,
    paused: bool,
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
    fn make(&mut self, cx: &Context<'_, '_>, remote: SocketAddr, side: Side) {
        *self = Self {
            side,
            remote: Some(remote),
            generation: self.generation.wrapping_add(1),
            ready: self.ready,
            noticed: self.noticed,
            counted: self.counted,
            attached: true,
            state_since: cx.now,
            heard_at: cx.now,
            ..Self::default()
        };
    }

    /// Begins to open a connection.
    pub(crate) fn open(&mut self, cx: &Context<'_, '_>, to: SocketAddr, salt: u32) {
        self.make(cx, to, Side::Client);
        self.state = State::Opening;
        self.salt = Handshake(salt);
        self.greeting = true;
    }

    /// Takes a client that has answered its challenge with `token`.
    pub(crate) fn accept(&mut self, cx: &Context<'_, '_>, from: SocketAddr, token: Handshake) {
        self.make(cx, from, Side::Server);
        self.state = State::Open;
        self.token = token;
        self.opened = true;
    }

    /// Lets the sequences begin elsewhere than at 0.
    pub(crate) const fn start_sequences_at(&mut self, sequence: u16) {
        self.sender.start_at(sequence);
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
        if is_reliable && cx.acknowledgements.is_full() {
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
            let (slot, generation) = (cx.slot, self.generation);
            // There is room, as was just seen.
            cx.acknowledgements.push(Acknowledgement {
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

    /// Whether the application has something to be told now.
    pub(crate) fn has_news(&self) -> bool {
        !self.paused && self.has_any_news()
    }

    fn has_any_news(&self) -> bool {
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

    /// Sets whether the application takes news.
    pub(crate) const fn set_paused(&mut self, paused: bool) {
        self.paused = paused;
    }

    /// Whether the slot can be given to another connection.
    pub(crate) fn is_finished(&self, now: Instant) -> bool {
        self.can_make_room() && self.lingers_until <= now
    }

    /// Whether nothing but lingering is left to do.
    pub(crate) fn can_make_room(&self) -> bool {
        self.state == State::Over && !self.farewell && !self.has_any_news()
    }

    /// Frees the slot. What the application did not read is lost with it.
    pub(crate) fn release(&mut self, cx: &mut Context<'_, '_>) {
        self.sender.clear(cx);
        self.receiver.clear(cx);
        self.receiver.clear_inbox(cx);
        self.state = State::Free;
        self.attached = false;
        self.remote = None;
    }

    pub(crate) const fn remote(&self) -> Option<SocketAddr> {
        self.remote
    }

    pub(crate) const fn side(&self) -> Side {
        self.side
    }

    pub(crate) const fn is_free(&self) -> bool {
        matches!(self.state, State::Free)
    }

    pub(crate) const fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    /// Whether the connection counts against the limit of incoming ones.
    pub(crate) const fn is_incoming(&self) -> bool {
        matches!(self.side, Side::Server) && matches!(self.state, State::Open | State::Closing)
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

    /// Lets another connection with the same peer take its place in the tables.
    pub(crate) const fn detach(&mut self) {
        self.attached = false;
    }

    /// Whether this is the connection with the peer at `address`.
    pub(crate) fn is_at(&self, address: &SocketAddr) -> bool {
        self.attached && self.remote.as_ref() == Some(address)
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
