//! The limits of a flow, and the rates of clients. Each client has two token buckets. All clients together have one
//! bucket per direction, of which each client has a fair share.
//!
//! A client's share is the rate divided by the number of recently active clients. An IPv4 address or an IPv6 /64 counts
//! as one client, regardless of its number of flows. Datagrams within the share always pass, so that a few busy clients
//! cannot use up the rate. Datagrams beyond the share pass while other clients leave capacity.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::counters::Direction;
use crate::time::{Bucket, cost};

/// The time within which an empty bucket is refilled: a burst of the rate of one second passes.
const BURST: Duration = Duration::from_secs(1);

/// A rate shared by several flows. Clones refer to the same rate.
#[derive(Debug, Clone)]
pub struct SharedRate(pub(crate) Arc<Mutex<RateLimit>>);

impl SharedRate {
    /// Creates an unused rate.
    #[must_use]
    pub fn new(rate: Rate, now: Instant) -> Self {
        Self(Arc::new(Mutex::new(RateLimit::new(rate, now))))
    }

    /// Charges a datagram, like [`RateLimit::admits`].
    pub(crate) fn admits(&self, now: Instant, len: usize) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).admits(now, len)
    }
}

/// The buckets of a rate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RateLimit {
    rate: Rate,
    datagrams: Bucket,
    bytes: Bucket,
}

impl RateLimit {
    pub(crate) const fn new(rate: Rate, now: Instant) -> Self {
        Self { rate, datagrams: Bucket::full(now), bytes: Bucket::full(now) }
    }

    /// Returns true if a datagram of this length may pass, and charges it to both buckets.
    pub(crate) fn admits(&mut self, now: Instant, len: usize) -> bool {
        let of_datagram = cost(1, self.rate.datagrams.get(), BURST);
        let of_bytes = cost(len, self.rate.bytes.get(), BURST);
        let passes = self.datagrams.has_or_is_full(now, of_datagram, BURST)
            && self.bytes.has_or_is_full(now, of_bytes, BURST);
        if passes {
            self.datagrams.spend(now, of_datagram);
            self.bytes.spend(now, of_bytes);
        }
        passes
    }
}

/// The limits of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlowLimits {
    /// The maximum payload of a client's datagram in bytes; 1472 by default. A longer datagram ends the flow.
    pub max_datagram: usize,
    /// The maximum number of queued datagrams in each direction; 256 by default. A full queue drops its oldest
    /// datagram.
    pub queue: NonZeroUsize,
    /// The maximum bytes of queued datagrams in each direction; 256 KiB by default. A full queue drops its oldest
    /// datagrams. A single datagram always fits.
    pub queue_bytes: NonZeroUsize,
    /// The maximum age of a queued datagram, after which it is dropped; 1 s by default.
    pub queue_age: Duration,
    /// The time without a datagram in either direction after which the flow ends; 60 s by default.
    pub idle_timeout: Duration,
    /// The interval of pings; 15 s by default. A client that sends nothing for three intervals counts as lost.
    pub ping_interval: Duration,
    /// The time that a flow waits for a lost client to return; 30 s by default. Zero disables resumption.
    pub resume_within: Duration,
    /// The rate limit of a client; unlimited by default. Datagrams beyond it are dropped.
    pub rate: Option<Rate>,
}

/// A rate limit for datagrams from a client to its game server. A burst of one second's rate passes without delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Datagrams per second.
    pub datagrams: NonZeroUsize,
    /// Bytes of payload per second.
    pub bytes: NonZeroUsize,
}

impl Default for FlowLimits {
    fn default() -> Self {
        Self {
            max_datagram: 1472,
            queue: const { NonZeroUsize::new(256).expect("256 is not zero") },
            queue_bytes: const { NonZeroUsize::new(256 * 1024).expect("262144 is not zero") },
            queue_age: Duration::from_secs(1),
            idle_timeout: Duration::from_secs(60),
            ping_interval: Duration::from_secs(15),
            resume_within: Duration::from_secs(30),
            rate: None,
        }
    }
}

/// The averaging window. A client without datagrams keeps its share for up to twice this time.
const WINDOW: Duration = Duration::from_secs(1);

/// The number of stored clients that triggers the removal of departed ones.
const PRUNE_MIN: usize = 64;

/// The rate of all clients together. Clones refer to the same rate.
#[derive(Debug, Clone, Default)]
pub struct TotalRate(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Bytes of payload per second in each direction; zero is unlimited.
    bytes: AtomicUsize,
    to_server: Mutex<Used>,
    to_client: Mutex<Used>,
    clients: Mutex<Clients>,
}

/// The shares of all clients with flows.
#[derive(Debug, Default)]
struct Clients {
    by_address: HashMap<IpAddr, Weak<BothShares>>,
    prune_at: usize,
}

