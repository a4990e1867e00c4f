//! Counters as a plain JavaScript object.

use core::fmt::Debug;
use core::time::Duration;

use rakwire::endpoint::{self, DropReasons};
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
  clockDifferenceMs?: number;
  bytesSentLastSecond?: number;
  bytesReceivedLastSecond?: number;
  lossLastSecond?: number;
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

/// The names of the counters and measurements of a connection. The last four are RakNet's.
const NAMES: [&str; 16] = [
    "roundTripMs",
    "pingMs",
    "lowestPingMs",
    "congestionWindow",
    "inFlight",
    "mtu",
    "messagesSent",
    "messagesReceived",
    "datagramsSent",
    "datagramsReceived",
    "datagramsLost",
    "datagramsAcknowledged",
    "clockDifferenceMs",
    "bytesSentLastSecond",
    "bytesReceivedLastSecond",
    "lossLastSecond",
];

/// What is not known, or not measured by the protocol. The object has no such property.
pub(super) const UNKNOWN: f64 = f64::NAN;

impl PeerStats {
    /// Makes the object from the values of a connection, in the order of [`NAMES`], and from the counters of the peer.
    pub(super) fn describe<R: DropReasons + Debug>(
        connection: &[f64; NAMES.len()],
        peer: &endpoint::PeerStats<R>,
    ) -> Self {
        let drops = Drops::new();
        peer.drops().for_each(|(reason, times)| drops.add(&reason, times));
        Self::of(connection, [peer.bytes_sent, peer.bytes_received], drops)
    }

    fn of(connection: &[f64; NAMES.len()], [sent, received]: [u64; 2], drops: Drops) -> Self {
        let stats = Self::new();
        for (name, value) in NAMES.iter().zip(connection) {
            if !value.is_nan() {
                stats.set(name, *value);
            }
        }
        stats.set("bytesSent", count(sent));
        stats.set("bytesReceived", count(received));
        stats.set_drops(drops);
        stats
    }
}

impl Drops {
    /// Adds the count of a reason, unless it is zero.
    fn add(&self, reason: &dyn Debug, times: u64) {
        if times == 0 {
            return;
        }
        let mut name = format!("{reason:?}");
        if let Some(first) = name.get_mut(..1) {
            first.make_ascii_lowercase();
        }
        self.set(&name, count(times));
    }
}

pub(super) fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

#[allow(clippy::cast_precision_loss, reason = "no counter of a page reaches 2^53")]
pub(super) fn count(value: u64) -> f64 {
    value as f64
}
