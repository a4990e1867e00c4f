//! WebTransport as it is told to pages.

use std::net::SocketAddr;

use crate::tls::QuicCertificate;

/// The path of requests for a session.
pub(crate) const PATH: &str = "/wt";

/// See the module.
#[derive(Debug)]
pub(crate) struct Announced {
    pub(crate) local_addr: SocketAddr,
    pub(crate) certificate: QuicCertificate,
}
