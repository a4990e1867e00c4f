//! Announcements of a relay (`docs/relay-protocol.md`): transport discovery at `/transports`, and control messages.

use core::time::Duration;

use js_sys::{Array, Function, JSON, Object, Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{AbortController, Url};

use super::browser::Timer;
use super::error::RelayClose;
use super::local_network::target_address_space;

/// The time in milliseconds without an answer after which a relay counts as unavailable.
const ANSWER_MS: f64 = 10_000.0;
/// The WebSocket subprotocol of relays that send control messages.
pub(super) const PROTOCOL: &str = "rakwire.relay.1";
/// The prefix of control messages in datagrams.
pub(super) const PREFIX: &[u8] = b"rakwire:";
/// The longest control message that is parsed, in bytes.
const MAX_TEXT: usize = 4_096;
/// The longest remaining time of a relay that is accepted, in milliseconds: one day.
const MAX_LEFT_MS: f64 = 864e5;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(catch, js_name = fetch)]
    fn fetch(url: &str, options: &Object) -> Result<Promise, JsValue>;
    #[wasm_bindgen(catch, js_name = atob)]
    fn from_base64(text: &str) -> Result<String, JsValue>;
}

/// The WebTransport endpoint of a relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    /// The UDP port, at the host of the relay.
    pub(super) port: u16,
    pub(super) path: String,
    /// SHA-256 of the certificates; empty if a certificate authority signed them.
    pub(super) certificate_hashes: Vec<Vec<u8>>,
}

/// An announcement of a relay; empty if there was none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Announced {
    /// The relay refuses this page on all transports.
    pub(super) refused: Option<RelayClose>,
    /// The path of its WebSocket, relative to the announcement.
    websocket: Option<String>,
    pub(super) webtransport: Option<Offer>,
}

impl Announced {
    /// Returns the announced URL of the WebSocket; `None` if none is announced or it equals the given URL.
    pub(super) fn websocket_url(&self, given: &Url) -> Option<String> {
        // A proxy may serve the relay under a path prefix.
        let path = format!(".{}", self.websocket.as_ref()?);
        let url = Url::new_with_base(&path, &given.href()).ok()?;
        url.set_search(&given.search());
        (url.pathname() != given.pathname()).then(|| url.href())
    }
}

/// Requests the announcement of a relay, for at most [`ANSWER_MS`] or until `giving_up` is aborted. Without an answer,
/// the announcement is empty.
pub(super) async fn ask(relay: &Url, giving_up: &AbortController) -> Announced {
    let controller = giving_up.clone();
    let give_up = Closure::new(move || controller.abort());
    let _deadline = Timer::start(&give_up, ANSWER_MS);
    answer(relay, giving_up).await.unwrap_or_default()
}

async fn answer(relay: &Url, giving_up: &AbortController) -> Result<Announced, JsValue> {
    let url = Url::new_with_base("transports", &relay.href())?;
    url.set_protocol(if relay.protocol() == "wss:" { "https:" } else { "http:" });
    let options = Object::new();
    Reflect::set(&options, &"signal".into(), &giving_up.signal())?;
    if let Some(space) = target_address_space(&url) {
        Reflect::set(&options, &"targetAddressSpace".into(), &space.into())?;
    }
    let response = JsFuture::from(fetch(&url.href(), &options)?).await?;
    let is_ok = Reflect::get(&response, &"ok".into())?.is_truthy();
    let json = Reflect::get(&response, &"json".into())?.dyn_into::<Function>()?;
    let value = JsFuture::from(json.call0(&response)?.dyn_into::<Promise>()?).await?;
    Ok(if is_ok {
        Announced { refused: None, websocket: path(&value), webtransport: offer(&value) }
    } else {
        Announced { refused: refusal(&value), ..Announced::default() }
    })
}

/// Returns a member of an object; `None` for other values.
fn member(object: &JsValue, name: &str) -> Option<JsValue> {
    Reflect::get(object.dyn_ref::<Object>()?, &name.into()).ok()
}

/// Returns an integer that fits its type.
fn number(value: &JsValue) -> Option<u16> {
    let number = value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..65_536.0).contains(number))?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the number has 16 bits")]
    Some(number as u16)
}

fn path(value: &JsValue) -> Option<String> {
    let path = member(&member(value, "websocket")?, "path")?.as_string()?;
    path.starts_with('/').then_some(path)
}

fn offer(value: &JsValue) -> Option<Offer> {
    let value = member(value, "webtransport")?;
    let hashes = member(&value, "certificate_hashes")?.dyn_into::<Array>().ok()?;
    let hash =
        |text: JsValue| Some(from_base64(&text.as_string()?).ok()?.chars().map(|byte| byte as u8).collect());
    Some(Offer {
        port: number(&member(&value, "port")?)?,
        path: member(&value, "path")?.as_string()?,
        certificate_hashes: hashes.iter().map(hash).collect::<Option<_>>()?,
    })
}

fn refusal(value: &JsValue) -> Option<RelayClose> {
    let code = number(&member(value, "code")?)?;
    let reason = member(value, "reason").and_then(|reason| reason.as_string());
    Some(RelayClose { code, reason: reason.unwrap_or_default() })
}

/// Returns the options of a session with the certificates of an offer.
pub(super) fn session_options(offer: &Offer) -> Result<Object, JsValue> {
    let options = Object::new();
    let set = |object: &Object, name: &str, value: &JsValue| Reflect::set(object, &name.into(), value);
    set(&options, "congestionControl", &"low-latency".into())?;
    set(&options, "requireUnreliable", &true.into())?;
    let hashes = Array::new();
    for hash in &offer.certificate_hashes {
        let entry = Object::new();
        set(&entry, "algorithm", &"sha-256".into())?;
        set(&entry, "value", &Uint8Array::from(hash.as_slice()))?;
        hashes.push(&entry);
    }
    if hashes.length() > 0 {
        set(&options, "serverCertificateHashes", &hashes)?;
    }
    Ok(options)
}

/// Returns the remaining time of the connection if a control message reports a shutdown of the relay.
pub(super) fn draining(text: &str) -> Option<Duration> {
    let value = JSON::parse(Some(text).filter(|text| text.len() <= MAX_TEXT)?).ok()?;
    let member = |name: &str| Reflect::get(&value, &name.into()).ok();
    let is_draining = member("type")?.as_string().is_some_and(|kind| kind == "draining");
    let left_ms = member("left_ms")?.as_f64().filter(|ms| is_draining && (0.0..=MAX_LEFT_MS).contains(ms))?;
    Some(Duration::from_secs_f64(left_ms / 1_000.0))
}
