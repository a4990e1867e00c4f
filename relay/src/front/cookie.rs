//! The cookie format of `docs/udp-front.md`: the value that a client must return to validate its address.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use siphasher::sip::SipHasher24;
use thiserror::Error;

/// The length of a cookie epoch in seconds. A cookie is accepted in its epoch and the next.
const EPOCH_SECONDS: u64 = 5;
/// The number of RakNet protocol versions that a cookie can encode, from 0.
const VERSIONS: u32 = 32;
/// A bit that is set in every seasoning of the Game Protocol, so that none looks like a packet header.
const SEASONING_MARK: u32 = 0x8000_0000;
/// The maximum number of keys of a front. All keys are tried for every cookie.
const KEYS_MAX: usize = 4;
/// Bytes of the hash input: address, port and epoch.
const INPUT: usize = 16 + 2 + 8;

/// A secret key of 16 bytes. Share it only with other fronts and verifiers of the same operator.
#[derive(Clone, PartialEq, Eq)]
pub struct CookieKey([u8; 16]);

impl CookieKey {
    /// Creates a key from these bytes, which must come from an unpredictable source.
    #[must_use]
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the 32-bit MAC of a client's address in an epoch.
    fn mac(&self, client: SocketAddr, epoch: u64) -> u32 {
        let address = match client.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let mut input = [0; INPUT];
        input[..16].copy_from_slice(&address.octets());
        input[16..18].copy_from_slice(&client.port().to_be_bytes());
        input[18..].copy_from_slice(&epoch.to_be_bytes());
        let hash = SipHasher24::new_with_key(&self.0).hash(&input);
        (hash >> 32) as u32
    }
}

/// A secret key. Its bytes are not printed.
impl fmt::Debug for CookieKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CookieKey(..)")
    }
}

/// Parses a key from 32 hexadecimal digits.
impl FromStr for CookieKey {
    type Err = CookieKeySyntaxError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_key = text.len() == 32 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = u128::from_str_radix(text, 16).ok().filter(|_| is_key);
        number.map(|number| Self(number.to_be_bytes())).ok_or(CookieKeySyntaxError::Digits)
    }
}

/// The keys of a front. The first key issues cookies, and cookies of all keys are accepted.
///
/// To rotate keys without refusing clients, insert the new key first, and remove the old one a few seconds later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CookieKeys(Vec<CookieKey>);

impl CookieKeys {
    /// Creates a set with a single key.
    #[must_use]
    pub fn single(key: CookieKey) -> Self {
        Self(vec![key])
    }

    /// Generates a key from the system's random numbers, for a front that shares it with no other.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self::single(CookieKey(bytes)))
    }

    fn first(&self) -> &CookieKey {
        // Every constructor stores at least one key.
        &self.0[0]
    }

    /// Returns a cookie for a RakNet client that announced `version`, or `None` if cookies cannot encode that version.
    pub(crate) fn issue(&self, client: SocketAddr, unix_seconds: u64, version: u8) -> Option<u32> {
        let version = u32::from(version);
        (version < VERSIONS).then(|| self.first().mac(client, unix_seconds / EPOCH_SECONDS) ^ version)
    }

    /// Returns the version encoded in a cookie, if it was issued to this client in this epoch or the previous one.
    pub(crate) fn verify(&self, client: SocketAddr, unix_seconds: u64, cookie: u32) -> Option<u8> {
        // All MACs are computed even after a match, so that the duration reveals nothing about them.
        self.live(client, unix_seconds).fold(None, |found, mac| {
            let version = mac ^ cookie;
            found.or_else(|| u8::try_from(version).ok().filter(|_| version < VERSIONS))
        })
    }

    /// Returns the seasoning with which a client of the Game Protocol must answer its pepper.
    pub(crate) fn seasoning(&self, client: SocketAddr, unix_seconds: u64) -> u32 {
        self.first().mac(client, unix_seconds / EPOCH_SECONDS) | SEASONING_MARK
    }

    /// Returns true if `word` is the seasoning of a client with this address in this epoch or the previous one.
    pub(crate) fn is_seasoning(&self, client: SocketAddr, unix_seconds: u64, word: u32) -> bool {
        self.live(client, unix_seconds).fold(false, |found, mac| found | (mac | SEASONING_MARK == word))
    }

    fn live(&self, client: SocketAddr, unix_seconds: u64) -> impl Iterator<Item = u32> {
        let epoch = unix_seconds / EPOCH_SECONDS;
        let epochs = [epoch, epoch.wrapping_sub(1)];
        self.0.iter().flat_map(move |key| epochs.map(|epoch| key.mac(client, epoch)))
    }
}

/// Parses one key per line. Empty lines and text after a `#` are ignored.
impl FromStr for CookieKeys {
    type Err = CookieKeySyntaxError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
        let keys: Result<Vec<CookieKey>, _> = lines.filter(|line| !line.is_empty()).map(str::parse).collect();
        match keys? {
            keys if keys.is_empty() => Err(CookieKeySyntaxError::Empty),
            keys if keys.len() > KEYS_MAX => Err(CookieKeySyntaxError::TooMany),
            keys => Ok(Self(keys)),
        }
    }
}

