//! Two clients that a facilitator brings together.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use heapless::Vec;
use rakwire::Instant;
use rakwire::endpoint::ConnectionId;
use rakwire::raknet::Guid;

use super::wire::{MAX_CANDIDATES, MAX_INTERNAL};

/// How long the routers of both may take to give out new addresses.
pub(super) const PROBE_TIME: Duration = Duration::from_millis(500);
/// How long an attempt is remembered, which is longer than both clients try.
pub(super) const ATTEMPT_TIME: Duration = Duration::from_secs(30);
/// How long an attempt is for both, if the other one asks too; after it whoever asks wants another attempt.
const JOIN_TIME: Duration = Duration::from_secs(3);
/// How many ports are tried of a router that gives a new one out for each address.
const FORETOLD: u16 = 6;

/// A client of the facilitator.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) guid: Guid,
    /// Its address outside, as its connection has it.
    pub(super) remote: SocketAddr,
    pub(super) internal: Vec<SocketAddr, MAX_INTERNAL>,
    /// It has this plugin.
    pub(super) has_plugin: bool,
    /// Whether its router gives out a port for each address; unknown until a probe arrived.
    pub(super) is_symmetric: Option<bool>,
    pub(super) lets_others_in: bool,
    /// By how much its router counts, once two probes have shown it.
    pub(super) step: Option<u16>,
    /// The port of the facilitator that is asked to be probed next.
    pub(super) next_port: usize,
}

/// One of both.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) id: ConnectionId,
    pub(super) guid: Guid,
    /// The probes of this attempt: their tokens, and where they came from. The first is left out if the step is known.
    pub(super) probes: [(u64, Option<SocketAddr>); 2],
    pub(super) known_step: Option<u16>,
    pub(super) has_failed: bool,
}

impl Side {
    /// A probe of this side came from this address; the first of a token counts, since it is repeated.
    pub(super) fn see(&mut self, token: u64, from: SocketAddr) -> Option<SocketAddr> {
        let (_, mapped) = self.probes.iter_mut().find(|(known, _)| *known == token)?;
        Some(*mapped.get_or_insert(from))
    }

    pub(super) fn is_probed(&self) -> bool {
        self.probes.iter().all(|(token, mapped)| *token == 0 || mapped.is_some())
    }

    /// The addresses outside that the next datagrams of this side may have: of a router that counts, the ones that follow the
    /// last two.
    fn foretold(&self) -> impl Iterator<Item = SocketAddr> {
        let [_, (_, last)] = self.probes;
        last.zip(self.step()).into_iter().flat_map(|(last, step)| {
            (1..=FORETOLD)
                .map(move |n| SocketAddr::new(last.ip(), last.port().wrapping_add(step.wrapping_mul(n))))
        })
    }

    /// By how much the router counts, if it does.
    pub(super) fn step(&self) -> Option<u16> {
        let [(_, before), (_, last)] = self.probes;
        let seen = || Some(last?.port().wrapping_sub(before?.port()));
        // A router that leaves out more than that does not count, or many use it at the same time.
        self.known_step.or_else(seen).filter(|step| (1..=64).contains(step))
    }
}

/// How far an attempt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Routers give out new addresses.
    Probing {
        until: Instant,
    },
    Punching,
    Forwarding,
}

#[derive(Debug)]
pub(super) struct Pairing {
    pub(super) session: u64,
    /// Who asked, and connects.
    pub(super) connecting: Side,
    pub(super) accepting: Side,
    pub(super) phase: Phase,
    pub(super) ends_at: Instant,
}

impl Pairing {
    pub(super) fn sides_mut(&mut self) -> [&mut Side; 2] {
        [&mut self.connecting, &mut self.accepting]
    }

    pub(super) const fn sides(&self) -> [&Side; 2] {
        [&self.connecting, &self.accepting]
    }

    pub(super) fn is_between(&self, a: Guid, b: Guid) -> bool {
        [(a, b), (b, a)].contains(&(self.connecting.guid, self.accepting.guid))
    }

    /// Whether it has begun so lately that the other one cannot know yet what becomes of it.
    pub(super) fn is_new(&self, now: Instant) -> bool {
        now + ATTEMPT_TIME < self.ends_at + JOIN_TIME
    }

    pub(super) fn has(&self, id: ConnectionId) -> bool {
        self.sides().iter().any(|side| side.id == id)
    }
}

/// Where `other` may look for a client: at its interfaces if both have the same address outside, at its address outside, and at
/// those that are foretold.
pub(super) fn candidates(client: &Client, side: &Side, other: &Client) -> Vec<SocketAddr, MAX_CANDIDATES> {
    let is_near = client.remote.ip() == other.remote.ip();
    let near = client.internal.iter().filter(|address| is_near && is_private(address.ip())).copied();
    let mut candidates = Vec::new();
    // What is foretold comes first and in order, since each datagram of the other side may have its router give out a port too.
    for address in side.foretold().chain([client.remote]).chain(near) {
        if !candidates.contains(&address) && candidates.push(address).is_err() {
            break;
        }
    }
    candidates
}

/// Whether an address is one of those that networks give out inside, to which no client can have others send across the
/// internet.
const fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_private() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unique_local() || ip.is_unicast_link_local(),
    }
}
