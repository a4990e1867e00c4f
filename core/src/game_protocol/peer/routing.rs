//! Which connection a datagram is for, and what strangers are told (supplement 2, handshake).

use core::net::SocketAddr;

use super::Peer;
use crate::game_protocol::desk;
use crate::game_protocol::stats::DropReason;
use crate::game_protocol::wire::{HEADER, Handshake, Header};
use crate::time::Instant;

impl Peer<'_> {
    /// Takes a datagram that arrived at `now`. It never fails: what makes no sense is counted in [`Peer::stats`].
    ///
    /// `now` should be the time at which the datagram was received, also when it is handled later.
    pub fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        self.advance(now);
        self.stats.datagrams_received += 1;
        self.stats.bytes_received += datagram.len() as u64;
        if datagram.len() < HEADER {
            self.stats.drop(DropReason::TooShort);
            return;
        }
        match self.find(&from) {
            Some(slot) if !self.is_from_a_newcomer(slot, datagram) => {
                self.with(slot, |connection, cx| connection.handle_datagram(cx, datagram));
            }
            Some(_) | None => self.handle_stranger(from, datagram),
        }
    }

    /// Whether a datagram from the address of a connection that is over begins a new one: four bytes that are no header.
    fn is_from_a_newcomer(&self, slot: u16, datagram: &[u8]) -> bool {
        let connection = self.tables.connections.get(usize::from(slot));
        let is_over = connection.is_some_and(|connection| connection.is_over());
        let word = Handshake::read(datagram);
        is_over && datagram.len() == HEADER && word.is_ok_and(|word| !word.looks_like_a_header())
    }

    /// Four bytes are the right answer to a challenge, or else ask for one.
    fn handle_stranger(&mut self, from: SocketAddr, datagram: &[u8]) {
        let is_end = matches!(Header::read(datagram), Ok((Header::End, _)));
        let Ok(word) = Handshake::read(datagram) else { return };
        let is_late_end = is_end && word.looks_like_a_header();
        if self.config.max_incoming == 0 || datagram.len() != HEADER || is_late_end {
            self.stats.drop(DropReason::UnknownSource);
        } else if desk::is_proof(&self.config, &from, self.last_now, word) {
            self.accept(from, word);
        } else {
            self.desk.challenge(&self.config, &mut self.stats, self.last_now, from, word);
        }
    }

    /// Gives a client that has proved its address a slot, or tells it that there is none.
    fn accept(&mut self, from: SocketAddr, token: Handshake) {
        // A connection with this address that is over makes way.
        self.find_living(&from);
        let slot = if self.incoming < self.config.max_incoming { self.vacant_slot() } else { None };
        match slot {
            Some(slot) => {
                self.with(slot, |connection, cx| connection.accept(cx, from, token));
                self.settle_in(slot, from);
            }
            None => {
                self.stats.drop(DropReason::Full);
                self.desk.turn_away(&mut self.stats, from);
            }
        }
    }
}
