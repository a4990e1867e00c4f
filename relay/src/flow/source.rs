//! From which address the datagrams of a client reach its game server.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// From which address the datagrams of a client reach its game server.
///
/// Game servers limit and ban by address. If all clients shared that of the relay, one of them could lock out the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Source {
    /// The address of the relay, with a port for each client.
    #[default]
    Shared,
    /// An address of 127.0.0.0/8 for each client, if the game server is at one itself.
    ///
    /// The same client has the same address at every connection. Linux has all of these addresses; other systems have to
    /// be given them one by one.
    LoopbackPool,
}

impl Source {
    /// The address to bind to for a client of `server`; none leaves it to the system.
    ///
    /// Clients of one IPv6 network of 64 bits count as one client. There are 254 * 256 * 254 addresses, so different
    /// clients rarely share one.
    ///
    /// ```
    /// use rakwire_relay::flow::Source;
    ///
    /// let (server, player) = ("127.0.0.1:19132".parse()?, "192.0.2.7".parse()?);
    /// let address = Source::LoopbackPool.address(player, server).ok_or("no pool")?;
    /// assert!(address.is_loopback() && address.octets()[1] > 0);
    /// assert_eq!(Source::LoopbackPool.address(player, server), Some(address));
    /// assert_eq!(Source::Shared.address(player, server), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn address(self, client: IpAddr, server: SocketAddr) -> Option<Ipv4Addr> {
        let is_local = matches!(server.ip(), IpAddr::V4(ip) if ip.is_loopback());
        (self == Self::LoopbackPool && is_local).then(|| pool_address(client))
    }
}

fn pool_address(client: IpAddr) -> Ipv4Addr {
    let hash = match client.to_canonical() {
        IpAddr::V4(ip) => mix(u64::from(ip.to_bits())),
        IpAddr::V6(ip) => mix((ip.to_bits() >> 64) as u64 | 1 << 63),
    };
    let [.., a, b, c] = hash.to_be_bytes();
    // 127.0.0.0/16 has the addresses that programs listen on; some programs take no host 0 or 255.
    Ipv4Addr::new(127, 1 + a % 254, b, 1 + c % 254)
}

/// The finaliser of SplitMix64, so that neighbours get addresses far apart. It needs no secret: whoever has the
/// addresses to look for a collision can as well make the game server ban their own.
const fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const SERVER: &str = "127.0.0.1:19132";

    fn address(client: &str) -> Ipv4Addr {
        Source::LoopbackPool.address(client.parse().unwrap(), SERVER.parse().unwrap()).unwrap()
    }

    #[test]
    fn clients_have_stable_addresses_of_their_own() {
        let mut seen = BTreeSet::new();
        for number in 0..4_000u32 {
            let client = Ipv4Addr::from_bits(0xC000_0200 + number);
            let found = address(&client.to_string());
            let [_, second, _, last] = found.octets();
            assert!(found.is_loopback() && second > 0 && second < 255 && last > 0 && last < 255, "{found}");
            seen.insert(found);
        }
        assert!(seen.len() > 3_990, "{} addresses", seen.len());
        assert_eq!(address("192.0.2.1"), address("::ffff:192.0.2.1"));
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        assert_eq!(address("2001:db8::1"), address("2001:db8::ffff:2"));
        assert_ne!(address("2001:db8::1"), address("2001:db8:0:1::1"));
    }

    #[test]
    fn only_servers_on_loopback_have_a_pool() {
        for server in ["192.0.2.1:1", "[::1]:1"] {
            let client = "192.0.2.7".parse().unwrap();
            assert_eq!(Source::LoopbackPool.address(client, server.parse().unwrap()), None, "{server}");
        }
    }
}
