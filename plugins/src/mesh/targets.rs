//! Known peers without a connection, and the schedule of the attempts to connect to them.

use core::net::SocketAddr;
use core::time::Duration;

use heapless::Vec;
use rakwire::Instant;
use rakwire::raknet::Guid;

/// The time after which a peer counts as unreachable if connecting to it fails.
pub const REACH_TIME: Duration = Duration::from_secs(12);
/// The time for which this peer tries to reach a peer that no member reports, so that the parts of a partitioned mesh
/// can rejoin.
pub const MEMORY_TIME: Duration = Duration::from_secs(60);

const SHORT_PAUSE: Duration = Duration::from_secs(4);
const LONG_PAUSE: Duration = Duration::from_secs(10);
/// The maximum number of times that a peer's reach time restarts. Without it, a member that alternately reports and
/// withdraws a peer would make this peer retry at the short interval forever.
const RESTARTS: u8 = 4;
/// The delay of the peer with the higher GUID, so that two peers rarely connect to each other simultaneously.
const HEAD_START: Duration = Duration::from_secs(2);

/// A peer to connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The address to connect to.
    pub address: SocketAddr,
    /// The GUID that other members report for the peer.
    pub guid: Guid,
}

#[derive(Debug)]
struct Entry {
    target: Target,
    known_at: Instant,
    next_at: Instant,
    /// True if a member currently reports a connection to it.
    is_reported: bool,
    /// True if `poll_due` has not returned the target yet.
    is_due: bool,
    is_out_of_reach: bool,
    is_unreported: bool,
    /// True if the connection to the target timed out. The target may be in another part of a partitioned mesh.
    is_lost: bool,
    /// True if the target has disconnected and no member reports a connection to it.
    has_left: bool,
    /// The number of attempts so far.
    attempts: usize,
    /// The number of times that the reach time has restarted.
    restarts: u8,
}

/// Up to `PEERS` targets. Each target occupies its slot for a minimum time. This limits how often a member that
/// invents peers can make this peer connect.
#[derive(Debug)]
pub(super) struct Targets<const PEERS: usize>(Vec<Entry, PEERS>);

impl<const PEERS: usize> Targets<PEERS> {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a peer. Returns false if the capacity is reached.
    pub(super) fn learn(&mut self, now: Instant, own: Guid, target: Target) -> bool {
        if self.0.iter().any(|entry| entry.target.guid == target.guid) {
            return true;
        }
        let next_at = if own < target.guid { now } else { now + HEAD_START };
        let entry = Entry {
            target,
            known_at: now,
            next_at,
            is_reported: false,
            is_due: false,
            is_out_of_reach: false,
            is_unreported: false,
            is_lost: false,
            has_left: false,
            attempts: 0,
            restarts: 0,
        };
        self.0.push(entry).is_ok()
    }

    /// Handles a disconnect. After a timeout, this peer tries to reconnect immediately. After a regular disconnect,
    /// it tries again only if another member still reports a connection to the peer after a while.
    pub(super) fn on_disconnected(&mut self, now: Instant, own: Guid, target: Target, is_lost: bool) {
        self.learn(now, own, target);
        let Some(entry) = self.find(target.guid) else { return };
        entry.is_lost = is_lost;
        if !is_lost {
            entry.has_left = true;
            entry.next_at = now + SHORT_PAUSE;
        }
    }

    /// Handles another member's report that a peer has left. A connection timeout that this peer has observed takes
    /// precedence. Otherwise members could keep the parts of a mesh apart.
    pub(super) fn on_left(&mut self, guid: Guid) {
        if let Some(entry) = self.find(guid) {
            entry.has_left = !entry.is_lost;
        }
    }

    fn find(&mut self, guid: Guid) -> Option<&mut Entry> {
        self.0.iter_mut().find(|entry| entry.target.guid == guid)
    }

    pub(super) fn remove(&mut self, guid: Guid) {
        self.0.retain(|entry| entry.target.guid != guid);
    }

    /// Updates which peers are reported. A peer's reach time starts when it is first reported.
    pub(super) fn report(&mut self, now: Instant, is_reported: impl Fn(Guid) -> bool) {
        for entry in &mut self.0 {
            let was_reported = core::mem::replace(&mut entry.is_reported, is_reported(entry.target.guid));
            entry.has_left &= !entry.is_reported;
            if entry.is_reported && !was_reported && entry.restarts < RESTARTS {
                entry.restarts += 1;
                (entry.known_at, entry.is_out_of_reach) = (now, false);
            }
        }
    }

    pub(super) fn update(&mut self, now: Instant) {
        self.0.retain(|entry| entry.is_reported || now < entry.known_at + MEMORY_TIME);
        for entry in self.0.iter_mut().filter(|entry| !entry.has_left) {
            if !entry.is_out_of_reach && now >= entry.known_at + REACH_TIME {
                (entry.is_out_of_reach, entry.is_unreported) = (true, entry.is_reported);
            }
            if now >= entry.next_at {
                entry.is_due = true;
                let pause = if entry.is_out_of_reach { LONG_PAUSE } else { SHORT_PAUSE };
                entry.next_at = now + pause;
            }
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let next = |entry: &Entry| if entry.has_left { entry.known_at + MEMORY_TIME } else { entry.next_at };
        self.0.iter().map(next).min()
    }

    /// Returns the next peer to try, and the number of earlier attempts.
    pub(super) fn poll_due(&mut self) -> Option<(Target, usize)> {
        let entry = self.0.iter_mut().find(|entry| entry.is_due && !entry.has_left)?;
        entry.is_due = false;
        let attempts = entry.attempts;
        entry.attempts = attempts.wrapping_add(1);
        Some((entry.target, attempts))
    }

    pub(super) fn poll_unreachable(&mut self) -> Option<Guid> {
        let entry = self.0.iter_mut().find(|entry| entry.is_unreported)?;
        entry.is_unreported = false;
        Some(entry.target.guid)
    }

    /// Returns the peers that other members report, and whether this peer has given up on each.
    pub(super) fn reported(&self) -> impl Iterator<Item = (Guid, bool)> {
        self.0
            .iter()
            .filter(|entry| entry.is_reported)
            .map(|entry| (entry.target.guid, entry.is_out_of_reach))
    }
}
