//! The plugin of a peer that may be behind a router.

use core::net::SocketAddr;
use core::time::Duration;

use heapless::{Deque, Vec};
use rakwire::endpoint::{ConnectionId, MessageIds, MessageSender, Plugin, Side, Verdict};
use rakwire::raknet::{Delivery, DisconnectReason, Guid, RakNet};
use rakwire::{Chunks, Instant};

use super::session::{PUNCH_INTERVAL, Session, Step};
use super::wire::{
    FromClient, FromFacilitator, MAX_INTERNAL, MAX_MESSAGE, NAT_ID, PUNCH_LEN, Punch, PunchKind, Refusal,
};
use crate::bytes;

/// The maximum number of concurrent probes: two for an attempt, and one for NAT type detection.
const MAX_PROBES: usize = 4;
/// The maximum number of times that a probe is sent until the facilitator confirms it.
const PROBE_ATTEMPTS: u8 = 10;
/// The maximum number of queued outcomes and of queued messages.
const QUEUE: usize = 16;
/// The maximum number of queued actions. Punches beyond it are skipped, and are due again soon.
const ACTIONS: usize = 32;
/// The time limit for the answer of the facilitator.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// An action that the application performs with the socket of its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send an out-of-band message.
    Send {
        /// The destination.
        to: SocketAddr,
        /// The data.
        payload: [u8; PUNCH_LEN],
    },
    /// Connect to the peer.
    Connect {
        /// The address from which its punches arrived.
        address: SocketAddr,
        /// The GUID that the peer is expected to have.
        peer: Guid,
    },
}

/// The result of an attempt to connect to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The peer is connected.
    Connected {
        /// The peer.
        peer: Guid,
        /// True if the facilitator forwards the datagrams.
        is_forwarded: bool,
    },
    /// The attempt failed.
    Failed {
        /// The peer.
        peer: Guid,
        /// The reason; `None` if the connection to the facilitator was lost or it did not answer in time.
        reason: Option<Refusal>,
    },
}

/// The properties of the router between this peer and the facilitator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NatType {
    /// The external address of the connection to the facilitator.
    pub mapped: Option<SocketAddr>,
    /// True if the router uses another external port for each destination (a symmetric NAT).
    pub is_symmetric: Option<bool>,
    /// True if datagrams arrive from addresses to which this peer has sent nothing. That is the case without a
    /// router, and behind a full-cone or restricted NAT.
    pub accepts_unsolicited: bool,
}

/// Counters of the plugin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraversalStats {
    /// Messages from the facilitator that are malformed, and messages from other peers.
    pub malformed: u64,
    /// Out-of-band messages that belong to no attempt.
    pub unexpected: u64,
    /// Attempts requested by other peers, and messages to the facilitator, that were dropped because a queue or table
    /// was full.
    pub over_capacity: u64,
}

/// The error of [`Traversal::open`] when the maximum number of attempts is in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

impl core::fmt::Display for TooMany {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the maximum number of attempts is in progress; wait until one has ended")
    }
}

impl core::error::Error for TooMany {}

#[derive(Debug)]
struct Probe {
    token: u64,
    to: SocketAddr,
    left: u8,
    next_at: Instant,
}

/// The connection to the facilitator.
#[derive(Clone, Copy, Debug)]
struct Link {
    id: ConnectionId,
    remote: SocketAddr,
}

/// The traversal plugin, for up to `SESSIONS` concurrent attempts requested by this peer or by others. The module
/// documentation has an example.
#[derive(Debug)]
pub struct Traversal<const SESSIONS: usize> {
    link: Option<Link>,
    internal: Vec<SocketAddr, MAX_INTERNAL>,
    /// The external address of the port that the router has opened for the socket.
    mapped: Option<SocketAddr>,
    /// The requested peers, each with the deadline of the facilitator's answer. There is no deadline while the
    /// facilitator is not connected.
    wanted: Vec<(Guid, Option<Instant>), SESSIONS>,
    sessions: Vec<Session, SESSIONS>,
    probes: Vec<Probe, MAX_PROBES>,
    unsent: Deque<FromClient, QUEUE>,
    actions: Deque<Action, ACTIONS>,
    outcomes: Deque<Outcome, QUEUE>,
    nat_type: NatType,
    stats: TraversalStats,
}

