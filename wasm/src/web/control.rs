//! What a relay says of itself to its client, in `docs/relay-protocol.md`.

use core::time::Duration;

use js_sys::{JSON, Reflect};

/// The subprotocol of a relay that has control messages.
pub(super) const PROTOCOL: &str = "rakwire.relay.1";
/// What a control message begins with where datagrams carry it.
pub(super) const PREFIX: &[u8] = b"rakwire:";
/// The longest text that is read, and the longest time that counts.
const MAX_TEXT: usize = 4_096;
const MAX_LEFT_MS: f64 = 864e5;

/// For how long the connection goes on at most, if a control message says that the relay is about to end.
pub(super) fn draining(text: &str) -> Option<Duration> {
    let said = JSON::parse(Some(text).filter(|text| text.len() <= MAX_TEXT)?).ok()?;
    let member = |name: &str| Reflect::get(&said, &name.into()).ok();
    let is_draining = member("type")?.as_string().is_some_and(|kind| kind == "draining");
    let left_ms = member("left_ms")?.as_f64().filter(|ms| is_draining && (0.0..=MAX_LEFT_MS).contains(ms))?;
    Some(Duration::from_secs_f64(left_ms / 1_000.0))
}
