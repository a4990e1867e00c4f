//! The plugin of the facilitator, which helps other peers to connect to each other.

use core::net::{IpAddr, SocketAddr};

use heapless::{Deque, Vec};
use rakwire::endpoint::{
    BySlot, ConnectionId, MessageIds, MessageSender, Plugin, Side as ConnectionSide, Verdict,
};
use rakwire::raknet::{Delivery, DisconnectReason, Guid, RakNet};
use rakwire::{Chunks, HostPrefix, Instant};
use sha2::{Digest, Sha256};

use super::forwarder::Forwarding;
use super::pairing::{ATTEMPT_TIME, Client, Note, PROBE_TIME, Pairing, Phase, Side, candidates};
use super::wire::{FromClient, FromFacilitator, MAX_MESSAGE, NAT_ID, PUNCH_LEN, Punch, PunchKind, Refusal};
use crate::bytes;

/// The maximum number of ports of each kind.
const MAX_PORTS: usize = 64;
/// The maximum number of attempts that one client may request, and of forwarded pairs per client. Other clients may
/// request twice as many attempts to reach this client.
const ATTEMPTS_OF_ONE: usize = 4;
/// The maximum number of queued filter probes.
const QUEUE: usize = 64;
/// The number of times that each filter probe is sent.
const FILTER_PROBES: usize = 3;

/// Returns the maximum number of slots per host: half of all slots, rounded up. A host can pretend to be any number of
/// clients.
const fn share_of_host(all: usize) -> usize {
    all.div_ceil(2)
}

/// A datagram to send from a probe port, to test whether the client's router lets it pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterProbe {
    /// The port of the socket to send it from.
    pub port: u16,
    /// The destination.
    pub to: SocketAddr,
    /// The data of the out-of-band message.
    pub payload: [u8; PUNCH_LEN],
}

/// Counters of the facilitator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FacilitatorStats {
    /// Attempts that the facilitator started.
    pub attempts: u64,
    /// Attempts that the facilitator forwards because no direct path was found.
    pub forwarded: u64,
    /// Attempts that were refused.
    pub refused: u64,
    /// Messages that were malformed or do not belong to a current attempt.
    pub malformed: u64,
    /// Datagrams that were not forwarded: from unknown senders, above the rate limit, or before the addresses of both
    /// clients were known.
    pub dropped: u64,
    /// Messages to clients and filter probes that were dropped because a queue was full.
    pub over_capacity: u64,
}

/// A forwarding port, and the pair that uses it.
#[derive(Debug)]
struct ForwardingPort {
    port: u16,
    pair: Option<Forwarding>,
}

/// The facilitator plugin, for up to `CLIENTS` connections and `ATTEMPTS` concurrent attempts. The module
/// documentation has an example of a client.
///
/// Its driver needs more sockets than that of its peer:
///
/// - one for each *probe port*: pass arriving datagrams to [`handle_probe`](Self::handle_probe), and send
///   what [`poll_filter_probe`](Self::poll_filter_probe) returns;
/// - one for each *forwarding port*: send what [`handle_forwarded`](Self::handle_forwarded) returns.
///
/// All sockets must have the IP address of the peer's socket, because clients know only that address.
#[derive(Debug)]
pub struct Facilitator<const CLIENTS: usize, const ATTEMPTS: usize> {
    clients: BySlot<Client, CLIENTS>,
    pairings: Vec<Pairing, ATTEMPTS>,
    probe_ports: Vec<u16, MAX_PORTS>,
    forwarding: Vec<ForwardingPort, MAX_PORTS>,
    filter_probes: Deque<FilterProbe, QUEUE>,
    entropy: [u8; 32],
    numbers: u64,
    stats: FacilitatorStats,
}

impl<const CLIENTS: usize, const ATTEMPTS: usize> Facilitator<CLIENTS, ATTEMPTS> {
    /// Creates a facilitator with these ports in addition to that of its peer, at most 64 of each kind.
    ///
    /// Three probe ports are enough to distinguish NAT types and to predict the ports of symmetric NATs. Add
    /// one for each further attempt of the same client within two minutes. Without forwarding ports, pairs
    /// that cannot reach each other are refused. The entropy must be random, or others could guess session
    /// numbers.
    #[must_use]
    pub fn new(probe_ports: &[u16], forwarding_ports: &[u16], entropy: [u8; 32]) -> Self {
        let forwarding = forwarding_ports.iter().take(MAX_PORTS);
        Self {
            clients: BySlot::new(),
            pairings: Vec::new(),
            probe_ports: probe_ports.iter().take(MAX_PORTS).copied().collect(),
            forwarding: forwarding.map(|port| ForwardingPort { port: *port, pair: None }).collect(),
            filter_probes: Deque::new(),
            entropy,
            numbers: 0,
            stats: FacilitatorStats::default(),
        }
    }

