//! A flow of RakNet.

use std::sync::Arc;
use std::time::Instant;

use rakwire::wire::offline::{Offline, PingScope};
use rakwire::wire::{Reader, Wire};

use super::budget::{Budget, Handshake};
use super::mtu::clamp;
use super::pongs::{Pong, PongCache};
use super::verdict::{Change, Refusal, Verdict};

/// Set in the first byte of every datagram of a connection.
const VALID: u8 = 0x80;

/// See the module.
#[derive(Debug)]
pub(super) struct RakNetFlow {
    payload_max: u16,
    /// What the transport of the client carries, if that is less.
    carried: Option<u16>,
    budget: Budget,
    pongs: Arc<PongCache>,
    /// Whether the server has accepted a connection: reply 2 came.
    is_open: bool,
    /// The ping that was passed on last: what it carries and whom it asks.
    pinged: Option<(u64, PingScope)>,
}

impl RakNetFlow {
    pub(super) fn new(handshake: &Handshake, pongs: Arc<PongCache>, now: Instant) -> Self {
        Self {
            payload_max: handshake.payload_max,
            carried: None,
            budget: Budget::new(handshake, now),
            pongs,
            is_open: false,
            pinged: None,
        }
    }

    pub(super) const fn set_carried(&mut self, longest: Option<u16>) {
        self.carried = longest;
    }

    fn clamp(&self, message: &Offline<'_>, datagram: &[u8]) -> Change {
        clamp(
            message,
            datagram,
            self.carried.map_or(self.payload_max, |carried| carried.min(self.payload_max)),
        )
    }

    pub(super) const fn is_open(&self) -> bool {
        self.is_open
    }

    pub(super) fn handle_client(&mut self, now: Instant, datagram: &[u8]) -> Verdict {
        match offline(datagram) {
            Some(Offline::Ping { scope, time, .. }) => self.handle_ping(now, scope, time, datagram.len()),
            Some(message @ (Offline::Request1 { .. } | Offline::Request2 { .. })) => {
                self.pass(now, datagram.len(), self.clamp(&message, datagram))
            }
            Some(_) | None if self.is_open => Verdict::Pass(Change::None),
            Some(_) | None => Verdict::Drop(Refusal::NoHandshake),
        }
    }

    fn handle_ping(&mut self, now: Instant, scope: PingScope, time: u64, length: usize) -> Verdict {
        if let Some(pong) = self.pongs.answer(now, scope, time) {
            return Verdict::Answer(pong);
        }
        let verdict = self.pass(now, length, Change::None);
        if matches!(verdict, Verdict::Pass(_)) {
            self.pinged = Some((time, scope));
        }
        verdict
    }

    /// Passes a part of a handshake, if the budget allows it or is not needed any more.
    fn pass(&mut self, now: Instant, length: usize, change: Change) -> Verdict {
        let length = if let Change::Cut(length) = change { length } else { length };
        if self.is_open || self.budget.take(now, length) {
            Verdict::Pass(change)
        } else {
            Verdict::Drop(Refusal::HandshakeBudget)
        }
    }

    pub(super) fn handle_server(&mut self, now: Instant, datagram: &[u8]) -> Change {
        let Some(message) = offline(datagram) else { return Change::None };
        if let Offline::Pong { time, guid, data } = message {
            self.learn(now, time, guid.0, data);
        }
        self.is_open |= matches!(message, Offline::Reply2 { .. });
        self.clamp(&message, datagram)
    }

    /// A pong with another time than that of the last ping answers an earlier one, or its server writes its own clock.
    fn learn(&mut self, now: Instant, time: u64, guid: u64, data: &[u8]) {
        let asked = self.pinged.take_if(|(sent, _)| *sent == time);
        let scope = asked.map_or(PingScope::Any, |(_, scope)| scope);
        self.pongs.learn(scope, Pong { guid, data: data.to_vec(), at: now, latency: None });
    }
}

/// The offline message that a datagram is, if it is one. The first byte tells most datagrams from it.
fn offline(datagram: &[u8]) -> Option<Offline<'_>> {
    let is_connected = datagram.first().is_none_or(|first| first & VALID != 0);
    if is_connected { None } else { Offline::read(&mut Reader::new(datagram)).ok() }
}

#[cfg(test)]
#[path = "raknet_tests.rs"]
mod tests;