/// The usage of the rate in one direction.
#[derive(Debug, Default)]
struct Used {
    bytes_per_second: usize,
    /// Number of changes of the rate. A change invalidates shares of the previous rate.
    changes: u64,
    /// The bucket of the whole rate. Datagrams within a share may overdraw it.
    bucket: Bucket,
    window: Option<Instant>,
    /// Number of clients with datagrams in the current window.
    active: u32,
    /// Number of clients with datagrams in the previous window.
    active_before: u32,
}

/// The usage of one client's share, in both directions. Clones belong to the same client.
#[derive(Debug, Clone, Default)]
pub struct Shares(Arc<BothShares>);

#[derive(Debug, Default)]
struct BothShares {
    to_server: Mutex<Share>,
    to_client: Mutex<Share>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Share {
    changes: u64,
    bucket: Bucket,
    /// The window in which the client was last counted.
    window: Option<Instant>,
}

impl TotalRate {
    /// Sets the bytes of payload per second that may pass in each direction; zero is unlimited. A changed rate starts
    /// with fresh buckets.
    pub fn set(&self, bytes_per_second: usize) {
        for used in [&self.0.to_server, &self.0.to_client] {
            let mut used = lock(used);
            if used.bytes_per_second != bytes_per_second {
                let changes = used.changes.wrapping_add(1);
                *used = Used { bytes_per_second, changes, ..Used::default() };
            }
        }
        self.0.bytes.store(bytes_per_second, Ordering::Relaxed);
    }

    /// Returns true if the rate is limited.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.0.bytes.load(Ordering::Relaxed) != 0
    }

    /// Returns the share of a client, which all of its flows use.
    #[must_use]
    pub fn shares_of(&self, client: IpAddr) -> Shares {
        let mut clients = lock(&self.0.clients);
        let key = host(client);
        if let Some(shares) = clients.by_address.get(&key).and_then(Weak::upgrade) {
            return Shares(shares);
        }
        if clients.by_address.len() >= clients.prune_at.max(PRUNE_MIN) {
            clients.by_address.retain(|_, shares| shares.strong_count() > 0);
            clients.prune_at = 2 * clients.by_address.len();
        }
        let shares = Arc::new(BothShares::default());
        clients.by_address.insert(key, Arc::downgrade(&shares));
        Shares(shares)
    }

    /// Returns true if a datagram from a client may pass, and charges its bytes.
    #[must_use]
    pub fn admits(&self, now: Instant, direction: Direction, len: usize, shares: &Shares) -> bool {
        let passes = self.has_room(now, direction, len, shares);
        if passes {
            self.take(now, direction, len, shares);
        }
        passes
    }

    /// Returns true if a datagram from a client may pass, without charging it.
    pub(crate) fn has_room(&self, now: Instant, direction: Direction, len: usize, shares: &Shares) -> bool {
        self.with(direction, shares, |used, share, per_second| used.has_room(now, len, per_second, share))
            .unwrap_or(true)
    }

    /// Charges the bytes of a datagram that passes.
    pub(crate) fn take(&self, now: Instant, direction: Direction, len: usize, shares: &Shares) {
        self.with(direction, shares, |used, share, per_second| used.take(now, len, per_second, share));
    }

    /// Calls `using` with the rate and the share of a direction, if the rate is limited.
    fn with<T>(
        &self,
        direction: Direction,
        Shares(shares): &Shares,
        using: impl FnOnce(&mut Used, &mut Share, NonZeroUsize) -> T,
    ) -> Option<T> {
        if !self.is_limited() {
            return None;
        }
        let (used, share) = match direction {
            Direction::ToServer => (&self.0.to_server, &shares.to_server),
            Direction::ToClient => (&self.0.to_client, &shares.to_client),
        };
        // The locks are always taken in this order.
        let (mut used, mut share) = (lock(used), lock(share));
        if share.changes != used.changes {
            *share = Share { changes: used.changes, ..Share::default() };
        }
        let per_second = NonZeroUsize::new(used.bytes_per_second)?;
        Some(using(&mut used, &mut share, per_second))
    }
}