    /// Returns the counters.
    #[must_use]
    pub const fn stats(&self) -> FacilitatorStats {
        self.stats
    }

    /// Handles the data of an out-of-band message that arrived at a probe port.
    pub fn handle_probe(&mut self, from: SocketAddr, data: &[u8]) {
        let probe = Punch::decode(data).filter(|punch| punch.kind == PunchKind::Probe && punch.number != 0);
        let side = probe.and_then(|punch| {
            let mut sides = self.pairings.iter_mut().flat_map(Pairing::sides_mut);
            sides.find(|side| side.has_probe(punch.number)).map(|side| (punch.number, side))
        });
        let client = side.and_then(|(token, side)| Some((token, self.clients.get_mut(side.id)?, side)));
        // A probe from another IP address is forged. Other clients would otherwise send punches to that address.
        let known = client.filter(|(_, client, _)| client.remote.ip() == from.ip());
        let Some((token, client, side)) = known else {
            self.stats.malformed = self.stats.malformed.saturating_add(1);
            return;
        };
        if side.see(token, from) {
            let is_symmetric = client.is_symmetric == Some(true) || from != client.remote;
            client.is_symmetric = Some(is_symmetric);
            client.step = client.step.or_else(|| side.step());
            let id = side.id;
            self.notify(id, Note::Probed { token, mapped: from });
        }
    }

    /// Returns the next filter probe to send.
    pub fn poll_filter_probe(&mut self) -> Option<FilterProbe> {
        self.filter_probes.pop_front()
    }

    /// Returns the destination of a datagram that arrived at a forwarding port; `None` if the datagram must be
    /// dropped.
    pub fn handle_forwarded(
        &mut self,
        now: Instant,
        port: u16,
        from: SocketAddr,
        datagram: &[u8],
    ) -> Option<SocketAddr> {
        let pair = self.forwarding.iter_mut().find(|forwarding| forwarding.port == port);
        let to = pair.and_then(|forwarding| forwarding.pair.as_mut()?.forward(now, from, datagram));
        self.stats.dropped = self.stats.dropped.saturating_add(u64::from(to.is_none()));
        to
    }

    /// Returns an unpredictable number that is never 0.
    fn number(&mut self) -> u64 {
        self.numbers = self.numbers.wrapping_add(1);
        let hash =
            Sha256::new().chain_update(self.entropy).chain_update(self.numbers.to_be_bytes()).finalize();
        let bytes = hash.first_chunk().copied().unwrap_or_default();
        u64::from_be_bytes(bytes).max(1)
    }

    fn notify(&mut self, id: ConnectionId, note: Note) {
        let Some(client) = self.clients.get_mut(id) else { return };
        let is_kept = client.unsent.push_back(note).is_ok();
        self.stats.over_capacity = self.stats.over_capacity.saturating_add(u64::from(!is_kept));
    }

    fn refuse(&mut self, id: ConnectionId, peer: Guid, reason: Refusal) {
        self.stats.refused = self.stats.refused.saturating_add(1);
        self.notify(id, Note::Refused { peer, reason });
    }

    /// Builds the message for a note from the current state; `None` if the session of the note no longer exists.
    fn message(&self, id: ConnectionId, note: Note) -> Option<FromFacilitator> {
        let mapped = self.clients.get(id)?.remote;
        Some(match note {
            Note::Mapped => FromFacilitator::Probed { token: 0, mapped },
            Note::Probe { token, port } => FromFacilitator::Probe { token, port },
            Note::Probed { token, mapped } => FromFacilitator::Probed { token, mapped },
            Note::Begin { session } => {
                let (own, other, connects) = self.sides_of(session, id)?;
                let candidates = candidates(self.clients.get(other.id)?, other, self.clients.get(own.id)?);
                FromFacilitator::Begin { session, peer: other.guid, connects, candidates }
            }
            Note::Forwarded { session, port } => {
                let (_, other, connects) = self.sides_of(session, id)?;
                FromFacilitator::Forwarded { session, peer: other.guid, connects, port }
            }
            Note::Refused { peer, reason } => FromFacilitator::Refused { peer, reason },
        })
    }

