//! The ban list of a server.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

use heapless::Vec;

use crate::time::Instant;

/// A single address, or all addresses with a common prefix.
///
/// It can be parsed from an address (`192.0.2.1`), a wildcard (`192.0.2.*`, as in C++ RakNet) or a prefix
/// (`2001:db8::/32`).
///
/// ```
/// use rakwire::raknet::AddressPattern;
///
/// let pattern: AddressPattern = "192.0.2.*".parse()?;
/// assert!(pattern.matches("192.0.2.77".parse()?));
/// assert!(!pattern.matches("192.0.3.77".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressPattern {
    address: IpAddr,
    bits: u8,
}

/// The text is not an address, a wildcard or a prefix.
///
/// ```
/// use rakwire::raknet::{AddressPattern, PatternSyntaxError};
///
/// assert_eq!("192.0.*.1".parse::<AddressPattern>(), Err(PatternSyntaxError));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PatternSyntaxError;

impl core::fmt::Display for PatternSyntaxError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("write an address, a wildcard such as 192.0.2.* or a prefix such as 2001:db8::/32")
    }
}

impl core::error::Error for PatternSyntaxError {}

impl AddressPattern {
    /// Returns the pattern of all addresses that share the first `bits` bits of `address`.
    ///
    /// Returns `None` if the address has fewer bits. A prefix of IPv4-mapped IPv6 addresses, such as
    /// `::ffff:192.0.2.0/120`, becomes an IPv4 prefix.
    #[must_use]
    pub const fn prefix(address: IpAddr, bits: u8) -> Option<Self> {
        let most = match address {
            IpAddr::V4(_) => 32,
            IpAddr::V6(_) => 128,
        };
        if bits > most {
            return None;
        }
        match (address, address.to_canonical()) {
            (IpAddr::V6(_), IpAddr::V4(ip)) if bits >= MAPPED_BITS => {
                Some(Self { address: IpAddr::V4(ip), bits: bits - MAPPED_BITS })
            }
            _ => Some(Self { address, bits }),
        }
    }

    /// Returns the prefix that one customer of an Internet provider usually has: a /24 of IPv4, a /64 of IPv6.
    ///
    /// An IPv4-mapped IPv6 address counts as an IPv4 address.
    pub(super) const fn network_of(address: IpAddr) -> Self {
        match address.to_canonical() {
            address @ IpAddr::V4(_) => Self { address, bits: 24 },
            address @ IpAddr::V6(_) => Self { address, bits: 64 },
        }
    }

    /// Returns true if `address` matches this pattern.
    ///
    /// An IPv4-mapped IPv6 address counts as an IPv4 address.
    #[must_use]
    pub fn matches(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(left), IpAddr::V4(right)) => {
                let difference = u64::from(left.to_bits() ^ right.to_bits());
                difference >> (32 - self.bits.min(32)) == 0
            }
            (IpAddr::V6(left), IpAddr::V6(right)) => {
                let difference = left.to_bits() ^ right.to_bits();
                difference.checked_shr(u32::from(128 - self.bits.min(128))).unwrap_or(0) == 0
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl FromStr for AddressPattern {
    type Err = PatternSyntaxError;

    fn from_str(text: &str) -> Result<Self, PatternSyntaxError> {
        if let Some((address, bits)) = text.split_once('/') {
            let address = address.parse().map_err(|_| PatternSyntaxError)?;
            return Self::prefix(address, bits.parse().map_err(|_| PatternSyntaxError)?)
                .ok_or(PatternSyntaxError);
        }
        if let Some(head) = text.strip_suffix('*') {
            return wildcard(head);
        }
        let address: IpAddr = text.parse().map_err(|_| PatternSyntaxError)?;
        let address = address.to_canonical();
        let bits = if address.is_ipv4() { 32 } else { 128 };
        Ok(Self { address, bits })
    }
}

/// Parses the part of an IPv4 wildcard before the star: `192.0.2.` or nothing.
fn wildcard(head: &str) -> Result<AddressPattern, PatternSyntaxError> {
    let mut octets = [0; 4];
    let mut bits = 0;
    let mut rest = head;
    for octet in octets.iter_mut().take(3) {
        let Some((number, after)) = rest.split_once('.') else { break };
        *octet = number.parse().map_err(|_| PatternSyntaxError)?;
        bits += 8;
        rest = after;
    }
    if rest.is_empty() {
        Ok(AddressPattern { address: Ipv4Addr::from(octets).into(), bits })
    } else {
        Err(PatternSyntaxError)
    }
}

/// The prefix length of IPv4-mapped IPv6 addresses in bits.
const MAPPED_BITS: u8 = 96;

#[derive(Clone, Copy, Debug)]
struct Ban {
    pattern: AddressPattern,
    until: Option<Instant>,
}

/// The maximum number of bans in a [`BanList`].
pub const MAX_BANS: usize = 64;

/// A list of addresses that may not connect: at most 64 patterns, permanent or with an expiry.
///
/// Existing connections are not affected. Only the application adds bans; no received datagram does.
///
/// ```
/// use rakwire::Instant;
/// use rakwire::raknet::{BanList, BanListFull};
///
/// let mut bans = BanList::new();
/// bans.add("192.0.2.*".parse()?, Some(Instant::from_micros(5_000_000)))?;
/// let guest = "192.0.2.1".parse()?;
/// assert!(bans.is_banned(guest, Instant::ZERO));
/// assert!(!bans.is_banned(guest, Instant::from_micros(5_000_000)));
///
/// for number in 1..64 {
///     bans.add(format!("10.{number}.*").parse()?, None)?;
/// }
/// assert_eq!(bans.add("10.64.*".parse()?, None), Err(BanListFull));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct BanList {
    bans: Vec<Ban, MAX_BANS>,
}

/// The [`BanList`] already contains [`MAX_BANS`] other patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct BanListFull;

impl core::fmt::Display for BanListFull {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the ban list is full; remove a ban or use a wider pattern")
    }
}

