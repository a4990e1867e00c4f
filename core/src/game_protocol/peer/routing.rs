//! Which connection a datagram is for, and what strangers are told (supplement 2, handshake).

use core::net::SocketAddr;

use super::Peer;
use crate::game_protocol::connection::Connection;
use crate::game_protocol::desk;
use crate::game_protocol::stats::DropReason;
use crate::game_protocol::wire::{HEADER, Handshake};
use crate::time::Instant;

/// END as it is sent, with and without FIN. Two of all salts look the same; their clients are not heard.
const LATE_ENDS: [Handshake; 2] = [Handshake(0x0C00_0000), Handshake(0x0800_0000)];

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
        let Ok(word) = Handshake::read(datagram) else { return };
        let is_late_end = LATE_ENDS.contains(&word);
        if !desk::SERVER || self.config.max_incoming == 0 || datagram.len() != HEADER || is_late_end {
            self.stats.drop(DropReason::UnknownSource);
        } else if desk::is_proof(&self.config, &from, self.last_now, word) {
            if self.ended_at(&from).is_some_and(|connection| connection.is_doubled(word)) {
                self.stats.drop(DropReason::Ended);
            } else {
                self.accept(from, word);
            }
        } else {
            if let Some(connection) = self.ended_at(&from) {
                connection.invite();
            }
            self.desk.challenge(&self.config, &mut self.stats, self.last_now, from, word);
        }
    }

    /// The connection with `address` that is over and lingers, if there is one.
    fn ended_at(&mut self, address: &SocketAddr) -> Option<&mut Connection> {
        let slot = self.find(address)?;
        self.tables.connections.get_mut(usize::from(slot)).filter(|connection| connection.is_over())
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
