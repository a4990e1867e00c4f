//! The hook between an endpoint and its socket: it keeps requests of clients, and simulates a bad network for what arrives.

use std::net::SocketAddr;

use rakwire_native::RakNet;
use rakwire_native::rakwire::Instant;
use rakwire_native::rakwire::endpoint::{Hook, Peer, Verdict};

use crate::incoming::Incoming;

/// The path of datagrams from the socket to the protocol.
#[derive(Debug)]
pub(crate) struct Arrivals {
    incoming: Option<Incoming>,
    #[cfg(feature = "sim")]
    pub(crate) network: Option<Network>,
}

impl Arrivals {
    /// Datagrams that arrive as they are; the requests of clients are kept where they wait.
    pub(crate) const fn new(incoming: Option<Incoming>) -> Self {
        Self {
            incoming,
            #[cfg(feature = "sim")]
            network: None,
        }
    }

    /// Returns true if datagrams arrive unchanged and nothing is kept.
    pub(crate) const fn is_empty(&self) -> bool {
        #[cfg(feature = "sim")]
        let is_simulated = self.network.is_some();
        #[cfg(not(feature = "sim"))]
        let is_simulated = false;
        self.incoming.is_none() && !is_simulated
    }

    fn note(&self, from: SocketAddr, datagram: &[u8]) {
        if let Some(incoming) = &self.incoming {
            incoming.note(from, datagram);
        }
    }
}

impl Hook<RakNet> for Arrivals {
    fn on_received(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) -> Verdict {
        let _ = now;
        #[cfg(feature = "sim")]
        if let Some(network) = &mut self.network {
            network.send(now, from, datagram);
            return Verdict::Drop;
        }
        self.note(from, datagram);
        Verdict::Pass
    }

    fn watches_events(&self) -> bool {
        false
    }

    fn update(&mut self, now: Instant, peer: &mut Peer<'_, RakNet>) {
        let _ = (now, &peer);
        #[cfg(feature = "sim")]
        while let Some((from, datagram)) = self.network.as_mut().and_then(|network| network.receive(now)) {
            self.note(from, &datagram);
            peer.handle_datagram(now, from, &datagram);
        }
    }
}

#[cfg(feature = "sim")]
mod simulated {
    use std::net::{IpAddr, SocketAddr, SocketAddrV6};

    use rakwire_native::Simulation;
    use rakwire_native::rakwire::Instant;
    use rakwire_native::rakwire::sim::Link;

    /// Bytes of an address in front of a datagram: IP address, port, scope, family.
    const ADDRESS: usize = 16 + 2 + 4 + 1;

    /// A bad network for what arrives.
    #[derive(Debug)]
    pub(crate) struct Network(Link);

    impl Network {
        pub(crate) fn new(simulation: Simulation) -> Self {
            Self(Link::new(simulation.conditions, simulation.seed))
        }

        /// Sends a datagram into the network.
        pub(crate) fn send(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) {
            let mut payload = Vec::with_capacity(ADDRESS + datagram.len());
            let (ip, scope, family) = match from {
                SocketAddr::V4(v4) => (v4.ip().to_ipv6_mapped(), 0, 4),
                SocketAddr::V6(v6) => (*v6.ip(), v6.scope_id(), 6),
            };
            payload.extend_from_slice(&ip.octets());
            payload.extend_from_slice(&from.port().to_be_bytes());
            payload.extend_from_slice(&scope.to_be_bytes());
            payload.push(family);
            payload.extend_from_slice(datagram);
            self.0.send(now, &payload);
        }

        /// Returns the next datagram that has left the network by `now`.
        pub(crate) fn receive(&mut self, now: Instant) -> Option<(SocketAddr, Box<[u8]>)> {
            loop {
                // A payload without an address does not come from `send`.
                if let Some(received) = parse(&self.0.receive(now)?) {
                    return Some(received);
                }
            }
        }
    }

    fn parse(payload: &[u8]) -> Option<(SocketAddr, Box<[u8]>)> {
        let (ip, rest) = payload.split_first_chunk::<16>()?;
        let (port, rest) = rest.split_first_chunk::<2>()?;
        let (scope, rest) = rest.split_first_chunk::<4>()?;
        let (family, datagram) = rest.split_first()?;
        let (ip, port) = (std::net::Ipv6Addr::from(*ip), u16::from_be_bytes(*port));
        let from = match family {
            4 => SocketAddr::new(IpAddr::V4(ip.to_ipv4_mapped()?), port),
            _ => SocketAddrV6::new(ip, port, 0, u32::from_be_bytes(*scope)).into(),
        };
        Some((from, datagram.into()))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn datagrams_keep_their_addresses() {
            let simulation: Simulation = "latency=10ms".parse().expect("a simulation");
            let mut network = Network::new(simulation);
            let all = ["192.0.2.1:7", "[2001:db8::1]:8", "[fe80::1%3]:9", "[::ffff:192.0.2.1]:10"];
            let start = Instant::from_micros(1_000_000);
            for address in all {
                network.send(start, address.parse().expect("an address"), b"datagram");
            }
            assert!(network.receive(start).is_none());
            let later = Instant::from_micros(1_010_000);
            for address in all {
                let (from, datagram) = network.receive(later).expect("a datagram");
                assert_eq!((from.to_string().as_str(), &*datagram), (address, &b"datagram"[..]));
            }
            assert!(network.receive(later).is_none());
        }
    }
}
#[cfg(feature = "sim")]
pub(crate) use simulated::Network;
