//! Limits per address and per prefix: the number of clients or connections, and the rate of new ones.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use ipnet::IpNet;
use tokio::sync::Notify;

use crate::config::AddressLimits;

/// The prefix length that counts as one IPv6 address. A host owns at least a /64 (RFC 4291 section 2.5.1), and can
/// change addresses inside it at will.
const ADDRESS_V6: u8 = 64;

/// The prefix length that counts as one customer. A provider commonly assigns at least an IPv6 /56 (RIPE-690 section
/// 4.2).
const PREFIX_V6: u8 = 56;

/// The longest IPv4 prefix that most networks accept in BGP.
const PREFIX_V4: u8 = 24;

/// Maximum number of addresses or prefixes with a recorded rate.
const KEYS_MAX: usize = 100_000;

/// The minimum time between two searches for expired entries.
const PRUNE_INTERVAL: Duration = Duration::from_secs(1);

/// The rate shared by all addresses beyond [`KEYS_MAX`], as a multiple of one network's rate.
const OVERFLOW_SHARES: u32 = 16;

/// The limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Excess {
    /// The total number of slots.
    Total,
    /// The number of clients or connections of one address.
    Address,
    /// The number of clients or connections of one prefix.
    Prefix,
    /// The rate of one address or prefix.
    Rate,
}

/// Addresses that the limits per address and prefix do not apply to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Exempt {
    pub(crate) networks: Vec<IpNet>,
    /// Trusted proxies, which are never exempt. A request with such an address comes from any client that the proxy
    /// does not name.
    pub(crate) proxies: Vec<IpNet>,
}

impl Exempt {
    fn contains(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        let is_in = |networks: &[IpNet]| networks.iter().any(|network| network.contains(&ip));
        is_in(&self.networks) && !is_in(&self.proxies)
    }
}

/// The limits of clients by address and prefix, and the current state of their rates.
#[derive(Debug)]
pub(crate) struct AddressLimiter {
    limits: AddressLimits,
    max: usize,
    exempt: Exempt,
    by_address: Option<Arc<KeyedRate>>,
    by_prefix: Option<Arc<KeyedRate>>,
    taken: Arc<Taken>,
}

/// The slots in use, and the notification of tasks that wait for a slot.
#[derive(Debug, Default)]
struct Taken {
    counts: Mutex<Counts>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Counts {
    total: usize,
    /// Slots that are claimed and will become free later.
    claimed: usize,
    by_network: HashMap<IpNet, u32>,
}

/// The share of the limits that one client or connection holds for its address and prefix, with its slot if it has one.
/// Dropping the share releases it.
#[derive(Debug)]
#[must_use]
pub(crate) struct Share {
    taken: Arc<Taken>,
    networks: [IpNet; 2],
    slot: Slot,
}

/// The slot state of a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    None,
    /// The share waits for the next free slot that was not claimed earlier.
    Claimed,
    Taken,
}

impl AddressLimiter {
    pub(crate) fn new(limits: AddressLimits, max: usize, exempt: Exempt) -> Self {
        Self {
            limits,
            max,
            exempt,
            by_address: KeyedRate::new(limits.rate_per_address, limits.burst_per_address).map(Arc::new),
            by_prefix: KeyedRate::new(limits.rate_per_prefix, limits.burst_per_prefix).map(Arc::new),
            taken: Arc::default(),
        }
    }

    /// Creates a limiter with other limits that keeps counting the same clients. Returns `None` if nothing changed. A
    /// rate with unchanged limits keeps its state.
    pub(crate) fn successor(&self, limits: AddressLimits, max: usize, exempt: Exempt) -> Option<Self> {
        if (self.limits, self.max, &self.exempt) == (limits, max, &exempt) {
            return None;
        }
        let mut next = Self { taken: Arc::clone(&self.taken), ..Self::new(limits, max, exempt) };
        let of_address = |limits: &AddressLimits| (limits.rate_per_address, limits.burst_per_address);
        if of_address(&self.limits) == of_address(&limits) {
            next.by_address.clone_from(&self.by_address);
        }
        let of_prefix = |limits: &AddressLimits| (limits.rate_per_prefix, limits.burst_per_prefix);
        if of_prefix(&self.limits) == of_prefix(&limits) {
            next.by_prefix.clone_from(&self.by_prefix);
        }
        Some(next)
    }

