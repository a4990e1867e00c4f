//! The class `GameProtocolPeer`.

use rakwire::endpoint::Protocol;
use rakwire::game_protocol::{
    Carrier, ConnectFailure, ConnectionStats, DisconnectReason, GameProtocol, Reliability,
};
use rakwire::wire::IP_UDP_OVERHEAD;
use wasm_bindgen::prelude::*;

use super::buffer::Buffer;
use super::class::class;
use super::numbers::{
    INVALID_DELIVERY, MEASURES, Numbers, UNKNOWN, accepted, connect_error, count, entropy, memory, ms,
    send_error, sent, texts, timeout,
};
use super::record;
use crate::client::{Client, Memory, instant, millis};

/// The numbers of reliabilities in JavaScript, for both protocols.
const UNRELIABLE: u32 = 0;
const RELIABLE: u32 = 2;
/// The number of message bytes in a full chunk.
const CHUNK: u32 = 504;

/// One connection of the Game Protocol to one server, with the methods of `RakNetPeer`. The password must be empty, the
/// channel and the priority are ignored, and there are no receipts.
#[wasm_bindgen]
#[derive(Debug)]
pub struct GameProtocolPeer {
    client: Client<GameProtocol>,
    buffer: Buffer,
}

#[wasm_bindgen]
impl GameProtocolPeer {
    /// Creates a peer that is not connected. `a` to `d` are 256 bits of entropy. For any later argument, 0 selects the
    /// default: 4,096 blocks of 512 bytes, and a timeout of 15 s. Returns `None` if there is not enough memory.
    pub fn create(
        a: u64,
        b: u64,
        c: u64,
        d: u64,
        blocks: u32,
        block_size: u32,
        timeout_ms: u32,
    ) -> Option<Self> {
        let memory = memory(Memory::GAME_PROTOCOL, blocks, block_size);
        let client = Client::game_protocol(entropy([a, b, c, d]), memory, timeout(timeout_ms), ()).ok()?;
        Some(Self { client, buffer: Buffer::new() })
    }

    /// Sets the carrier of the following datagrams: a stream, or a carrier that can lose datagrams.
    #[wasm_bindgen(js_name = setCarrier)]
    pub fn set_carrier(&mut self, is_stream: bool) {
        self.client.set_carrier(if is_stream { Carrier::Stream } else { Carrier::Datagrams });
    }
}

class!(GameProtocolPeer, GameProtocol);

impl Numbers for GameProtocol {
    const TEXTS: &'static str = texts!("game-protocol");

    fn failure(reason: ConnectFailure) -> (u32, u32) {
        let number = match reason {
            ConnectFailure::NoAnswer => 1,
            ConnectFailure::Cancelled => 2,
            ConnectFailure::Unreachable | _ => 0,
        };
        (number, 0)
    }

    fn end(reason: DisconnectReason) -> u32 {
        match reason {
            DisconnectReason::Local => 1,
            DisconnectReason::Remote => 2,
            DisconnectReason::Lost => 3,
            DisconnectReason::MessageTooLarge => 4,
            DisconnectReason::MessageUnfinished => 6,
            _ => 0,
        }
    }

    fn delivery_numbers(reliability: Reliability) -> (u32, u32) {
        (if reliability.is_reliable() { RELIABLE } else { UNRELIABLE }, 0)
    }

    fn delivery(number: u32) -> Option<Reliability> {
        match number & 7 {
            UNRELIABLE => Some(Reliability::Unreliable),
            RELIABLE => Some(Reliability::Reliable),
            _ => None,
        }
    }

    /// The Game Protocol has no pings and no congestion window; its MTU is fixed. A chunk is a datagram.
    #[allow(clippy::cast_possible_truncation, reason = "a datagram has at most 508 bytes")]
    fn measure(connection: &ConnectionStats) -> [f64; MEASURES] {
        const DATAGRAM: u32 = GameProtocol::MAX_DATAGRAM as u32;
        [
            ms(connection.round_trip),
            0.0,
            0.0,
            0.0,
            f64::from(connection.in_flight.saturating_mul(DATAGRAM)),
            f64::from(connection.waiting.saturating_mul(CHUNK)),
            f64::from(DATAGRAM + u32::from(IP_UDP_OVERHEAD)),
            count(connection.messages_sent),
            count(connection.messages_received),
            count(connection.chunks_sent + connection.chunks_resent),
            count(connection.chunks_received),
            count(connection.chunks_missing()),
            count(connection.chunks_late),
            count(connection.chunks_acknowledged),
            UNKNOWN,
            UNKNOWN,
            UNKNOWN,
            UNKNOWN,
        ]
    }
}
