//! Counters as a plain JavaScript object.

use core::fmt::Debug;
use core::time::Duration;

use rakwire::game_protocol;
use rakwire::game_protocol::wire::MAX_PACKET;
use rakwire::raknet::{self, ConnectionStats};
use rakwire::wire::IP_UDP_OVERHEAD;
use wasm_bindgen::prelude::*;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
export interface PeerStats {
  roundTripMs: number;
  pingMs: number;
  lowestPingMs: number;
  congestionWindow: number;
  inFlight: number;
  mtu: number;
  messagesSent: number;
  messagesReceived: number;
  datagramsSent: number;
  datagramsReceived: number;
  datagramsLost: number;
  datagramsAcknowledged: number;
  bytesSent: number;
  bytesReceived: number;
  drops: Record<string, number>;
}
"#;

#[wasm_bindgen]
extern "C" {
    /// The counters of a peer, as a plain object.
    #[wasm_bindgen(js_name = Object, typescript_type = "PeerStats")]
    #[derive(Debug)]
    pub type PeerStats;

    #[wasm_bindgen(constructor, js_class = "Object")]
    fn new() -> PeerStats;
    #[wasm_bindgen(method, structural, indexing_setter)]
    fn set(this: &PeerStats, name: &str, value: f64);
    #[wasm_bindgen(method, structural, setter)]
    fn set_drops(this: &PeerStats, drops: Drops);

    #[wasm_bindgen(js_name = Object)]
    type Drops;

    #[wasm_bindgen(constructor, js_class = "Object")]
    fn new() -> Drops;
    #[wasm_bindgen(method, structural, indexing_setter)]
    fn set(this: &Drops, reason: &str, times: f64);
}

impl PeerStats {
    pub(super) fn describe(connection: &ConnectionStats, peer: &raknet::PeerStats) -> Self {
        let fields = [
            ("roundTripMs", ms(connection.round_trip)),
            ("pingMs", ms(connection.last_ping)),
            ("lowestPingMs", ms(connection.lowest_ping)),
            ("congestionWindow", f64::from(connection.congestion_window)),
            ("inFlight", f64::from(connection.in_flight)),
            ("mtu", f64::from(connection.mtu)),
            ("messagesSent", count(connection.messages_sent)),
            ("messagesReceived", count(connection.messages_received)),
            ("datagramsSent", count(connection.datagrams_sent)),
            ("datagramsReceived", count(connection.datagrams_received)),
            ("datagramsLost", count(connection.datagrams_lost)),
            ("datagramsAcknowledged", count(connection.datagrams_acknowledged)),
            ("bytesSent", count(peer.bytes_sent)),
            ("bytesReceived", count(peer.bytes_received)),
        ];
        Self::of(fields, peer.drops())
    }

    /// The Game Protocol has no pings and no congestion window; its MTU is fixed. A chunk is a datagram.
    pub(super) fn describe_game(
        connection: &game_protocol::ConnectionStats,
        peer: &game_protocol::PeerStats,
    ) -> Self {
        let in_flight = connection.in_flight.saturating_mul(MAX_PACKET as u32);
        let fields = [
            ("roundTripMs", ms(connection.round_trip)),
            ("pingMs", 0.0),
            ("lowestPingMs", 0.0),
            ("congestionWindow", 0.0),
            ("inFlight", f64::from(in_flight)),
            ("mtu", f64::from(MAX_PACKET as u32 + u32::from(IP_UDP_OVERHEAD))),
            ("messagesSent", count(connection.messages_sent)),
            ("messagesReceived", count(connection.messages_received)),
            ("datagramsSent", count(connection.chunks_sent + connection.chunks_resent)),
            ("datagramsReceived", count(connection.chunks_received)),
            ("datagramsLost", count(connection.chunks_resent)),
            ("datagramsAcknowledged", count(connection.chunks_acknowledged)),
            ("bytesSent", count(peer.bytes_sent)),
            ("bytesReceived", count(peer.bytes_received)),
        ];
        Self::of(fields, peer.drops())
    }

    fn of(fields: [(&str, f64); 14], drops: impl Iterator<Item = (impl Debug, u64)>) -> Self {
        let stats = Self::new();
        for (name, value) in fields {
            stats.set(name, value);
        }
        stats.set_drops(describe_drops(drops));
        stats
    }
}

/// The reasons for which something was dropped, each with its count.
fn describe_drops(counts: impl Iterator<Item = (impl Debug, u64)>) -> Drops {
    let drops = Drops::new();
    for (reason, times) in counts.filter(|(_, times)| *times > 0) {
        let mut name = format!("{reason:?}");
        if let Some(first) = name.get_mut(..1) {
            first.make_ascii_lowercase();
        }
        drops.set(&name, count(times));
    }
    drops
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

#[allow(clippy::cast_precision_loss, reason = "no counter of a page reaches 2^53")]
fn count(value: u64) -> f64 {
    value as f64
}
