//! The states of a connection and its handshake messages: the client's salt, the challenge, and the answer.

use core::time::Duration;

use super::block_header::{Context, Ending};
use crate::endpoint::ConnectionState;
use crate::game_protocol::config::{DropReason, Redial};
use crate::game_protocol::wire::{HEADER, HandshakeWord};
use crate::time::Instant;

/// The time for which a client retransmits its answer to a challenge. At the server, an answer is valid for at least 5
/// s.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(4);

/// The interval at which a client retransmits an answer that is harmless to repeat, with [`Redial::FreshPort`].
const ANSWER_INTERVAL: Duration = Duration::from_millis(250);

/// The state of a connection. The module `connection` shows the transitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Free,
    Opening,
    Connected,
    Closing,
    Closed,
}

/// The state of a connection, and its handshake messages.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Handshake {
    state: State,
    /// The time at which the connection entered its state.
    since: Instant,
    /// Client: the salt.
    salt: HandshakeWord,
    /// The last handshake message from the remote peer, to recognise retransmissions.
    token: HandshakeWord,
    /// Set until [`Event::Connected`](crate::endpoint::Event::Connected) has been reported.
    opened: bool,
    /// The last event of the connection, to be reported to the application.
    ending: Option<Ending>,
    /// Client: set while the salt or the answer is due to be sent.
    is_due: bool,
    /// The time at which the salt or the answer was last sent.
    sent_at: Instant,
    /// Client: set once a packet shows that the server has received the answer.
    is_confirmed: bool,
    /// Set once the remote peer has been challenged again after the connection closed.
    is_challenged_again: bool,
}

impl Handshake {
    /// Client: starts connecting.
    pub(super) fn open(&mut self, now: Instant, salt: HandshakeWord) {
        self.enter(now, State::Opening);
        self.salt = salt;
        self.is_due = true;
    }

    /// Server: creates a connection with a client that answered its challenge with `token`.
    pub(super) fn accept(&mut self, now: Instant, token: HandshakeWord) {
        self.enter(now, State::Connected);
        self.token = token;
        self.opened = true;
        self.is_confirmed = true;
    }

    pub(super) const fn state(&self) -> State {
        self.state
    }

    /// Returns the time at which the connection entered its state.
    pub(super) const fn since(&self) -> Instant {
        self.since
    }

    pub(super) const fn public_state(&self) -> ConnectionState {
        match self.state {
            State::Opening => ConnectionState::Connecting,
            State::Connected => ConnectionState::Connected,
            State::Closing => ConnectionState::Disconnecting,
            State::Free | State::Closed => ConnectionState::Disconnected,
        }
    }

    /// Returns true if the connection has opened and not closed.
    pub(super) const fn is_open(&self) -> bool {
        matches!(self.state, State::Connected | State::Closing)
    }

    /// Returns true if an event is pending for the application.
    pub(super) const fn has_events(&self) -> bool {
        self.opened || self.ending.is_some()
    }

    pub(super) const fn take_opened(&mut self) -> bool {
        core::mem::replace(&mut self.opened, false)
    }

    pub(super) const fn take_ending(&mut self) -> Option<Ending> {
        self.ending.take()
    }

    fn enter(&mut self, now: Instant, state: State) {
        self.state = state;
        self.since = now;
    }

    /// Starts to close an open connection.
    pub(super) fn close(&mut self, now: Instant) {
        self.enter(now, State::Closing);
    }

    /// Closes the connection.
    pub(super) fn end(&mut self, now: Instant, ending: Ending) {
        self.enter(now, State::Closed);
        self.ending = Some(ending);
        self.is_due = false;
    }

