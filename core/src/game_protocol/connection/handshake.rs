//! The states of a connection and the messages that open it: the client's salt, the challenge, and the answer.

use core::time::Duration;

use super::block_header::{Context, Ending};
use crate::endpoint::ConnectionState;
use crate::game_protocol::config::{DropReason, Redial};
use crate::game_protocol::wire::{HEADER, HandshakeWord};
use crate::time::Instant;

/// The time during which a client repeats its answer to a challenge: the shortest validity at a server.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(4);

/// The interval at which a client repeats a harmless answer if it repeats nothing else.
const ANSWER_INTERVAL: Duration = Duration::from_millis(250);

/// The state of a connection. The module of the connection shows the transitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Free,
    Opening,
    Connected,
    Closing,
    Closed,
}

/// The state of a connection and the messages of its handshake.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Handshake {
    state: State,
    /// The time at which the connection entered its state.
    since: Instant,
    /// The salt of a client.
    salt: HandshakeWord,
    /// The peer's last message of the handshake, kept to recognise repetitions.
    token: HandshakeWord,
    /// True if the application has not been notified yet that the connection opened.
    opened: bool,
    /// The reason of the end, until the application is notified.
    ending: Option<Ending>,
    /// True if a client has to send its salt or its answer.
    is_due: bool,
    /// The time at which the salt or the answer was last sent.
    sent_at: Instant,
    /// True if the server certainly has the client's answer: a packet arrived after it.
    is_confirmed: bool,
    /// True if the peer was challenged again after the connection ended.
    is_challenged_again: bool,
}

impl Handshake {
    /// Starts to open a connection.
    pub(super) fn open(&mut self, now: Instant, salt: HandshakeWord) {
        self.enter(now, State::Opening);
        self.salt = salt;
        self.is_due = true;
    }

    /// Begins a connection with a client that answered its challenge with `token`.
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

    /// Returns whether the connection was opened and has not ended.
    pub(super) const fn is_open(&self) -> bool {
        matches!(self.state, State::Connected | State::Closing)
    }

    /// Returns whether an event is pending for the application.
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

    /// Ends the connection.
    pub(super) fn end(&mut self, now: Instant, ending: Ending) {
        self.enter(now, State::Closed);
        self.ending = Some(ending);
        self.is_due = false;
    }

    /// Handles a datagram to a client that waits for a challenge. Returns true if it is one: the connection is then
    /// open.
    pub(super) fn on_challenge(&mut self, cx: &mut Context<'_, '_>, datagram: &[u8]) -> bool {
        let Ok(challenge) = HandshakeWord::read(datagram) else {
            cx.stats.drop(DropReason::TooShort);
            return false;
        };
        // On a port that was used before, a packet of an older connection may still arrive. Peppers of stateless
        // servers do not look like one.
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

    /// Returns whether four bytes are a late or repeated message of the handshake.
    ///
    /// No implementation writes headers with reserved bits. A pepper of the original without such bits is
    /// recognised until another packet arrives.
    pub(super) fn is_repeated(&self, datagram: &[u8]) -> bool {
        let Ok(word) = HandshakeWord::read(datagram) else { return false };
        !word.looks_like_a_header() || !self.is_confirmed && word == self.token
    }

    /// Repeats the answer if `datagram` repeats the challenge, because its server lacks the answer.
    ///
    /// If both peers connected to each other, other handshake words arrive too; answering those would cause a loop.
    pub(super) fn on_repetition(&mut self, cx: &Context<'_, '_>, datagram: &[u8]) {
        let is_challenge = HandshakeWord::read(datagram) == Ok(self.token);
        if is_challenge && self.answer_interval(cx).is_some() {
            self.is_due = true;
        }
    }

    /// Records that a packet of the open connection arrived.
    pub(super) const fn confirm(&mut self) {
        self.is_confirmed = true;
    }

    /// Returns the interval at which a client repeats its answer while no packet has arrived.
    fn answer_interval(&self, cx: &Context<'_, '_>) -> Option<Duration> {
        let interval = match cx.config.redial {
            Redial::SamePort(interval) => interval,
            Redial::FreshPort if self.answer().is_repeatable() => ANSWER_INTERVAL,
            Redial::FreshPort => return None,
        };
        let is_in_time = self.since + ANSWER_TIMEOUT > cx.now;
        (self.state == State::Connected && !self.is_confirmed && is_in_time).then_some(interval)
    }

    /// Returns the time at which a message of the handshake is repeated.
    pub(super) fn deadline(&self, cx: &Context<'_, '_>) -> Option<Instant> {
        let interval = match (self.state, cx.config.redial) {
            (State::Opening, Redial::SamePort(interval)) => interval,
            (State::Connected, _) => self.answer_interval(cx)?,
            _ => return None,
        };
        Some(self.sent_at + interval.max(Duration::from_millis(1)))
    }

    /// Performs the work that is due.
    pub(super) fn on_timeout(&mut self, cx: &Context<'_, '_>) {
        if self.deadline(cx).is_some_and(|at| at <= cx.now) {
            self.is_due = true;
        }
    }

    /// Returns the message of the handshake that is due, and clears it.
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

    /// Records that the peer was challenged again after the connection ended.
    pub(super) const fn on_challenged_again(&mut self) {
        self.is_challenged_again = true;
    }

    /// Returns whether `token`, which opened this connection, arrived once more after its end.
    pub(super) fn is_duplicate(&self, token: HandshakeWord) -> bool {
        self.token == token && !self.is_challenged_again
    }
}
