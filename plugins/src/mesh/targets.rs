//! Peers of which this one knows without being connected to them, and when to try.

use core::net::SocketAddr;
use core::time::Duration;

use heapless::Vec;
use rakwire::Instant;
use rakwire::raknet::Guid;

/// How long a peer may take until it counts as out of reach.
pub const REACH_TIME: Duration = Duration::from_secs(12);
/// How long a peer of which nobody tells any more is still tried, so that the halves of a mesh find each other again.
pub const MEMORY_TIME: Duration = Duration::from_secs(60);

const SHORT_PAUSE: Duration = Duration::from_secs(4);
const LONG_PAUSE: Duration = Duration::from_secs(10);
/// So often the time to reach a peer begins anew, or a member that tells of it in turns would have it tried at the short pause
/// for ever.
const RESTARTS: u8 = 4;
/// The lower GUID begins, so that two peers seldom dial each other at once.
const HEAD_START: Duration = Duration::from_secs(2);

/// A peer to connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Where it is.
    pub address: SocketAddr,
    /// Who it is said to be.
    pub guid: Guid,
}

#[derive(Debug)]
struct Entry {
    target: Target,
    known_at: Instant,
    next_at: Instant,
    /// Somebody is connected to it now.
    is_reported: bool,
    /// The application is to connect to it.
    is_due: bool,
    is_out_of_reach: bool,
    is_untold: bool,
    /// It fell silent, and may be in another part of a mesh that is split.
    is_lost: bool,
    /// It disconnected, and nobody is connected to it.
    has_left: bool,
    /// How often it was tried.
    attempts: usize,
    /// How often the time to reach it began anew.
    restarts: u8,
}

/// Up to `PEERS` of them. A place is taken for a fixed time at least, which bounds how often somebody who invents peers can
/// make this one try.
#[derive(Debug)]
pub(super) struct Targets<const PEERS: usize>(Vec<Entry, PEERS>);

impl<const PEERS: usize> Targets<PEERS> {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Learns of a peer; false if there is no room.
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
            is_untold: false,
            is_lost: false,
            has_left: false,
            attempts: 0,
            restarts: 0,
        };
        self.0.push(entry).is_ok()
    }

    /// A connection with a peer has ended. One that is lost is tried at once, and one that has left only if somebody is still
    /// connected to it after a while.
    pub(super) fn on_disconnected(&mut self, now: Instant, own: Guid, target: Target, is_lost: bool) {
        self.learn(now, own, target);
        let Some(entry) = self.find(target.guid) else { return };
        entry.is_lost = is_lost;
        if !is_lost {
            entry.has_left = true;
            entry.next_at = now + SHORT_PAUSE;
        }
    }

    /// Somebody tells that a peer has left. That counts for less than this peer's own loss of it, or members could keep the
    /// parts of a mesh apart.
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

    /// Says of which peers somebody tells. The time to reach one begins when somebody does.
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
                (entry.is_out_of_reach, entry.is_untold) = (true, entry.is_reported);
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

    /// A peer to try, and how often that was done before.
    pub(super) fn poll_due(&mut self) -> Option<(Target, usize)> {
        let entry = self.0.iter_mut().find(|entry| entry.is_due && !entry.has_left)?;
        entry.is_due = false;
        let attempts = entry.attempts;
        entry.attempts = attempts.wrapping_add(1);
        Some((entry.target, attempts))
    }

    pub(super) fn poll_out_of_reach(&mut self) -> Option<Guid> {
        let entry = self.0.iter_mut().find(|entry| entry.is_untold)?;
        entry.is_untold = false;
        Some(entry.target.guid)
    }

    /// Those to whom somebody is connected, and whether this peer has tried long enough.
    pub(super) fn reported(&self) -> impl Iterator<Item = (Guid, bool)> {
        self.0
            .iter()
            .filter(|entry| entry.is_reported)
            .map(|entry| (entry.target.guid, entry.is_out_of_reach))
    }
}
