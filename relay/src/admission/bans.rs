//! Banned addresses.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::syntax;

/// Addresses and networks, looked up in logarithmic time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Bans {
    /// The first and the last address of each range, in order; ranges do not overlap.
    ranges: Vec<(IpAddr, IpAddr)>,
}

impl Bans {
    /// Reads one address or network per line. What follows a `#` is a comment.
    ///
    /// The error is the number of the line, counted from 1, and what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut networks = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let entry = line.split('#').next().unwrap_or_default().trim();
            if !entry.is_empty() {
                networks.push(syntax::network(entry).map_err(|reason| (index + 1, reason))?);
            }
        }
        let ranges = IpNet::aggregate(&networks).into_iter().map(|net| (net.network(), net.broadcast()));
        let mut ranges: Vec<_> = ranges.collect();
        ranges.sort_unstable();
        Ok(Self { ranges })
    }

    /// Whether an address is banned.
    pub(crate) fn contains(&self, ip: IpAddr) -> bool {
        let after = self.ranges.partition_point(|(first, _)| *first <= ip);
        let before = after.checked_sub(1).and_then(|index| self.ranges.get(index));
        before.is_some_and(|(_, last)| ip <= *last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_networks_are_banned() {
        let text =
            "# comment\n192.0.2.7\n\n198.51.100.0/24 # a reason\r\n198.51.100.9\n2001:db8::/56\n0.0.0.0/32\n";
        let bans = Bans::parse(text).unwrap();
        for banned in ["192.0.2.7", "198.51.100.0", "198.51.100.255", "2001:db8:0:ff::1", "0.0.0.0"] {
            assert!(bans.contains(banned.parse().unwrap()), "{banned}");
        }
        for free in
            ["192.0.2.6", "192.0.2.8", "198.51.99.255", "198.51.101.0", "2001:db8:0:100::", "::", "0.0.0.1"]
        {
            assert!(!bans.contains(free.parse().unwrap()), "{free}");
        }
        assert!(!Bans::default().contains("192.0.2.7".parse().unwrap()));
    }

    #[test]
    fn a_wrong_line_is_named() {
        assert_eq!(Bans::parse("192.0.2.1\n\nexample.org\n").unwrap_err().0, 3);
        assert_eq!(Bans::parse("192.0.2.1/33").unwrap_err().0, 1);
    }
}
