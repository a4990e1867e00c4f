//! Network address translators, in the words of RFC 4787.

use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use rand_pcg::Pcg32;
use rand_pcg::rand_core::{Rng, SeedableRng};

use crate::time::Instant;

/// How long a mapping lasts that nobody uses (RFC 4787 section 4.3).
const MAPPING_TIME: Duration = Duration::from_secs(120);
/// The first port that is given out.
const FIRST_PORT: u16 = 20_000;

/// Which port outside stands for a socket inside (RFC 4787 section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mapping {
    /// One port, whoever the datagrams are for.
    EndpointIndependent,
    /// A port for each address that they are for, each the next after the one before.
    Sequential,
    /// A port for each address that they are for, which nobody can foretell.
    Random,
}

/// Whose datagrams pass to a socket inside (RFC 4787 section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Filtering {
    /// Everybody's.
    EndpointIndependent,
    /// Those of an IP address to which the socket has sent.
    AddressDependent,
    /// Those of an address and port to which the socket has sent.
    AddressAndPortDependent,
}

/// What a translator does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NatBehavior {
    /// Which port outside stands for a socket inside.
    pub mapping: Mapping,
    /// Whose datagrams pass to it.
    pub filtering: Filtering,
    /// Whether sockets inside reach each other by their addresses outside.
    pub hairpinning: bool,
}

impl NatBehavior {
    /// A full cone: one port outside, to which everybody can send.
    pub const FULL_CONE: Self = Self::new(Mapping::EndpointIndependent, Filtering::EndpointIndependent);
    /// A restricted cone: one port outside, for machines to which something was sent.
    pub const RESTRICTED_CONE: Self = Self::new(Mapping::EndpointIndependent, Filtering::AddressDependent);
    /// A port-restricted cone: one port outside, for sockets to which something was sent.
    pub const PORT_RESTRICTED_CONE: Self =
        Self::new(Mapping::EndpointIndependent, Filtering::AddressAndPortDependent);
    /// A symmetric NAT that gives ports out in order.
    pub const SYMMETRIC: Self = Self::new(Mapping::Sequential, Filtering::AddressAndPortDependent);
    /// A symmetric NAT whose ports nobody can foretell.
    pub const SYMMETRIC_RANDOM: Self = Self::new(Mapping::Random, Filtering::AddressAndPortDependent);

    const fn new(mapping: Mapping, filtering: Filtering) -> Self {
        Self { mapping, filtering, hairpinning: false }
    }

    /// The same with hairpinning.
    #[must_use]
    pub const fn with_hairpinning(self) -> Self {
        Self { hairpinning: true, ..self }
    }
}

/// A socket inside and its port outside.
#[derive(Debug)]
struct Entry {
    inside: SocketAddr,
    port: u16,
    /// For whom the port is, if each has one of their own.
    remote: Option<SocketAddr>,
    /// To whom something was sent.
    contacted: Vec<SocketAddr>,
    used_at: Instant,
}

/// A translator between a network inside and one outside. It carries nothing: a test asks it for the addresses of each
/// datagram.
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
    /// A translator with this address outside. Random ports are those of the seed.
    #[must_use]
    pub fn new(ip: IpAddr, behavior: NatBehavior, seed: u64) -> Self {
        let random = Pcg32::seed_from_u64(seed);
        Self { ip, behavior, entries: Vec::new(), next_port: FIRST_PORT, random }
    }

    /// Its address outside.
    #[must_use]
    pub const fn ip(&self) -> IpAddr {
        self.ip
    }

    /// What it does.
    #[must_use]
    pub const fn behavior(&self) -> NatBehavior {
        self.behavior
    }

    /// The address that a datagram from inside has outside.
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

    /// The socket inside that a datagram to this port is for; `None` if it does not pass.
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

    /// Which of a new port of the same machine, another machine, and the one that was contacted get through.
    fn who_passes(behavior: NatBehavior) -> [bool; 3] {
        let mut nat = Nat::new(address("203.0.113.1:0").ip(), behavior, 1);
        let (inside, contacted) = (address("10.0.0.1:5000"), address("198.51.100.1:80"));
        let port = nat.outbound(Instant::ZERO, inside, contacted).port();
        ["198.51.100.1:81", "198.51.100.2:80", "198.51.100.1:80"]
            .map(|from| nat.inbound(Instant::ZERO, port, address(from)).is_some())
    }

    #[test]
    fn filters_are_those_of_their_names() {
        assert_eq!(who_passes(NatBehavior::FULL_CONE), [true, true, true]);
        assert_eq!(who_passes(NatBehavior::RESTRICTED_CONE), [true, false, true]);
        assert_eq!(who_passes(NatBehavior::PORT_RESTRICTED_CONE), [false, false, true]);
        assert_eq!(who_passes(NatBehavior::SYMMETRIC), [false, false, true]);
    }

    #[test]
    fn mappings_are_those_of_their_names() {
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
    fn a_mapping_ends_when_nobody_uses_it() {
        let mut nat = Nat::new(address("203.0.113.1:0").ip(), NatBehavior::FULL_CONE, 1);
        let (inside, server) = (address("10.0.0.1:5000"), address("198.51.100.1:80"));
        let port = nat.outbound(Instant::ZERO, inside, server).port();
        let late = Instant::ZERO + MAPPING_TIME;
        assert_eq!(nat.inbound(late, port, server), None);
        assert_ne!(nat.outbound(late, inside, server).port(), port);
    }
}
