//! The class `RakNetPeer`.

use alloc::vec::Vec;

use rakwire::raknet::{
    Carrier, Channel, ConnectFailure, ConnectionStats, Delivery, DisconnectReason, Priority, RakNet, Refusal,
    Reliability, Waiting,
};
use wasm_bindgen::prelude::*;

use super::buffer::{Buffer, address_bytes};
use super::class::class;
use super::numbers::{
    INVALID_DELIVERY, MEASURES, Numbers, UNKNOWN, accepted, connect_error, count, entropy, memory, ms,
    send_error, sent, texts, timeout,
};
use super::record;
use crate::client::{Client, Memory, RakNetSettings, instant, millis};

/// One connection to one RakNet server, without a socket, timers or a clock.
///
/// After any call, call `pollEvent` and `pollTransmit` until they return nothing, then `handleTimeout` at
/// `pollTimeout`. Times are milliseconds of a monotonic clock, such as `performance.now()`.
#[wasm_bindgen]
#[derive(Debug)]
pub struct RakNetPeer {
    pub(super) client: Client<RakNet>,
    pub(super) buffer: Buffer,
}

#[wasm_bindgen]
impl RakNetPeer {
    /// Creates a peer that is not connected. `a` to `d` are 256 bits of entropy. Returns `None` if there is not enough
    /// memory.
    ///
    /// `progress_interval` is the number of parts of a large message between two progress events; 0 disables these
    /// events. For any other argument, 0 selects the default: 32,768 blocks of 512 bytes, a timeout of 10 s, and an
    /// unlimited sending rate.
    #[allow(clippy::too_many_arguments, reason = "an options object would cost JavaScript an allocation")]
    pub fn create(
        a: u64,
        b: u64,
        c: u64,
        d: u64,
        blocks: u32,
        block_size: u32,
        timeout_ms: u32,
        protocol_version: u8,
        progress_interval: u32,
        outgoing_limit: f64,
    ) -> Option<Self> {
        let settings =
            settings(blocks, block_size, timeout_ms, protocol_version, progress_interval, outgoing_limit);
        Self::new([a, b, c, d], settings)
    }

    /// Sets the carrier of the following datagrams: a stream, or a carrier that can lose datagrams.
    #[wasm_bindgen(js_name = setCarrier)]
    pub fn set_carrier(&mut self, is_stream: bool) {
        self.client.set_carrier(if is_stream { Carrier::Stream } else { Carrier::Datagrams });
    }

    /// Returns the record with the addresses that the server reports as its own: 18 bytes each, IPv6 and port in
    /// network order. IPv4 addresses are mapped into IPv6. JavaScript formats them, because formatting code in Rust
    /// would take 2 KB.
    #[wasm_bindgen(js_name = internalAddresses)]
    pub fn internal_addresses(&mut self) -> *const u8 {
        let mut bytes = Vec::new();
        for address in self.client.internal_addresses() {
            bytes.extend_from_slice(&address_bytes(address));
        }
        self.buffer.write([0; 3], bytes.len(), core::iter::once(&bytes[..]))
    }

    /// Returns the address of the GUID of the server, 8 bytes, little-endian; 0 while there is no connection.
    #[wasm_bindgen(js_name = serverGuid)]
    pub fn server_guid(&mut self) -> *const u8 {
        let Some(guid) = self.client.server_guid() else { return core::ptr::null() };
        self.buffer.write([0; 3], size_of_val(&guid.0), core::iter::once(&guid.0.to_le_bytes()[..]))
    }
}

class!(RakNetPeer, RakNet);

/// The settings of a plain connection.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
pub(super) fn settings(
    blocks: u32,
    block_size: u32,
    timeout_ms: u32,
    protocol_version: u8,
    progress_interval: u32,
    outgoing_limit: f64,
) -> RakNetSettings<'static> {
    RakNetSettings {
        // The TypeScript probes the version itself: the same code in Rust would add 2.3 KB to the package after gzip.
        protocol_version: Some(protocol_version),
        progress_interval,
        password: &[],
        memory: memory(Memory::RAKNET, blocks, block_size),
        timeout: timeout(timeout_ms),
        outgoing_limit: (outgoing_limit > 0.0).then_some(outgoing_limit as u64),
        #[cfg(any(feature = "secure", feature = "npm-secure"))]
        security: None,
        #[cfg(any(feature = "secure", feature = "npm-secure"))]
        identity_data: &[],
    }
}

