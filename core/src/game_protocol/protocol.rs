//! The implementation of the endpoint's traits.
//!
//! It routes datagrams and answers unconnected peers (docs/game-protocol.md#handshake).

use core::convert::Infallible;
use core::fmt;
use core::net::SocketAddr;

use super::config::{Config, ConnectFailure, ConnectionStats, DisconnectReason, DropReason, GameProtocol};
use super::connection::{BlockHeader, Connection};
use super::responder::{self, Acknowledgement, State, Storage};
use super::wire::{HEADER, HandshakeWord, Header, MAX_PACKET, Position, Reliability};
use crate::cursor::Writer;
use crate::endpoint::{
    Carrier, Internals, Occupant as _, Outcome, Peer, Protocol, Receipt, Rejection, Request,
};
use crate::storage::Ring;

impl Protocol for GameProtocol {
    const NAME: &'static str = "Game Protocol";
    const MAX_DATAGRAM: usize = MAX_PACKET;
    const FRESH_PORT: bool = true;
    const EARLY_DATA: bool = true;

    type Config = Config;
    type ConnectOptions<'o> = ();
    type Identity = ();
    type Delivery = Reliability;
    type ConnectFailure = ConnectFailure;
    type DisconnectReason = DisconnectReason;
    type DropReason = DropReason;
    type ConnectionStats = ConnectionStats;

    fn config(entropy: [u8; 32]) -> Config {
        Config::new(entropy)
    }

    fn max_incoming(config: &mut Config) -> &mut u16 {
        &mut config.max_incoming
    }

    fn was_unanswered(failure: &ConnectFailure) -> bool {
        matches!(failure, ConnectFailure::NoAnswer | ConnectFailure::Unreachable)
    }

    fn is_reliable(reliability: Reliability) -> bool {
        reliability.is_reliable()
    }

    /// Salts and answers to challenges have the same form, so both count as requests.
    fn is_request(datagram: &[u8]) -> bool {
        datagram.len() == HEADER
            && !HandshakeWord::read(datagram).is_ok_and(|word| word.looks_like_a_header())
    }

    fn is_data(datagram: &[u8]) -> bool {
        matches!(Header::read(datagram), Ok((Header::Chunk { .. }, _)))
    }

    fn kind(datagram: &[u8]) -> &'static str {
        if looks_like_a_handshake(datagram) {
            return "handshake";
        }
        match Header::read(datagram) {
            Err(_) => "too short",
            Ok((Header::End, _)) => "END",
            Ok((Header::Acknowledgement { .. }, _)) => "acknowledgement",
            Ok((Header::Chunk { reliability, .. }, _)) if reliability.is_reliable() => "reliable chunk",
            Ok((Header::Chunk { .. }, _)) => "unreliable chunk",
        }
    }

    fn describe(datagram: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::kind(datagram))?;
        if looks_like_a_handshake(datagram) {
            return Ok(());
        }
        match Header::read(datagram) {
            Ok((Header::Acknowledgement { chunk, sequence }, _)) => {
                write!(f, " of chunk {chunk} of sequence {sequence}")
            }
            Ok((Header::Chunk { position, chunk, sequence, .. }, _)) => {
                let last = if position == Position::Last { ", the last" } else { "" };
                write!(f, " {chunk} of sequence {sequence}{last}")
            }
            Ok((Header::End, _)) | Err(_) => Ok(()),
        }
    }
}

/// Returns true if the datagram looks like a handshake message. Only the two peers know whether it is one.
fn looks_like_a_handshake(datagram: &[u8]) -> bool {
    datagram.len() == HEADER && datagram.first().is_some_and(|flags| *flags > 0x0F)
}

impl Internals for GameProtocol {
    /// Sixteen datagrams hold a complete snapshot of the game *snow-fight*.
    const BURST: u8 = 16;

    type Connection = Connection;
    type BlockHeader = BlockHeader;
    type State<'a> = State<'a>;
    type StateTables<'a> = Ring<'a, Acknowledgement>;
    type Storage<const CONNECTIONS: usize, const BLOCKS: usize> = Storage<BLOCKS>;

    #[inline(always)] // avoids a copy of the value
    fn state<'a>(acknowledgements: Self::StateTables<'a>, _config: &mut Config) -> Self::State<'a> {
        State::new(acknowledgements)
    }

    fn secret(config: &Config) -> [u8; 16] {
        config.secret
    }

    fn connection_blocks(config: &Config) -> Option<u32> {
        config.connection_blocks
    }

    fn route(peer: &mut Peer<'_, Self>, from: SocketAddr, datagram: &[u8]) {
        peer.route(from, datagram);
    }

    /// Acknowledgements are sent before everything else.
    fn poll_transmit(peer: &mut Peer<'_, Self>, buffer: &mut [u8]) -> Option<(SocketAddr, usize)> {
        // Every datagram written here has this length. A shorter buffer is rejected before anything is taken from a
        // queue.
        let mut writer = Writer::new(buffer.get_mut(..HEADER)?);
        let to = peer.state.poll_acknowledgement(&peer.tables.connections, &mut writer);
        let to = to.or_else(|| peer.state.responder.poll_transmit(&mut writer))?;
        Some((to, writer.written()))
    }

    fn delivery(header: &BlockHeader) -> Result<Reliability, (Receipt, Outcome)> {
        Ok(header.delivery())
    }
}

