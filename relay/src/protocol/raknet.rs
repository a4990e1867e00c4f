//! A flow of RakNet.

use std::sync::Arc;
use std::time::Instant;

use rakwire::U24;
use rakwire::game_protocol::wire::HEADER;
use rakwire::raknet::Reliability;
use rakwire::wire::capsule::CapsuleHeader;
use rakwire::wire::datagram::DatagramHeader;
use rakwire::wire::offline::{Offline, PingScope};
use rakwire::wire::{Reader, Wire, WireError, Writer, id};

use super::budget::{Budget, Handshake};
use super::kind::ProtocolKind;
use super::mtu::clamp;
use super::pongs::{Pong, PongCache};
use super::verdict::{Change, Refusal, Verdict};

/// Set in the first byte of every datagram of a connection.
const VALID: u8 = 0x80;

/// More bytes than a datagram with a disconnection notification has.
const PARTING_MAX: usize = 32;

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
    /// The number of the client's newest datagram with messages, and its hints.
    last_data: Option<(U24, u8)>,
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
            last_data: None,
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
            Some(_) | None if self.is_open => {
                self.follow(datagram);
                Verdict::Pass(Change::None)
            }
            // The salt of the Game Protocol, with which its clients begin; no message of RakNet's handshake is so short.
            None if datagram.len() == HEADER => Verdict::Drop(Refusal::OtherProtocol(ProtocolKind::RakNet)),
            Some(_) | None => Verdict::Drop(Refusal::NoHandshake),
        }
    }

    /// Notes how far the client has counted its datagrams.
    fn follow(&mut self, datagram: &[u8]) {
        let Ok(DatagramHeader::Data { number, hints }) = DatagramHeader::read(&mut Reader::new(datagram))
        else {
            return;
        };
        // Datagrams overtake each other, and a server drops a number that it has had.
        if self.last_data.is_none_or(|(newest, _)| newest.is_older_than(number)) {
            self.last_data = Some((number, hints));
        }
    }

    /// The datagram that tells the server that the client has disconnected: an unreliable disconnection notification in the next
    /// datagram of the client. A secure connection does not take it, as it is not sealed.
    pub(super) fn parting(&self) -> Option<Vec<u8>> {
        let (number, hints) = self.last_data.filter(|_| self.is_open)?;
        let mut buffer = [0; PARTING_MAX];
        let mut writer = Writer::new(&mut buffer);
        write_disconnection(&mut writer, DatagramHeader::Data { hints, number: number.next() }).ok()?;
        Some(writer.finish().to_vec())
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
        if matches!(message, Offline::Reply2 { .. }) {
            self.is_open = true;
            // Another connection counts from zero.
            self.last_data = None;
        }
        self.clamp(&message, datagram)
    }

    /// A pong with another time than that of the last ping answers an earlier one, or its server writes its own clock.
    fn learn(&mut self, now: Instant, time: u64, guid: u64, data: &[u8]) {
        let asked = self.pinged.take_if(|(sent, _)| *sent == time);
        let scope = asked.map_or(PingScope::Any, |(_, scope)| scope);
        self.pongs.learn(scope, Pong { guid, data: data.to_vec(), at: now, latency: None });
    }
}

fn write_disconnection(writer: &mut Writer<'_>, header: DatagramHeader) -> Result<(), WireError> {
    header.write(writer)?;
    let none = U24::new(0);
    let capsule = CapsuleHeader {
        reliability: Reliability::Unreliable,
        bits: u8::BITS as u16,
        reliable: none,
        sequence: none,
        order: none,
        channel: 0,
        split: None,
    };
    capsule.write(writer)?;
    writer.u8(id::DISCONNECTION_NOTIFICATION)
}

/// Whether a datagram is request 1.
pub(super) fn is_request_1(datagram: &[u8]) -> bool {
    matches!(offline(datagram), Some(Offline::Request1 { .. }))
}

/// The offline message that a datagram is, if it is one. The first byte tells most datagrams from it.
fn offline(datagram: &[u8]) -> Option<Offline<'_>> {
    let is_connected = datagram.first().is_none_or(|first| first & VALID != 0);
    if is_connected { None } else { Offline::read(&mut Reader::new(datagram)).ok() }
}

#[cfg(test)]
#[path = "raknet_tests.rs"]
mod tests;
