//! The handshake of a client: its salt, the challenge, its answer, and what is repeated of them.

use core::time::Duration;

use super::{Connection, Context, Side, State};
use crate::game_protocol::config::Redial;
use crate::game_protocol::stats::DropReason;
use crate::game_protocol::wire::Handshake;
use crate::time::Instant;

/// How long a client repeats its answer to a challenge: as long as every answer holds for sure.
const RESPONSE_PATIENCE: Duration = Duration::from_secs(4);

impl Connection {
    pub(super) fn on_challenge(&mut self, cx: &mut Context<'_, '_>, datagram: &[u8]) {
        let Ok(challenge) = Handshake::read(datagram) else {
            cx.stats.drop(DropReason::TooShort);
            return;
        };
        // From a port that was used before, a packet of an older connection may still come. Peppers of servers that
        // keep no state do not look like one.
        let is_stale = matches!(cx.config.redial, Redial::SamePort(_)) && challenge.looks_like_a_header();
        if datagram.len() != 4 || is_stale {
            cx.stats.drop(DropReason::Unexpected);
            return;
        }
        self.token = challenge;
        self.state = State::Open;
        self.state_since = cx.now;
        self.heard_at = cx.now;
        self.greeting = true;
        self.opened = true;
    }

    /// Whether four bytes are a late or doubled message of the handshake: no header that anybody writes has reserved
    /// bits, and a pepper of the original without them is known until something else comes.
    pub(super) fn is_handshake(&self, datagram: &[u8]) -> bool {
        let Ok(word) = Handshake::read(datagram) else { return false };
        let is_unconfirmed = self.side == Side::Client && !self.confirmed;
        !word.looks_like_a_header() || is_unconfirmed && word == self.token
    }

    /// A server that repeats its challenge lacks the answer.
    pub(super) fn answer_again(&mut self, cx: &Context<'_, '_>) {
        if self.repeats_its_answer(cx).is_some() {
            self.greeting = true;
        }
    }

    /// The interval at which a client repeats its answer, while nothing came back.
    fn repeats_its_answer(&self, cx: &Context<'_, '_>) -> Option<Duration> {
        let Redial::SamePort(interval) = cx.config.redial else { return None };
        let is_in_time = self.state_since + RESPONSE_PATIENCE > cx.now;
        let is_open = self.state == State::Open && self.side == Side::Client;
        (is_open && !self.confirmed && is_in_time).then_some(interval)
    }

    pub(super) fn greet_again(&mut self, cx: &Context<'_, '_>) {
        if self.greeting_at(cx).is_some_and(|at| at <= cx.now) {
            self.greeting = true;
        }
    }

    /// When a message of the handshake is repeated.
    pub(super) fn greeting_at(&self, cx: &Context<'_, '_>) -> Option<Instant> {
        let interval = match (self.state, cx.config.redial) {
            (State::Opening, Redial::SamePort(interval)) => interval,
            (State::Open, Redial::SamePort(_)) => self.repeats_its_answer(cx)?,
            _ => return None,
        };
        Some(self.greeted_at + interval.max(Duration::from_millis(1)))
    }
}
