//! One attempt of a client to reach another peer.

use core::net::SocketAddr;
use core::time::Duration;

use heapless::{Deque, Vec};
use rakwire::Instant;
use rakwire::raknet::Guid;

use super::wire::{MAX_CANDIDATES, Punch, PunchKind};

/// The interval between punches to each address. It is short enough that both sides have sent before the first punch is
/// repeated, and long enough that sixteen addresses take only 3 kB/s.
pub const PUNCH_INTERVAL: Duration = Duration::from_millis(100);
/// The time for which punches are sent: six intercontinental round trips.
pub const PUNCH_TIME: Duration = Duration::from_secs(2);
/// The time limit for opening the connection after a punch has arrived.
pub const CONNECT_TIME: Duration = Duration::from_secs(6);
/// The maximum number of punches sent at once. The peer queues at most eight out-of-band messages until its driver
/// sends them.
const BURST: usize = 4;
const BURST_INTERVAL: Duration = Duration::from_millis(25);
/// The maximum number of queued acknowledgements. A remote peer that exceeds it sends more punches than there are
/// addresses.
const MAX_ACKS: usize = 4;

/// The state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Punching,
    /// A punch has arrived. The connecting side now connects to its source address.
    Connecting,
    Failed,
}

#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: u64,
    pub(super) peer: Guid,
    pub(super) is_forwarded: bool,
    connects: bool,
    candidates: Vec<SocketAddr, MAX_CANDIDATES>,
    acks: Deque<SocketAddr, MAX_ACKS>,
    /// The address to connect to, if that step has not been returned yet.
    connect_to: Option<SocketAddr>,
    phase: Phase,
    ends_at: Instant,
    next_at: Instant,
    /// The index of the next candidate.
    next: usize,
}

/// An action that a session requests.
pub(super) enum Step {
    Send(SocketAddr, Punch),
    Connect(SocketAddr),
}

impl Session {
    pub(super) fn new(
        now: Instant,
        id: u64,
        peer: Guid,
        connects: bool,
        candidates: Vec<SocketAddr, MAX_CANDIDATES>,
    ) -> Self {
        Self {
            id,
            peer,
            is_forwarded: false,
            connects,
            candidates,
            acks: Deque::new(),
            connect_to: None,
            phase: Phase::Punching,
            ends_at: now + PUNCH_TIME,
            next_at: now,
            next: 0,
        }
    }

    /// Returns true if the remote peer may use this address. Routers change ports and source addresses can be forged,
    /// so the IP address must match a candidate.
    pub(super) fn may_be_at(&self, address: SocketAddr) -> bool {
        self.candidates.iter().any(|candidate| candidate.ip() == address.ip())
    }

    /// Handles a punch or an acknowledgement with the number of this session.
    pub(super) fn receive(&mut self, now: Instant, from: SocketAddr, kind: PunchKind) {
        let expected = if self.connects { PunchKind::ToConnecting } else { PunchKind::ToAccepting };
        if kind == expected {
            // If the acknowledgement is dropped, the next punch requests it again.
            let _ = self.acks.push_back(from);
        } else if kind != PunchKind::Ack {
            return;
        }
        if self.phase == Phase::Punching {
            self.phase = Phase::Connecting;
            self.ends_at = now + CONNECT_TIME;
            self.connect_to = self.connects.then_some(from);
            // The accepting side sends further punches only to this address, so that its router accepts datagrams
            // from the connecting side.
            (self.candidates, self.next) = (Vec::from_iter([from]), 0);
        }
    }

    /// Passes the steps that are due at `now` to `emit`. Punches and acknowledgements that are not accepted are
    /// repeated later.
    pub(super) fn update(&mut self, now: Instant, mut emit: impl FnMut(Step) -> bool) {
        self.connect_to.take_if(|to| emit(Step::Connect(*to)));
        while let Some(to) = self.acks.pop_front() {
            emit(Step::Send(to, Punch { kind: PunchKind::Ack, number: self.id }));
        }
        if !self.punches() || now < self.next_at {
            return;
        }
        let kind = if self.connects { PunchKind::ToAccepting } else { PunchKind::ToConnecting };
        for to in self.candidates.iter().skip(self.next).take(BURST) {
            emit(Step::Send(*to, Punch { kind, number: self.id }));
        }
        self.next += BURST;
        self.next_at = now + BURST_INTERVAL;
        if self.next >= self.candidates.len() {
            self.next = 0;
            self.next_at = now + PUNCH_INTERVAL;
        }
    }

    /// Returns true if this side sends punches. The connecting side stops when a punch has arrived, because it then
    /// sends connection requests.
    fn punches(&self) -> bool {
        self.phase == Phase::Punching || (self.phase == Phase::Connecting && !self.connects)
    }

    /// Returns true if the session has just timed out. Later calls return false.
    pub(super) fn fails(&mut self, now: Instant) -> bool {
        let fails = self.phase != Phase::Failed && now >= self.ends_at;
        if fails {
            self.phase = Phase::Failed;
            // The other side may have received a punch at the last moment, and may still try to connect.
            self.ends_at = now + CONNECT_TIME + PUNCH_TIME;
        }
        fails
    }

    pub(super) fn has_failed(&self) -> bool {
        self.phase == Phase::Failed
    }

    /// Returns true if the session has failed and the facilitator has not sent another step in time.
    pub(super) fn is_abandoned(&self, now: Instant) -> bool {
        self.phase == Phase::Failed && now >= self.ends_at
    }

    pub(super) fn poll_timeout(&self) -> Instant {
        if !self.acks.is_empty() || self.connect_to.is_some() {
            return Instant::ZERO;
        }
        if self.punches() { self.next_at.min(self.ends_at) } else { self.ends_at }
    }
}
