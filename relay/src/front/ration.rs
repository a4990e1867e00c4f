//! Limits that prevent one client from exhausting the front:
//!
//! - the rate of replies to unvalidated addresses, in fixed memory, because an attacker can forge many addresses;
//! - the budget for handshakes, which a new flow does not renew;
//! - the number of half-open flows;
//! - the share of slots per site, because one party may own all addresses of a site.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use super::table::FlowId;
use crate::protocol::Budget;
use crate::time::{Bucket, cost};

/// The number of groups of networks, each with its own rate. Networks are assigned to groups at random.
const GROUPS: usize = 4_096;

/// Limits in replies per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rates {
    /// The limit for all networks together.
    pub(crate) all: u32,
    /// The limit per network: 24 bits of IPv4, or 64 bits of IPv6 unless the caller masks the address further.
    pub(crate) network: u32,
}

/// The burst: the replies of this time may be sent together.
const BURST: Duration = Duration::from_secs(1);

/// Limits replies to unvalidated addresses. Memory is fixed, so that forged sources cannot exhaust it.
#[derive(Debug)]
pub(crate) struct Rations {
    rates: Rates,
    all: Bucket,
    groups: Box<[Bucket]>,
    hasher: RandomState,
}

impl Rations {
    pub(crate) fn new(rates: Rates) -> Self {
        Self {
            rates,
            all: Bucket::default(),
            groups: vec![Bucket::default(); GROUPS].into(),
            hasher: RandomState::new(),
        }
    }

    /// Returns true if another reply to `to` is allowed, and counts it.
    pub(crate) fn admits(&mut self, now: Instant, to: IpAddr) -> bool {
        let place = self.hasher.hash_one(network(to)) % GROUPS as u64;
        let group = &mut self.groups[place as usize];
        let each = |rate: u32| cost(1, rate as usize, BURST);
        group.take(now, each(self.rates.network), BURST) && self.all.take(now, each(self.rates.all), BURST)
    }
}

/// Returns the network of an address. A dual-stack socket embeds all IPv4 addresses in a single IPv6 /64, so they are
/// unmapped first.
const fn network(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(ip) => (ip.to_bits() >> 8) as u128,
        IpAddr::V6(ip) => ip.to_bits() & !(u64::MAX as u128),
    }
}

/// The maximum number of stored budgets. To displace an entry, an attacker needs as many admitted clients within the
/// refill time of a budget.
const CLIENTS_MAX: usize = 8_192;

/// The handshake budgets of clients after the end of their flows, so that a new flow does not renew a budget. A client
/// is an address with its port, as for flows.
#[derive(Debug, Default)]
pub(super) struct SpentBudgets {
    by_client: HashMap<SocketAddr, Budget>,
    /// The clients in the order in which they are removed.
    order: VecDeque<SocketAddr>,
}

impl SpentBudgets {
    /// Stores the budget of a client after the end of its flow. If there are too many clients, the oldest is removed.
    pub(super) fn remember(&mut self, client: SocketAddr, budget: Budget) {
        if self.by_client.insert(client, budget).is_some() {
            return;
        }
        self.order.push_back(client);
        if self.order.len() > CLIENTS_MAX
            && let Some(forgotten) = self.order.pop_front()
        {
            self.by_client.remove(&forgotten);
        }
    }

    /// Returns the stored budget of a client, if there is one.
    pub(super) fn of(&self, client: SocketAddr) -> Option<Budget> {
        self.by_client.get(&client).copied()
    }

    /// Removes clients with full budgets.
    pub(super) fn forget_full(&mut self, now: Instant) {
        let by_client = &mut self.by_client;
        by_client.retain(|_, budget| !budget.is_full(now));
        self.order.retain(|client| by_client.contains_key(client));
    }
}

/// The flows that the server has not accepted yet, the oldest first. Accepted and ended flows are removed lazily.
#[derive(Debug, Default)]
pub(super) struct HalfOpen(VecDeque<FlowId>);

impl HalfOpen {
    pub(super) fn push(&mut self, id: FlowId) {
        self.0.push_back(id);
    }

    /// Removes the oldest flow that is still half open.
    pub(super) fn pop(&mut self, mut is_half_open: impl FnMut(FlowId) -> bool) -> Option<FlowId> {
        while let Some(id) = self.0.pop_front() {
            if is_half_open(id) {
                return Some(id);
            }
        }
        None
    }

    /// Removes flows that are no longer half-open.
    pub(super) fn retain(&mut self, mut is_half_open: impl FnMut(FlowId) -> bool) {
        self.0.retain(|id| is_half_open(*id));
    }
}

/// The divisor of the free slots that one site may take. `n` greedy sites therefore leave a share of `4 / (4 + n)` to
/// others, without having to be identified.
pub(crate) const FREE_SHARE: usize = 4;

/// The number of slots by address or site.
#[derive(Debug, Default)]
pub(crate) struct Places(HashMap<IpAddr, usize>);

impl Places {
    /// Returns true if `of`, with a limit of `most` slots, may take another slot. The first slot is always granted.
    pub(crate) fn admits(&self, of: IpAddr, most: usize) -> bool {
        self.0.get(&of).is_none_or(|taken| *taken < most)
    }

