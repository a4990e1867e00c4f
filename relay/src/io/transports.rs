//! `GET /transports`: what a page can reach this relay by.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::announced::{Announced, PATH};

#[derive(Serialize)]
struct List {
    websocket: WebSocketEntry,
    #[serde(skip_serializing_if = "Option::is_none")]
    webtransport: Option<WebTransportEntry>,
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

/// The list, as JSON.
pub(super) fn list(announced: Option<&Announced>) -> String {
    let list = List {
        websocket: WebSocketEntry { path: "/ws" },
        webtransport: announced.map(|Announced { local_addr, certificate }| WebTransportEntry {
            port: local_addr.port(),
            path: PATH,
            certificate_hashes: certificate.hashes().iter().map(|hash| STANDARD.encode(hash)).collect(),
        }),
    };
    // Texts and numbers are always JSON.
    serde_json::to_string(&list).unwrap_or_default()
}
