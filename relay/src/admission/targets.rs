//! The addresses of targets, resolved at startup and periodically afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use tokio::time::timeout;
use tracing::warn;

use crate::addresses::{self, AddressClass, AddressError, HostPort, TargetName, canonical, classify};
use crate::config::{Config, ConfigError, SPARE_ADDRESSES_MAX, Target, TargetSource};

/// A target with its resolved addresses. A flow keeps the address with which it was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResolvedTarget {
    pub(crate) name: TargetName,
    pub(crate) settings: Target,
    pub(crate) address: SocketAddr,
    /// All addresses in order of preference: the current address for new flows, and spare addresses for when it is
    /// down.
    pub(crate) addresses: Vec<SocketAddr>,
    /// The last known addresses of each host, in the order of the hosts. If a host cannot be resolved, its entry stays
    /// unchanged.
    found: Vec<Vec<SocketAddr>>,
}

impl ResolvedTarget {
    /// Creates a target with one address.
    pub(crate) fn new(name: TargetName, settings: Target, address: SocketAddr) -> Self {
        Self { name, settings, address, addresses: vec![address], found: vec![vec![address]] }
    }

    /// Returns the first matching address, and the key in the target's table that configures it.
    pub(crate) fn find_address(
        &self,
        is_it: impl Fn(SocketAddr) -> bool,
    ) -> Option<(SocketAddr, &'static str)> {
        let address = self.addresses.iter().copied().find(|address| is_it(*address))?;
        let is_first = self.found.first().is_some_and(|found| found.contains(&address));
        Some((address, if is_first { "address" } else { "spare_addresses" }))
    }

    /// Returns the last known addresses of a host, or none if the target does not have the host.
    fn last_of(&self, host: &HostPort) -> &[SocketAddr] {
        let known = hosts(&self.settings).zip(&self.found).find(|(known, _)| *known == host);
        known.map_or(&[], |(_, found)| found)
    }
}

/// The maximum number of addresses of a target.
const ADDRESSES_MAX: usize = SPARE_ADDRESSES_MAX + 1;

/// All targets by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Targets(BTreeMap<TargetName, Arc<ResolvedTarget>>);

/// The timeout of a name lookup.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum number of concurrent lookups; each occupies a thread.
const LOOKUPS_MAX: usize = 16;

/// A target, and the results of a new lookup of its host names.
#[derive(Debug)]
pub(crate) struct LookedUp {
    before: Arc<ResolvedTarget>,
    found: Vec<Vec<SocketAddr>>,
}

impl LookedUp {
    /// Creates the result of a lookup. A host without an allowed address keeps its last addresses. Returns `None` if
    /// such a host has no last address that is still allowed.
    fn new(before: Arc<ResolvedTarget>, found: Vec<Found>) -> Option<Self> {
        match found_of(&before.name, &before.settings, found, Some(&before), |_| true) {
            Ok(found) => Some(Self { before, found }),
            Err(error) => {
                warn!(kept = %before.address, "{error}");
                None
            }
        }
    }
}

/// The lookup result of a name.
type Found = io::Result<Vec<SocketAddr>>;

impl Targets {
    /// Resolves the targets of a configuration. A target that also existed in `before` keeps its address if its name
    /// still resolves to it, or cannot be resolved.
    pub(crate) async fn resolve(config: &Config, before: &Self) -> Result<Self, ConfigError> {
        let mut targets = Self::default();
        let found = look_up_all(config.targets.values().flat_map(hosts)).await;
        let mut found = found.into_iter();
        for (name, settings) in &config.targets {
            let found = found.by_ref().take(hosts(settings).count()).collect();
            let known = before.0.get(name).map(|known| &**known);
            // A host that cannot be resolved keeps its last addresses. A forbidden address is an error in the
            // configuration.
            let is_away = |error: &ConfigError| matches!(error, ConfigError::Unresolvable { .. });
            let found = found_of(name, settings, found, known, is_away)?;
            targets.insert(placed(name, settings, found, known)?);
        }
        Ok(targets)
    }

