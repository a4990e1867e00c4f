//! The Game Protocol as the endpoint knows it.

use core::fmt;
use core::net::SocketAddr;

use super::config::Config;
use super::connection::{BlockHeader, Connection};
use super::reason::{ConnectFailure, DisconnectReason};
use super::state::{Acknowledgement, State, Storage};
use super::stats::{ConnectionStats, DropReason};
use super::types::GameProtocol;
use super::wire::{HEADER, HandshakeWord, Header, MAX_PACKET, Position, Reliability};
use crate::cursor::Writer;
use crate::endpoint::{Carrier, Connection as _, Internals, Outcome, Peer, Protocol, Receipt};
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

    /// Salts and the answers to challenges look alike.
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

/// Of four bytes only those that take part know what they are for sure.
fn looks_like_a_handshake(datagram: &[u8]) -> bool {
    datagram.len() == HEADER && datagram.first().is_some_and(|flags| *flags > 0x0F)
}

impl Internals for GameProtocol {
    /// A whole snapshot of the game.
    const BURST: u8 = 16;

    type Connection = Connection;
    type BlockHeader = BlockHeader;
    type State<'a> = State<'a>;
    type StateTables<'a> = Ring<'a, Acknowledgement>;
    type Storage<const CONNECTIONS: usize, const BLOCKS: usize> = Storage<BLOCKS>;

    #[inline(always)] // or it is copied
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

    /// Acknowledgements go before everything else.
    fn poll_transmit(peer: &mut Peer<'_, Self>, buffer: &mut [u8]) -> Option<(SocketAddr, usize)> {
        // All that is written here has this length. Without room for it nothing is taken out of its queue.
        let mut writer = Writer::new(buffer.get_mut(..HEADER)?);
        let to = peer.poll_acknowledgement(&mut writer);
        let to = to.or_else(|| peer.state.responder.poll_transmit(&mut writer))?;
        Some((to, writer.written()))
    }

    fn delivery(header: &BlockHeader) -> Result<Reliability, (Receipt, Outcome)> {
        Ok(header.delivery())
    }
}

impl Peer<'_, GameProtocol> {
    /// Lets the sequences of connections made from now on start at `sequence` instead of 0, to test what happens when
    /// they wrap. The other peer need not know.
    #[doc(hidden)]
    pub fn start_sequences_at(&mut self, sequence: u16) {
        self.state.first_sequence = sequence;
    }

    /// Says what carries the datagrams from now on, for all connections: whoever moves from one carrier to another, as a page
    /// does whose network begins to block UDP, says so.
    pub fn set_carrier(&mut self, carrier: Carrier) {
        self.config.carrier = carrier;
        self.with_all(|connection, cx| connection.on_new_carrier(cx));
    }

    fn poll_acknowledgement(&mut self, writer: &mut Writer<'_>) -> Option<SocketAddr> {
        loop {
            let due = self.state.acknowledgements.pop()?;
            let slot = self
                .slot(due.slot)
                .filter(|slot| slot.generation == due.generation && !slot.connection.is_over());
            if let Some(remote) = slot.and_then(|slot| slot.remote) {
                let header = Header::Acknowledgement { chunk: due.chunk, sequence: due.sequence };
                return header.write(writer).ok().map(|()| remote);
            }
        }
    }
}
