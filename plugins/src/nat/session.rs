//! One attempt of a client to get through to a peer.

use core::net::SocketAddr;
use core::time::Duration;

use heapless::{Deque, Vec};
use rakwire::Instant;
use rakwire::raknet::Guid;

use super::wire::{MAX_CANDIDATES, Punch, PunchKind};

/// How often each address is tried: often enough for both sides to have sent when the first punch of either arrives again, and
/// seldom enough for sixteen addresses to take 3 kB/s.
pub const PUNCH_INTERVAL: Duration = Duration::from_millis(100);
/// How long punches are sent, which is six round trips between continents.
pub const PUNCH_TIME: Duration = Duration::from_secs(2);
/// How long the connection may take to open once something got through.
pub const CONNECT_TIME: Duration = Duration::from_secs(6);
/// Punches that leave at once, of which a peer keeps eight until its driver sends them.
const BURST: usize = 4;
const BURST_INTERVAL: Duration = Duration::from_millis(25);
/// Answers that wait to be sent. Whoever fills them up sends more punches than there are addresses.
const MAX_ACKS: usize = 4;

/// Where a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Punching,
    /// Something got through; who connects does so at this address.
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
    /// The address to connect to, until it is told.
    connect_to: Option<SocketAddr>,
    phase: Phase,
    ends_at: Instant,
    next_at: Instant,
    /// The candidate that is next.
    next: usize,
}

/// What a session has to do.
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

    /// Whether the peer may be at this address: a router changes ports, and others can forge any address.
    pub(super) fn may_be_at(&self, address: SocketAddr) -> bool {
        self.candidates.iter().any(|candidate| candidate.ip() == address.ip())
    }

    /// A punch or an answer with the number of this session arrived.
    pub(super) fn receive(&mut self, now: Instant, from: SocketAddr, kind: PunchKind) {
        let expected = if self.connects { PunchKind::ToConnecting } else { PunchKind::ToAccepting };
        if kind == expected {
            // One that finds no room is asked for again by the next punch.
            let _ = self.acks.push_back(from);
        } else if kind != PunchKind::Ack {
            return;
        }
        if self.phase == Phase::Punching {
            self.phase = Phase::Connecting;
            self.ends_at = now + CONNECT_TIME;
            self.connect_to = self.connects.then_some(from);
            // Whoever accepts goes on there alone, so that the router lets the other one in.
            (self.candidates, self.next) = (Vec::from_iter([from]), 0);
        }
    }

    /// Does what is due at `now`, by handing out steps. Punches and answers that are not taken are repeated by themselves.
    pub(super) fn update(&mut self, now: Instant, mut hand_out: impl FnMut(Step) -> bool) {
        self.connect_to.take_if(|to| hand_out(Step::Connect(*to)));
        while let Some(to) = self.acks.pop_front() {
            hand_out(Step::Send(to, Punch { kind: PunchKind::Ack, number: self.id }));
        }
        if !self.punches() || now < self.next_at {
            return;
        }
        let kind = if self.connects { PunchKind::ToAccepting } else { PunchKind::ToConnecting };
        for to in self.candidates.iter().skip(self.next).take(BURST) {
            hand_out(Step::Send(*to, Punch { kind, number: self.id }));
        }
        self.next += BURST;
        self.next_at = now + BURST_INTERVAL;
        if self.next >= self.candidates.len() {
            self.next = 0;
            self.next_at = now + PUNCH_INTERVAL;
        }
    }

    /// Whether punches are due: who connects sends other datagrams now.
    fn punches(&self) -> bool {
        self.phase == Phase::Punching || (self.phase == Phase::Connecting && !self.connects)
    }

    /// Whether the time for it is over, which is told once.
    pub(super) fn fails(&mut self, now: Instant) -> bool {
        let fails = self.phase != Phase::Failed && now >= self.ends_at;
        if fails {
            self.phase = Phase::Failed;
            // The other one may have heard something in the last moment, and tries to connect still.
            self.ends_at = now + CONNECT_TIME + PUNCH_TIME;
        }
        fails
    }

    pub(super) fn has_failed(&self) -> bool {
        self.phase == Phase::Failed
    }

    /// Whether it has failed, and nobody has said what comes next.
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