    /// Looks up the names of the targets again.
    pub(crate) async fn look_up_again(&self) -> Vec<LookedUp> {
        let named: Vec<_> = self
            .0
            .values()
            .filter(|target| !hosts(&target.settings).all(HostPort::is_numeric))
            .cloned()
            .collect();
        let found = look_up_all(named.iter().flat_map(|target| hosts(&target.settings))).await;
        let mut found = found.into_iter();
        let of_target = |target: Arc<ResolvedTarget>| {
            let found = found.by_ref().take(hosts(&target.settings).count()).collect();
            LookedUp::new(target, found)
        };
        named.into_iter().filter_map(of_target).collect()
    }

    /// Returns the targets with the addresses that were looked up. A target that a reload has resolved during the
    /// look-up keeps the result of the reload.
    pub(crate) fn updated(&self, looked_up: &[LookedUp]) -> Self {
        let mut targets = self.clone();
        for LookedUp { before, found } in looked_up {
            let known = self.0.get(&before.name);
            let known =
                known.filter(|known| known.settings == before.settings && known.found == before.found);
            let target =
                known.and_then(|known| placed(&known.name, &known.settings, found.clone(), Some(known)).ok());
            if let Some(target) = target {
                targets.insert(target);
            }
        }
        targets
    }

    /// Returns the targets, switched to another address where the current one is down and another is up.
    pub(crate) fn failed_over(&self, is_up: impl Fn(&TargetName, SocketAddr) -> bool) -> Self {
        let mut targets = self.clone();
        for target in self.0.values().filter(|target| target.addresses.len() > 1) {
            if is_up(&target.name, target.address) {
                continue;
            }
            let next = target.addresses.iter().find(|address| is_up(&target.name, **address));
            if let Some(&address) = next {
                targets.insert(ResolvedTarget { address, ..ResolvedTarget::clone(target) });
            }
        }
        targets
    }

    /// Merges two sets of targets. For equal names, the target of `others` is used.
    pub(super) fn overridden_by(&self, others: &Self) -> Self {
        let mut all = self.clone();
        all.0.extend(others.0.iter().map(|(name, target)| (name.clone(), Arc::clone(target))));
        all
    }

    /// Returns all targets, ordered by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<ResolvedTarget>> {
        self.0.values()
    }

    pub(crate) fn insert(&mut self, target: ResolvedTarget) {
        self.0.insert(target.name.clone(), Arc::new(target));
    }

    /// Returns the target with the requested name.
    pub(crate) fn find(&self, requested: &str) -> Option<&Arc<ResolvedTarget>> {
        // An invalid name cannot be configured.
        self.0.get(&requested.parse().ok()?)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &TargetName> {
        self.0.keys()
    }
}

/// Resolves several names. The results are in the order of the names.
async fn look_up_all<'a>(addresses: impl Iterator<Item = &'a HostPort>) -> Vec<Found> {
    let lookups: Vec<_> = addresses.map(look_up).collect();
    stream::iter(lookups).buffered(LOOKUPS_MAX).collect().await
}

/// Resolves a name with a timeout.
pub(super) async fn look_up(address: &HostPort) -> Found {
    in_time(async {
        Ok(match rakwire::split_zoned_host(address.as_str()) {
            Some(host) => tokio::net::lookup_host(host).await?.collect(),
            None => tokio::net::lookup_host(address.as_str()).await?.collect(),
        })
    })
    .await
}

async fn in_time(lookup: impl Future<Output = Found>) -> Found {
    let timed_out = |_| io::Error::new(io::ErrorKind::TimedOut, "the name lookup timed out");
    timeout(LOOKUP_TIMEOUT, lookup).await.map_err(timed_out)?
}

/// Returns the configured hosts of a target.
fn hosts(target: &Target) -> impl Iterator<Item = &HostPort> {
    std::iter::once(&target.address).chain(&target.spare_addresses)
}