    /// Returns both sides of a session: the side of `id`, the other side, and true if the side of `id` connects.
    fn sides_of(&self, session: u64, id: ConnectionId) -> Option<(&Side, &Side, bool)> {
        let pairing = self.pairings.iter().find(|pairing| pairing.session == session && pairing.has(id))?;
        let [connecting, accepting] = pairing.sides();
        let connects = connecting.id == id;
        Some(if connects { (connecting, accepting, true) } else { (accepting, connecting, false) })
    }

    /// Handles the hello of a client. Sends the client its mapped address, and filter probes from a port to which it
    /// has not sent anything.
    fn handle_hello(&mut self, id: ConnectionId) {
        let number = self.number();
        let Some(client) = self.clients.get(id) else { return };
        let mapped = client.remote;
        self.notify(id, Note::Mapped);
        let Some(port) = self.probe_ports.last().copied().filter(|_| self.probe_ports.len() > 2) else {
            return;
        };
        let payload = Punch { kind: PunchKind::FilterProbe, number }.encode();
        for _ in 0..FILTER_PROBES {
            let is_kept = self.filter_probes.push_back(FilterProbe { port, to: mapped, payload }).is_ok();
            self.stats.over_capacity = self.stats.over_capacity.saturating_add(u64::from(!is_kept));
        }
    }

    fn open(&mut self, now: Instant, id: ConnectionId, from: Guid, target: Guid) {
        let other = self.clients.iter().find(|(_, client)| client.guid == target && client.has_plugin);
        let other = other.map(|(id, _)| id).filter(|other| *other != id);
        let mut between = self.pairings.iter_mut().filter(|pairing| pairing.is_between(from, target));
        if between.any(|pairing| pairing.is_joined_by(id, other)) {
            // Both clients have requested each other; one attempt serves both.
            return;
        }
        self.pairings.retain(|pairing| !pairing.is_between(from, target));
        self.free_ports(|pair| pair.is_of(from) && pair.is_of(target));
        let Some(other) = other else {
            return self.refuse(id, target, Refusal::NotConnected);
        };
        let count = |is_counted: &dyn Fn(&Pairing) -> bool| {
            self.pairings.iter().filter(|pairing| is_counted(pairing)).count()
        };
        let asks = count(&|pairing| pairing.connecting.id == id);
        let is_requested = count(&|pairing| pairing.accepting.id == other);
        let is_busy = asks >= ATTEMPTS_OF_ONE || is_requested >= 2 * ATTEMPTS_OF_ONE;
        let host = self.host_of(id);
        let of_host = count(&|pairing| pairing.connecting.host == host);
        if self.pairings.is_full() || is_busy || of_host >= share_of_host(ATTEMPTS) {
            return self.refuse(id, target, Refusal::Busy);
        }
        self.stats.attempts = self.stats.attempts.saturating_add(1);
        let session = self.number();
        let pairing = Pairing {
            session,
            connecting: Side { has_requested: true, ..self.side(id, from) },
            accepting: self.side(other, target),
            phase: Phase::Probing { until: now + PROBE_TIME },
            ends_at: now + ATTEMPT_TIME,
        };
        // This cannot fail, because the capacity was checked above.
        let _ = self.pairings.push(pairing);
    }

    fn host_of(&self, id: ConnectionId) -> Option<HostPrefix> {
        self.clients.get(id).map(|client| HostPrefix::of(client.remote.ip()))
    }

    /// Returns true if a client and its host are below their limits of forwarding ports.
    fn may_forward(&self, guid: Guid, address: IpAddr) -> bool {
        let pairs = || self.forwarding.iter().filter_map(|port| port.pair.as_ref());
        let host = HostPrefix::of(address);
        pairs().filter(|pair| pair.is_of(guid)).count() < ATTEMPTS_OF_ONE
            && pairs().filter(|pair| pair.is_of_host(host)).count() < share_of_host(self.forwarding.len())
    }

    /// Creates the side of a client for an attempt, and requests the probes that the attempt needs.
    ///
    /// Each probe goes to the port that the client has used least recently. Two probes show the port step of the
    /// router; one is enough if the step is known. A router that uses one address for all destinations needs no
    /// probes.
    fn side(&mut self, id: ConnectionId, guid: Guid) -> Side {
        let host = self.host_of(id);
        // The last port sends the filter probes.
        let ports = self.probe_ports.len().saturating_sub(1);
        let client =
            self.clients.get_mut(id).filter(|client| ports >= 2 && client.is_symmetric != Some(false));
        let mut side = Side {
            id,
            guid,
            host,
            probes: [(0, None); 2],
            known_step: None,
            has_requested: false,
            has_failed: false,
        };
        let Some(client) = client else { return side };
        side.known_step = client.step;
        let wanted = if client.step.is_some() { 1 } else { 2 };
        let first = client.next_port;
        client.next_port = first.wrapping_add(wanted);
        for n in 0..wanted {
            let token = self.number();
            let at = first.wrapping_add(n).checked_rem(ports).unwrap_or(0);
            let port = self.probe_ports.get(at).copied();
            if let Some(((own, _), port)) = side.probes.iter_mut().rev().nth(wanted - 1 - n).zip(port) {
                *own = token;
                self.notify(id, Note::Probe { token, port });
            }
        }
        side
    }

