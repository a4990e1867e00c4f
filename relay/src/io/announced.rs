//! Transports as they are told to pages.

use std::net::SocketAddr;

use crate::tls::QuicCertificate;
use crate::webrtc::Fingerprint;

/// The path of requests for a session.
pub(crate) const PATH: &str = "/wt";

/// WebTransport as it is told to pages.
#[derive(Debug)]
pub(crate) struct Announced {
    pub(crate) local_addr: SocketAddr,
    pub(crate) certificate: QuicCertificate,
}

/// Data channels as they are told to pages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnnouncedWebRtc {
    pub(crate) local_addr: SocketAddr,
    pub(crate) fingerprint: Fingerprint,
}
