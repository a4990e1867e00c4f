//! What a front keeps of a flow for its protocol, and which datagrams need no look inside.

use rakwire::game_protocol::wire::{HEADER, HandshakeWord};
use rakwire::raknet::Guid;
use rakwire::wire::offline::Offline;
use rakwire::wire::{Reader, Wire};

/// Set in the first byte of every datagram of a connection.
const VALID: u8 = 0x80;

#[derive(Debug)]
pub(super) enum FlowProtocol {
    RakNet(RakNetFlow),
    GameProtocol(GameProtocolFlow),
}

/// What a client wants of the server, and how far the front has come with it.
#[derive(Debug, Clone, Copy)]
pub(super) struct RakNetFlow {
    pub(super) version: u8,
    pub(super) mtu: u16,
    pub(super) guid: Guid,
    pub(super) stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Request 1 was sent to the server.
    Reply1,
    /// Request 2 was sent to the server, with its cookie if it gave one.
    Reply2 { cookie: Option<u32>, mtu: u16 },
    /// The server answered request 2.
    Done,
}

/// Whether a datagram may be the first one of a client of RakNet, and none of STUN, DTLS or QUIC.
pub(super) fn may_begin_raknet(datagram: &[u8]) -> bool {
    Offline::read(&mut Reader::new(datagram)).is_ok()
}

/// The same in the Game Protocol: a word of the handshake. QUIC and its like have no datagrams so short.
pub(super) const fn may_begin_game_protocol(datagram: &[u8]) -> bool {
    datagram.len() == size_of::<HandshakeWord>()
}

/// Whether a datagram belongs to a connection.
pub(super) fn is_connected(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & VALID != 0)
}

/// The bits of a header that mean nothing: no peer sets one.
const RESERVED: u32 = 0xF000_0000;
/// END as it is sent, with and without FIN. Two of all salts have the same bytes; clients with those get no answer.
const ENDS: [HandshakeWord; 2] = [HandshakeWord(0x0C00_0000), HandshakeWord(0x0800_0000)];

/// The handshake of the front with the server.
#[derive(Debug, Clone, Copy)]
pub(super) struct GameProtocolFlow {
    pub(super) salt: HandshakeWord,
    /// Whether one end said that the connection is over.
    pub(super) is_over: bool,
}

/// Whether a datagram of an open connection is a packet that tells neither its end nor of another handshake.
pub(super) fn is_packet(datagram: &[u8]) -> bool {
    match handshake_word(datagram) {
        Some(word) => word.0 & RESERVED == 0,
        None => !is_end(datagram),
    }
}

/// Four bytes that may be a part of a handshake: those of peers that nobody here wrote may look like a header.
pub(super) fn handshake_word(datagram: &[u8]) -> Option<HandshakeWord> {
    four_bytes(datagram).filter(|word| !ENDS.contains(word))
}

pub(super) fn is_end(datagram: &[u8]) -> bool {
    four_bytes(datagram).is_some_and(|word| ENDS.contains(&word))
}

fn four_bytes(datagram: &[u8]) -> Option<HandshakeWord> {
    HandshakeWord::read(datagram).ok().filter(|_| datagram.len() == HEADER)
}
