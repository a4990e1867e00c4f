//! Which router is asked, and how.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

/// The port at which UPnP looks for devices, and the address that all of them hear.
const DISCOVERY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 255, 255, 250), 1_900);

/// Which router is asked for a port, and how often.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PortMappingOptions {
    /// The router; without it the one of the system's default route.
    pub gateway: Option<Ipv4Addr>,
    /// Where UPnP looks for the router: by default at the address that all devices of the network hear, or with
    /// [`gateway`](Self::gateway) at port 1900 of that router.
    pub discovery: Option<SocketAddr>,
    /// How long the router is asked to keep the port open: 2 hours by default. It is renewed after half the time that the
    /// router grants.
    pub lease: Duration,
    /// The shortest time between two renewals, whatever the router grants: 1 minute by default.
    pub shortest_renewal: Duration,
    /// How long the router may take for an answer by all protocols together: 15 s by default.
    pub timeout: Duration,
    /// The time until a router that has opened no port is asked again: 5 minutes by default.
    pub retry: Duration,
}

impl Default for PortMappingOptions {
    fn default() -> Self {
        Self {
            gateway: None,
            discovery: None,
            lease: Duration::from_secs(7_200),
            shortest_renewal: Duration::from_secs(60),
            timeout: Duration::from_secs(15),
            retry: Duration::from_secs(300),
        }
    }
}

impl PortMappingOptions {
    pub(super) fn discovery(&self) -> SocketAddr {
        let unicast = self.gateway.map(|gateway| SocketAddrV4::new(gateway, DISCOVERY.port()));
        self.discovery.unwrap_or_else(|| unicast.unwrap_or(DISCOVERY).into())
    }

    /// In whole seconds, and not 0, which asks for the mapping to be removed, or for one without an end.
    pub(super) fn lease_seconds(&self) -> u32 {
        u32::try_from(self.lease.as_secs()).unwrap_or(u32::MAX).max(1)
    }
}
