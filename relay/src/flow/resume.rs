//! The flows that can be resumed, by their secrets.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use super::control::Secret;

/// How many returns a flow admits at once: a client that has lost its way opens several connections, and tries again with growing
/// pauses.
const RETURN_BURST: u32 = 10;

/// The time after which a flow admits one more.
const RETURN_INTERVAL: Duration = Duration::from_secs(1);

/// The flows that can be resumed, by their secrets.
///
/// `H` is what reaches a flow. The table is bounded by the number of flows, of which each has one entry at most.
///
/// ```
/// use rakwire_relay::flow::{ResumeTable, Secret};
///
/// let mut table = ResumeTable::new();
/// let secret = Secret::new([7; 16]);
/// table.insert(secret, "game", "flow 1");
/// assert_eq!(table.find(&secret, "game"), Some(&"flow 1"));
/// assert_eq!(table.find(&secret, "other"), None);
/// assert_eq!(table.remove(&secret), Some("flow 1"));
/// ```
#[derive(Debug)]
pub struct ResumeTable<H> {
    flows: HashMap<Secret, Entry<H>>,
    /// Those without a client, the one that lost it first at the front.
    detached: BTreeMap<u64, Secret>,
    next_number: u64,
}

#[derive(Debug)]
struct Entry<H> {
    target: Box<str>,
    handle: H,
    /// When the flow admits a whole burst of returns again.
    returns_full_at: Option<Instant>,
    /// Its key in `detached`.
    detached: Option<u64>,
}

impl<H> Default for ResumeTable<H> {
    fn default() -> Self {
        Self::new()
    }
}

impl<H> ResumeTable<H> {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self { flows: HashMap::new(), detached: BTreeMap::new(), next_number: 0 }
    }

    /// Adds a flow to `target`, which has a client.
    pub fn insert(&mut self, secret: Secret, target: &str, handle: H) {
        self.remove(&secret);
        self.flows
            .insert(secret, Entry { target: target.into(), handle, returns_full_at: None, detached: None });
    }

    /// The flow of this secret, if it is one to `target`.
    #[must_use]
    pub fn find(&self, secret: &Secret, target: &str) -> Option<&H> {
        self.flows.get(secret).filter(|entry| *entry.target == *target).map(|entry| &entry.handle)
    }

    /// Whether a connection with this secret and target may count as the return of a client, ten at once and one a second. More of
    /// them, and those whose secret fits no flow, are subject to the limits of new clients.
    pub fn admits_return(&mut self, secret: &Secret, target: &str, now: Instant) -> bool {
        let entry = self.flows.get_mut(secret).filter(|entry| *entry.target == *target);
        let Some(entry) = entry else { return false };
        let full_at = entry.returns_full_at.map_or(now, |full_at| full_at.max(now)) + RETURN_INTERVAL;
        let is_admitted = full_at.saturating_duration_since(now) <= RETURN_INTERVAL * RETURN_BURST;
        if is_admitted {
            entry.returns_full_at = Some(full_at);
        }
        is_admitted
    }

    /// The flow has lost its client.
    pub fn set_detached(&mut self, secret: &Secret) {
        self.set_attached(secret);
        if let Some(entry) = self.flows.get_mut(secret) {
            entry.detached = Some(self.next_number);
            self.detached.insert(self.next_number, *secret);
            self.next_number += 1;
        }
    }

    /// The flow has a client again.
    pub fn set_attached(&mut self, secret: &Secret) {
        let number = self.flows.get_mut(secret).and_then(|entry| entry.detached.take());
        number.and_then(|number| self.detached.remove(&number));
    }

    /// Removes a flow that has ended.
    pub fn remove(&mut self, secret: &Secret) -> Option<H> {
        self.set_attached(secret);
        self.flows.remove(secret).map(|entry| entry.handle)
    }

    /// The flow that has been without its client for longest, which is to end to make room for another client. It is chosen
    /// once, and stays in the table until it is [removed](Self::remove): its client may come back before it ends.
    pub fn evict(&mut self) -> Option<&H> {
        let (_, secret) = self.detached.pop_first()?;
        let entry = self.flows.get_mut(&secret)?;
        entry.detached = None;
        Some(&entry.handle)
    }

    /// The number of flows in the table.
    #[must_use]
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Whether there is no flow.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(count: u8) -> ResumeTable<u8> {
        let mut table = ResumeTable::new();
        (0..count).for_each(|number| table.insert(Secret::new([number; 16]), "game", number));
        table
    }

    #[test]
    fn a_flow_is_found_by_its_secret_and_target_alone() {
        let table = table(3);
        assert_eq!(table.find(&Secret::new([1; 16]), "game"), Some(&1));
        assert_eq!(table.find(&Secret::new([1; 16]), "Game"), None);
        assert_eq!(table.find(&Secret::new([4; 16]), "game"), None);
    }

    #[test]
    fn a_flow_admits_ten_returns_at_once_and_one_a_second() {
        let (mut table, start) = (table(2), Instant::now());
        let mut admitted = |number: u8, target: &str, seconds| {
            let now = start + Duration::from_secs(seconds);
            (0..100).filter(|_| table.admits_return(&Secret::new([number; 16]), target, now)).count()
        };
        assert_eq!([0, 0, 1, 4, 60, 0].map(|seconds| admitted(0, "game", seconds)), [10, 0, 1, 3, 10, 0]);
        assert_eq!(admitted(1, "game", 0), 10, "each flow has its own");
        assert_eq!((admitted(1, "other", 60), admitted(7, "game", 60)), (0, 0));
    }

    #[test]
    fn the_flow_that_lost_its_client_first_is_evicted_first() {
        let mut table = table(4);
        let secret = |number: u8| Secret::new([number; 16]);
        [2, 0, 3, 1, 2].iter().for_each(|number| table.set_detached(&secret(*number)));
        table.set_attached(&secret(3));
        assert_eq!(table.remove(&secret(1)), Some(1));
        let evicted = [(); 3].map(|()| table.evict().copied());
        assert_eq!(evicted, [Some(0), Some(2), None]);
        assert_eq!((table.len(), table.detached.len()), (3, 0));
        table.remove(&secret(0));
        table.set_detached(&secret(0));
        assert!(table.detached.is_empty(), "one that is gone is not detached");
    }

    #[test]
    fn a_flow_whose_client_comes_back_before_its_eviction_can_be_resumed_again() {
        let mut table = table(1);
        let secret = Secret::new([0; 16]);
        table.set_detached(&secret);
        assert_eq!(table.evict(), Some(&0));
        assert_eq!(table.find(&secret, "game"), Some(&0));
        table.set_attached(&secret);
        table.set_detached(&secret);
        assert_eq!(table.evict(), Some(&0));
        assert_eq!(table.remove(&secret), Some(0));
    }
}