    /// Returns an error if the rate of the address or prefix is exceeded; otherwise counts a new client.
    pub(crate) fn check_rate(&self, now: Instant, ip: IpAddr) -> Result<(), Excess> {
        if self.exempt.contains(ip) {
            return Ok(());
        }
        let [address, prefix] = networks(ip);
        // A client refused by the rate of its address does not count toward its prefix.
        let admits =
            |rate: &Option<Arc<KeyedRate>>, key| rate.as_ref().is_none_or(|rate| rate.admits(now, key));
        if admits(&self.by_address, address) && admits(&self.by_prefix, prefix) {
            Ok(())
        } else {
            Err(Excess::Rate)
        }
    }

    /// Takes a share and a slot.
    pub(crate) fn take(&self, ip: IpAddr) -> Result<Share, Excess> {
        let mut share = self.take_share(ip)?;
        if self.take_slot(&mut share) { Ok(share) } else { Err(Excess::Total) }
    }

    /// Takes a share of the limits of an address and its prefix, without a slot.
    pub(crate) fn take_share(&self, ip: IpAddr) -> Result<Share, Excess> {
        let networks = networks(ip);
        let mut counts = self.taken.lock();
        if !self.exempt.contains(ip) {
            counts.check(networks[0], self.limits.per_address, Excess::Address)?;
            counts.check(networks[1], self.limits.per_prefix, Excess::Prefix)?;
        }
        for network in networks {
            *counts.by_network.entry(network).or_default() += 1;
        }
        Ok(Share { taken: Arc::clone(&self.taken), networks, slot: Slot::None })
    }

    /// Takes a slot for a share. Returns false if all slots are taken or claimed.
    pub(crate) fn take_slot(&self, share: &mut Share) -> bool {
        let mut counts = self.taken.lock();
        let claimed = match share.slot {
            Slot::Taken => return true,
            Slot::Claimed => 0,
            Slot::None => counts.claimed,
        };
        if counts.total.saturating_add(claimed) >= self.max {
            return false;
        }
        if share.slot == Slot::Claimed {
            counts.claimed = counts.claimed.saturating_sub(1);
        }
        counts.total += 1;
        share.slot = Slot::Taken;
        true
    }

    /// Claims the slot of a flow that is about to end, so that no other share takes it.
    pub(crate) fn claim_slot(&self, share: &mut Share) {
        if share.slot == Slot::None {
            self.taken.lock().claimed += 1;
            share.slot = Slot::Claimed;
        }
    }

    /// Returns the number of slots in use, and the number of networks with a share.
    pub(super) fn len(&self) -> (usize, usize) {
        let counts = self.taken.lock();
        (counts.total, counts.by_network.len())
    }

    /// Completes when a slot becomes free.
    pub(crate) async fn freed(&self) {
        self.taken.freed.notified().await;
    }
}

impl Counts {
    fn check(&self, network: IpNet, max: u32, excess: Excess) -> Result<(), Excess> {
        let count = self.by_network.get(&network).copied().unwrap_or(0);
        if max != 0 && count >= max { Err(excess) } else { Ok(()) }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut counts = self.taken.lock();
        match self.slot {
            Slot::None => {}
            Slot::Claimed => counts.claimed = counts.claimed.saturating_sub(1),
            Slot::Taken => counts.total = counts.total.saturating_sub(1),
        }
        for network in self.networks {
            if let Some(count) = counts.by_network.get_mut(&network) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    counts.by_network.remove(&network);
                }
            }
        }
        drop(counts);
        if self.slot != Slot::None {
            self.taken.freed.notify_one();
        }
    }
}

impl Taken {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the networks with limits for an address: the network that counts as one address, and the prefix.
fn networks(ip: IpAddr) -> [IpNet; 2] {
    let ip = ip.to_canonical();
    let lengths = if ip.is_ipv4() { [32, PREFIX_V4] } else { [ADDRESS_V6, PREFIX_V6] };
    // The prefix lengths are valid for both families.
    lengths.map(|length| IpNet::new(ip, length).map_or_else(|_| IpNet::from(ip), |net| net.trunc()))
}

/// A clock for the rates that is set explicitly and never reads the system's time.
#[derive(Debug, Clone, Default)]
struct ManualTime(Arc<Progress>);

#[derive(Debug, Default)]
struct Progress {
    start: OnceLock<Instant>,
    /// Nanoseconds since the start.
    passed: AtomicU64,
}

impl ManualTime {
    fn set(&self, now: Instant) {
        let passed = now.saturating_duration_since(*self.0.start.get_or_init(|| now));
        // A `u64` of nanoseconds lasts for 584 years.
        let passed = u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX);
        self.0.passed.fetch_max(passed, Ordering::Relaxed);
    }
}