/// The reason why a file of keys is unusable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CookieKeySyntaxError {
    /// A line is not a key.
    #[error("write each key as 32 hexadecimal digits, as `openssl rand -hex 16` prints them")]
    Digits,
    /// The file contains no key.
    #[error("put at least one key into the file, 32 hexadecimal digits")]
    Empty,
    /// The file contains more than four keys.
    #[error("keep at most four keys: the current one, and those that it replaces")]
    TooMany,
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_700_000_000;

    fn keys(text: &str) -> CookieKeys {
        text.parse().unwrap()
    }

    fn client(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    const ONE: &str = "000102030405060708090a0b0c0d0e0f";
    const TWO: &str = "ffffffffffffffffffffffffffffffff";

    #[test]
    fn a_cookie_is_valid_for_two_epochs_and_one_client() {
        let (keys, others, at) = (keys(ONE), keys(TWO), client("192.0.2.1:1000"));
        let cookie = keys.issue(at, NOW, 11).unwrap();
        assert_eq!(keys.verify(at, NOW, cookie), Some(11));
        assert_eq!(keys.verify(at, NOW + 9, cookie), Some(11));
        assert_eq!(keys.verify(at, NOW + 10, cookie), None);
        assert_eq!(keys.verify(at, NOW - 1, cookie), None);
        assert_eq!(keys.verify(client("192.0.2.1:1001"), NOW, cookie), None);
        assert_eq!(keys.verify(client("192.0.2.2:1000"), NOW, cookie), None);
        assert_eq!(others.verify(at, NOW, cookie), None);
        assert_eq!(keys.verify(at, NOW, cookie ^ 0x20), None);
        assert_eq!(keys.issue(at, NOW, 32), None);
    }

    #[test]
    fn a_seasoning_is_valid_for_two_epochs_and_one_client() {
        let (keys, at) = (keys(ONE), client("[2001:db8::1]:1000"));
        let word = keys.seasoning(at, NOW);
        assert!(word & SEASONING_MARK != 0);
        assert!(keys.is_seasoning(at, NOW + 9, word) && !keys.is_seasoning(at, NOW + 10, word));
        assert!(!keys.is_seasoning(client("[2001:db8::2]:1000"), NOW, word));
    }

    #[test]
    fn cookies_of_the_previous_key_are_accepted_during_a_key_rotation() {
        let at = client("192.0.2.1:1000");
        let (before, between, after) =
            (keys(ONE), keys(&format!("{TWO} # since today\n\n{ONE}\n")), keys(TWO));
        let old = before.issue(at, NOW, 6).unwrap();
        let new = between.issue(at, NOW, 6).unwrap();
        assert_eq!(between.verify(at, NOW, old), Some(6));
        assert_eq!(after.verify(at, NOW, new), Some(6));
        assert_eq!(after.verify(at, NOW, old), None);
    }

    #[test]
    fn mapped_and_plain_ipv4_addresses_are_equal() {
        let keys = keys(ONE);
        let [v4, mapped] = ["192.0.2.1:7", "[::ffff:192.0.2.1]:7"].map(client);
        assert_eq!(keys.issue(v4, NOW, 6), keys.issue(mapped, NOW, 6));
    }

    #[test]
    fn unusable_key_files_have_a_reason() {
        let error = |text: &str| text.parse::<CookieKeys>().unwrap_err();
        assert_eq!(error("# nothing\n"), CookieKeySyntaxError::Empty);
        assert_eq!(error("12"), CookieKeySyntaxError::Digits);
        assert_eq!(error("+00102030405060708090a0b0c0d0e0f"), CookieKeySyntaxError::Digits);
        assert_eq!(error(&format!("{ONE}\n").repeat(5)), CookieKeySyntaxError::TooMany);
    }

    /// The table of docs/udp-front.md, which was computed independently of this code.
    #[test]
    fn cookies_match_the_published_vectors() {
        let keys = keys(ONE);
        let vectors = [
            ("192.0.2.1:19132", 1_700_000_000, 11, 0xF41A_5C7E, 0xF41A_5C75),
            ("192.0.2.1:19132", 1_700_000_000, 6, 0xF41A_5C73, 0xF41A_5C75),
            ("192.0.2.1:19132", 1_700_000_004, 11, 0xF41A_5C7E, 0xF41A_5C75),
            ("192.0.2.1:19132", 1_700_000_005, 11, 0xDF37_AC09, 0xDF37_AC02),
            ("192.0.2.1:19133", 1_700_000_000, 11, 0x41D9_55B6, 0xC1D9_55BD),
            ("[2001:db8::1]:54321", 1_700_000_000, 11, 0xA52B_130C, 0xA52B_1307),
            ("[2001:db8::1]:54321", 0, 6, 0xBFBC_0642, 0xBFBC_0644),
        ];
        for (source, time, version, cookie, seasoning) in vectors {
            let source = client(source);
            assert_eq!(keys.issue(source, time, version), Some(cookie), "{source} at {time}");
            assert_eq!(keys.verify(source, time, cookie), Some(version));
            assert_eq!(keys.seasoning(source, time), seasoning);
        }
    }

    #[test]
    fn debug_output_hides_keys() {
        assert_eq!(format!("{:?}", keys(TWO)), "CookieKeys([CookieKey(..)])");
    }
}