impl RakNetPeer {
    pub(super) fn new(words: [u64; 4], settings: RakNetSettings<'_>) -> Option<Self> {
        let client = Client::raknet(entropy(words), settings, ()).ok()?;
        Some(Self { client, buffer: Buffer::new() })
    }
}

impl Numbers for RakNet {
    const TEXTS: &'static str = texts!("raknet");

    fn failure(reason: ConnectFailure) -> (u32, u32) {
        match reason {
            ConnectFailure::NoAnswer => (1, 0),
            ConnectFailure::Cancelled => (2, 0),
            ConnectFailure::Refused(refusal) => (refusal_number(refusal), 0),
            ConnectFailure::IncompatibleProtocol { server } => (8, server.into()),
            ConnectFailure::NoAnswerAfterIncompatible { server } => (9, server.into()),
            ConnectFailure::SecurityRequired => (10, 0),
            ConnectFailure::IdentityRequired => (11, 0),
            ConnectFailure::InvalidIdentity => (12, 0),
            ConnectFailure::PublicKeyMismatch => (13, 0),
            ConnectFailure::InvalidPassword => (14, 0),
            ConnectFailure::Closed => (15, 0),
            ConnectFailure::ServerWithoutSecurity => (16, 0),
            ConnectFailure::HandshakeTimeout => (17, 0),
            ConnectFailure::Unreachable | _ => (0, 0),
        }
    }

    fn end(reason: DisconnectReason) -> u32 {
        match reason {
            DisconnectReason::Local => 1,
            DisconnectReason::Remote => 2,
            DisconnectReason::Lost => 3,
            DisconnectReason::MessageTooLarge => 4,
            DisconnectReason::ReceiveMemory => 5,
            DisconnectReason::SentTooLarge => 7,
            DisconnectReason::PathTooNarrow => 8,
            _ => 0,
        }
    }

    fn delivery_numbers(delivery: Delivery) -> (u32, u32) {
        (delivery.reliability as u32, delivery.channel.number().into())
    }

    fn delivery(number: u32) -> Option<Delivery> {
        let reliability = Reliability::from_number((number & 7) as u8)?;
        let priority = Priority::from_number((number >> 3 & 3) as u8)?;
        let channel = u8::try_from(number >> 5).ok().and_then(Channel::new)?;
        Some(Delivery { reliability, channel, priority })
    }

    #[allow(clippy::cast_precision_loss, reason = "no clock of milliseconds reaches 2^53")]
    fn measure(connection: &ConnectionStats) -> [f64; MEASURES] {
        let waiting = connection.waiting.iter().chain([&connection.waiting_resends]);
        let waiting: u32 = waiting.map(|waiting: &Waiting| waiting.bytes).sum();
        [
            ms(connection.round_trip),
            ms(connection.last_ping),
            ms(connection.lowest_ping),
            f64::from(connection.congestion_window),
            f64::from(connection.in_flight),
            f64::from(waiting),
            f64::from(connection.mtu),
            count(connection.messages_sent),
            count(connection.messages_received),
            count(connection.datagrams_sent),
            count(connection.datagrams_received),
            count(connection.datagrams_missing()),
            count(connection.datagrams_late),
            count(connection.datagrams_acknowledged),
            connection.clock_difference.map_or(UNKNOWN, |difference| difference as f64),
            f64::from(connection.actual_bytes_sent.last_second),
            f64::from(connection.actual_bytes_received.last_second),
            connection.loss_last_second(),
        ]
    }
}

fn refusal_number(refusal: Refusal) -> u32 {
    match refusal {
        Refusal::AttemptFailed => 3,
        Refusal::AlreadyConnected => 4,
        Refusal::NoFreeIncomingConnections => 5,
        Refusal::Banned => 6,
        Refusal::RecentlyConnected => 7,
    }
}
