//! One direction of a simulated network: a path to or from each address.

use std::collections::HashMap;
use std::net::SocketAddr;

use rakwire::Instant;
use rakwire::sim::Link;

use crate::simulation::Simulation;

/// Addresses that have a path of their own at the same time; datagrams of further ones are lost.
const MOST: usize = 4_096;

/// Which way the datagrams go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    In,
    Out,
}

/// A datagram at the end of its path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parcel {
    pub(crate) at: Instant,
    pub(crate) address: SocketAddr,
    pub(crate) bytes: Box<[u8]>,
}

/// The paths of one direction, each with the same conditions and with luck of its own.
#[derive(Debug)]
pub(crate) struct Paths {
    simulation: Simulation,
    links: HashMap<SocketAddr, Link>,
    seed: u64,
}

impl Paths {
    pub(crate) fn new(simulation: Simulation, direction: Direction) -> Self {
        // The luck of one direction is not that of the other.
        let seed = simulation.seed.wrapping_mul(2).wrapping_add(u64::from(direction == Direction::In));
        Self { simulation, links: HashMap::new(), seed }
    }

    /// Puts a datagram on its way.
    pub(crate) fn send(&mut self, now: Instant, address: SocketAddr, datagram: &[u8]) {
        if let Some(link) = self.links.get_mut(&address) {
            link.send(now, datagram);
            return;
        }
        if self.links.len() >= MOST {
            self.links.retain(|_, link| link.next_arrival().is_some());
        }
        if self.links.len() < MOST {
            let mut link = Link::new(self.simulation.conditions, self.seed);
            self.seed = self.seed.wrapping_add(2);
            link.send(now, datagram);
            self.links.insert(address, link);
        }
    }

    /// When the next datagram is at its end.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.links.values().filter_map(Link::next_arrival).min()
    }

    /// What has come to its end by `now`, in the order of time.
    pub(crate) fn receive(&mut self, now: Instant) -> Vec<Parcel> {
        let mut parcels = Vec::new();
        for (address, link) in &mut self.links {
            while let Some(at) = link.next_arrival().filter(|at| *at <= now) {
                let bytes = link.receive(now).unwrap_or_default();
                parcels.push(Parcel { at, address: *address, bytes });
            }
        }
        parcels.sort_by_key(|parcel| parcel.at);
        parcels
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn paths(text: &str) -> Paths {
        Paths::new(text.parse().expect("a simulation"), Direction::Out)
    }

    fn address(port: u16) -> SocketAddr {
        ([127, 0, 0, 1], port).into()
    }

    #[test]
    fn every_datagram_takes_its_time_and_keeps_its_address() {
        let mut paths = paths("latency=10ms");
        let start = Instant::from_micros(1_000);
        for port in [3, 1, 2] {
            paths.send(start + Duration::from_micros(port.into()), address(port), &[port as u8]);
        }
        let first = start + Duration::from_micros(10_001);
        assert_eq!(paths.next(), Some(first));
        assert_eq!(paths.receive(start + Duration::from_millis(10)), []);
        let ports: Vec<u16> = paths
            .receive(start + Duration::from_secs(1))
            .iter()
            .map(|parcel| {
                assert_eq!(parcel.bytes[0], parcel.address.port() as u8);
                parcel.address.port()
            })
            .collect();
        assert_eq!(ports, [1, 2, 3]);
        assert_eq!(paths.next(), None);
    }

    #[test]
    fn paths_that_carry_nothing_make_room() {
        let mut paths = paths("latency=1s");
        for port in 0..MOST as u16 + 9 {
            paths.send(Instant::ZERO, address(port), &[0]);
        }
        let end = Instant::from_micros(2_000_000);
        assert_eq!(paths.receive(end).len(), MOST);
        paths.send(end, address(9), &[0]);
        paths.send(end, address(60_000), &[0]);
        assert_eq!(paths.links.len(), 2);
    }
}
