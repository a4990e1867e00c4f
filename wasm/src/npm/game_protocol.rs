//! The class `GameProtocolPeer`.

use rakwire::endpoint::Protocol;
use rakwire::game_protocol::{ConnectFailure, ConnectionStats, DisconnectReason, GameProtocol, Reliability};
use rakwire::wire::IP_UDP_OVERHEAD;
use wasm_bindgen::prelude::*;

use super::bytes::Bytes;
use super::class::class;
use super::error::{connect_error, error, is_accepted, out_of_memory, read_entropy, send_error};
use super::event::{Names, PeerEvent};
use super::memory::memory;
use super::panic::report_panics;
use super::stats::{PeerStats, UNKNOWN, count, ms};
use crate::client::{Client, Memory, instant, millis};

/// The numbers by which JavaScript knows the reliabilities of both protocols.
const UNRELIABLE: u8 = 0;
const RELIABLE: u8 = 2;

/// One connection of the Game Protocol to one server, with the calls of `RakNetPeer`, which says more of each.
#[wasm_bindgen]
#[derive(Debug)]
pub struct GameProtocolPeer {
    client: Client<GameProtocol>,
}

#[wasm_bindgen]
impl GameProtocolPeer {
    /// A peer that is not connected, from 32 bytes of `crypto.getRandomValues`. Its memory has 4,096 blocks of 512 bytes
    /// unless it is told otherwise.
    ///
    /// # Errors
    /// `bad-entropy` when there are not 32 bytes, `no-memory` when there is not so much memory.
    #[wasm_bindgen(constructor)]
    pub fn new(
        entropy: &[u8],
        blocks: Option<u32>,
        #[wasm_bindgen(js_name = blockSize)] block_size: Option<u32>,
    ) -> Result<Self, JsValue> {
        report_panics();
        let memory = memory(Memory::GAME_PROTOCOL, blocks, block_size);
        let client = Client::game_protocol(read_entropy(entropy)?, memory).map_err(out_of_memory)?;
        Ok(Self { client })
    }

    /// Takes a message for sending: reliability 0 (unreliable) or 2 (reliable); channel and priority mean nothing here,
    /// and there are no receipts.
    ///
    /// # Errors
    /// An `Error` whose `code` says why nothing was taken.
    pub fn send(
        &mut self,
        message: &[u8],
        reliability: u8,
        _channel: u8,
        _priority: u8,
        #[wasm_bindgen(js_name = nowMs)] now_ms: f64,
    ) -> Result<Option<u32>, JsValue> {
        let delivery = read_reliability(reliability)?;
        let receipt = self.client.send(instant(now_ms), message, delivery).map_err(send_error)?;
        Ok(receipt.map(|receipt| receipt.0))
    }

    /// Whether `send` would take a message of so many bytes now.
    ///
    /// # Errors
    /// An `Error` whose `code` says why it never would.
    #[wasm_bindgen(js_name = canSend)]
    pub fn can_send(
        &mut self,
        length: u32,
        reliability: u8,
        _channel: u8,
        _priority: u8,
    ) -> Result<bool, JsValue> {
        is_accepted(self.client.can_send(length as usize, read_reliability(reliability)?))
    }
}

class!(GameProtocolPeer, NAMES, measure);

/// What JavaScript is told of a connection, in the order of the names in `stats`. The Game Protocol has no pings and no
/// congestion window; its MTU is fixed. A chunk is a datagram.
#[allow(clippy::cast_possible_truncation, reason = "a datagram has 508 bytes at the most")]
fn measure(connection: &ConnectionStats) -> [f64; 16] {
    const DATAGRAM: u32 = GameProtocol::MAX_DATAGRAM as u32;
    [
        ms(connection.round_trip),
        0.0,
        0.0,
        0.0,
        f64::from(connection.in_flight.saturating_mul(DATAGRAM)),
        f64::from(DATAGRAM + u32::from(IP_UDP_OVERHEAD)),
        count(connection.messages_sent),
        count(connection.messages_received),
        count(connection.chunks_sent + connection.chunks_resent),
        count(connection.chunks_received),
        count(connection.chunks_resent),
        count(connection.chunks_acknowledged),
        UNKNOWN,
        UNKNOWN,
        UNKNOWN,
        UNKNOWN,
    ]
}

fn read_reliability(number: u8) -> Result<Reliability, JsValue> {
    match number {
        UNRELIABLE => Ok(Reliability::Unreliable),
        RELIABLE => Ok(Reliability::Reliable),
        _ => Err(error("bad-reliability", &"the Game Protocol has unreliable and reliable messages")),
    }
}

const NAMES: Names<GameProtocol> = Names {
    failure: |reason| match reason {
        ConnectFailure::NoAnswer => "no-answer",
        ConnectFailure::Cancelled => "cancelled",
        _ => "failed",
    },
    end: |reason| match reason {
        DisconnectReason::Local => "local",
        DisconnectReason::Remote => "remote",
        DisconnectReason::Lost => "lost",
        DisconnectReason::MessageTooLarge => "message-too-large",
        DisconnectReason::MessageUnfinished => "message-unfinished",
        _ => "ended",
    },
    delivery: |reliability| (if reliability.is_reliable() { RELIABLE } else { UNRELIABLE }, 0),
};
