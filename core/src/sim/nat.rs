//! Network address translators, in the terms of RFC 4787.

use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use rand_pcg::Pcg32;
use rand_pcg::rand_core::{Rng, SeedableRng};

use crate::time::Instant;

/// The lifetime of an unused mapping (RFC 4787, section 4.3).
const MAPPING_TIME: Duration = Duration::from_secs(120);
/// The first external port that is assigned.
const FIRST_PORT: u16 = 20_000;

/// The mapping of internal sockets to external ports (RFC 4787, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mapping {
    /// One port for all destinations.
    EndpointIndependent,
    /// A separate port for each destination, assigned in sequence.
    Sequential,
    /// A separate port for each destination, assigned unpredictably.
    Random,
}

/// The filter for inbound datagrams (RFC 4787, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Filtering {
    /// Datagrams from any source.
    EndpointIndependent,
    /// Datagrams from IP addresses to which the internal socket has sent.
    AddressDependent,
    /// Datagrams from addresses and ports to which the internal socket has sent.
    AddressAndPortDependent,
}

/// The behavior of a translator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NatBehavior {
    /// The mapping of internal sockets to external ports.
    pub mapping: Mapping,
    /// The filter for inbound datagrams.
    pub filtering: Filtering,
    /// True if internal sockets can reach each other through their external addresses.
    pub hairpinning: bool,
}

impl NatBehavior {
    /// A full cone NAT: one external port that accepts datagrams from any source.
    pub const FULL_CONE: Self = Self::new(Mapping::EndpointIndependent, Filtering::EndpointIndependent);
    /// A restricted cone NAT: one external port that accepts datagrams from contacted IP addresses.
    pub const RESTRICTED_CONE: Self = Self::new(Mapping::EndpointIndependent, Filtering::AddressDependent);
    /// A port-restricted cone NAT: one external port that accepts datagrams from contacted addresses and ports.
    pub const PORT_RESTRICTED_CONE: Self =
        Self::new(Mapping::EndpointIndependent, Filtering::AddressAndPortDependent);
    /// A symmetric NAT that assigns ports in sequence.
    pub const SYMMETRIC: Self = Self::new(Mapping::Sequential, Filtering::AddressAndPortDependent);
    /// A symmetric NAT that assigns ports unpredictably.
    pub const SYMMETRIC_RANDOM: Self = Self::new(Mapping::Random, Filtering::AddressAndPortDependent);

    const fn new(mapping: Mapping, filtering: Filtering) -> Self {
        Self { mapping, filtering, hairpinning: false }
    }

    /// Returns this behavior with hairpinning.
    #[must_use]
    pub const fn with_hairpinning(self) -> Self {
        Self { hairpinning: true, ..self }
    }
}

/// An internal socket and its external port.
#[derive(Debug)]
struct Entry {
    inside: SocketAddr,
    port: u16,
    /// The destination for which the port is used; `None` if it is used for all destinations.
    remote: Option<SocketAddr>,
    /// Addresses to which the socket has sent.
    contacted: Vec<SocketAddr>,
    used_at: Instant,
}

/// A translator between an internal and an external network.
///
/// It only translates addresses; the test itself forwards the datagrams.
///
/// ```
/// use rakwire::Instant;
/// use rakwire::sim::{Nat, NatBehavior};
///
/// let mut nat = Nat::new("203.0.113.1".parse()?, NatBehavior::PORT_RESTRICTED_CONE, 1);
/// let (inside, server) = ("192.168.0.2:5000".parse()?, "198.51.100.1:80".parse()?);
/// let outside = nat.outbound(Instant::ZERO, inside, server);
/// assert_eq!(nat.inbound(Instant::ZERO, outside.port(), server), Some(inside));
/// assert_eq!(nat.inbound(Instant::ZERO, outside.port(), "198.51.100.1:81".parse()?), None);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Debug)]
pub struct Nat {
    ip: IpAddr,
    behavior: NatBehavior,
    entries: Vec<Entry>,
    next_port: u16,
    random: Pcg32,
}

impl Nat {
    /// Creates a translator with this external address. Random ports depend on `seed`.
    #[must_use]
    pub fn new(ip: IpAddr, behavior: NatBehavior, seed: u64) -> Self {
        let random = Pcg32::seed_from_u64(seed);
        Self { ip, behavior, entries: Vec::new(), next_port: FIRST_PORT, random }
    }

    /// Returns the external address.
    #[must_use]
    pub const fn ip(&self) -> IpAddr {
        self.ip
    }

    /// Returns the behavior.
    #[must_use]
    pub const fn behavior(&self) -> NatBehavior {
        self.behavior
    }