impl<const SESSIONS: usize> Default for Traversal<SESSIONS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const SESSIONS: usize> Traversal<SESSIONS> {
    /// Creates a plugin without a facilitator.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            link: None,
            internal: Vec::new(),
            mapped: None,
            wanted: Vec::new(),
            sessions: Vec::new(),
            probes: Vec::new(),
            unsent: Deque::new(),
            actions: Deque::new(),
            outcomes: Deque::new(),
            nat_type: NatType { mapped: None, is_symmetric: None, accepts_unsolicited: false },
            stats: TraversalStats { malformed: 0, unexpected: 0, over_capacity: 0 },
        }
    }

    /// Sets which open connection leads to the facilitator, and the facilitator's address. Until that connection is
    /// closed, messages from all other connections are rejected.
    pub fn set_facilitator(&mut self, id: ConnectionId, remote: SocketAddr) {
        self.link = Some(Link { id, remote });
        self.nat_type = NatType::default();
        self.unsent.clear();
        self.send_hello();
        for (target, _) in self.wanted.clone() {
            self.enqueue(FromClient::Open { target });
        }
    }

    /// Sets the addresses of this machine's interfaces, with the port of the socket, for peers behind the same router.
    ///
    /// Only the first four are used. They are sent when the facilitator is set.
    pub fn set_internal_addresses(&mut self, addresses: &[SocketAddr]) {
        self.internal.clear();
        self.internal.extend(addresses.iter().take(MAX_INTERNAL).copied());
    }

    /// Sets or clears the external address of a port that the router has opened for the socket.
    ///
    /// If the facilitator is connected, it is notified immediately. It offers the address to other peers only if the IP
    /// address is the one from which the client is connected. With a mapped address, only three interface addresses are
    /// used.
    pub fn set_mapped_address(&mut self, mapped: Option<SocketAddr>) {
        let is_other = core::mem::replace(&mut self.mapped, mapped) != mapped;
        if is_other && self.link.is_some() {
            self.send_hello();
        }
    }

    fn send_hello(&mut self) {
        let internal = self.mapped.into_iter().chain(self.internal.iter().copied());
        self.enqueue(FromClient::Hello { internal: internal.take(MAX_INTERNAL).collect() });
    }

    /// Requests a connection to a peer.
    ///
    /// The request is sent once the facilitator is connected, and [`poll_outcome`](Self::poll_outcome) returns the
    /// result. The requested peer needs only this plugin and a connection to the facilitator.
    ///
    /// # Errors
    /// Returns [`TooMany`] if `SESSIONS` attempts are in progress.
    pub fn open(&mut self, peer: Guid) -> Result<(), TooMany> {
        if self.wants(peer) {
            return Ok(());
        }
        let has_room = self.wanted.len() < SESSIONS && !self.unsent.is_full();
        if !has_room {
            return Err(TooMany);
        }
        if self.link.is_some() {
            self.enqueue(FromClient::Open { target: peer });
        }
        self.wanted.push((peer, None)).map_err(|_| TooMany)
    }

    fn wants(&self, peer: Guid) -> bool {
        self.wanted.iter().any(|(wanted, _)| *wanted == peer)
    }

    fn has_session(&self, peer: Guid) -> bool {
        self.sessions.iter().any(|session| session.peer == peer)
    }

    /// Returns true if the facilitator knows this peer, so that other peers can request connections to it.
    #[must_use]
    pub const fn is_registered(&self) -> bool {
        self.link.is_some() && self.nat_type.mapped.is_some()
    }

    /// Returns the known properties of the router between this peer and the facilitator.
    #[must_use]
    pub const fn nat_type(&self) -> NatType {
        self.nat_type
    }

    /// Returns the counters.
    #[must_use]
    pub const fn stats(&self) -> TraversalStats {
        self.stats
    }

    /// Returns the next action for the application. Call this until it returns `None`, whenever the peer is polled.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Handles an out-of-band message; returns false if the message does not belong to this plugin.
    pub fn handle_out_of_band(&mut self, now: Instant, from: SocketAddr, data: &[u8]) -> bool {
        let Some(punch) = Punch::decode(data) else { return false };
        match punch.kind {
            PunchKind::FilterProbe if self.link.is_some_and(|link| link.remote.ip() == from.ip()) => {
                if !self.nat_type.accepts_unsolicited {
                    self.nat_type.accepts_unsolicited = true;
                    self.enqueue(FromClient::FilterProbeReceived { token: punch.number });
                }
            }
            PunchKind::ToAccepting | PunchKind::ToConnecting | PunchKind::Ack => {
                match self.sessions.iter_mut().find(|session| session.id == punch.number) {
                    Some(session) if session.may_be_at(from) => session.receive(now, from, punch.kind),
                    Some(_) | None => self.stats.unexpected = self.stats.unexpected.saturating_add(1),
                }
            }
            PunchKind::Probe | PunchKind::FilterProbe => {
                self.stats.unexpected = self.stats.unexpected.saturating_add(1);
            }
        }
        true
    }

    /// Returns the result of an attempt that this peer or the remote peer requested. At most sixteen results are
    /// queued.
    pub fn poll_outcome(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }

    fn enqueue(&mut self, message: FromClient) {
        // If the message is dropped, the attempt times out.
        let is_kept = self.unsent.push_back(message).is_ok();
        self.stats.over_capacity = self.stats.over_capacity.saturating_add(u64::from(!is_kept));
    }

    fn end(&mut self, outcome: Outcome) {
        let (Outcome::Connected { peer, .. } | Outcome::Failed { peer, .. }) = outcome;
        self.wanted.retain(|(wanted, _)| *wanted != peer);
        self.sessions.retain(|session| session.peer != peer);
        if self.outcomes.is_full() {
            self.outcomes.pop_front();
        }
        // This cannot fail, because the capacity was checked above.
        let _ = self.outcomes.push_back(outcome);
    }

    fn handle_message(&mut self, now: Instant, link: Link, message: FromFacilitator) {
        // A link-local address keeps its interface index.
        let at = |port| {
            let mut address = link.remote;
            address.set_port(port);
            address
        };
        match message {
            FromFacilitator::Probe { token, port } => {
                let probe = Probe { token, to: at(port), left: PROBE_ATTEMPTS, next_at: now };
                if self.probes.is_full() {
                    self.probes.remove(0);
                }
                // This cannot fail, because the capacity was checked above.
                let _ = self.probes.push(probe);
            }
            FromFacilitator::Probed { token, mapped } => {
                self.probes.retain(|probe| probe.token != token);
                let before = *self.nat_type.mapped.get_or_insert(mapped);
                if before != mapped {
                    self.nat_type.is_symmetric = Some(true);
                } else if token != 0 {
                    self.nat_type.is_symmetric.get_or_insert(false);
                }
            }
            FromFacilitator::Begin { session, peer, connects, mut candidates } => {
                candidates.iter_mut().for_each(|candidate| use_interface_of(link.remote, candidate));
                self.begin(Session::new(now, session, peer, connects, candidates));
            }
            FromFacilitator::Forwarded { session, peer, connects, port } => {
                let candidates = Vec::from_iter([at(port)]);
                let mut session = Session::new(now, session, peer, connects, candidates);
                session.is_forwarded = true;
                self.begin(session);
            }
            FromFacilitator::Refused { peer, reason } => {
                self.end(Outcome::Failed { peer, reason: Some(reason) });
            }
        }
    }

    /// Ends the requests of this peer for which `is_over` returns true. Its arguments are the requested peer and the
    /// deadline of the answer.
    fn give_up(&mut self, is_over: impl Fn(&Self, Guid, Option<Instant>) -> bool) {
        for (peer, until) in self.wanted.clone() {
            if is_over(self, peer, until) {
                self.end(Outcome::Failed { peer, reason: None });
            }
        }
    }

    fn update_attempts(&mut self, now: Instant) {
        let Self { sessions, actions, .. } = self;
        for session in sessions.iter_mut() {
            let peer = session.peer;
            session.update(now, |step| {
                let action = match step {
                    Step::Send(to, punch) => Action::Send { to, payload: punch.encode() },
                    Step::Connect(address) => Action::Connect { address, peer },
                };
                actions.push_back(action).is_ok()
            });
        }
        let failed: Vec<u64, SESSIONS> =
            sessions.iter_mut().filter_map(|session| session.fails(now).then_some(session.id)).collect();
        for session in failed {
            self.enqueue(FromClient::Failed { session });
        }
        let is_linked = self.link.is_some();
        let abandoned = self
            .sessions
            .iter()
            .filter(|session| session.is_abandoned(now) || (session.has_failed() && !is_linked));
        for peer in abandoned.map(|session| session.peer).collect::<Vec<Guid, SESSIONS>>() {
            self.end(Outcome::Failed { peer, reason: None });
        }
        self.give_up(|traversal, peer, until| {
            !traversal.has_session(peer) && until.is_some_and(|until| now >= until)
        });
    }

    fn update_probes(&mut self, now: Instant) {
        for probe in self.probes.iter_mut().filter(|probe| now >= probe.next_at) {
            probe.left = probe.left.saturating_sub(1);
            probe.next_at = now + PUNCH_INTERVAL;
            let payload = Punch { kind: PunchKind::Probe, number: probe.token }.encode();
            // A dropped probe is repeated, as every probe is.
            let _ = self.actions.push_back(Action::Send { to: probe.to, payload });
        }
        self.probes.retain(|probe| probe.left > 0);
    }

    fn begin(&mut self, session: Session) {
        self.sessions.retain(|other| other.peer != session.peer);
        if let Err(session) = self.sessions.push(session) {
            self.stats.over_capacity = self.stats.over_capacity.saturating_add(1);
            self.enqueue(FromClient::Failed { session: session.id });
        }
    }
}