impl Peer<'_, GameProtocol> {
    /// Sets the first sequence of future connections, instead of 0, to test wrap-around.
    ///
    /// The remote peer need not use the same first sequence.
    #[doc(hidden)]
    pub fn start_sequences_at(&mut self, sequence: u16) {
        self.state.first_sequence = sequence;
    }

    /// Sets the transport that carries the datagrams of all connections.
    ///
    /// Call it when the transport changes, for example when a web page falls back to a WebSocket because UDP is
    /// blocked.
    pub fn set_carrier(&mut self, carrier: Carrier) {
        self.config.carrier = carrier;
        self.with_all(|connection, cx| connection.on_new_carrier(cx));
    }
}

/// The encodings of END, with and without FIN. A client with a salt equal to one of them gets no response.
const LATE_ENDS: [HandshakeWord; 2] = [HandshakeWord(0x0C00_0000), HandshakeWord(0x0800_0000)];

impl Peer<'_, GameProtocol> {
    /// Routes a datagram to its connection or to the stateless responder.
    pub(super) fn route(&mut self, from: SocketAddr, datagram: &[u8]) {
        if datagram.len() < HEADER {
            self.stats.drop(DropReason::TooShort);
            return;
        }
        match self.tables.connections.find(&from) {
            Some(slot) if !self.opens_again(slot, datagram) => {
                self.with(slot, |connection, cx| connection.handle_datagram(cx, datagram));
            }
            Some(_) | None => self.handle_unconnected(from, datagram),
        }
    }

    /// Returns true if a datagram opens a new connection from the address of a closed one.
    ///
    /// That is the case for four bytes that are not a header.
    fn opens_again(&self, slot: u16, datagram: &[u8]) -> bool {
        let is_over = self.tables.connections.slot(slot).is_some_and(|slot| slot.connection.is_over());
        let word = HandshakeWord::read(datagram);
        is_over && datagram.len() == HEADER && word.is_ok_and(|word| !word.looks_like_a_header())
    }

    /// Handles a datagram of an unconnected peer: four bytes either answer a challenge or request one.
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
            let secret = &self.config.secret;
            let is_admitted = self.admission.admits_answer(secret, rates, self.last_now, from.ip());
            let (config, stats) = (&self.config, &mut self.stats);
            self.state.responder.challenge(config, stats, self.last_now, from, word, is_admitted);
        }
    }

    /// Returns the closed, lingering connection with `address`, if there is one.
    fn ended_at(&mut self, address: &SocketAddr) -> Option<&mut Connection> {
        let slot = self.tables.connections.find(address)?;
        self.tables
            .connections
            .slot_mut(slot)
            .map(|slot| &mut slot.connection)
            .filter(|connection| connection.is_over())
    }

    /// Assigns a slot to a client with a validated address, or refuses it.
    fn accept(&mut self, from: SocketAddr, token: HandshakeWord) {
        // Evicts a closed connection with this address.
        self.find_or_evict(&from);
        // This cheap check comes first, because the check below examines all connections.
        if self.admission.incoming() >= self.config.max_incoming {
            return self.refuse(from, DropReason::Full);
        }
        let limits = self.config.client_limits();
        if !self.admission.has_place_for(&self.tables.connections, from.ip(), limits, true) {
            return self.refuse(from, DropReason::AddressLimit);
        }
        let slot = self.vacant_slot();
        let reserved = slot.map(|slot| {
            let reserved = self.admission.reserve(self.last_now, slot, &reservation(&self.config, from));
            if reserved.is_err() {
                self.tables.connections.return_vacant(slot);
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
            Some(Err(Rejection::Crowded)) => self.refuse(from, DropReason::AddressLimit),
            Some(Err(_)) | None => self.refuse(from, DropReason::Full),
        }
    }

    /// Refuses a client because no slot is available to it.
    fn refuse(&mut self, from: SocketAddr, reason: DropReason) {
        self.stats.drop(reason);
        self.state.responder.reject(&mut self.stats, from);
    }
}

/// Returns the request for a slot in shared admission.
fn reservation(config: &Config, from: SocketAddr) -> Request {
    let (identity, interval, half_open) = (None, None, None);
    let (max_incoming, limits) = (config.max_incoming, config.client_limits());
    Request { identity, address: from, max_incoming, interval, is_validated: true, half_open, limits }
}
