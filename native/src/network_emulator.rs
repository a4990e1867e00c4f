//! A simulated network between an endpoint and its socket.

use std::collections::HashMap;
use std::net::SocketAddr;

use rakwire::Instant;
use rakwire::sim::Link;

use crate::simulation::Simulation;

/// The maximum number of addresses with datagrams in transit; datagrams of further ones are dropped.
const MAX_LINKS: usize = 4_096;

/// The direction of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    In,
    Out,
}

/// A datagram that has passed the network.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Delivered {
    pub(crate) at: Instant,
    pub(crate) address: SocketAddr,
    pub(crate) bytes: Box<[u8]>,
}

/// One direction of a simulated network: a link for each address, with the same conditions and its own random numbers.
#[derive(Debug)]
pub(crate) struct NetworkEmulator {
    simulation: Simulation,
    links: HashMap<SocketAddr, Link>,
    seed: u64,
}

impl NetworkEmulator {
    pub(crate) fn new(simulation: Simulation, direction: Direction) -> Self {
        // The two directions must not lose the same datagrams.
        let seed = simulation.seed.wrapping_mul(2).wrapping_add(u64::from(direction == Direction::In));
        Self { simulation, links: HashMap::new(), seed }
    }

    /// Sends a datagram into the network.
    pub(crate) fn send(&mut self, now: Instant, address: SocketAddr, datagram: &[u8]) {
        if let Some(link) = self.links.get_mut(&address) {
            link.send(now, datagram);
            return;
        }
        if self.links.len() >= MAX_LINKS {
            self.links.retain(|_, link| link.next_arrival().is_some());
        }
        if self.links.len() < MAX_LINKS {
            let mut link = Link::new(self.simulation.conditions, self.seed);
            self.seed = self.seed.wrapping_add(2);
            link.send(now, datagram);
            self.links.insert(address, link);
        }
    }

    /// When the next datagram leaves the network.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.links.values().filter_map(Link::next_arrival).min()
    }

    /// The datagrams that have left the network by `now`, in order of time.
    pub(crate) fn receive(&mut self, now: Instant) -> Vec<Delivered> {
        let mut delivered = Vec::new();
        for (address, link) in &mut self.links {
            while let Some(at) = link.next_arrival().filter(|at| *at <= now) {
                let bytes = link.receive(now).unwrap_or_default();
                delivered.push(Delivered { at, address: *address, bytes });
            }
        }
        delivered.sort_by_key(|datagram| datagram.at);
        delivered
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn emulator(text: &str) -> NetworkEmulator {
        NetworkEmulator::new(text.parse().expect("a simulation"), Direction::Out)
    }

    fn address(port: u16) -> SocketAddr {
        ([127, 0, 0, 1], port).into()
    }

    #[test]
    fn datagrams_are_delayed_and_keep_their_addresses() {
        let mut network = emulator("latency=10ms");
        let start = Instant::from_micros(1_000);
        for port in [3, 1, 2] {
            network.send(start + Duration::from_micros(port.into()), address(port), &[port as u8]);
        }
        let first = start + Duration::from_micros(10_001);
        assert_eq!(network.next(), Some(first));
        assert_eq!(network.receive(start + Duration::from_millis(10)), []);
        let ports: Vec<u16> = network
            .receive(start + Duration::from_secs(1))
            .iter()
            .map(|datagram| {
                assert_eq!(datagram.bytes[0], datagram.address.port() as u8);
                datagram.address.port()
            })
            .collect();
        assert_eq!(ports, [1, 2, 3]);
        assert_eq!(network.next(), None);
    }

    #[test]
    fn links_without_datagrams_are_replaced() {
        let mut network = emulator("latency=1s");
        for port in 0..MAX_LINKS as u16 + 9 {
            network.send(Instant::ZERO, address(port), &[0]);
        }
        let end = Instant::from_micros(2_000_000);
        assert_eq!(network.receive(end).len(), MAX_LINKS);
        network.send(end, address(9), &[0]);
        network.send(end, address(60_000), &[0]);
        assert_eq!(network.links.len(), 2);
    }
}