    /// Makes both sides of an attempt send punches.
    fn punch(&mut self, session: u64) {
        let Some(pairing) = self.pairings.iter_mut().find(|pairing| pairing.session == session) else {
            return;
        };
        pairing.phase = Phase::Punching;
        for id in [pairing.connecting.id, pairing.accepting.id] {
            self.notify(id, Note::Begin { session });
        }
    }

    /// Frees the forwarding ports of the pairs for which `is_over` returns true.
    fn free_ports(&mut self, is_over: impl Fn(&Forwarding) -> bool) {
        for port in &mut self.forwarding {
            port.pair.take_if(|pair| is_over(pair));
        }
    }

    /// Handles a client's report that it is connected to the other client. A forwarded pair keeps its port without an
    /// attempt.
    fn succeed(&mut self, id: ConnectionId, session: u64) {
        self.pairings.retain(|pairing| pairing.session != session || !pairing.has(id));
    }

    /// Handles a client's report that it could not reach the other client.
    fn fail(&mut self, now: Instant, id: ConnectionId, session: u64) {
        let mut pairings = self.pairings.iter_mut();
        let Some(pairing) = pairings.find(|pairing| pairing.session == session && pairing.has(id)) else {
            self.stats.malformed = self.stats.malformed.saturating_add(1);
            return;
        };
        let was_forwarding = pairing.phase == Phase::Forwarding;
        let [a, b] = pairing.sides_mut();
        let side = if a.id == id { a } else { b };
        side.has_failed = true;
        // The other client may have received a punch, so the attempt continues until that client has failed too.
        if !pairing.sides().iter().all(|side| side.has_failed) {
            return;
        }
        let sides = pairing.sides().map(|side| (side.id, side.guid));
        let port = if was_forwarding { None } else { self.forward(now, session, sides) };
        let [a, b] = sides;
        if let Some(port) = port {
            self.notify(a.0, Note::Forwarded { session, port });
            self.notify(b.0, Note::Forwarded { session, port });
        } else {
            self.pairings.retain(|pairing| pairing.session != session);
            self.free_ports(|pair| pair.session() == session);
            self.refuse(a.0, b.1, Refusal::NoPath);
            self.refuse(b.0, a.1, Refusal::NoPath);
        }
    }

    /// Assigns a forwarding port to a pair, if one is available.
    fn forward(&mut self, now: Instant, session: u64, [a, b]: [(ConnectionId, Guid); 2]) -> Option<u16> {
        let address = |id| self.clients.get(id).map(|client| client.remote.ip());
        let (at_a, at_b) = (address(a.0)?, address(b.0)?);
        if !self.may_forward(a.1, at_a) || !self.may_forward(b.1, at_b) {
            return None;
        }
        let free = self.forwarding.iter_mut().find(|port| port.pair.is_none())?;
        let pairing = self.pairings.iter_mut().find(|pairing| pairing.session == session)?;
        free.pair = Some(Forwarding::new(now, session, [a.1, b.1], [at_a, at_b]));
        pairing.phase = Phase::Forwarding;
        pairing.ends_at = now + ATTEMPT_TIME;
        pairing.sides_mut().into_iter().for_each(|side| side.has_failed = false);
        self.stats.forwarded = self.stats.forwarded.saturating_add(1);
        Some(free.port)
    }

    fn handle_message(&mut self, now: Instant, id: ConnectionId, message: FromClient) {
        let Some(client) = self.clients.get_mut(id) else { return };
        match message {
            FromClient::Hello { internal } => {
                client.internal = internal;
                if !core::mem::replace(&mut client.has_plugin, true) {
                    self.handle_hello(id);
                }
            }
            FromClient::Open { target } => {
                let from = client.guid;
                self.open(now, id, from, target);
            }
            FromClient::Failed { session } => self.fail(now, id, session),
            FromClient::FilterProbeReceived { .. } => client.accepts_unsolicited = true,
            FromClient::Connected { session } => self.succeed(id, session),
        }
    }

