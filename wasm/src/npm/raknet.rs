//! The class `RakNetPeer`.

use core::net::IpAddr;

use rakwire::raknet::{
    Channel, ConnectFailure, ConnectionStats, Delivery, DisconnectReason, Priority, RakNet, Refusal,
    Reliability,
};
use wasm_bindgen::prelude::*;

use super::bytes::Bytes;
use super::class::class;
use super::error::{connect_error, error, is_accepted, out_of_memory, read_entropy, send_error};
use super::event::{Names, PeerEvent};
use super::memory::memory;
use super::panic::report_panics;
use super::stats::{PeerStats, UNKNOWN, count, ms};
use crate::client::{Client, Memory, RakNetSettings, instant, millis};

/// One connection to one RakNet server, without socket, timer or clock.
///
/// After any call: `pollEvent` and `pollTransmit` until they return nothing, then `handleTimeout` at `pollTimeout`.
/// Times are milliseconds of a clock that does not step back, such as `performance.now()`.
#[wasm_bindgen]
#[derive(Debug)]
pub struct RakNetPeer {
    client: Client<RakNet>,
}

#[wasm_bindgen]
impl RakNetPeer {
    /// A peer that is not connected, from 32 bytes of `crypto.getRandomValues`. Every so many parts of a large message
    /// it tells how far that has come; 0 is never. The server is told the password, of at most 255 bytes, unless it is
    /// empty. The memory has 16,384 blocks of 512 bytes unless it is told otherwise.
    ///
    /// # Errors
    /// `bad-entropy` when there are not 32 bytes, `no-memory` when there is not so much memory.
    #[wasm_bindgen(constructor)]
    pub fn new(
        entropy: &[u8],
        #[wasm_bindgen(js_name = protocolVersion)] protocol_version: u8,
        #[wasm_bindgen(js_name = progressInterval)] progress_interval: u32,
        password: &[u8],
        blocks: Option<u32>,
        #[wasm_bindgen(js_name = blockSize)] block_size: Option<u32>,
    ) -> Result<Self, JsValue> {
        report_panics();
        let memory = memory(Memory::RAKNET, blocks, block_size);
        let settings = RakNetSettings { protocol_version, progress_interval, password, memory };
        let client = Client::raknet(read_entropy(entropy)?, settings).map_err(out_of_memory)?;
        Ok(Self { client })
    }

    /// Takes a message for sending: reliability 0 to 4 as on the wire or 5 to 7 with a receipt, whose number comes back;
    /// channel 0 to 31, priority 0 (first) to 3.
    ///
    /// # Errors
    /// An `Error` whose `code` says why nothing was taken.
    pub fn send(
        &mut self,
        message: &[u8],
        reliability: u8,
        channel: u8,
        priority: u8,
        #[wasm_bindgen(js_name = nowMs)] now_ms: f64,
    ) -> Result<Option<u32>, JsValue> {
        let delivery = read_delivery(reliability, channel, priority)?;
        let receipt = self.client.send(instant(now_ms), message, delivery).map_err(send_error)?;
        Ok(receipt.map(|receipt| receipt.0))
    }

    /// The addresses that the server has said are its own: 18 bytes each, an IPv6 address and the port in network order.
    /// IPv4 addresses stand inside IPv6. JavaScript writes them as text, since Rust's code for that takes 2 KB.
    #[wasm_bindgen(js_name = internalAddresses)]
    pub fn internal_addresses(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for address in self.client.internal_addresses() {
            let ip = match address.ip() {
                IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                IpAddr::V6(ip) => ip,
            };
            bytes.extend_from_slice(&ip.octets());
            bytes.extend_from_slice(&address.port().to_be_bytes());
        }
        bytes
    }

    /// The GUID of the server, while there is a connection.
    #[wasm_bindgen(getter, js_name = serverGuid)]
    pub fn server_guid(&self) -> Option<u64> {
        self.client.server_guid().map(|guid| guid.0)
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
        channel: u8,
        priority: u8,
    ) -> Result<bool, JsValue> {
        is_accepted(self.client.can_send(length as usize, read_delivery(reliability, channel, priority)?))
    }
}