    pub(crate) fn take(&mut self, of: IpAddr) {
        *self.0.entry(of).or_default() += 1;
    }

    pub(crate) fn release(&mut self, of: IpAddr) {
        if let Some(taken) = self.0.get_mut(&of) {
            *taken -= 1;
            if *taken == 0 {
                self.0.remove(&of);
            }
        }
    }

    /// Returns the number of slots taken.
    #[cfg(test)]
    pub(crate) fn taken(&self) -> usize {
        self.0.values().sum()
    }
}

/// Returns the site of an address, represented by its first address: an IPv4 /24, or an IPv6 /48, which providers
/// assign to a customer.
pub(crate) fn site(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V4(ip) => Ipv4Addr::from_bits(ip.to_bits() & !0xFF).into(),
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & !(u128::MAX >> 48)).into(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::{Duration, Instant};

    use super::super::table::FlowTable;
    use super::*;
    use crate::protocol::Handshake;

    #[test]
    fn rations_bound_each_network_and_the_total() {
        let start = Instant::now();
        let mut rations = Rations::new(Rates { network: 5, all: 12 });
        let mut count = |at: u64, network: u8| {
            let now = start + Duration::from_millis(at);
            let to = |host| IpAddr::from([10, network, 0, host]);
            (0..100).filter(|host| rations.admits(now, to(*host))).count()
        };
        assert_eq!(count(0, 1), 5);
        assert_eq!(count(0, 1), 0);
        assert_eq!((2..50).map(|network| count(0, network)).sum::<usize>(), 7);
        assert_eq!(count(200, 1), 1);
        assert_eq!(count(100, 1), 0);
        assert_eq!(count(900_000, 1), 5);
    }

    #[test]
    fn a_rate_of_zero_sends_no_answers() {
        let start = Instant::now();
        let mut rations = Rations::new(Rates { network: 5, all: 0 });
        assert!(!rations.admits(start + Duration::from_secs(9), [127, 0, 0, 1].into()));
    }

    fn client(number: usize) -> SocketAddr {
        let number = u32::try_from(number).unwrap();
        (number.to_be_bytes(), 5).into()
    }

    /// Returns an exhausted budget.
    fn empty(now: Instant) -> Budget {
        let mut budget = Budget::new(&Handshake::default(), now);
        while budget.take(now, 1) {}
        budget
    }

    #[test]
    fn a_spent_handshake_budget_is_kept_until_it_is_refilled() {
        let start = Instant::now();
        let full = start + Handshake::default().refill;
        let mut spent = SpentBudgets::default();
        spent.remember(client(1), empty(start));
        assert!(spent.of(client(2)).is_none());
        spent.forget_full(full - Duration::from_millis(1));
        assert!(!spent.of(client(1)).unwrap().take(start, 1));
        spent.forget_full(full);
        assert!(spent.of(client(1)).is_none() && spent.order.is_empty());
    }

    #[test]
    fn memory_is_bounded_for_any_number_of_clients() {
        let start = Instant::now();
        let mut spent = SpentBudgets::default();
        for number in 0..2 * CLIENTS_MAX {
            spent.remember(client(number), empty(start));
            spent.remember(client(number), empty(start));
        }
        assert_eq!((spent.by_client.len(), spent.order.len()), (CLIENTS_MAX, CLIENTS_MAX));
        assert!(spent.of(client(CLIENTS_MAX - 1)).is_none() && spent.of(client(CLIENTS_MAX)).is_some());
    }

    #[test]
    fn accepted_flows_are_skipped_and_the_oldest_comes_first() {
        let mut table = FlowTable::default();
        let mut half_open = HalfOpen::default();
        let ids = [1, 2, 3].map(|port| {
            let client: SocketAddr = ([192, 0, 2, 1], port).into();
            let id = table.insert(client, Instant::now(), ()).unwrap();
            half_open.push(id);
            id
        });
        assert_eq!(half_open.pop(|id| id != ids[0]), Some(ids[1]));
        half_open.retain(|_| false);
        assert_eq!(half_open.pop(|_| true), None);
    }

    #[test]
    fn the_first_slot_is_always_granted_and_others_up_to_the_limit() {
        let (mut places, ip) = (Places::default(), IpAddr::from([192, 0, 2, 1]));
        assert!(places.admits(ip, 0));
        places.take(ip);
        assert!(!places.admits(ip, 0) && !places.admits(ip, 1) && places.admits(ip, 2));
        places.take(ip);
        assert!(!places.admits(ip, 2));
        (0..3).for_each(|_| places.release(ip));
        assert!(places.admits(ip, 0) && places.0.is_empty());
    }

    #[test]
    fn a_site_is_an_ipv4_24_or_an_ipv6_48() {
        let site = |ip: &str| site(ip.parse().unwrap()).to_string();
        assert_eq!(["192.0.2.9", "::ffff:192.0.2.200"].map(site), ["192.0.2.0"; 2]);
        assert_eq!(site("2001:db8:1:2::3"), "2001:db8:1::");
    }
}
