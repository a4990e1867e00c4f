//! What a peer asks those with whom it decides whom it lets in.

use core::net::SocketAddr;
use core::time::Duration;

use super::client_limits::ClientLimits;

/// A client that wants a connection.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(all(feature = "alloc", feature = "server")),
    expect(dead_code, reason = "a peer that decides alone asks nobody")
)]
pub(crate) struct Request {
    /// The GUID, where there is one.
    pub(crate) identity: Option<u64>,
    pub(crate) address: SocketAddr,
    pub(crate) max_incoming: u16,
    /// How long an address must wait between two connections.
    pub(crate) interval: Option<Duration>,
    /// Whether the client has proved that the address is its own.
    pub(crate) is_validated: bool,
    /// How many connections of a network may be half open, if that is limited.
    pub(crate) half_open: Option<u16>,
    /// How many connections may come from one address and from one network.
    pub(crate) limits: ClientLimits,
}

/// Why a client gets no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(all(feature = "alloc", feature = "server")),
    expect(dead_code, reason = "a peer that decides alone has its own words")
)]
pub(crate) enum Rejection {
    /// The address is banned.
    Banned,
    /// There is a connection with this identity.
    Known,
    /// The address has opened a connection a moment ago.
    Recent,
    /// There are as many connections as there may be.
    Full,
    /// The address or its network has as many connections as it may have.
    Crowded,
    /// It has not proved its address, and others that have not either are in its way: a client that proves its address gets a
    /// place.
    Unvalidated,
    /// As many connections of the network as may be are half open.
    HalfOpen,
    /// The application turns the client away.
    Refused,
    /// The application leaves the client without an answer.
    Ignored,
}
