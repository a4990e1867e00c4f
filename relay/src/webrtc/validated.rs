//! Validated source addresses: those that have proved that they receive datagrams.
//!
//! A source that sends a check receives a check in return. The transaction id of that check is a keyed hash of the
//! source's address, and contains the session and the time. No state is therefore needed before the answer (compare RFC
//! 9000 section 8.1).

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use hmac::digest::KeyInit;
use hmac::{Hmac, Mac};
use sha1::Sha1;

use super::stun::Transaction;
use crate::front::{FREE_SHARE, Places, site};

/// The time resolution of a transaction, which is valid for 256 ticks, because the time takes one byte.
const TICK: Duration = Duration::from_millis(40);

/// The time for which a source counts as validated: the time limit of a handshake.
const LIFETIME: Duration = Duration::from_secs(10);

/// The maximum number of validated sources in total.
const SOURCES: usize = 8_192;
/// The maximum number of validated sources by site, an IPv4 /24 or an IPv6 /48.
///
/// A site also gets at most a quarter of the free slots, so that no number of busy sites takes every slot.
const SOURCES_OF_SITE: usize = 512;

/// The number of bytes of a transaction that prove its origin, before the time and the session.
const PROOF: usize = 6;

/// The key of the hashes in transactions.
pub(crate) type ChallengeKey = [u8; 20];

/// An ICE session, identified by a hash of both user names. The hash fits into a transaction id, next to the proof and
/// the time.
///
/// The hash has a random key, so that a page cannot choose the hash of another page. Among 10,000 sessions, the
/// probability of a collision is 1 in 22,000 (n² / 2⁴¹). After a collision, the later session does not follow its page
/// to another port, and the earlier session receives datagrams from that port that it cannot decrypt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct IceSession([u8; 5]);

/// The session and the time of a check.
#[derive(Clone, Copy, Debug)]
struct Noted {
    session: IceSession,
    /// The tick of the check.
    at: u64,
}

/// The source addresses that have answered a challenge recently.
#[derive(Debug)]
pub(super) struct Validated {
    key: Hmac<Sha1>,
    start: Instant,
    /// The sources, with the last check of each.
    sources: HashMap<SocketAddr, Noted>,
    hasher: RandomState,
    /// The expiry of each source, the earliest first.
    ends: VecDeque<(Instant, SocketAddr)>,
    /// The number of sources by site.
    of_site: Places,
}

impl Validated {
    /// Creates an empty set. Returns `None` if the HMAC library rejects the key, which cannot happen with a key of this
    /// length.
    pub(super) fn new(key: &ChallengeKey, now: Instant) -> Option<Self> {
        Some(Self {
            key: Hmac::new_from_slice(key).ok()?,
            start: now,
            sources: HashMap::new(),
            hasher: RandomState::new(),
            ends: VecDeque::new(),
            of_site: Places::default(),
        })
    }

    /// Returns the transaction of a check that is sent to `to` now, in response to a check of this session.
    pub(super) fn transaction(&self, now: Instant, to: SocketAddr, session: IceSession) -> Transaction {
        let at = self.tick(now);
        let sum = self.hash(at, to, session).finalize().into_bytes();
        let [low, ..] = at.to_le_bytes();
        let parts = sum.into_iter().take(PROOF).chain([low]).chain(session.0);
        let mut transaction = Transaction::default();
        transaction.iter_mut().zip(parts).for_each(|(to, from)| *to = from);
        transaction
    }

    /// Records that a source has answered. Returns the session of the source's last check, which may have changed in
    /// the meantime, or `None` if the transaction was not sent to this source or has expired.
    pub(super) fn validate(
        &mut self,
        now: Instant,
        from: SocketAddr,
        transaction: &Transaction,
    ) -> Option<IceSession> {
        let (proof, of) = transaction.split_at(PROOF);
        let (low, session) = of.split_first()?;
        let session = IceSession(session.try_into().ok()?);
        let tick = self.tick(now);
        let [low_now, ..] = tick.to_le_bytes();
        let at = tick.checked_sub(low_now.wrapping_sub(*low).into())?;
        self.hash(at, from, session).verify_truncated_left(proof).ok()?;
        self.insert(now, from, Noted { session, at });
        self.session(from)
    }

