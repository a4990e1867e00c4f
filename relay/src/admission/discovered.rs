//! Resolution of the addresses of announced servers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use ipnet::IpNet;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tracing::warn;

use super::targets::{ResolvedTarget, Targets, look_up};
use crate::addresses::{AddressClass, HostPort, TargetName, canonical, classify};
use crate::config::Target;
use crate::discovery::Announcement;

const FORBIDDEN: &str = "the address is neither public nor in discovery.networks";

/// The timeout of a name lookup. A server is not offered to clients until its lookup succeeds.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);

/// The maximum number of addresses logged per read of the store.
const LINES_MAX: usize = 20;

/// The maximum number of concurrent lookups.
const LOOKUPS_MAX: usize = 16;

/// The time for which a lookup result is cached.
const KEPT: Duration = Duration::from_secs(30);

/// The addresses of a name.
type Found = Vec<SocketAddr>;

/// Resolves the names of announced servers, and caches the results for [`KEPT`].
#[derive(Debug, Default)]
pub(crate) struct DiscoveredNames {
    /// Results by name, each with its time.
    known: BTreeMap<String, (Instant, Found)>,
    /// Servers with addresses that were not allowed in the last lookup.
    forbidden: BTreeSet<TargetName>,
}

impl DiscoveredNames {
    /// Resolves announced servers, and returns the number of addresses that have become forbidden since the last call.
    /// Writers of the store are not fully trusted: an address must be public, or in one of `networks`.
    pub(crate) async fn resolve(
        &mut self,
        found: BTreeMap<TargetName, Announcement>,
        networks: &[IpNet],
    ) -> (Targets, usize) {
        let names = found.values().map(|server| server.address.clone());
        self.look_up_all(names, |address| async move { look_up(&address).await.unwrap_or_default() }).await;
        let mut targets = Targets::default();
        let (mut forbidden, mut newly) = (BTreeSet::new(), 0);
        for (name, server) in found {
            let addresses = self.known.get(server.address.as_str()).map_or(&[][..], |(_, found)| found);
            let usable = addresses.iter().copied().map(canonical);
            match usable.into_iter().find(|address| is_allowed(*address, networks)) {
                Some(address) => {
                    let mut settings = Target::new(server.address);
                    settings.kind = server.kind;
                    targets.insert(ResolvedTarget::new(name, settings, address));
                }
                None => {
                    if !self.forbidden.contains(&name) {
                        newly += 1;
                        let reason = if addresses.is_empty() { "the name has no address" } else { FORBIDDEN };
                        if newly <= LINES_MAX {
                            let address = server.address.as_str();
                            warn!(
                                key = server.key(),
                                address,
                                reason,
                                "an announced server is not offered, because its address cannot be used"
                            );
                        }
                    }
                    forbidden.insert(name);
                }
            }
        }
        self.forbidden = forbidden;
        (targets, newly)
    }

    /// Looks up unknown names concurrently, and removes those that are no longer requested.
    async fn look_up_all<F>(&mut self, names: impl Iterator<Item = HostPort>, find: impl Fn(HostPort) -> F)
    where
        F: Future<Output = Found> + Send + 'static,
    {
        let now = Instant::now();
        let asked: BTreeMap<String, HostPort> = names.map(|name| (name.as_str().to_owned(), name)).collect();
        self.known.retain(|name, (at, _)| asked.contains_key(name) && now.duration_since(*at) < KEPT);
        let mut waiting =
            asked.into_iter().filter(|(name, _)| !self.known.contains_key(name)).collect::<Vec<_>>();
        let mut running = JoinSet::new();
        loop {
            while let Some((name, address)) = waiting.pop_if(|_| running.len() < LOOKUPS_MAX) {
                let lookup = timeout(LOOKUP_TIMEOUT, find(address));
                running.spawn(async move { (name, lookup.await.unwrap_or_default()) });
            }
            match running.join_next().await {
                Some(Ok((name, found))) => drop(self.known.insert(name, (now, found))),
                Some(Err(_)) => {}
                None => return,
            }
        }
    }
}

fn is_allowed(address: SocketAddr, networks: &[IpNet]) -> bool {
    match classify(address.ip()) {
        AddressClass::Public => true,
        AddressClass::Private => networks.iter().any(|network| network.contains(&address.ip())),
        AddressClass::Refused => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::time::sleep;

    use super::*;

    async fn resolved(address: &str, networks: &[&str]) -> Option<SocketAddr> {
        let name: TargetName = "arena".parse().unwrap();
        let value = format!(r#"{{"address":"{address}","kind":"raknet"}}"#);
        let server = Announcement::parse(name.clone(), &value).unwrap();
        let networks: Vec<IpNet> = networks.iter().map(|text| text.parse().unwrap()).collect();
        let (targets, _) = DiscoveredNames::default().resolve([(name, server)].into(), &networks).await;
        targets.find("arena").map(|target| target.address)
    }

    #[tokio::test(start_paused = true)]
    async fn lookups_are_bounded_and_cached() {
        let mut names = DiscoveredNames::default();
        let addresses =
            || (0..40).map(|number| format!("server-{number}.example.org:1").parse::<HostPort>().unwrap());
        let (asked, at_once) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let find = |address: HostPort| {
            let (asked, at_once) = (Arc::clone(&asked), Arc::clone(&at_once));
            async move {
                asked.fetch_add(1, Ordering::Relaxed);
                assert!(at_once.fetch_add(1, Ordering::Relaxed) < LOOKUPS_MAX);
                let is_silent = address.as_str().starts_with("server-7.");
                sleep(if is_silent { 100 * LOOKUP_TIMEOUT } else { LOOKUP_TIMEOUT / 2 }).await;
                at_once.fetch_sub(1, Ordering::Relaxed);
                vec![SocketAddr::from(([192, 0, 2, 1], 1))]
            }
        };
        let start = Instant::now();
        names.look_up_all(addresses(), find).await;
        // Three rounds of lookups that succeed, and one that does not.
        assert!(start.elapsed() <= 3 * LOOKUP_TIMEOUT, "{:?}", start.elapsed());
        assert_eq!(names.known.values().filter(|(_, found)| found.len() == 1).count(), 39);
        names.look_up_all(addresses(), find).await;
        assert_eq!(asked.load(Ordering::Relaxed), 40);
        tokio::time::advance(KEPT).await;
        names.look_up_all(addresses().take(1), find).await;
        assert_eq!((asked.load(Ordering::Relaxed), names.known.len()), (41, 1));
    }

    #[tokio::test]
    async fn announced_addresses_are_public_or_in_configured_networks() {
        assert_eq!(resolved("192.0.2.7:1", &[]).await, "192.0.2.7:1".parse().ok());
        assert_eq!(resolved("10.0.0.7:1", &[]).await, None);
        assert_eq!(resolved("10.0.0.7:1", &["10.0.0.0/8"]).await, "10.0.0.7:1".parse().ok());
        assert_eq!(resolved("[::ffff:10.0.0.7]:1", &["10.0.0.0/8"]).await, "10.0.0.7:1".parse().ok());
        assert_eq!(resolved("127.0.0.1:1", &["10.0.0.0/8"]).await, None);
        // These addresses are refused even if `networks` contains them.
        for refused in ["169.254.169.254:1", "224.0.0.1:1", "0.0.0.0:1", "[::ffff:169.254.169.254]:1"] {
            assert_eq!(resolved(refused, &["0.0.0.0/0", "::/0"]).await, None, "{refused}");
        }
    }
}
