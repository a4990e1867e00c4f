//! How much all clients together may send and be sent: a bucket for each direction, from which every flow has a fair share.
//!
//! The share of a flow is the rate by the number of flows that had datagrams lately. What is within its share passes always, so
//! that a few busy clients cannot take everything; beyond it a datagram passes as long as others leave something.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::counters::Direction;

/// How much of the rate, or of a share, may pass at once.
const BURST: Duration = Duration::from_secs(1);

/// How long a flow without datagrams counts among those that share: up to twice this time.
const WINDOW: Duration = Duration::from_secs(1);

/// The rate of all flows together. A clone is the same rate.
#[derive(Debug, Clone, Default)]
pub struct TotalRate(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Bytes of payload per second in each direction; zero is no limit.
    bytes: AtomicUsize,
    to_server: Mutex<Bucket>,
    to_client: Mutex<Bucket>,
}

/// What one direction has used.
#[derive(Debug, Default)]
struct Bucket {
    /// When it would be full again. Shares may have it emptied beyond its burst.
    full_at: Option<Instant>,
    window: Option<Instant>,
    /// Flows with datagrams in this window, and in the one before.
    active: u32,
    active_before: u32,
}

/// What a flow has used of its shares.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shares {
    to_server: Share,
    to_client: Share,
}

#[derive(Debug, Clone, Copy, Default)]
struct Share {
    full_at: Option<Instant>,
    /// The window in which the flow was counted last.
    window: Option<Instant>,
}

impl TotalRate {
    /// Sets the bytes of payload per second that may pass in each direction; zero is no limit.
    pub fn set(&self, bytes_per_second: usize) {
        self.0.bytes.store(bytes_per_second, Ordering::Relaxed);
    }

    /// Whether there is a limit.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.0.bytes.load(Ordering::Relaxed) != 0
    }

    /// Whether a datagram of a flow may pass; takes its bytes if so.
    pub(crate) fn admits(&self, now: Instant, direction: Direction, len: usize, shares: &mut Shares) -> bool {
        let Some(per_second) = NonZeroUsize::new(self.0.bytes.load(Ordering::Relaxed)) else { return true };
        let (bucket, share) = match direction {
            Direction::ToServer => (&self.0.to_server, &mut shares.to_server),
            Direction::ToClient => (&self.0.to_client, &mut shares.to_client),
        };
        bucket.lock().unwrap_or_else(PoisonError::into_inner).admits(now, len, per_second, share)
    }
}

impl Bucket {
    fn admits(&mut self, now: Instant, len: usize, per_second: NonZeroUsize, share: &mut Share) -> bool {
        self.count(now, share);
        let nanos = (len as u64).saturating_mul(1_000_000_000) / per_second.get() as u64;
        let cost = Duration::from_nanos(nanos);
        let flows = self.active.max(self.active_before).max(1);
        let cost_of_share = cost.saturating_mul(flows);
        if !has(share.full_at, now, cost_of_share) && !has(self.full_at, now, cost) {
            return false;
        }
        self.full_at = Some(taken(self.full_at, now, cost));
        // A flow that has had more than its share as others left it waits no longer for its share than for a burst.
        share.full_at = Some(taken(share.full_at, now, cost_of_share).min(now + BURST.max(cost_of_share)));
        true
    }

    /// Counts the flow among those of this window.
    fn count(&mut self, now: Instant, share: &mut Share) {
        let passed = self.window.map(|since| now.saturating_duration_since(since));
        if passed.is_none_or(|passed| passed >= WINDOW) {
            let is_next = passed.is_some_and(|passed| passed < 2 * WINDOW);
            self.active_before = if is_next { self.active } else { 0 };
            self.active = 0;
            self.window = Some(now);
        }
        if share.window != self.window {
            share.window = self.window;
            self.active = self.active.saturating_add(1);
        }
    }
}

/// Whether a bucket has so much. One that is full gives a datagram of any length, or a low rate would never pass it.
fn has(full_at: Option<Instant>, now: Instant, cost: Duration) -> bool {
    let missing = full_at.map_or(Duration::ZERO, |at| at.saturating_duration_since(now));
    missing.is_zero() || missing + cost <= BURST
}

fn taken(full_at: Option<Instant>, now: Instant, cost: Duration) -> Instant {
    full_at.unwrap_or(now).max(now) + cost
}

#[cfg(test)]
mod tests {
    use super::*;

    const TO_CLIENT: Direction = Direction::ToClient;
    const TO_SERVER: Direction = Direction::ToServer;

    /// Lets flows offer datagrams of 100 bytes for some seconds, each so many a second in turn, and returns what passed of each in
    /// the seconds behind the first two, in which bursts pass.
    fn passed(total: &TotalRate, start: Instant, offered: &[u32], seconds: u32) -> Vec<u32> {
        let mut flows = vec![(Shares::default(), 0); offered.len()];
        for tick in 0..seconds * 1000 {
            let now = start + Duration::from_millis(tick.into());
            for (index, (shares, passed)) in flows.iter_mut().enumerate() {
                let due = |tick: u32| u64::from(tick) * u64::from(offered[index]) / 1000;
                for _ in due(tick)..due(tick + 1) {
                    if total.admits(now, TO_CLIENT, 100, shares) && tick >= 2000 {
                        *passed += 1;
                    }
                }
            }
        }
        flows.into_iter().map(|(_, passed)| passed / (seconds - 2)).collect()
    }

    fn limited(bytes: usize) -> TotalRate {
        let total = TotalRate::default();
        total.set(bytes);
        total
    }

    #[test]
    fn without_a_limit_all_passes() {
        let (total, now) = (TotalRate::default(), Instant::now());
        let mut shares = Shares::default();
        assert!((0..10_000).all(|_| total.admits(now, TO_SERVER, 1_000_000, &mut shares)));
    }

    #[test]
    fn the_sum_is_the_limit_and_one_flow_may_have_all_of_it() {
        let rates = passed(&limited(100_000), Instant::now(), &[5_000], 12);
        assert!((990..=1_010).contains(&rates[0]), "{rates:?}");
    }

    #[test]
    fn busy_flows_leave_the_others_their_share() {
        // A share is 250 datagrams a second.
        let rates = passed(&limited(100_000), Instant::now(), &[20_000, 20_000, 200, 100], 12);
        assert!((199..=201).contains(&rates[2]) && (99..=101).contains(&rates[3]), "{rates:?}");
        let sum: u32 = rates.iter().sum();
        assert!((980..=1_020).contains(&sum), "{rates:?}");
        assert!(rates[0] >= 245 && rates[1] >= 245, "{rates:?}");
    }

    #[test]
    fn flows_that_are_silent_leave_their_share_to_others() {
        let (total, start) = (limited(100_000), Instant::now());
        let mut idle = Shares::default();
        assert!(total.admits(start, TO_CLIENT, 100, &mut idle));
        let rates = passed(&total, start, &[2_000], 12);
        assert!((990..=1_010).contains(&rates[0]), "{rates:?}");
    }

    #[test]
    fn directions_do_not_take_from_each_other() {
        let (total, now) = (limited(1_000), Instant::now());
        let mut shares = Shares::default();
        let passed = |direction: Direction, shares: &mut Shares| {
            (0..100).filter(|_| total.admits(now, direction, 100, shares)).count()
        };
        assert_eq!(passed(TO_SERVER, &mut shares), 10);
        assert_eq!(passed(TO_CLIENT, &mut shares), 10);
        total.set(0);
        assert_eq!(passed(TO_SERVER, &mut shares), 100, "the limit was lifted");
    }
}
