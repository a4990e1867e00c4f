//! Which connection a datagram is for, and what peers without a connection are answered
//! (docs/game-protocol.md#handshake).

use core::convert::Infallible;
use core::net::SocketAddr;

use super::connection::Connection;
use super::responder;
use super::stats::DropReason;
use super::types::GameProtocol;
use super::wire::{HEADER, HandshakeWord};
use crate::endpoint::{Connection as _, Peer, Rejection, Request};

/// END as it is sent, with and without FIN. Two of all salts have the same bytes; clients with those get no answer.
const LATE_ENDS: [HandshakeWord; 2] = [HandshakeWord(0x0C00_0000), HandshakeWord(0x0800_0000)];

impl Peer<'_, GameProtocol> {
    /// Decides what a datagram is for.
    pub(super) fn route(&mut self, from: SocketAddr, datagram: &[u8]) {
        if datagram.len() < HEADER {
            self.stats.drop(DropReason::TooShort);
            return;
        }
        match self.find(&from) {
            Some(slot) if !self.opens_again(slot, datagram) => {
                self.with(slot, |connection, cx| connection.handle_datagram(cx, datagram));
            }
            Some(_) | None => self.handle_unconnected(from, datagram),
        }
    }

    /// Whether a datagram from the address of a connection that is over begins a new one: four bytes that are no header.
    fn opens_again(&self, slot: u16, datagram: &[u8]) -> bool {
        let is_over = self.slot(slot).is_some_and(|slot| slot.connection.is_over());
        let word = HandshakeWord::read(datagram);
        is_over && datagram.len() == HEADER && word.is_ok_and(|word| !word.looks_like_a_header())
    }

    /// Takes a datagram of a peer without a connection: four bytes are the right answer to a challenge, or else ask for one.
    fn handle_unconnected(&mut self, from: SocketAddr, datagram: &[u8]) {
        let Ok(word) = HandshakeWord::read(datagram) else { return };
        let is_late_end = LATE_ENDS.contains(&word);
        if !responder::SERVER || self.config.max_incoming == 0 || datagram.len() != HEADER || is_late_end {
            self.stats.drop(DropReason::UnknownSource);
        } else if responder::is_proof(&self.config, &from, self.last_now, word) {
            if self.ended_at(&from).is_some_and(|connection| connection.is_duplicate(word)) {
                self.stats.drop(DropReason::Ended);
            } else {
                self.accept(from, word);
            }
        } else {
            if let Some(connection) = self.ended_at(&from) {
                connection.on_challenged_again();
            }
            let rates = responder::challenge_rates(&self.config);
            let is_admitted = self.admits_answer(&self.config.secret, rates, from.ip());
            let (config, stats) = (&self.config, &mut self.stats);
            self.state.responder.challenge(config, stats, self.last_now, from, word, is_admitted);
        }
    }

    /// The connection with `address` that is over and lingers, if there is one.
    fn ended_at(&mut self, address: &SocketAddr) -> Option<&mut Connection> {
        let slot = self.find(address)?;
        self.slot_mut(slot).map(|slot| &mut slot.connection).filter(|connection| connection.is_over())
    }

    /// What is asked of the peers that decide together with this one.
    fn reservation(&self, from: SocketAddr) -> Request {
        let max_incoming = self.config.max_incoming;
        let limits = self.config.client_limits();
        let (identity, interval, half_open) = (None, None, None);
        Request { identity, address: from, max_incoming, interval, is_validated: true, half_open, limits }
    }

    /// Gives a client that has proved its address a slot, or tells it that there is none.
    fn accept(&mut self, from: SocketAddr, token: HandshakeWord) {
        // A connection with this address that is over is evicted.
        self.find_or_evict(&from);
        // The cheap question first: the other one looks at all connections.
        if self.incoming.all >= self.config.max_incoming {
            return self.turn_away(from, DropReason::Full);
        }
        if !self.has_place_for(from.ip(), self.config.client_limits(), true) {
            return self.turn_away(from, DropReason::AddressLimit);
        }
        let slot = self.vacant_slot();
        let reserved = slot.map(|slot| {
            let reserved = self.reserve(slot, &self.reservation(from));
            if reserved.is_err() {
                self.tables.vacant.push(slot);
            }
            reserved.map(|()| slot)
        });
        match reserved {
            Some(Ok(slot)) => {
                let Ok(()) = self.insert(slot, from, |connection, cx| {
                    connection.accept(cx, token);
                    Ok::<_, Infallible>(())
                });
            }
            Some(Err(Rejection::Ignored)) => {}
            Some(Err(Rejection::Crowded)) => self.turn_away(from, DropReason::AddressLimit),
            Some(Err(_)) | None => self.turn_away(from, DropReason::Full),
        }
    }

    /// Tells a client that there is no place for it.
    fn turn_away(&mut self, from: SocketAddr, reason: DropReason) {
        self.stats.drop(reason);
        self.state.responder.reject(&mut self.stats, from);
    }
}
