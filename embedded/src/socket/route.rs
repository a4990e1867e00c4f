//! The next hop of a datagram, according to the configuration of the network stack.

use embassy_net::{HardwareAddress, IpAddress, Stack};
#[cfg(feature = "ipv4")]
use embassy_net::{Ipv4Address, Ipv4Cidr};
#[cfg(feature = "ipv6")]
use embassy_net::{Ipv6Address, Ipv6Cidr};

/// The route to a destination, as the network stack chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// Sent directly: a broadcast or multicast, or a medium without hardware addresses.
    Direct,
    /// Sent to this neighbour on the link. Its hardware address must be known.
    Via(IpAddress),
    /// No route: the stack has no address of this family, or no gateway.
    None,
}

/// The configuration on which routes depend. After a change, the neighbours may be different.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Network {
    is_link_up: bool,
    has_neighbours: bool,
    #[cfg(feature = "ipv4")]
    v4: Option<(Ipv4Cidr, Option<Ipv4Address>)>,
    #[cfg(feature = "ipv6")]
    v6: Option<(Ipv6Cidr, Option<Ipv6Address>)>,
}

impl Network {
    pub(super) fn of(stack: Stack<'_>) -> Self {
        Self {
            is_link_up: stack.is_link_up(),
            has_neighbours: matches!(stack.hardware_address(), HardwareAddress::Ethernet(_)),
            #[cfg(feature = "ipv4")]
            v4: stack.config_v4().map(|config| (config.address, config.gateway)),
            #[cfg(feature = "ipv6")]
            v6: stack.config_v6().map(|config| (config.address, config.gateway)),
        }
    }

    /// Returns the route to an address, as smoltcp chooses it.
    pub(super) fn route(&self, to: IpAddress) -> Route {
        match to {
            #[cfg(feature = "ipv4")]
            IpAddress::Ipv4(address) => self.route_v4(address),
            #[cfg(feature = "ipv6")]
            IpAddress::Ipv6(address) => self.route_v6(address),
        }
    }

    #[cfg(feature = "ipv4")]
    fn route_v4(&self, to: Ipv4Address) -> Route {
        let Some((own, gateway)) = self.v4 else { return Route::None };
        if !self.has_neighbours || to.is_broadcast() || to.is_multicast() || own.broadcast() == Some(to) {
            return Route::Direct;
        }
        if own.contains_addr(&to) {
            return Route::Via(to.into());
        }
        gateway.map_or(Route::None, |gateway| Route::Via(gateway.into()))
    }

    #[cfg(feature = "ipv6")]
    fn route_v6(&self, to: Ipv6Address) -> Route {
        if !self.has_neighbours && (self.v6.is_some() || to.is_unicast_link_local()) || to.is_multicast() {
            return Route::Direct;
        }
        // With SLAAC, the stack has a link-local address before it gets a global one.
        if to.is_unicast_link_local() {
            return Route::Via(to.into());
        }
        let Some((own, gateway)) = self.v6 else { return Route::None };
        if own.contains_addr(&to) {
            return Route::Via(to.into());
        }
        gateway.map_or(Route::None, |gateway| Route::Via(gateway.into()))
    }
}