    /// Returns the external source address of an outbound datagram, and creates the mapping if necessary.
    pub fn outbound(&mut self, now: Instant, from: SocketAddr, to: SocketAddr) -> SocketAddr {
        self.entries.retain(|entry| now < entry.used_at + MAPPING_TIME);
        let remote = (self.behavior.mapping != Mapping::EndpointIndependent).then_some(to);
        let known = self.entries.iter().position(|entry| entry.inside == from && entry.remote == remote);
        let at = known.unwrap_or_else(|| {
            let entry =
                Entry { inside: from, port: self.free_port(), remote, contacted: Vec::new(), used_at: now };
            self.entries.push(entry);
            self.entries.len() - 1
        });
        let Some(entry) = self.entries.get_mut(at) else { return from };
        entry.used_at = now;
        if !entry.contacted.contains(&to) {
            entry.contacted.push(to);
        }
        SocketAddr::new(self.ip, entry.port)
    }

    /// Returns the internal socket that receives a datagram to the external `port`; `None` if the datagram is
    /// filtered.
    #[must_use]
    pub fn inbound(&self, now: Instant, port: u16, from: SocketAddr) -> Option<SocketAddr> {
        let entry =
            self.entries.iter().find(|entry| entry.port == port && now < entry.used_at + MAPPING_TIME)?;
        let passes = match self.behavior.filtering {
            Filtering::EndpointIndependent => true,
            Filtering::AddressDependent => entry.contacted.iter().any(|remote| remote.ip() == from.ip()),
            Filtering::AddressAndPortDependent => entry.contacted.contains(&from),
        };
        passes.then_some(entry.inside)
    }

    fn free_port(&mut self) -> u16 {
        loop {
            let port = match self.behavior.mapping {
                Mapping::EndpointIndependent | Mapping::Sequential => self.next_port,
                Mapping::Random => FIRST_PORT + (self.random.next_u32() % 40_000) as u16,
            };
            self.next_port = self.next_port.checked_add(1).unwrap_or(FIRST_PORT);
            if self.entries.iter().all(|entry| entry.port != port) {
                return port;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    /// Returns whether inbound datagrams pass: from another port of the contacted host, from another host, and from the
    /// contacted socket.
    fn passing_remotes(behavior: NatBehavior) -> [bool; 3] {
        let mut nat = Nat::new(address("203.0.113.1:0").ip(), behavior, 1);
        let (inside, contacted) = (address("10.0.0.1:5000"), address("198.51.100.1:80"));
        let port = nat.outbound(Instant::ZERO, inside, contacted).port();
        ["198.51.100.1:81", "198.51.100.2:80", "198.51.100.1:80"]
            .map(|from| nat.inbound(Instant::ZERO, port, address(from)).is_some())
    }

    #[test]
    fn each_nat_behavior_filters_by_the_documented_part_of_the_remote_address() {
        assert_eq!(passing_remotes(NatBehavior::FULL_CONE), [true, true, true]);
        assert_eq!(passing_remotes(NatBehavior::RESTRICTED_CONE), [true, false, true]);
        assert_eq!(passing_remotes(NatBehavior::PORT_RESTRICTED_CONE), [false, false, true]);
        assert_eq!(passing_remotes(NatBehavior::SYMMETRIC), [false, false, true]);
    }

    #[test]
    fn ports_are_constant_sequential_or_random_per_destination() {
        let ports = |behavior| {
            let mut nat = Nat::new(address("203.0.113.1:0").ip(), behavior, 1);
            let to = |port| SocketAddr::new(address("198.51.100.1:0").ip(), port);
            [80, 81, 82, 80]
                .map(|port| nat.outbound(Instant::ZERO, address("10.0.0.1:5000"), to(port)).port())
        };
        assert_eq!(ports(NatBehavior::PORT_RESTRICTED_CONE), [20_000; 4]);
        assert_eq!(ports(NatBehavior::SYMMETRIC), [20_000, 20_001, 20_002, 20_000]);
        let random = ports(NatBehavior::SYMMETRIC_RANDOM);
        assert!(random[0] != random[1] && random[1] != random[2] && random[0] == random[3], "{random:?}");
    }

    #[test]
    fn a_nat_mapping_expires_after_120_seconds_without_use() {
        let mut nat = Nat::new(address("203.0.113.1:0").ip(), NatBehavior::FULL_CONE, 1);
        let (inside, server) = (address("10.0.0.1:5000"), address("198.51.100.1:80"));
        let port = nat.outbound(Instant::ZERO, inside, server).port();
        let late = Instant::ZERO + MAPPING_TIME;
        assert_eq!(nat.inbound(late, port, server), None);
        assert_ne!(nat.outbound(late, inside, server).port(), port);
    }
}