/// Returns the address that identifies a client: a host owns at least an IPv6 /64 (RFC 4291 section 2.5.1).
fn host(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Used {
    fn has_room(&mut self, now: Instant, len: usize, per_second: NonZeroUsize, share: &Share) -> bool {
        self.begin_window(now);
        let (cost, cost_of_share) = self.costs(len, per_second);
        share.bucket.has_or_is_full(now, cost_of_share, BURST) || self.bucket.has_or_is_full(now, cost, BURST)
    }

    fn take(&mut self, now: Instant, len: usize, per_second: NonZeroUsize, share: &mut Share) {
        self.begin_window(now);
        if share.window != self.window {
            share.window = self.window;
            self.active = self.active.saturating_add(1);
        }
        let (cost, cost_of_share) = self.costs(len, per_second);
        self.bucket.spend(now, cost);
        share.bucket.spend(now, cost_of_share);
        // A client that has used the capacity of others waits no longer than a burst to use its own share again.
        share.bucket.fill_to(now, BURST.max(cost_of_share));
    }

    /// Returns the cost of a datagram for the bucket, and its cost for a share.
    fn costs(&self, len: usize, per_second: NonZeroUsize) -> (Duration, Duration) {
        let cost = cost(len, per_second.get(), BURST);
        (cost, cost.saturating_mul(self.active.max(self.active_before).max(1)))
    }

    /// Begins the next window once the current one is over.
    fn begin_window(&mut self, now: Instant) {
        let passed = self.window.map(|since| now.saturating_duration_since(since));
        if passed.is_none_or(|passed| passed >= WINDOW) {
            let is_next = passed.is_some_and(|passed| passed < 2 * WINDOW);
            self.active_before = if is_next { self.active } else { 0 };
            self.active = 0;
            self.window = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    mod rate {
        use super::super::*;

        fn limit(datagrams: usize, bytes: usize, now: Instant) -> RateLimit {
            let number = |number| NonZeroUsize::new(number).unwrap();
            RateLimit::new(Rate { datagrams: number(datagrams), bytes: number(bytes) }, now)
        }

        fn passed(limit: &mut RateLimit, now: Instant, len: usize) -> usize {
            (0..1000).filter(|_| limit.admits(now, len)).count()
        }

        #[test]
        fn a_one_second_burst_passes_then_the_rate() {
            let now = Instant::now();
            let mut limit = limit(50, 1_000_000, now);
            assert_eq!(passed(&mut limit, now, 100), 50);
            assert_eq!(passed(&mut limit, now + Duration::from_millis(100), 100), 5);
            assert_eq!(passed(&mut limit, now + Duration::from_secs(60), 100), 50);
            assert_eq!(passed(&mut limit, now, 100), 0, "a clock that jumps back adds no tokens");
        }

        #[test]
        fn the_byte_rate_is_limited_like_the_datagram_rate() {
            let now = Instant::now();
            let mut limit = limit(1000, 10_000, now);
            assert_eq!(passed(&mut limit, now, 1000), 10);
            assert_eq!(passed(&mut limit, now + Duration::from_millis(500), 1000), 5);
        }

        #[test]
        fn a_datagram_above_the_rate_passes_a_full_bucket() {
            let now = Instant::now();
            let mut limit = limit(1000, 100, now);
            assert!(limit.admits(now, 1000));
            assert!(!limit.admits(now + Duration::from_secs(9), 1));
            assert!(limit.admits(now + Duration::from_secs(10), 1));
        }
    }

    mod total {
        use super::super::*;

        const TO_CLIENT: Direction = Direction::ToClient;
        const TO_SERVER: Direction = Direction::ToServer;

        /// Simulates clients that offer datagrams of 100 bytes for some seconds, each at its own rate per second.
        /// Returns the rates that passed after the first two seconds, in which bursts pass.
        fn passed(total: &TotalRate, start: Instant, offered: &[u32], seconds: u32) -> Vec<u32> {
            let clients = offered.iter().map(|_| Shares::default()).collect();
            passed_of(total, start, clients, offered, seconds)
        }

        /// Simulates flows with these shares, like `passed`.
        fn passed_of(
            total: &TotalRate,
            start: Instant,
            shares: Vec<Shares>,
            offered: &[u32],
            seconds: u32,
        ) -> Vec<u32> {
            let mut flows: Vec<(Shares, u32)> = shares.into_iter().map(|shares| (shares, 0)).collect();
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
        fn every_datagram_passes_without_a_total_rate_limit() {
            let (total, now) = (TotalRate::default(), Instant::now());
            let shares = Shares::default();
            assert!((0..10_000).all(|_| total.admits(now, TO_SERVER, 1_000_000, &shares)));
        }

        #[test]
        fn one_flow_may_use_the_whole_rate() {
            let rates = passed(&limited(100_000), Instant::now(), &[5_000], 12);
            assert!((990..=1_010).contains(&rates[0]), "{rates:?}");
        }

        #[test]
        fn busy_flows_leave_others_their_share() {
            // A share is 250 datagrams per second.
            let rates = passed(&limited(100_000), Instant::now(), &[20_000, 20_000, 200, 100], 12);
            assert!((199..=201).contains(&rates[2]) && (99..=101).contains(&rates[3]), "{rates:?}");
            let sum: u32 = rates.iter().sum();
            assert!((980..=1_020).contains(&sum), "{rates:?}");
            assert!(rates[0] >= 245 && rates[1] >= 245, "{rates:?}");
        }

        #[test]
        fn silent_flows_leave_their_share_for_others() {
            let (total, start) = (limited(100_000), Instant::now());
            let idle = Shares::default();
            assert!(total.admits(start, TO_CLIENT, 100, &idle));
            let rates = passed(&total, start, &[2_000], 12);
            assert!((990..=1_010).contains(&rates[0]), "{rates:?}");
        }

        #[test]
        fn the_total_rate_limits_directions_independently() {
            let (total, now) = (limited(1_000), Instant::now());
            let shares = Shares::default();
            let passed = |direction: Direction, shares: &Shares| {
                (0..100).filter(|_| total.admits(now, direction, 100, shares)).count()
            };
            assert_eq!(passed(TO_SERVER, &shares), 10);
            assert_eq!(passed(TO_CLIENT, &shares), 10);
            total.set(0);
            assert_eq!(passed(TO_SERVER, &shares), 100, "the limit was lifted");
        }

        #[test]
        fn an_address_with_many_flows_has_one_share() {
            let total = limited(100_000);
            let busy =
                |number: u16| total.shares_of(Ipv6Addr::new(0x2001, 0xDB8, 0, 1, 0, 0, 0, number).into());
            let lone =
                |number: u16| total.shares_of(Ipv6Addr::new(0x2001, 0xDB8, 0, number, 0, 0, 0, 1).into());
            let shares = (0..64).map(busy).chain([lone(2), lone(3)]).collect();
            let mut offered = [1_000; 66];
            (offered[64], offered[65]) = (300, 300);
            let rates = passed_of(&total, Instant::now(), shares, &offered, 12);
            // A third of 1,000 datagrams per second exceeds the demand of each of the two.
            assert!(rates[64] >= 299 && rates[65] >= 299, "{:?}", &rates[64..]);
            let busy: u32 = rates[..64].iter().sum();
            assert!((330..=420).contains(&busy), "{busy}");
        }

        #[test]
        fn a_share_is_kept_until_the_last_flow_of_its_client_ends() {
            let total = limited(1_000);
            let shares = |text: &str| total.shares_of(text.parse().unwrap());
            let first = shares("192.0.2.1");
            for (other, is_same) in [
                ("192.0.2.1", true),
                ("::ffff:192.0.2.1", true),
                ("192.0.2.2", false),
                ("2001:db8::1", false),
            ] {
                assert_eq!(Arc::ptr_eq(&first.0, &shares(other).0), is_same, "{other}");
            }
            let sixth = shares("2001:db8::1");
            assert!(
                Arc::ptr_eq(&sixth.0, &shares("2001:db8::ffff").0)
                    && !Arc::ptr_eq(&sixth.0, &shares("2001:db8:0:1::1").0)
            );
            let kept: Vec<Shares> = (0..10).map(|number| shares(&format!("198.51.100.{number}"))).collect();
            (0..10_000_u32).for_each(|number| drop(total.shares_of(IpAddr::from(number.to_be_bytes()))));
            let kept_in_all = lock(&total.0.clients).by_address.len();
            assert!(kept_in_all <= 2 * PRUNE_MIN, "{kept_in_all}");
            for (number, shares_of) in kept.iter().enumerate() {
                assert!(Arc::ptr_eq(&shares_of.0, &shares(&format!("198.51.100.{number}")).0));
            }
        }

        #[test]
        fn a_changed_total_rate_starts_with_a_full_bucket() {
            let (total, now) = (limited(1), Instant::now());
            let shares = Shares::default();
            assert!(total.admits(now, TO_CLIENT, 1_000, &shares), "a single datagram passes a full bucket");
            assert!(
                !total.admits(now + BURST, TO_CLIENT, 1_000, &shares),
                "the bucket stays overdrawn for long"
            );
            total.set(1);
            assert!(
                !total.admits(now + BURST, TO_CLIENT, 1_000, &shares),
                "setting the same rate does not refill the bucket"
            );
            total.set(100_000);
            assert!(total.admits(now + BURST, TO_CLIENT, 1_000, &shares));
            let passed = (0..1_000).filter(|_| total.admits(now + BURST, TO_CLIENT, 1_000, &shares)).count();
            assert_eq!(passed, 99, "the rest of a burst");
        }

        #[test]
        fn checking_the_total_rate_charges_no_bytes() {
            let (total, now) = (limited(1_000), Instant::now());
            let shares = Shares::default();
            assert!((0..1_000).all(|_| total.has_room(now, TO_SERVER, 100, &shares)));
            assert_eq!((0..100).filter(|_| total.admits(now, TO_SERVER, 100, &shares)).count(), 10);
        }
    }
}
