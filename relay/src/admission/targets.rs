//! The addresses of targets: resolved at the start, and again on a schedule.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use tracing::{info, warn};

use crate::config::{Config, ConfigError, Target};
use crate::target::{AddressClass, AddressError, HostPort, TargetName, classify};

/// A target with the address for its next clients. A flow keeps the one that it began with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResolvedTarget {
    pub(crate) name: TargetName,
    pub(crate) settings: Target,
    pub(crate) address: SocketAddr,
}

/// All targets by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Targets(BTreeMap<TargetName, Arc<ResolvedTarget>>);

impl Targets {
    /// Resolves the targets of a configuration.
    pub(crate) async fn resolve(config: &Config) -> Result<Self, ConfigError> {
        let mut targets = Self::default();
        for (name, settings) in &config.targets {
            let address = resolve(name, settings, None).await?;
            targets.insert(ResolvedTarget { name: name.clone(), settings: settings.clone(), address });
        }
        Ok(targets)
    }

    /// Resolves the names among the targets again. A target whose name does not resolve any more, or only to addresses
    /// that it may not have, keeps its address.
    pub(crate) async fn resolve_again(&self) -> Self {
        let mut targets = self.clone();
        for target in self.0.values().filter(|target| !target.settings.address.is_numeric()) {
            match resolve(&target.name, &target.settings, Some(target.address)).await {
                Ok(address) if address == target.address => {}
                Ok(address) => {
                    info!(target_name = %target.name, old = %target.address, new = %address, "target has moved");
                    targets.insert(ResolvedTarget { address, ..ResolvedTarget::clone(target) });
                }
                Err(error) => warn!(kept = %target.address, "{error}"),
            }
        }
        targets
    }

    pub(crate) fn insert(&mut self, target: ResolvedTarget) {
        self.0.insert(target.name.clone(), Arc::new(target));
    }

    /// The target that a client requested.
    pub(crate) fn find(&self, requested: &str) -> Option<&Arc<ResolvedTarget>> {
        // An invalid name cannot be configured.
        self.0.get(&requested.parse().ok()?)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &TargetName> {
        self.0.keys()
    }
}

/// The address of a target. One that it had is kept for as long as the name has it.
async fn resolve(
    name: &TargetName,
    target: &Target,
    known: Option<SocketAddr>,
) -> Result<SocketAddr, ConfigError> {
    let address = &target.address;
    let failed = |source| ConfigError::Unresolvable { name: name.clone(), address: address.clone(), source };
    let found: Vec<SocketAddr> = tokio::net::lookup_host(address.as_str()).await.map_err(failed)?.collect();
    let unusable =
        |reason| ConfigError::UnusableAddress { name: name.clone(), address: address.clone(), reason };
    choose(address, target.allow_private, &found, known).map_err(unusable)
}

/// The address to use, of those that a name has.
fn choose(
    host: &HostPort,
    allow_private: bool,
    found: &[SocketAddr],
    known: Option<SocketAddr>,
) -> Result<SocketAddr, AddressError> {
    let allow_private = allow_private || host.is_numeric() || host.is_localhost();
    let allowed = if allow_private { AddressClass::Private } else { AddressClass::Public };
    // An IPv4-mapped IPv6 address needs an IPv4 socket.
    let canonical = |address: &SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
    let usable: Vec<SocketAddr> =
        found.iter().map(canonical).filter(|address| classify(address.ip()) <= allowed).collect();
    if let Some(known) = known.filter(|known| usable.contains(known)) {
        return Ok(known);
    }
    let least = found.iter().map(|address| classify(address.ip())).min();
    usable.first().copied().ok_or(match least {
        None => AddressError::None,
        Some(AddressClass::Private) => AddressError::Private,
        Some(AddressClass::Public | AddressClass::Refused) => AddressError::Refused,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pick(host: &str, allow_private: bool, found: &[&str]) -> Result<SocketAddr, AddressError> {
        let found: Vec<SocketAddr> = found.iter().map(|text| text.parse().unwrap()).collect();
        choose(&host.parse().unwrap(), allow_private, &found, None)
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
        assert_eq!(pick("name:1", false, &[]), Err(AddressError::None));
    }

    #[test]
    fn a_name_may_be_in_the_own_network_only_if_the_target_says_so() {
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
    fn a_known_address_is_kept_while_the_name_has_it() {
        let found: Vec<SocketAddr> = ["192.0.2.1:1", "192.0.2.2:1"].map(|text| text.parse().unwrap()).into();
        let host = "name:1".parse().unwrap();
        let chosen = |known: &str| choose(&host, false, &found, Some(known.parse().unwrap()));
        assert_eq!(chosen("192.0.2.2:1"), Ok(found[1]));
        assert_eq!(chosen("192.0.2.3:1"), Ok(found[0]));
    }
}