class!(RakNetPeer, NAMES, measure);

/// What JavaScript is told of a connection, in the order of the names in `stats`.
#[allow(clippy::cast_precision_loss, reason = "no clock of milliseconds reaches 2^53")]
fn measure(connection: &ConnectionStats) -> [f64; 16] {
    [
        ms(connection.round_trip),
        ms(connection.last_ping),
        ms(connection.lowest_ping),
        f64::from(connection.congestion_window),
        f64::from(connection.in_flight),
        f64::from(connection.mtu),
        count(connection.messages_sent),
        count(connection.messages_received),
        count(connection.datagrams_sent),
        count(connection.datagrams_received),
        count(connection.datagrams_lost),
        count(connection.datagrams_acknowledged),
        connection.clock_difference.map_or(UNKNOWN, |difference| difference as f64),
        f64::from(connection.actual_bytes_sent.last_second),
        f64::from(connection.actual_bytes_received.last_second),
        connection.loss_last_second(),
    ]
}

fn read_delivery(reliability: u8, channel: u8, priority: u8) -> Result<Delivery, JsValue> {
    Ok(Delivery {
        reliability: read_reliability(reliability)?,
        channel: Channel::new(channel).ok_or_else(|| error("bad-channel", &"a channel is 0 to 31"))?,
        priority: read_priority(priority)?,
    })
}

fn read_reliability(number: u8) -> Result<Reliability, JsValue> {
    Ok(match number {
        0 => Reliability::Unreliable,
        1 => Reliability::UnreliableSequenced,
        2 => Reliability::Reliable,
        3 => Reliability::ReliableOrdered,
        4 => Reliability::ReliableSequenced,
        5 => Reliability::UnreliableWithReceipt,
        6 => Reliability::ReliableWithReceipt,
        7 => Reliability::ReliableOrderedWithReceipt,
        _ => return Err(error("bad-reliability", &"a reliability is 0 to 7")),
    })
}

fn read_priority(number: u8) -> Result<Priority, JsValue> {
    Ok(match number {
        0 => Priority::Immediate,
        1 => Priority::High,
        2 => Priority::Medium,
        3 => Priority::Low,
        _ => return Err(error("bad-priority", &"a priority is 0 to 3")),
    })
}

const NAMES: Names<RakNet> = Names {
    failure: failure_code,
    end: end_code,
    delivery: |delivery| (delivery.reliability as u8, delivery.channel.number()),
};

fn failure_code(reason: ConnectFailure) -> &'static str {
    match reason {
        ConnectFailure::NoAnswer => "no-answer",
        ConnectFailure::Refused(refusal) => refusal_code(refusal),
        ConnectFailure::IncompatibleProtocol { .. } | ConnectFailure::SilentSinceIncompatible { .. } => {
            "incompatible-protocol"
        }
        ConnectFailure::SecurityRequired => "security-required",
        ConnectFailure::IdentityRequired => "identity-required",
        ConnectFailure::InvalidIdentity => "invalid-identity",
        ConnectFailure::PublicKeyMismatch => "public-key-mismatch",
        ConnectFailure::InvalidPassword => "invalid-password",
        ConnectFailure::Closed => "closed-by-server",
        ConnectFailure::Cancelled => "cancelled",
        _ => "failed",
    }
}

fn refusal_code(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::AttemptFailed => "failed",
        Refusal::AlreadyConnected => "already-connected",
        Refusal::NoFreeIncomingConnections => "server-full",
        Refusal::Banned => "banned",
        Refusal::RecentlyConnected => "recently-connected",
    }
}

fn end_code(reason: DisconnectReason) -> &'static str {
    match reason {
        DisconnectReason::Local => "local",
        DisconnectReason::Remote => "remote",
        DisconnectReason::Lost => "lost",
        DisconnectReason::MessageTooLarge => "message-too-large",
        DisconnectReason::ReceiveMemory => "receive-memory",
        _ => "ended",
    }
}