/// Replaces the interface of a link-local address with the interface of a link-local facilitator. Interface indices
/// are local to each machine, and link-local addresses of other peers are useful only on the same link.
fn use_interface_of(facilitator: SocketAddr, address: &mut SocketAddr) {
    if let (SocketAddr::V6(own), SocketAddr::V6(other)) = (facilitator, address)
        && own.ip().is_unicast_link_local()
        && other.ip().is_unicast_link_local()
    {
        other.set_scope_id(own.scope_id());
    }
}

impl<const SESSIONS: usize> Plugin<RakNet> for Traversal<SESSIONS> {
    fn message_ids(&self) -> MessageIds {
        MessageIds::of(&[NAT_ID])
    }

    fn on_connected(&mut self, _: Instant, _: ConnectionId, remote: SocketAddr, guid: Guid, _: Side) {
        let session = self.sessions.iter().find(|session| session.peer == guid);
        let Some(session) = session.filter(|session| session.may_be_at(remote)) else { return };
        let (id, is_forwarded) = (session.id, session.is_forwarded);
        self.enqueue(FromClient::Connected { session: id });
        self.end(Outcome::Connected { peer: guid, is_forwarded });
    }

    fn on_disconnected(&mut self, _: Instant, id: ConnectionId, _: DisconnectReason) {
        if self.link.is_some_and(|link| link.id == id) {
            self.link = None;
            self.probes.clear();
            self.unsent.clear();
            // Sessions that have begun no longer need the facilitator; requests without a session do.
            self.give_up(|traversal, peer, _| !traversal.has_session(peer));
        }
    }

