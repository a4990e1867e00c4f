//! A second request, as far as it is decided about.

use core::net::SocketAddr;

use super::list_length::ListLength;
use super::wire::Guid;
use super::wire::offline::ClientSecurity;

/// A second request whose cookie was looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request2<'r> {
    pub(super) from: SocketAddr,
    pub(super) guid: Guid,
    /// The MTU of the connection.
    pub(super) mtu: u16,
    /// Bytes of the request.
    pub(super) length: usize,
    pub(super) source: Source,
    /// What the client wants keys with; none for a plain connection.
    pub(super) challenge: Option<Challenge<'r>>,
}

/// What a client's second request shows of the address that it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientAddress {
    /// It has given a cookie back, so the address is its own.
    Validated,
    /// No cookie is asked of it. It may be forged.
    Unvalidated,
}

/// What a second request shows of its sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    pub(super) address: ClientAddress,
    /// By the version of the first request.
    pub(super) list_length: ListLength,
}

/// A challenge, and what belongs to it in the request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Challenge<'r> {
    pub(super) cookie: u32,
    pub(super) bytes: &'r [u8],
    pub(super) server_address: SocketAddr,
    /// The MTU as the request has it.
    pub(super) mtu: u16,
}

impl<'r> Challenge<'r> {
    /// The challenge in the fields of a request, if there is one.
    pub(super) const fn in_request(
        security: ClientSecurity<'r>,
        server_address: SocketAddr,
        mtu: u16,
    ) -> Option<Self> {
        match security {
            ClientSecurity::None | ClientSecurity::Cookie(_) => None,
            ClientSecurity::Challenge { cookie, challenge } => {
                Some(Self { cookie, bytes: challenge, server_address, mtu })
            }
        }
    }
}