impl Clock for ManualTime {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        Nanos::from(self.0.passed.load(Ordering::Relaxed))
    }
}

type RateOf<K, S> = RateLimiter<K, S, ManualTime, NoOpMiddleware<Nanos>>;

/// A rate per network, in bounded memory.
#[derive(Debug)]
struct KeyedRate {
    time: ManualTime,
    keyed: RateOf<IpNet, DefaultKeyedStateStore<IpNet>>,
    /// The rate for networks beyond [`KEYS_MAX`].
    overflow: RateOf<NotKeyed, InMemoryState>,
    pruned: Mutex<Option<Instant>>,
}

impl KeyedRate {
    /// Creates a rate. Returns `None` if `per_minute` is 0, which means no limit.
    fn new(per_minute: u32, burst: u32) -> Option<Self> {
        let quota = |shares: u32| {
            let rate = NonZeroU32::new(per_minute.saturating_mul(shares))?;
            Some(Quota::per_minute(rate).allow_burst(NonZeroU32::new(burst.saturating_mul(shares))?))
        };
        let time = ManualTime::default();
        Some(Self {
            keyed: RateLimiter::dashmap_with_clock(quota(1)?, time.clone()),
            overflow: RateLimiter::direct_with_clock(quota(OVERFLOW_SHARES)?, time.clone()),
            time,
            pruned: Mutex::default(),
        })
    }

    fn admits(&self, now: Instant, key: IpNet) -> bool {
        self.time.set(now);
        if self.keyed.len() >= KEYS_MAX && !self.prune(now) {
            return self.overflow.check().is_ok();
        }
        self.keyed.check_key(&key).is_ok()
    }