/// Returns the addresses of the target's hosts, in their order. If the lookup of a host fails with an error for which
/// `keeps` returns true, the host keeps its last addresses that are still allowed.
fn found_of(
    name: &TargetName,
    settings: &Target,
    found: Vec<Found>,
    known: Option<&ResolvedTarget>,
    keeps: impl Fn(&ConfigError) -> bool,
) -> Result<Vec<Vec<SocketAddr>>, ConfigError> {
    let keys = std::iter::once("address").chain(std::iter::repeat("spare_addresses"));
    let of_host = |((host, key), found): ((&HostPort, &'static str), Found)| {
        let (owned, address) = (name.clone(), host.clone());
        let error = match found.map(|found| usable(settings, host, &found)) {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(reason)) => ConfigError::UnusableAddress { name: owned, address, key, reason },
            Err(source) => ConfigError::Unresolvable { name: owned, address, key, source },
        };
        let last = known.filter(|_| keeps(&error)).map_or(&[][..], |known| known.last_of(host));
        let kept: Vec<_> =
            last.iter().copied().filter(|address| is_usable(*address, settings, host)).collect();
        if kept.is_empty() {
            return Err(error);
        }
        let addresses: Vec<String> = kept.iter().map(SocketAddr::to_string).collect();
        warn!(target_name = %name, kept = addresses.join(", "), "{error}");
        Ok(kept)
    };
    hosts(settings).zip(keys).zip(found).map(of_host).collect()
}

/// Creates a target with the addresses of its hosts.
fn placed(
    name: &TargetName,
    settings: &Target,
    by_host: Vec<Vec<SocketAddr>>,
    known: Option<&ResolvedTarget>,
) -> Result<ResolvedTarget, ConfigError> {
    let is_same = |known: &&ResolvedTarget| hosts(&known.settings).eq(hosts(settings));
    let in_use = known.filter(is_same).map(|known| known.address);
    let addresses = chosen(&by_host, in_use);
    let in_use = in_use.filter(|known| addresses.contains(known));
    let none = || ConfigError::UnusableAddress {
        name: name.clone(),
        address: settings.address.clone(),
        key: "address",
        reason: AddressError::NotFound,
    };
    let address = in_use.or_else(|| addresses.first().copied()).ok_or_else(none)?;
    Ok(ResolvedTarget { name: name.clone(), settings: settings.clone(), address, addresses, found: by_host })
}

/// Selects the addresses of a target: some of each host, and the address in use.
fn chosen(by_host: &[Vec<SocketAddr>], in_use: Option<SocketAddr>) -> Vec<SocketAddr> {
    let (mut seen, mut chosen) = (BTreeSet::new(), Vec::new());
    for (found, others) in by_host.iter().zip((0..by_host.len()).rev()) {
        let mut new: Vec<_> = found.iter().copied().filter(|address| seen.insert(*address)).collect();
        let room = ADDRESSES_MAX.saturating_sub(chosen.len() + others);
        if let Some(position) = new.iter().position(|address| Some(*address) == in_use)
            && position >= room
            && room > 0
        {
            new.swap(position, room - 1);
        }
        new.truncate(room);
        chosen.append(&mut new);
    }
    chosen
}

/// Returns the most private class of addresses that this host may have.
fn allowed(target: &Target, host: &HostPort) -> AddressClass {
    if target.allow_private || host.is_numeric() || host.is_localhost() {
        AddressClass::Private
    } else {
        AddressClass::Public
    }
}

fn is_usable(address: SocketAddr, target: &Target, host: &HostPort) -> bool {
    let is_allowed = classify(address.ip()) <= allowed(target, host) || is_neighbour(address, host);
    is_allowed && has_source(address, target)
}

/// Returns true for a link-local address that is configured with its interface. A DNS name controlled by others
/// therefore cannot resolve to a link-local address.
fn is_neighbour(address: SocketAddr, host: &HostPort) -> bool {
    rakwire::split_zoned_host(host.as_str()).is_some() && addresses::is_neighbour(address.ip())
}

/// Returns true if datagrams to this address can be sent from the source address that the target requires.
fn has_source(address: SocketAddr, target: &Target) -> bool {
    match target.source {
        TargetSource::Shared => true,
        TargetSource::LoopbackPool => address.is_ipv4() && address.ip().is_loopback(),
    }
}

