//! What a router has opened.

use std::net::SocketAddr;

/// A port of the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MappedPort {
    /// Where others send to. Behind a second router its IP address is not one of the internet.
    pub external: SocketAddr,
    /// By which protocol the router was asked.
    pub protocol: MappingProtocol,
}

/// The protocols by which routers are asked, in the order in which they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingProtocol {
    /// RFC 6887.
    Pcp,
    /// RFC 6886, if the router says that it knows no PCP.
    NatPmp,
    /// The service `WANIPConnection` or `WANPPPConnection`.
    Upnp,
}

impl std::fmt::Display for MappingProtocol {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Pcp => "PCP",
            Self::NatPmp => "NAT-PMP",
            Self::Upnp => "UPnP",
        })
    }
}
