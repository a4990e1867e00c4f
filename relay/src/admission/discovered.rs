//! The addresses of servers that announce themselves.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use ipnet::IpNet;
use tracing::debug;

use super::targets::{ResolvedTarget, Targets, look_up};
use crate::config::Target;
use crate::discovery::Announcement;
use crate::target::{AddressClass, TargetName, classify};

/// Resolves announced servers. Whoever may write into the store is not believed more than that: an address must be public,
/// or in one of `networks`.
pub(crate) async fn resolve_discovered(
    found: BTreeMap<TargetName, Announcement>,
    networks: &[IpNet],
) -> Targets {
    let mut targets = Targets::default();
    for (name, server) in found {
        let addresses = look_up(&server.address).await.unwrap_or_default();
        let usable = addresses.into_iter().map(canonical).find(|address| is_allowed(*address, networks));
        match usable {
            Some(address) => {
                let mut settings = Target::new(server.address);
                settings.kind = server.kind;
                targets.insert(ResolvedTarget { name, settings, address });
            }
            None => debug!(%name, address = server.address.as_str(), "an announced address is not allowed"),
        }
    }
    targets
}

/// An IPv4-mapped IPv6 address needs an IPv4 socket.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
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
    use super::*;

    async fn resolved(address: &str, networks: &[&str]) -> Option<SocketAddr> {
        let name: TargetName = "arena".parse().unwrap();
        let value = format!(r#"{{"address":"{address}","kind":"raknet"}}"#);
        let server = Announcement::parse(name.clone(), &value).unwrap();
        let networks: Vec<IpNet> = networks.iter().map(|text| text.parse().unwrap()).collect();
        let targets = resolve_discovered([(name, server)].into(), &networks).await;
        targets.find("arena").map(|target| target.address)
    }

    #[tokio::test]
    async fn an_announced_address_is_public_or_in_a_network_that_the_operator_names() {
        assert_eq!(resolved("192.0.2.7:1", &[]).await, "192.0.2.7:1".parse().ok());
        assert_eq!(resolved("10.0.0.7:1", &[]).await, None);
        assert_eq!(resolved("10.0.0.7:1", &["10.0.0.0/8"]).await, "10.0.0.7:1".parse().ok());
        assert_eq!(resolved("[::ffff:10.0.0.7]:1", &["10.0.0.0/8"]).await, "10.0.0.7:1".parse().ok());
        assert_eq!(resolved("127.0.0.1:1", &["10.0.0.0/8"]).await, None);
        // Not even a network that has them all lets these in.
        for refused in ["169.254.169.254:1", "224.0.0.1:1", "0.0.0.0:1", "[::ffff:169.254.169.254]:1"] {
            assert_eq!(resolved(refused, &["0.0.0.0/0", "::/0"]).await, None, "{refused}");
        }
    }
}