    /// Sends pending notes to each client in order, while its connection accepts them.
    fn send_notes(&mut self, sender: &mut dyn MessageSender<RakNet>) {
        let mut buffer = [0; MAX_MESSAGE];
        let waiting = self.clients.iter().filter(|(_, client)| !client.unsent.is_empty());
        for id in waiting.map(|(id, _)| id).collect::<Vec<ConnectionId, CLIENTS>>() {
            while let Some(note) = self.clients.get(id).and_then(|client| client.unsent.front().copied()) {
                let message = self.message(id, note);
                let bytes = message.as_ref().and_then(|message| message.encode(&mut buffer).ok());
                if bytes.is_some_and(|bytes| sender.send(id, bytes, Delivery::RELIABLE_ORDERED).is_err()) {
                    break;
                }
                self.clients.get_mut(id).map(|client| client.unsent.pop_front());
            }
        }
    }

    /// Returns true if a client's router is known to accept datagrams from addresses to which the client has
    /// sent nothing.
    #[must_use]
    pub fn accepts_unsolicited(&self, id: ConnectionId) -> bool {
        self.clients.get(id).is_some_and(|client| client.accepts_unsolicited)
    }
}

impl<const CLIENTS: usize, const ATTEMPTS: usize> Plugin<RakNet> for Facilitator<CLIENTS, ATTEMPTS> {
    fn message_ids(&self) -> MessageIds {
        MessageIds::of(&[NAT_ID])
    }

    fn on_connected(
        &mut self,
        _: Instant,
        id: ConnectionId,
        remote: SocketAddr,
        guid: Guid,
        _: ConnectionSide,
    ) {
        let client = Client {
            guid,
            remote,
            internal: Vec::new(),
            has_plugin: false,
            is_symmetric: None,
            accepts_unsolicited: false,
            step: None,
            next_port: 0,
            unsent: Deque::new(),
        };
        if self.clients.get(id).is_none() && !self.clients.insert(id, client) {
            self.stats.over_capacity = self.stats.over_capacity.saturating_add(1);
        }
    }

    fn on_disconnected(&mut self, _: Instant, id: ConnectionId, _: DisconnectReason) {
        self.clients.remove(id);
        // Once a pair sends punches, it no longer needs the facilitator.
        let is_lost = |pairing: &&Pairing| pairing.has(id) && matches!(pairing.phase, Phase::Probing { .. });
        let lost: Vec<(ConnectionId, Guid), ATTEMPTS> = self
            .pairings
            .iter()
            .filter(is_lost)
            .map(|pairing| {
                let [a, b] = pairing.sides();
                if a.id == id { (b.id, a.guid) } else { (a.id, b.guid) }
            })
            .collect();
        self.pairings.retain(|pairing| !is_lost(&pairing));
        for (other, gone) in lost {
            self.refuse(other, gone, Refusal::NotConnected);
        }
    }

    fn on_message(&mut self, now: Instant, id: ConnectionId, _: Delivery, message: &dyn Chunks) -> Verdict {
        let mut buffer = [0; MAX_MESSAGE];
        match bytes::copy(message, &mut buffer).and_then(|bytes| FromClient::decode(bytes).ok()) {
            Some(message) => self.handle_message(now, id, message),
            None => self.stats.malformed = self.stats.malformed.saturating_add(1),
        }
        Verdict::Drop
    }

    fn update(&mut self, now: Instant, sender: &mut dyn MessageSender<RakNet>) {
        let is_ready = |pairing: &Pairing| match pairing.phase {
            Phase::Probing { until } => now >= until || pairing.sides().iter().all(|side| side.is_probed()),
            Phase::Punching | Phase::Forwarding => false,
        };
        let ready = self.pairings.iter().filter(|pairing| is_ready(pairing));
        for session in ready.map(|pairing| pairing.session).collect::<Vec<u64, ATTEMPTS>>() {
            self.punch(session);
        }
        self.pairings.retain(|pairing| now < pairing.ends_at);
        self.free_ports(|pair| pair.is_over(now));
        self.send_notes(sender);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let pairings = self.pairings.iter().map(|pairing| match pairing.phase {
            Phase::Probing { .. } if pairing.sides().iter().all(|side| side.is_probed()) => Instant::ZERO,
            Phase::Probing { until } => until,
            Phase::Punching | Phase::Forwarding => pairing.ends_at,
        });
        let forwarding =
            self.forwarding.iter().filter_map(|port| port.pair.as_ref()).map(Forwarding::ends_at);
        let has_unsent = self.clients.iter().any(|(_, client)| !client.unsent.is_empty());
        let unsent = has_unsent.then_some(Instant::ZERO);
        pairings.chain(forwarding).chain(unsent).min()
    }
}
