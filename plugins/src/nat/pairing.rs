//! Two clients that a facilitator brings together.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use heapless::{Deque, Vec};
use rakwire::endpoint::ConnectionId;
use rakwire::raknet::Guid;
use rakwire::{HostPrefix, Instant};

use super::wire::{MAX_CANDIDATES, MAX_INTERNAL, Refusal};

/// How long the routers of both may take to give out new addresses.
pub(super) const PROBE_TIME: Duration = Duration::from_millis(500);
/// How long an attempt is remembered of which nobody says what became of it, which is longer than both clients try.
pub(super) const ATTEMPT_TIME: Duration = Duration::from_secs(12);
/// What waits for one client until its connection has room. One that takes nothing fills up its own place alone.
pub(super) const QUEUE: usize = 16;
/// How many ports are tried of a router that gives a new one out for each address.
const FORETOLD: u16 = 6;

/// Something to tell a client. What it says is looked up when it leaves.
#[derive(Clone, Copy, Debug)]
pub(super) enum Note {
    /// Where its connection comes from.
    Mapped,
    /// A probe is wanted.
    Probe { token: u64, port: u16 },
    /// A probe has arrived.
    Probed { token: u64, mapped: SocketAddr },
    /// Punches are wanted.
    Begin { session: u64 },
    /// The facilitator forwards.
    Forwarded { session: u64, port: u16 },
    /// There will be no connection.
    Refused { peer: Guid, reason: Refusal },
}

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
    pub(super) unsent: Deque<Note, QUEUE>,
}

/// One of both.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) id: ConnectionId,
    pub(super) guid: Guid,
    /// Where it is, also once it has disconnected.
    pub(super) host: Option<HostPrefix>,
    /// The probes of this attempt: their tokens, and where they came from. The first is left out if the step is known.
    pub(super) probes: [(u64, Option<SocketAddr>); 2],
    pub(super) known_step: Option<u16>,
    /// It wants this attempt itself.
    pub(super) has_asked: bool,
    pub(super) has_failed: bool,
}

impl Side {
    pub(super) fn has_probe(&self, token: u64) -> bool {
        self.probes.iter().any(|(known, _)| *known == token)
    }

    /// A probe of this side came from this address; the first of a token counts, since it is repeated. Tells whether it was.
    pub(super) fn see(&mut self, token: u64, from: SocketAddr) -> bool {
        let probe = self.probes.iter_mut().find(|(known, mapped)| *known == token && mapped.is_none());
        probe.map(|(_, mapped)| *mapped = Some(from)).is_some()
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

    /// Whether it is for `id` too, who asks for `other` now: as long as `id` cannot know yet what becomes of it.
    pub(super) fn is_joined_by(&mut self, id: ConnectionId, other: Option<ConnectionId>) -> bool {
        let is_probing = matches!(self.phase, Phase::Probing { .. });
        let [a, b] = self.sides_mut();
        let (own, their) = if a.id == id { (a, b) } else { (b, a) };
        let is_same = own.id == id && Some(their.id) == other;
        let is_joined = is_same && (is_probing || !own.has_asked);
        own.has_asked |= is_joined;
        is_joined
    }

    pub(super) fn has(&self, id: ConnectionId) -> bool {
        self.sides().iter().any(|side| side.id == id)
    }
}

/// Where `other` may look for a client: at its address outside, at the ports of that IP address which are foretold or which it
/// says that its router has opened, and at its interfaces if both have the same address outside.
pub(super) fn candidates(client: &Client, side: &Side, other: &Client) -> Vec<SocketAddr, MAX_CANDIDATES> {
    let is_near = client.remote.ip() == other.remote.ip();
    let near = client.internal.iter().filter(|address| is_near && is_private(address.ip())).copied();
    let mapped = client.internal.iter().filter(|address| address.ip() == client.remote.ip()).copied();
    let mut candidates = Vec::new();
    // What is foretold comes first and in order, since each datagram of the other side may have its router give out a port too.
    for address in side.foretold().chain([client.remote]).chain(mapped).chain(near) {
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