    /// Returns true if a source has answered recently.
    pub(super) fn contains(&mut self, now: Instant, source: SocketAddr) -> bool {
        self.expire(now);
        self.sources.contains_key(&source)
    }

    /// Records the session of a check. Returns false if its source has not answered recently.
    pub(super) fn note(&mut self, now: Instant, source: SocketAddr, session: IceSession) -> bool {
        let at = self.tick(now);
        self.note_check(now, source, Noted { session, at })
    }

    /// Records a check, unless a later check of another page is already recorded.
    fn note_check(&mut self, now: Instant, source: SocketAddr, check: Noted) -> bool {
        self.expire(now);
        let noted = self.sources.get_mut(&source);
        noted.map(|noted| *noted = if check.at < noted.at { *noted } else { check }).is_some()
    }

    /// Returns the session of a source's last check.
    pub(super) fn session(&self, of: SocketAddr) -> Option<IceSession> {
        self.sources.get(&of).map(|noted| noted.session)
    }

    /// Returns true if no source is stored.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.sources.is_empty() && self.ends.is_empty() && self.of_site.taken() == 0
    }

    /// Returns the session with these user names.
    pub(super) fn session_with(&self, username: &[u8]) -> IceSession {
        let [session @ .., _, _, _] = self.hasher.hash_one(username).to_be_bytes();
        IceSession(session)
    }

    fn insert(&mut self, now: Instant, from: SocketAddr, check: Noted) {
        if self.note_check(now, from, check) {
            return;
        }
        let site = site(from.ip());
        let free = SOURCES.saturating_sub(self.sources.len());
        if !self.of_site.admits(site, SOURCES_OF_SITE.min(free / FREE_SHARE)) {
            // The oldest source of the site is evicted, so that no other source of the site can keep its slots for
            // long.
            self.remove_first_of(site);
        } else if free == 0 {
            self.remove_first();
        }
        self.sources.insert(from, check);
        self.ends.push_back((now + LIFETIME, from));
        self.of_site.take(site);
    }

    fn expire(&mut self, now: Instant) {
        while self.ends.front().is_some_and(|(end, _)| *end <= now) {
            self.remove_first();
        }
    }

    fn remove_first(&mut self) {
        if let Some((_, source)) = self.ends.pop_front() {
            self.forget(source);
        }
    }

    fn remove_first_of(&mut self, of: IpAddr) {
        let first = self.ends.iter().position(|(_, source)| site(source.ip()) == of);
        if let Some((_, source)) = first.and_then(|first| self.ends.remove(first)) {
            self.forget(source);
        }
    }

    fn forget(&mut self, source: SocketAddr) {
        self.sources.remove(&source);
        self.of_site.release(site(source.ip()));
    }

    fn tick(&self, now: Instant) -> u64 {
        let ticks = now.saturating_duration_since(self.start).as_millis() / TICK.as_millis();
        u64::try_from(ticks).unwrap_or(u64::MAX)
    }

    fn hash(&self, at: u64, source: SocketAddr, IceSession(session): IceSession) -> Hmac<Sha1> {
        let mut mac = self.key.clone();
        mac.update(&at.to_be_bytes());
        mac.update(&session);
        mac.update(&source.port().to_be_bytes());
        match source.ip() {
            IpAddr::V4(ip) => mac.update(&ip.octets()),
            IpAddr::V6(ip) => mac.update(&ip.octets()),
        }
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: IceSession = IceSession([1; 5]);

    fn validated() -> (Validated, Instant) {
        let now = Instant::now();
        (Validated::new(&[3; 20], now).unwrap(), now)
    }

    fn source(network: u16, port: u16) -> SocketAddr {
        let [high, low] = network.to_be_bytes();
        ([10, high, low, 1], port).into()
    }

    #[test]
    fn a_source_is_validated_only_by_its_transaction() {
        let (mut validated, now) = validated();
        let (honest, other) = (source(1, 1), source(1, 2));
        let [first, second] = [b"a", b"b"].map(|name| validated.session_with(name));
        let transaction = validated.transaction(now, honest, first);
        assert_eq!(validated.validate(now, other, &transaction), None);
        for at in 0..transaction.len() {
            let mut changed = transaction;
            changed[at] ^= 1;
            assert_eq!(validated.validate(now, honest, &changed), None, "{at}");
        }
        assert!(!validated.contains(now, honest) && !validated.contains(now, other));
        let soon = now + LIFETIME / 2;
        assert_eq!(validated.validate(soon, honest, &transaction), Some(first));
        assert!(validated.contains(soon + LIFETIME / 2, honest));
        assert_eq!(validated.session(honest), Some(first));
        assert!(validated.note(soon, honest, second) && !validated.note(soon, other, first));
        assert_eq!(validated.session(honest), Some(second));
        assert!(!validated.contains(soon + LIFETIME, honest));
        assert!(validated.is_empty());
    }

    #[test]
    fn a_transaction_expires() {
        let (mut validated, now) = validated();
        let transaction = validated.transaction(now, source(1, 1), FIRST);
        for ticks in [256, 257, 512] {
            assert_eq!(validated.validate(now + ticks * TICK, source(1, 1), &transaction), None, "{ticks}");
        }
        assert_eq!(validated.validate(now + 255 * TICK, source(1, 1), &transaction), Some(FIRST));
    }

    #[test]
    fn the_newest_check_determines_the_session_of_a_source() {
        let (mut validated, now) = validated();
        let from = source(1, 1);
        let [first, second, third] = [b"a", b"b", b"c"].map(|name| validated.session_with(name));
        let at = |ticks| now + ticks * TICK;
        let of_first = validated.transaction(at(0), from, first);
        let of_second = validated.transaction(at(1), from, second);
        // The previous page does not know yet that another page has replaced it.
        assert_eq!(validated.validate(at(2), from, &of_second), Some(second));
        assert_eq!(validated.validate(at(3), from, &of_first), Some(second));
        assert_eq!(validated.session(from), Some(second));
        assert!(validated.note(at(4), from, third));
        assert_eq!(validated.validate(at(5), from, &of_second), Some(third));
        let of_first = validated.transaction(at(6), from, first);
        assert_eq!(validated.validate(at(7), from, &of_first), Some(first));
    }

    #[test]
    fn sources_are_bounded_by_site_and_in_total() {
        let (mut validated, now) = validated();
        let answer = |validated: &mut Validated, from| {
            let transaction = validated.transaction(now, from, FIRST);
            assert_eq!(validated.validate(now, from, &transaction), Some(FIRST));
            assert!(validated.contains(now, from));
        };
        // Eight sites of each address family, with many ports and networks.
        for number in 0..1_000_u16 {
            for of in 0..8_u16 {
                answer(&mut validated, source(of, number));
                answer(&mut validated, ([0x2001, 0xdb8, of, number, 0, 0, 0, 1], 1).into());
            }
        }
        let [taken, of_sites] = [validated.sources.len(), validated.of_site.taken()];
        assert!((6_000..7_500).contains(&taken), "{taken}");
        assert_eq!([of_sites, validated.ends.len()], [taken; 2]);
        // Other sites have separate slots, and are never evicted for this site.
        let other = source(100, 1);
        answer(&mut validated, other);
        for number in 0..1_000 {
            answer(&mut validated, source(1, 10_000 + number));
        }
        assert!(validated.contains(now, other));
    }
}