impl core::error::Error for BanListFull {}

impl BanList {
    /// Creates an empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self { bans: Vec::new() }
    }

    /// Bans a pattern until a point in time, or permanently. It replaces an earlier ban of the same pattern.
    ///
    /// # Errors
    ///
    /// [`BanListFull`] if 64 other patterns are banned.
    pub fn add(&mut self, pattern: AddressPattern, until: Option<Instant>) -> Result<(), BanListFull> {
        self.remove(pattern);
        self.bans.push(Ban { pattern, until }).map_err(|_| BanListFull)
    }

    /// Lifts the ban of exactly this pattern; returns false if there was none.
    pub fn remove(&mut self, pattern: AddressPattern) -> bool {
        let before = self.bans.len();
        self.bans.retain(|ban| ban.pattern != pattern);
        before != self.bans.len()
    }

    /// Removes the bans that have expired at `now`.
    pub fn expire(&mut self, now: Instant) {
        self.bans.retain(|ban| ban.until.is_none_or(|until| until > now));
    }

    /// Returns true if a pattern bans `address` at `now`.
    #[must_use]
    pub fn is_banned(&self, address: IpAddr, now: Instant) -> bool {
        let active = |ban: &&Ban| ban.until.is_none_or(|until| until > now);
        self.bans.iter().filter(active).any(|ban| ban.pattern.matches(address))
    }

    /// Returns the patterns with their expiries; `None` is permanent.
    pub fn iter(&self) -> impl Iterator<Item = (AddressPattern, Option<Instant>)> {
        self.bans.iter().map(|ban| (ban.pattern, ban.until))
    }
}

impl core::fmt::Display for AddressPattern {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl From<Ipv4Addr> for AddressPattern {
    fn from(address: Ipv4Addr) -> Self {
        Self { address: address.into(), bits: 32 }
    }
}

impl From<Ipv6Addr> for AddressPattern {
    fn from(address: Ipv6Addr) -> Self {
        match address.to_ipv4_mapped() {
            Some(address) => address.into(),
            None => Self { address: address.into(), bits: 128 },
        }
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for AddressPattern {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{}", defmt::Display2Format(self));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, address: &str) -> bool {
        let pattern: AddressPattern = pattern.parse().expect("a pattern");
        pattern.matches(address.parse().expect("an address"))
    }

    #[test]
    fn patterns_match_addresses_with_their_prefix() {
        assert!(matches("192.0.2.1", "192.0.2.1"));
        assert!(!matches("192.0.2.1", "192.0.2.2"));
        assert!(matches("192.0.2.1", "::ffff:192.0.2.1"));
        assert!(matches("192.*", "192.255.0.1"));
        assert!(!matches("192.*", "193.0.0.1"));
        assert!(matches("*", "1.2.3.4"));
        assert!(!matches("*", "2001:db8::1"));
        assert!(matches("10.0.0.0/9", "10.127.255.255"));
        assert!(!matches("10.0.0.0/9", "10.128.0.0"));
        assert!(matches("2001:db8::/32", "2001:db8:ffff::1"));
        assert!(!matches("2001:db8::/32", "2001:db9::1"));
        assert!(matches("::/0", "2001:db8::1"));
    }

    /// A dual-stack socket reports all addresses as IPv6.
    #[test]
    fn ipv4_mapped_addresses_match_ipv4_patterns() {
        assert!(matches("192.0.2.0/24", "::ffff:192.0.2.1"));
        assert!(matches("::ffff:192.0.2.1", "192.0.2.1"));
        assert!(matches("::ffff:192.0.2.0/120", "192.0.2.7"));
        assert!(!matches("::ffff:192.0.2.0/120", "::ffff:192.0.3.7"));
        assert!(!matches("::/64", "::ffff:192.0.2.1"));
        let network = |text: &str| AddressPattern::network_of(text.parse().expect("an address"));
        assert!(network("::ffff:192.0.2.1").matches(IpAddr::from([192, 0, 2, 200])));
        assert!(!network("::ffff:192.0.2.1").matches(IpAddr::from([192, 0, 3, 1])));
        assert_eq!(network("::ffff:192.0.2.1"), network("192.0.2.1"));
    }

    #[test]
    fn malformed_patterns_are_rejected() {
        for text in
            ["", "192.0.2", "192.0.*.1", "1.2.3.4.*", "300.*", "10.0.0.0/33", "::/129", "x/3", "1.2.3.4/"]
        {
            assert_eq!(text.parse::<AddressPattern>(), Err(PatternSyntaxError), "{text}");
        }
    }

    #[test]
    fn a_full_ban_list_refuses_bans_until_others_expire() {
        let mut bans = BanList::new();
        for number in 0..MAX_BANS {
            let until = Instant::from_micros(number as u64);
            let address = Ipv4Addr::from_bits(number as u32);
            assert_eq!(bans.add(address.into(), Some(until)), Ok(()));
        }
        let another = AddressPattern::from(Ipv6Addr::LOCALHOST);
        assert_eq!(bans.add(another, None), Err(BanListFull));
        bans.expire(Instant::from_micros(10));
        assert_eq!(bans.iter().count(), MAX_BANS - 11);
        assert_eq!(bans.add(another, None), Ok(()));
        assert!(bans.remove(another) && !bans.remove(another));
    }
}
