//! `GET /transports`: what a page can reach this relay by.

use std::net::SocketAddr;

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

/// The port of transports by UDP, as a page reaches it.
#[derive(Debug, Clone, Copy)]
pub(super) enum UdpPort {
    /// The one on which the relay listens.
    Own,
    /// The one of the configuration.
    Public(u16),
    /// None that the relay knows.
    Unknown,
}

impl UdpPort {
    fn or(self, local_addr: &SocketAddr) -> Option<u16> {
        match self {
            Self::Own => Some(local_addr.port()),
            Self::Public(port) => Some(port),
            Self::Unknown => None,
        }
    }
}

/// The list, as JSON.
pub(super) fn list(announced: Option<&Announced>, webrtc: Option<&AnnouncedWebRtc>, port: UdpPort) -> String {
    let list = List {
        websocket: WebSocketEntry { path: "/ws" },
        webtransport: announced.and_then(|Announced { local_addr, certificate }| {
            let certificate_hashes = certificate.hashes().iter().map(|hash| STANDARD.encode(hash)).collect();
            port.or(local_addr).map(|port| WebTransportEntry { port, path: PATH, certificate_hashes })
        }),
        webrtc: webrtc.and_then(|AnnouncedWebRtc { local_addr, fingerprint }| {
            let fingerprint = fingerprint.to_string();
            port.or(local_addr).map(|port| WebRtcEntry { port, fingerprint })
        }),
    };
    // Texts and numbers are always JSON.
    serde_json::to_string(&list).unwrap_or_default()
}