    fn on_message(&mut self, now: Instant, id: ConnectionId, _: Delivery, message: &dyn Chunks) -> Verdict {
        let mut buffer = [0; MAX_MESSAGE];
        let link = self.link.filter(|link| link.id == id);
        let decoded = bytes::copy(message, &mut buffer).and_then(|bytes| FromFacilitator::decode(bytes).ok());
        match (link, decoded) {
            (Some(link), Some(message)) => self.handle_message(now, link, message),
            _ => self.stats.malformed = self.stats.malformed.saturating_add(1),
        }
        Verdict::Drop
    }

    fn update(&mut self, now: Instant, sender: &mut dyn MessageSender<RakNet>) {
        self.update_attempts(now);
        self.update_probes(now);
        let Some(link) = self.link else { return };
        for (peer, until) in &mut self.wanted {
            if !self.sessions.iter().any(|session| session.peer == *peer) {
                until.get_or_insert(now + ANSWER_TIME);
            }
        }
        let mut buffer = [0; MAX_MESSAGE];
        while let Some(message) = self.unsent.front() {
            let Ok(bytes) = message.encode(&mut buffer) else { return };
            if sender.send(link.id, bytes, Delivery::RELIABLE_ORDERED).is_err() {
                return;
            }
            self.unsent.pop_front();
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let unsent = (self.link.is_some() && !self.unsent.is_empty()).then_some(Instant::ZERO);
        let sessions = self.sessions.iter().map(Session::poll_timeout);
        let probes = self.probes.iter().map(|probe| probe.next_at);
        let answers =
            self.wanted.iter().filter(|(peer, _)| !self.has_session(*peer)).filter_map(|(_, until)| *until);
        sessions.chain(probes).chain(answers).chain(unsent).min()
    }
}
