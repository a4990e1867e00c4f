//! Attempts to connect pairs of clients with the help of a facilitator.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use heapless::{Deque, Vec};
use rakwire::endpoint::ConnectionId;
use rakwire::raknet::Guid;
use rakwire::{HostPrefix, Instant};

use super::wire::{MAX_CANDIDATES, MAX_INTERNAL, Refusal};

/// The time for the routers of both clients to allocate new addresses.
pub(super) const PROBE_TIME: Duration = Duration::from_millis(500);
/// The time for which an attempt without a reported result is kept. It exceeds the time for which the clients keep
/// trying.
pub(super) const ATTEMPT_TIME: Duration = Duration::from_secs(12);
/// The maximum number of notes queued per client. A client that reads nothing fills only its own queue.
pub(super) const QUEUE: usize = 16;
/// The number of predicted ports to try for a router that uses a new port for each destination.
const PREDICTED_PORTS: u16 = 6;

/// A notification for a client. The content of the message is determined when it is sent.
#[derive(Clone, Copy, Debug)]
pub(super) enum Note {
    /// The mapped address of its connection.
    Mapped,
    /// Requests that the client sends a probe.
    Probe { token: u64, port: u16 },
    /// Confirms that a probe arrived.
    Probed { token: u64, mapped: SocketAddr },
    /// Requests that the client starts to send punches.
    Begin { session: u64 },
    /// Announces that the facilitator forwards the datagrams.
    Forwarded { session: u64, port: u16 },
    /// Reports that the connection attempt has failed.
    Refused { peer: Guid, reason: Refusal },
}

/// A client of the facilitator.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) guid: Guid,
    /// The mapped address of the client's connection.
    pub(super) remote: SocketAddr,
    pub(super) internal: Vec<SocketAddr, MAX_INTERNAL>,
    /// True if the client uses the traversal plugin.
    pub(super) has_plugin: bool,
    /// True if the client's router uses another port for each destination; `None` before a probe has arrived.
    pub(super) is_symmetric: Option<bool>,
    pub(super) accepts_unsolicited: bool,
    /// The port step of the client's router; `None` before two probes have shown it.
    pub(super) step: Option<u16>,
    /// The index of the facilitator's port for the client's next probe.
    pub(super) next_port: usize,
    pub(super) unsent: Deque<Note, QUEUE>,
}

/// One side of a pair.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) id: ConnectionId,
    pub(super) guid: Guid,
    /// The host of the client, which is kept after a disconnect.
    pub(super) host: Option<HostPrefix>,
    /// The tokens of this attempt's probes, and their source addresses. The first entry is unused if the step is
    /// known.
    pub(super) probes: [(u64, Option<SocketAddr>); 2],
    pub(super) known_step: Option<u16>,
    /// True if this client requested the attempt.
    pub(super) has_requested: bool,
    pub(super) has_failed: bool,
}

impl Side {
    pub(super) fn has_probe(&self, token: u64) -> bool {
        self.probes.iter().any(|(known, _)| *known == token)
    }

    /// Records the source address of a probe of this side. Returns true if the address is new. Probes are repeated,
    /// so only the first probe with a token counts.
    pub(super) fn see(&mut self, token: u64, from: SocketAddr) -> bool {
        let probe = self.probes.iter_mut().find(|(known, mapped)| *known == token && mapped.is_none());
        probe.map(|(_, mapped)| *mapped = Some(from)).is_some()
    }

    pub(super) fn is_probed(&self) -> bool {
        self.probes.iter().all(|(token, mapped)| *token == 0 || mapped.is_some())
    }

    /// Predicts the external addresses of the next datagrams of this side.
    ///
    /// If the router assigns ports in steps, the predicted ports follow the last probed port.
    fn predicted(&self) -> impl Iterator<Item = SocketAddr> {
        let [_, (_, last)] = self.probes;
        last.zip(self.step()).into_iter().flat_map(|(last, step)| {
            (1..=PREDICTED_PORTS)
                .map(move |n| SocketAddr::new(last.ip(), last.port().wrapping_add(step.wrapping_mul(n))))
        })
    }

    /// Returns the port step of the router, if it assigns ports in steps.
    pub(super) fn step(&self) -> Option<u16> {
        let [(_, before), (_, last)] = self.probes;
        let seen = || Some(last?.port().wrapping_sub(before?.port()));
        // A larger step means that the router does not count, or that many clients use it at the same time.
        self.known_step.or_else(seen).filter(|step| (1..=64).contains(step))
    }
}

/// The progress of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Waits until the routers have allocated new addresses.
    Probing {
        until: Instant,
    },
    Punching,
    Forwarding,
}

#[derive(Debug)]
pub(super) struct Pairing {
    pub(super) session: u64,
    /// The side that requested the attempt and will connect.
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

    /// Joins the request of `id` for `other` to this attempt. That is possible until `id` may have received the
    /// result of the attempt.
    pub(super) fn is_joined_by(&mut self, id: ConnectionId, other: Option<ConnectionId>) -> bool {
        let is_probing = matches!(self.phase, Phase::Probing { .. });
        let [a, b] = self.sides_mut();
        let (own, their) = if a.id == id { (a, b) } else { (b, a) };
        let is_same = own.id == id && Some(their.id) == other;
        let is_joined = is_same && (is_probing || !own.has_requested);
        own.has_requested |= is_joined;
        is_joined
    }

    pub(super) fn has(&self, id: ConnectionId) -> bool {
        self.sides().iter().any(|side| side.id == id)
    }
}

/// Returns the addresses at which `other` may reach a client.
///
/// These are the client's mapped address, the predicted ports, and the port that its router has opened at that IP
/// address. The client's interface addresses are included if both clients have the same external IP address.
pub(super) fn candidates(client: &Client, side: &Side, other: &Client) -> Vec<SocketAddr, MAX_CANDIDATES> {
    let is_near = client.remote.ip() == other.remote.ip();
    let near = client.internal.iter().filter(|address| is_near && is_private(address.ip())).copied();
    let mapped = client.internal.iter().filter(|address| address.ip() == client.remote.ip()).copied();
    let mut candidates = Vec::new();
    // Predicted addresses come first and in order, because each datagram of the other side may make its router
    // allocate a port too.
    for address in side.predicted().chain([client.remote]).chain(mapped).chain(near) {
        if !candidates.contains(&address) && candidates.push(address).is_err() {
            break;
        }
    }
    candidates
}

/// Returns true if an address is private. Such an address cannot make other clients send datagrams across the internet.
const fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_private() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unique_local() || ip.is_unicast_link_local(),
    }
}