/// Returns the allowed addresses among those found for a host, at least one.
fn usable(target: &Target, host: &HostPort, found: &[SocketAddr]) -> Result<Vec<SocketAddr>, AddressError> {
    // An IPv4-mapped IPv6 address needs an IPv4 socket.
    let is_usable = |address: &SocketAddr| is_usable(*address, target, host);
    let usable: Vec<SocketAddr> = found.iter().copied().map(canonical).filter(is_usable).collect();
    if !usable.is_empty() {
        return Ok(usable);
    }
    Err(match found.iter().map(|address| classify(address.ip())).min() {
        None => AddressError::NotFound,
        Some(class) if class <= allowed(target, host) => AddressError::NotLoopback,
        Some(AddressClass::Private) => AddressError::Private,
        Some(AddressClass::Public | AddressClass::Refused) => AddressError::Refused,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pick(host: &str, allow_private: bool, found: &[&str]) -> Result<SocketAddr, AddressError> {
        let found: Vec<SocketAddr> = found.iter().map(|text| text.parse().unwrap()).collect();
        let target = Target { allow_private, ..Target::new(host.parse().unwrap()) };
        usable(&target, &target.address, &found).map(|usable| usable[0])
    }

    /// Creates a target with one address, for tests.
    fn target_at(settings: &Target, address: &str) -> ResolvedTarget {
        let address = address.parse().unwrap();
        let name = "game".parse().unwrap();
        ResolvedTarget::new(name, settings.clone(), address)
    }

    /// Resolves a configured target with spare addresses.
    async fn with_spares(addresses: &[&str]) -> Result<Targets, ConfigError> {
        let (first, spares) = addresses.split_first().unwrap();
        let spec = format!("game={first}").parse().unwrap();
        let mut config = Config::new("127.0.0.1:0".parse().unwrap()).with_target(spec);
        let target = config.targets.values_mut().next().unwrap();
        target.spare_addresses = spares.iter().map(|spare| spare.parse().unwrap()).collect();
        Targets::resolve(&config, &Targets::default()).await
    }

    #[tokio::test]
    async fn new_clients_fail_over_to_the_first_address_that_is_up() {
        let targets = with_spares(&["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"]).await.unwrap();
        let port = |targets: &Targets| targets.find("game").unwrap().address.port();
        let over =
            |targets: &Targets, up: &[u16]| targets.failed_over(|_, address| up.contains(&address.port()));
        assert_eq!(port(&over(&targets, &[1, 2, 3])), 1);
        assert_eq!(port(&over(&targets, &[])), 1, "no address is up");
        let third = over(&targets, &[3]);
        assert_eq!(port(&third), 3);
        assert_eq!(port(&over(&third, &[1, 2, 3])), 3, "the current address stays while it is up");
        assert_eq!(port(&over(&third, &[2, 1])), 1, "the first address that is up");
    }

    /// The loopback interface has index 1 on every system.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn link_local_target_addresses_may_name_their_interface() {
        let zoned = ["[fe80::1%lo]:1", "[fe80::2%1]:2", "[fd00::3%1]:3", "[::1%1]:4"];
        let targets = with_spares(&zoned).await.unwrap();
        let target = targets.find("game").unwrap();
        let expected = ["[fe80::1%1]:1", "[fe80::2%1]:2"].map(|text| text.parse().unwrap());
        assert_eq!(target.addresses[..2], expected);
        assert_eq!(target.addresses.len(), 4);
        assert_eq!(target.address, expected[0]);
        for text in ["[fe80::1%nothing0]:1", "[fe80::a9fe:a9fe%lo]:1", "[ff02::1%lo]:1", "[fe80::1]:1"] {
            assert!(with_spares(&[text]).await.is_err(), "{text}");
        }
    }

    #[tokio::test]
    async fn a_target_with_an_unusable_address_is_rejected() {
        let refused = with_spares(&["127.0.0.1:1", "224.0.0.1:1"]).await.unwrap_err();
        assert!(refused.to_string().contains("224.0.0.1:1"), "{refused}");
    }

    /// Returns addresses with these ports.
    fn ports(ports: impl IntoIterator<Item = u16>) -> Vec<SocketAddr> {
        ports.into_iter().map(|port| SocketAddr::from(([192, 0, 2, 1], port))).collect()
    }

    /// Resolves a target as at startup or a reload.
    fn resolved(
        name: &TargetName,
        settings: &Target,
        found: Vec<Found>,
        known: Option<&ResolvedTarget>,
    ) -> Result<ResolvedTarget, ConfigError> {
        let found = found_of(name, settings, found, known, |error| {
            matches!(error, ConfigError::Unresolvable { .. })
        })?;
        placed(name, settings, found, known)
    }

    /// Returns the target after another lookup of its names.
    fn looked_up(known: &ResolvedTarget, found: Vec<Found>) -> ResolvedTarget {
        let mut targets = Targets::default();
        targets.insert(known.clone());
        let looked_up = LookedUp::new(Arc::new(known.clone()), found);
        let updated = targets.updated(&Vec::from_iter(looked_up));
        ResolvedTarget::clone(updated.find(known.name.as_str()).unwrap())
    }

    #[test]
    fn a_host_without_allowed_addresses_keeps_its_previous_addresses() {
        let known = two_names(&ports([1]), &ports([3]));
        let refused = || Ok(vec!["127.0.0.1:1".parse().unwrap()]);
        let moved = looked_up(&known, vec![Ok(ports([2])), refused()]);
        assert_eq!((moved.address, moved.addresses), (ports([2])[0], ports([2, 3])));
        let moved = looked_up(&known, vec![refused(), Ok(ports([4]))]);
        assert_eq!((moved.address, moved.addresses), (ports([1])[0], ports([1, 4])));
        assert!(
            resolved(&known.name, &known.settings, vec![Ok(ports([2])), refused()], Some(&known)).is_err()
        );
    }

    #[test]
    fn a_failover_does_not_undo_a_concurrent_lookup() {
        let known = two_names(&ports([1]), &ports([3]));
        let looked_up = LookedUp::new(Arc::new(known.clone()), vec![Ok(ports([2])), Ok(ports([3]))]);
        let looked_up = Vec::from_iter(looked_up);
        let mut targets = Targets::default();
        targets.insert(known.clone());
        let targets = targets.failed_over(|_, address| address.port() == 3).updated(&looked_up);
        let target = targets.find("game").unwrap();
        assert_eq!((target.address, &target.addresses), (ports([3])[0], &ports([2, 3])));
        // The lookup result must not override a reload, which has resolved the names itself.
        let mut reloaded = Targets::default();
        reloaded.insert(two_names(&ports([5]), &ports([3])));
        assert_eq!(reloaded.updated(&looked_up), reloaded);
    }

    /// Returns a target with two names, the first of which owns the current address.
    fn two_names(first: &[SocketAddr], second: &[SocketAddr]) -> ResolvedTarget {
        let mut settings = Target::new("a.example.org:1".parse().unwrap());
        settings.spare_addresses = vec!["b.example.org:1".parse().unwrap()];
        let found = vec![Ok(first.to_vec()), Ok(second.to_vec())];
        resolved(&"game".parse().unwrap(), &settings, found, None).unwrap()
    }

    fn failed() -> Found {
        Err(io::Error::other("no server"))
    }

    #[test]
    fn an_unresolvable_host_keeps_only_its_own_addresses() {
        let known = two_names(&ports([1, 2]), &ports([3]));
        let again = |found| resolved(&known.name, &known.settings, found, Some(&known)).unwrap();
        let moved = again(vec![Ok(ports([4])), failed()]);
        assert_eq!(moved.addresses, ports([4, 3]), "the last addresses of the first name are removed");
        let moved = again(vec![failed(), Ok(ports([5]))]);
        assert_eq!((moved.address, moved.addresses), (ports([1])[0], ports([1, 2, 5])));
    }

    #[test]
    fn private_addresses_are_allowed_per_host() {
        let mut settings = Target::new("game.example.org:1".parse().unwrap());
        settings.spare_addresses = vec!["127.0.0.1:2".parse().unwrap()];
        let inner: SocketAddr = "127.0.0.1:2".parse().unwrap();
        let name = "game".parse().unwrap();
        let known = resolved(&name, &settings, vec![Ok(ports([1])), Ok(vec![inner])], None).unwrap();
        let kept = resolved(&name, &settings, vec![failed(), Ok(vec![inner])], Some(&known)).unwrap();
        assert_eq!(kept.addresses, [ports([1])[0], inner]);
        // A name loses its private addresses when `allow_private` is removed.
        let own = Target { allow_private: true, ..settings.clone() };
        let own = resolved(&name, &own, vec![Ok(vec![inner]), Ok(vec![inner])], None).unwrap();
        assert!(resolved(&name, &settings, vec![failed(), Ok(vec![inner])], Some(&own)).is_err());
    }

    #[test]
    fn a_name_with_many_addresses_does_not_displace_others() {
        let known = two_names(&ports(1..=20), &ports([30, 31]));
        assert_eq!(known.addresses, ports([1, 2, 3, 4, 5, 6, 7, 30]));
        let used = ResolvedTarget { address: ports([15])[0], ..known };
        let found = vec![Ok(ports(1..=20)), Ok(ports([30, 31]))];
        let again = resolved(&used.name, &used.settings, found, Some(&used)).unwrap();
        assert_eq!(again.address, used.address);
        assert_eq!(again.addresses, ports([1, 2, 3, 4, 5, 6, 15, 30]));
    }

    fn address(text: &str) -> Result<SocketAddr, AddressError> {
        Ok(text.parse().unwrap())
    }

    #[test]
    fn refused_addresses_are_skipped() {
        let refused =
            ["0.0.0.0:1", "[::]:1", "224.0.0.1:1", "[ff02::1]:1", "255.255.255.255:1", "169.254.169.254:1"];
        assert_eq!(pick("name:1", true, &refused), Err(AddressError::Refused));
        assert_eq!(
            pick("127.0.0.1:2", false, &["[::ffff:0.0.0.0]:1", "127.0.0.1:2"]),
            address("127.0.0.1:2")
        );
        assert_eq!(pick("[::ffff:127.0.0.1]:3", false, &["[::ffff:127.0.0.1]:3"]), address("127.0.0.1:3"));
        assert_eq!(pick("name:1", false, &[]), Err(AddressError::NotFound));
    }

    #[test]
    fn a_name_in_a_private_network_requires_allow_private() {
        for inner in [
            "127.0.0.1:1",
            "10.0.0.1:1",
            "[::1]:1",
            "[fd00::1]:1",
            "[::ffff:192.168.0.1]:1",
            "[2002:7f00:1::]:1",
        ] {
            assert_eq!(pick("game.example.org:1", false, &[inner]), Err(AddressError::Private), "{inner}");
            assert!(pick("game.example.org:1", true, &[inner]).is_ok(), "{inner}");
            assert!(pick(inner, false, &[inner]).is_ok(), "{inner}");
        }
        assert_eq!(pick("localhost:1", false, &["[::1]:1"]), address("[::1]:1"));
        assert_eq!(pick("a.LocalHost.:1", false, &["127.0.0.1:1"]), address("127.0.0.1:1"));
        assert_eq!(pick("localhost.example.org:1", false, &["127.0.0.1:1"]), Err(AddressError::Private));
        assert_eq!(pick("name:1", false, &["10.0.0.1:1", "192.0.2.1:1"]), address("192.0.2.1:1"));
    }

    #[test]
    fn a_loopback_pool_requires_a_loopback_target() {
        let pick = |host: &str, found: &[&str]| {
            let found: Vec<SocketAddr> = found.iter().map(|text| text.parse().unwrap()).collect();
            let target = Target { source: TargetSource::LoopbackPool, ..Target::new(host.parse().unwrap()) };
            usable(&target, &target.address, &found).map(|usable| usable[0])
        };
        assert_eq!(pick("127.0.0.9:1", &["127.0.0.9:1"]), address("127.0.0.9:1"));
        assert_eq!(pick("[::ffff:127.0.0.1]:1", &["[::ffff:127.0.0.1]:1"]), address("127.0.0.1:1"));
        assert_eq!(pick("localhost:1", &["[::1]:1", "127.0.0.1:1"]), address("127.0.0.1:1"));
        for remote in ["192.0.2.1:1", "10.0.0.1:1", "[::1]:1"] {
            assert_eq!(pick(remote, &[remote]), Err(AddressError::NotLoopback), "{remote}");
        }
        assert_eq!(pick("name:1", &["192.0.2.1:1"]), Err(AddressError::NotLoopback));
        assert_eq!(pick("name:1", &["127.0.0.1:1"]), Err(AddressError::Private));
        assert_eq!(pick("224.0.0.1:1", &["224.0.0.1:1"]), Err(AddressError::Refused));
    }

    #[test]
    fn a_target_keeps_its_address_while_its_name_resolves_to_it() {
        let found: Vec<SocketAddr> = ["192.0.2.1:1", "192.0.2.2:1"].map(|text| text.parse().unwrap()).into();
        let target = Target::new("name:1".parse().unwrap());
        let chosen = |known: &str| {
            let known = target_at(&target, known);
            resolved(&known.name, &target, vec![Ok(found.clone())], Some(&known)).unwrap()
        };
        assert_eq!(chosen("192.0.2.2:1").address, found[1]);
        assert_eq!(chosen("192.0.2.3:1").address, found[0]);
        assert_eq!(chosen("192.0.2.3:1").addresses, found);
    }

    #[test]
    fn a_target_follows_its_name_but_not_into_private_networks() {
        let settings = Target::new("name:1".parse().unwrap());
        let known = target_at(&settings, "192.0.2.1:1");
        let cases: [(&[&str], &str); 6] = [
            (&["192.0.2.2:1", "192.0.2.1:1"], "192.0.2.1:1"),
            (&["192.0.2.2:1"], "192.0.2.2:1"),
            (&["127.0.0.1:1"], "192.0.2.1:1"),
            (&["[::ffff:10.0.0.1]:1"], "192.0.2.1:1"),
            (&["169.254.169.254:1"], "192.0.2.1:1"),
            (&[], "192.0.2.1:1"),
        ];
        for (found, expected) in cases {
            let addresses = found.iter().map(|text| text.parse().unwrap()).collect();
            let updated = looked_up(&known, vec![Ok(addresses)]);
            assert_eq!(updated.address, expected.parse().unwrap(), "{found:?}");
        }
        assert_eq!(looked_up(&known, vec![failed()]), known);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lookup_times_out_if_the_resolver_does_not_answer() {
        let error = in_time(std::future::pending()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn lookup_results_keep_the_order_of_names() {
        let addresses: Vec<HostPort> =
            (1..=3 * LOOKUPS_MAX).map(|port| format!("127.0.0.1:{port}").parse().unwrap()).collect();
        let found = look_up_all(addresses.iter()).await;
        let found: Vec<String> = found.into_iter().map(|found| found.unwrap()[0].to_string()).collect();
        let expected: Vec<&str> = addresses.iter().map(HostPort::as_str).collect();
        assert_eq!(found, expected);
    }

    #[tokio::test]
    async fn a_reload_keeps_addresses_of_unresolvable_names() {
        // A label of 64 bytes is too long for a query.
        let name = format!("{}.invalid:1", "a".repeat(64));
        let config = |allow_private| {
            let spec = format!("game={name}").parse().unwrap();
            let mut config = Config::new("127.0.0.1:0".parse().unwrap()).with_target(spec);
            config.targets.values_mut().for_each(|target| target.allow_private = allow_private);
            config
        };
        let mut before = Targets::default();
        let known = config(true);
        let (target, settings) = known.targets.first_key_value().unwrap();
        let address = "127.0.0.1:1".parse().unwrap();
        before.insert(ResolvedTarget::new(target.clone(), settings.clone(), address));
        assert!(Targets::resolve(&known, &Targets::default()).await.is_err());
        let kept = Targets::resolve(&known, &before).await.unwrap();
        assert_eq!(kept.find("game").unwrap().address, address);
        let refused = Targets::resolve(&config(false), &before).await;
        assert!(refused.is_err(), "the address requires allow_private");
    }

    #[tokio::test]
    async fn targets_are_pinned_to_one_address() {
        let config = |targets: &[&str]| {
            let config = Config::new("127.0.0.1:0".parse().unwrap());
            targets.iter().fold(config, |config, target| config.with_target(target.parse().unwrap()))
        };
        let before = Targets::default();
        let config_of_two = config(&["a=[::ffff:127.0.0.1]:5", "b=[::1]:6"]);
        let targets = Targets::resolve(&config_of_two, &before).await.unwrap();
        assert_eq!(targets.find("a").unwrap().address, "127.0.0.1:5".parse().unwrap());
        assert_eq!(targets.find("b").unwrap().address, "[::1]:6".parse().unwrap());
        assert!(targets.find("c").is_none());
        let group = Targets::resolve(&config(&["a=224.0.0.1:5"]), &before).await;
        assert!(matches!(group, Err(ConfigError::UnusableAddress { .. })));
    }
}
