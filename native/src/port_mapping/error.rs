//! Why a router has opened no port.

use std::net::SocketAddr;

/// No port of the router leads to the socket.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PortMappingError {
    /// Routers translate addresses of IPv4 alone, and the socket has another one, or no port.
    #[error(
        "the socket is bound to {0}, which no router maps; bind it to a port of an IPv4 address, or of all of them"
    )]
    Local(SocketAddr),
    /// The system names no router.
    #[error("the address of the router is unknown: {0}; name it by PortMappingOptions::gateway")]
    NoGateway(String),
    /// The router did neither what PCP or NAT-PMP ask, nor what UPnP does.
    #[error(
        "the router maps no port: by PCP and NAT-PMP {pcp}, by UPnP {upnp}; allow one of them in its settings, or open the port there"
    )]
    Refused {
        /// What became of PCP and NAT-PMP.
        pcp: String,
        /// What became of UPnP.
        upnp: String,
    },
    /// The router took too long.
    #[error(
        "the router did not answer in time; allow more by PortMappingOptions::timeout, or open the port in its settings"
    )]
    Timeout,
    /// The handle was closed before the router had answered.
    #[error("the mapping is closed; start another one")]
    Closed,
}