    /// Removes networks whose burst is completely replenished. Returns true if another network can be added.
    fn prune(&self, now: Instant) -> bool {
        let mut pruned = self.pruned.lock().unwrap_or_else(PoisonError::into_inner);
        if pruned.is_none_or(|last| now >= last + PRUNE_INTERVAL) {
            *pruned = Some(now);
            self.keyed.retain_recent();
        }
        self.keyed.len() < KEYS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: AddressLimits = AddressLimits {
        per_address: 2,
        per_prefix: 3,
        // A rate so low that a test observes only the burst.
        rate_per_address: 1,
        burst_per_address: 3,
        rate_per_prefix: 1,
        burst_per_prefix: 5,
    };

    fn limiter() -> AddressLimiter {
        let networks = vec!["127.0.0.0/8".parse().unwrap()];
        AddressLimiter::new(LIMITS, 6, Exempt { networks, proxies: vec!["127.0.0.9/32".parse().unwrap()] })
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_and_prefixes_are_limited_in_number() {
        let limiter = limiter();
        let take = |text: &str| limiter.take(ip(text));
        let one = take("192.0.2.1").unwrap();
        let _two = take("::ffff:192.0.2.1").unwrap();
        assert_eq!(take("192.0.2.1").unwrap_err(), Excess::Address);
        let _three = take("192.0.2.2").unwrap();
        assert_eq!(take("192.0.2.3").unwrap_err(), Excess::Prefix);
        let _other = take("192.0.3.1").unwrap();
        drop(one);
        let _again = take("192.0.2.1").unwrap();
        let _local = [take("127.0.0.1").unwrap(), take("127.0.0.1").unwrap()];
        assert_eq!(take("127.0.0.1").unwrap_err(), Excess::Total);
        assert_eq!(take("192.0.3.1").unwrap_err(), Excess::Total);
        assert_eq!(
            take("192.0.2.1").unwrap_err(),
            Excess::Address,
            "the limit per address is checked before the slots"
        );
    }

    #[test]
    fn a_share_without_a_slot_counts_only_for_its_address() {
        let limiter = limiter();
        let mut waiting = [(); 2].map(|()| limiter.take_share(ip("192.0.2.1")).unwrap());
        assert_eq!(limiter.take_share(ip("192.0.2.1")).unwrap_err(), Excess::Address);
        let others = [(); 6].map(|()| limiter.take(ip("127.0.0.1")).unwrap());
        assert!(!limiter.take_slot(&mut waiting[0]));
        drop(others);
        assert!(limiter.take_slot(&mut waiting[0]) && limiter.take_slot(&mut waiting[0]));
        assert_eq!(limiter.taken.lock().total, 1);
        drop(waiting);
        let counts = limiter.taken.lock();
        assert_eq!((counts.total, counts.by_network.len()), (0, 0));
    }

    #[test]
    fn a_claimed_slot_is_reserved_for_its_share() {
        let limiter = limiter();
        let mut taken: Vec<_> = (0..6).map(|_| limiter.take(ip("127.0.0.1")).unwrap()).collect();
        let mut one = limiter.take_share(ip("192.0.2.1")).unwrap();
        limiter.claim_slot(&mut one);
        limiter.claim_slot(&mut one);
        assert!(!limiter.take_slot(&mut one), "no slot is free yet");
        taken.pop();
        assert_eq!(limiter.take(ip("192.0.3.1")).unwrap_err(), Excess::Total);
        assert!(limiter.take_slot(&mut one));
        let counted = |limiter: &AddressLimiter| {
            let counts = limiter.taken.lock();
            (counts.total, counts.claimed)
        };
        assert_eq!(counted(&limiter), (6, 0));
        // A dropped claim leaves the slot to other shares.
        let mut two = limiter.take_share(ip("192.0.2.1")).unwrap();
        limiter.claim_slot(&mut two);
        taken.pop();
        assert_eq!(limiter.take(ip("192.0.3.1")).unwrap_err(), Excess::Total);
        drop(two);
        taken.push(limiter.take(ip("192.0.3.1")).unwrap());
        drop((taken, one));
        assert_eq!(counted(&limiter), (0, 0));
    }

    #[test]
    fn a_trusted_proxy_is_not_exempt_from_address_limits() {
        let (limiter, now) = (limiter(), Instant::now());
        let _connected = [(); 2].map(|()| limiter.take(ip("127.0.0.9")).unwrap());
        assert_eq!(limiter.take(ip("127.0.0.9")).unwrap_err(), Excess::Address);
        let admitted = (0..10).filter(|_| limiter.check_rate(now, ip("127.0.0.9")).is_ok());
        assert_eq!(admitted.count(), 3);
    }

    #[test]
    fn ipv6_addresses_in_one_64_share_the_limit_of_an_address() {
        let limiter = limiter();
        let take = |text: &str| limiter.take(ip(text));
        let _connected = [take("2001:db8::1").unwrap(), take("2001:db8::2").unwrap()];
        assert_eq!(take("2001:db8::3").unwrap_err(), Excess::Address);
        let _third = take("2001:db8:0:1::1").unwrap();
        assert_eq!(take("2001:db8:0:2::1").unwrap_err(), Excess::Prefix);
        let _other = take("2001:db8:0:100::1").unwrap();
    }

    #[test]
    fn departed_clients_leave_no_limiter_state() {
        let limiter = limiter();
        for last in 0..=255 {
            drop(limiter.take(ip(&format!("192.0.2.{last}"))).unwrap());
        }
        let counts = limiter.taken.lock();
        assert_eq!((counts.total, counts.by_network.len()), (0, 0));
    }

    #[test]
    fn a_flood_from_one_prefix_does_not_affect_others() {
        let (limiter, now) = (limiter(), Instant::now());
        let flood = (0..=255).filter(|last| limiter.check_rate(now, ip(&format!("192.0.2.{last}"))).is_ok());
        assert_eq!(flood.count(), 5);
        for other in ["192.0.3.1", "198.51.100.1", "2001:db8::1"] {
            assert_eq!(limiter.check_rate(now, ip(other)), Ok(()), "{other}");
        }
    }

    #[test]
    fn a_flood_from_one_address_does_not_affect_its_prefix() {
        let (limiter, now) = (limiter(), Instant::now());
        let flood = (0..100).filter(|_| limiter.check_rate(now, ip("192.0.2.1")).is_ok());
        assert_eq!(flood.count(), 3);
        assert_eq!(limiter.check_rate(now, ip("192.0.2.2")), Ok(()));
        assert!((0..100).all(|_| limiter.check_rate(now, ip("127.0.0.1")).is_ok()), "exempt");
    }

    #[test]
    fn a_rate_recovers_over_time() {
        let (limiter, start) = (limiter(), Instant::now());
        let admitted = |seconds| {
            let now = start + Duration::from_secs(seconds);
            (0..100).filter(|_| limiter.check_rate(now, ip("192.0.2.1")).is_ok()).count()
        };
        assert_eq!([0, 59, 60, 180, 0, 3_600].map(admitted), [3, 0, 1, 2, 0, 3]);
    }

    #[test]
    fn networks_with_a_full_burst_are_evicted_for_new_networks() {
        let (rate, start) = (KeyedRate::new(1, 1).unwrap(), Instant::now());
        let network = |number: u32| IpNet::from(IpAddr::from(number.to_be_bytes()));
        let keys = u32::try_from(KEYS_MAX).unwrap();
        assert!((0..keys).all(|number| rate.admits(start, network(number))));
        // One interval after the burst is complete again.
        let later = start + Duration::from_secs(121);
        assert!(rate.admits(later, network(keys)) && !rate.admits(later, network(keys)));
        assert_eq!(rate.keyed.len(), 1);
    }

    #[test]
    fn limits_of_zero_mean_unlimited() {
        let limits = AddressLimits {
            per_address: 0,
            per_prefix: 0,
            rate_per_address: 0,
            rate_per_prefix: 0,
            ..LIMITS
        };
        let limiter = AddressLimiter::new(limits, 1000, Exempt::default());
        let shares: Vec<_> = (0..1000).map(|_| limiter.take(ip("192.0.2.1")).unwrap()).collect();
        assert_eq!(shares.len(), 1000);
        let now = Instant::now();
        assert!((0..1000).all(|_| limiter.check_rate(now, ip("192.0.2.1")).is_ok()));
    }

    #[test]
    fn a_successor_limiter_keeps_counting_clients() {
        let limiter = limiter();
        let connected = limiter.take(ip("192.0.2.1")).unwrap();
        assert!(limiter.successor(LIMITS, 6, limiter.exempt.clone()).is_none(), "nothing changed");
        let limits = AddressLimits { per_address: 1, ..LIMITS };
        let next = limiter.successor(limits, 6, Exempt::default()).unwrap();
        assert_eq!(next.take(ip("192.0.2.1")).unwrap_err(), Excess::Address);
        drop(connected);
        assert!(next.take(ip("192.0.2.1")).is_ok());
    }

    #[test]
    fn an_unchanged_rate_keeps_its_state_in_a_successor_limiter() {
        let (limiter, now) = (limiter(), Instant::now());
        let admitted = |limiter: &AddressLimiter, last: u8| {
            let client = ip(&format!("192.0.2.{last}"));
            (0..10).filter(|_| limiter.check_rate(now, client).is_ok()).count()
        };
        assert_eq!(admitted(&limiter, 1), 3);
        let more_clients = limiter.successor(LIMITS, 7, limiter.exempt.clone()).unwrap();
        assert_eq!(admitted(&more_clients, 1), 0);
        let faster = AddressLimits { burst_per_address: 4, ..LIMITS };
        let faster = more_clients.successor(faster, 7, limiter.exempt.clone()).unwrap();
        assert_eq!(admitted(&faster, 1), 2, "the prefix admits five");
        let all_new = AddressLimits { burst_per_address: 4, burst_per_prefix: 6, ..LIMITS };
        assert_eq!(admitted(&faster.successor(all_new, 7, Exempt::default()).unwrap(), 2), 4);
    }

    #[test]
    fn memory_is_bounded_for_any_number_of_networks() {
        let (rate, now) = (KeyedRate::new(1, 1).unwrap(), Instant::now());
        let network = |number: u32| IpNet::from(IpAddr::from(number.to_be_bytes()));
        let more = u32::try_from(KEYS_MAX).unwrap() + 1000;
        let admitted = (0..more).filter(|&number| rate.admits(now, network(number))).count();
        assert!(rate.keyed.len() <= KEYS_MAX);
        assert!(admitted < KEYS_MAX + 100, "{admitted}");
        assert!(admitted > KEYS_MAX, "networks beyond the maximum share the overflow rate: {admitted}");
    }
}
