//! `GET /transports`: what a page can reach this relay by.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::announced::{Announced, AnnouncedWebRtc, PATH};

#[derive(Serialize)]
struct List {
    websocket: WebSocketEntry,
    #[serde(skip_serializing_if = "Option::is_none")]
    webtransport: Option<WebTransportEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    webrtc: Option<WebRtcEntry>,
}

#[derive(Serialize)]
struct WebSocketEntry {
    path: &'static str,
}

#[derive(Serialize)]
struct WebTransportEntry {
    port: u16,
    path: &'static str,
    /// SHA-256 in base64.
    certificate_hashes: Vec<String>,
}

#[derive(Serialize)]
struct WebRtcEntry {
    port: u16,
    /// As session descriptions have it.
    fingerprint: String,
}

/// The list, as JSON.
pub(super) fn list(announced: Option<&Announced>, webrtc: Option<&AnnouncedWebRtc>) -> String {
    let list = List {
        websocket: WebSocketEntry { path: "/ws" },
        webtransport: announced.map(|Announced { local_addr, certificate }| WebTransportEntry {
            port: local_addr.port(),
            path: PATH,
            certificate_hashes: certificate.hashes().iter().map(|hash| STANDARD.encode(hash)).collect(),
        }),
        webrtc: webrtc.map(|AnnouncedWebRtc { local_addr, fingerprint }| WebRtcEntry {
            port: local_addr.port(),
            fingerprint: fingerprint.to_string(),
        }),
    };
    // Texts and numbers are always JSON.
    serde_json::to_string(&list).unwrap_or_default()
}
