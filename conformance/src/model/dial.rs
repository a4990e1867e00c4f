//! The connection attempt of a model client.

use std::net::SocketAddr;
use std::time::Instant;

/// An attempt to connect.
#[derive(Debug)]
pub(super) struct Dial {
    pub(super) target: SocketAddr,
    pub(super) asked: usize,
    pub(super) asked_at: Option<Instant>,
    /// True if open connection requests 1 have stopped, because the server answered or all of them were sent.
    pub(super) over: bool,
    pub(super) requests_2: usize,
    pub(super) last_request_2: Option<Vec<u8>>,
    pub(super) opened: bool,
}