    /// Handles a datagram while the client waits for a challenge.
    ///
    /// Returns true if the datagram is a challenge; the connection is then open.
    pub(super) fn on_challenge(&mut self, cx: &mut Context<'_, '_>, datagram: &[u8]) -> bool {
        let Ok(challenge) = HandshakeWord::read(datagram) else {
            cx.stats.drop(DropReason::TooShort);
            return false;
        };
        // On a reused port, a packet of an earlier connection may still arrive. It cannot be confused with the pepper
        // of a stateless server, which does not look like a header.
        let is_stale = matches!(cx.config.redial, Redial::SamePort(_)) && challenge.looks_like_a_header();
        if datagram.len() != HEADER || is_stale {
            cx.stats.drop(DropReason::Unexpected);
            return false;
        }
        self.enter(cx.now, State::Connected);
        self.token = challenge;
        self.is_due = true;
        self.opened = true;
        true
    }

    /// Returns true if the four bytes are a late or repeated handshake message.
    ///
    /// No implementation sets the reserved bits of a header, so a word with these bits is a handshake message. A pepper
    /// of the original server may lack these bits, and is then recognised only until a packet of the connection
    /// arrives.
    pub(super) fn is_repeated(&self, datagram: &[u8]) -> bool {
        let Ok(word) = HandshakeWord::read(datagram) else { return false };
        !word.looks_like_a_header() || !self.is_confirmed && word == self.token
    }

    /// Retransmits the answer if `datagram` repeats the challenge, which shows that the server has not received the
    /// answer.
    ///
    /// If both peers connect to each other, they receive other handshake messages as well; answering those would cause
    /// a loop.
    pub(super) fn on_repetition(&mut self, cx: &Context<'_, '_>, datagram: &[u8]) {
        let is_challenge = HandshakeWord::read(datagram) == Ok(self.token);
        if is_challenge && self.answer_interval(cx).is_some() {
            self.is_due = true;
        }
    }

    /// Records that a packet of the open connection was received.
    pub(super) const fn confirm(&mut self) {
        self.is_confirmed = true;
    }

    /// Returns the interval at which a client retransmits its answer until a packet is received.
    fn answer_interval(&self, cx: &Context<'_, '_>) -> Option<Duration> {
        let interval = match cx.config.redial {
            Redial::SamePort(interval) => interval,
            Redial::FreshPort if self.answer().is_repeatable() => ANSWER_INTERVAL,
            Redial::FreshPort => return None,
        };
        let is_in_time = self.since + ANSWER_TIMEOUT > cx.now;
        (self.state == State::Connected && !self.is_confirmed && is_in_time).then_some(interval)
    }

    /// Returns when a handshake message is to be retransmitted.
    pub(super) fn deadline(&self, cx: &Context<'_, '_>) -> Option<Instant> {
        let interval = match (self.state, cx.config.redial) {
            (State::Opening, Redial::SamePort(interval)) => interval,
            (State::Connected, _) => self.answer_interval(cx)?,
            _ => return None,
        };
        Some(self.sent_at + interval.max(Duration::from_millis(1)))
    }

    /// Marks the handshake message for retransmission if its deadline has passed.
    pub(super) fn on_timeout(&mut self, cx: &Context<'_, '_>) {
        if self.deadline(cx).is_some_and(|at| at <= cx.now) {
            self.is_due = true;
        }
    }

    /// Takes the handshake message that is due.
    pub(super) const fn poll_transmit(&mut self, now: Instant) -> Option<HandshakeWord> {
        if !core::mem::replace(&mut self.is_due, false) {
            return None;
        }
        self.sent_at = now;
        let is_salt = matches!(self.state, State::Opening);
        Some(if is_salt { self.salt } else { self.answer() })
    }

    /// Returns the answer to the challenge.
    const fn answer(&self) -> HandshakeWord {
        self.salt.season(self.token)
    }

    /// Records that the remote peer was challenged again after the connection closed.
    pub(super) const fn on_challenged_again(&mut self) {
        self.is_challenged_again = true;
    }

    /// Returns true if `token`, which opened this connection, was received again after the connection closed.
    pub(super) fn is_duplicate(&self, token: HandshakeWord) -> bool {
        self.token == token && !self.is_challenged_again
    }
}
