//! Sources that have shown that they receive what is sent to them: a source with a check is sent a check in turn, whose
//! transaction is a keyed hash of its address and names its session and the time, so that nothing is kept before the answer (RFC 9000
//! section 8.1 has the same idea).

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use hmac::digest::KeyInit;
use hmac::{Hmac, Mac};
use sha1::Sha1;

use super::stun::Transaction;
use crate::front::{FREE_SHARE, Places, site};

/// How exactly a transaction has its time. It counts for 256 of these, as it has a byte for that.
const TICK: Duration = Duration::from_millis(40);

/// How long a source counts as validated, which is as long as a handshake may take.
const LIFETIME: Duration = Duration::from_secs(10);

/// Validated sources: all together, and of a site (a /24 of IPv4, a /48 of IPv6), which has at most a quarter of what is free,
/// too. So each further site that takes all it gets leaves some to others.
const SOURCES: usize = 8_192;
const SOURCES_OF_SITE: usize = 512;

/// How much of a transaction proves that the relay has made it. The time and the session follow.
const PROOF: usize = 6;

/// The key of the transactions.
pub(crate) type ChallengeKey = [u8; 20];

/// A session in ICE, as a hash of both user names, which fits into a transaction beside the proof and the time.
///
/// The hash has a random key, so that no page can choose the one of another. Of 10,000 sessions two have the same once in 22,000 times
/// (n² / 2⁴¹): the later one then does not follow its page to another port, and what comes from there is what the earlier one cannot decrypt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct IceSession([u8; 5]);

/// The session of a check.
#[derive(Clone, Copy, Debug)]
struct Noted {
    session: IceSession,
    /// The tick of the check.
    at: u64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Validated {
    key: Hmac<Sha1>,
    start: Instant,
    /// The sources, with the last check of each.
    sources: HashMap<SocketAddr, Noted>,
    hasher: RandomState,
    /// Until when each source counts, the earliest first.
    ends: VecDeque<(Instant, SocketAddr)>,
    /// How many there are of each site.
    of_site: Places,
}

impl Validated {
    /// `None` if the library for HMAC refuses the key, which none of its length does.
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

    /// The transaction of a check that is sent to a source now, after one of this session.
    pub(super) fn transaction(&self, now: Instant, to: SocketAddr, session: IceSession) -> Transaction {
        let at = self.tick(now);
        let sum = self.hash(at, to, session).finalize().into_bytes();
        let [low, ..] = at.to_le_bytes();
        let parts = sum.into_iter().take(PROOF).chain([low]).chain(session.0);
        let mut transaction = Transaction::default();
        transaction.iter_mut().zip(parts).for_each(|(to, from)| *to = from);
        transaction
    }

    /// Notes that a source has answered, and returns the session of its last check, which may be another one by now. `None` if it
    /// was not sent this transaction, or too long ago.
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

    /// Whether a source has answered lately.
    pub(super) fn contains(&mut self, now: Instant, source: SocketAddr) -> bool {
        self.expire(now);
        self.sources.contains_key(&source)
    }

    /// Notes the session of a check. False if its source has not answered lately.
    pub(super) fn note(&mut self, now: Instant, source: SocketAddr, session: IceSession) -> bool {
        let at = self.tick(now);
        self.note_check(now, source, Noted { session, at })
    }

    /// A check that is older than the one of another page, whose answer came later, changes nothing.
    fn note_check(&mut self, now: Instant, source: SocketAddr, check: Noted) -> bool {
        self.expire(now);
        let noted = self.sources.get_mut(&source);
        noted.map(|noted| *noted = if check.at < noted.at { *noted } else { check }).is_some()
    }

    /// The session of the last check of a source.
    pub(super) fn session(&self, of: SocketAddr) -> Option<IceSession> {
        self.sources.get(&of).map(|noted| noted.session)
    }

    /// Whether nothing is kept of anybody.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.sources.is_empty() && self.ends.is_empty() && self.of_site.taken() == 0
    }

    /// The session with these user names.
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
            // A neighbour keeps nothing for itself for long.
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
        self.of_site.give_back(site(source.ip()));
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
    fn a_source_is_validated_by_the_transaction_that_was_sent_to_it() {
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
    fn a_transaction_does_not_count_for_ever() {
        let (mut validated, now) = validated();
        let transaction = validated.transaction(now, source(1, 1), FIRST);
        for ticks in [256, 257, 512] {
            assert_eq!(validated.validate(now + ticks * TICK, source(1, 1), &transaction), None, "{ticks}");
        }
        assert_eq!(validated.validate(now + 255 * TICK, source(1, 1), &transaction), Some(FIRST));
    }

    #[test]
    fn the_session_of_a_source_is_that_of_its_newest_check_whichever_answer_comes_last() {
        let (mut validated, now) = validated();
        let from = source(1, 1);
        let [first, second, third] = [b"a", b"b", b"c"].map(|name| validated.session_with(name));
        let at = |ticks| now + ticks * TICK;
        let of_first = validated.transaction(at(0), from, first);
        let of_second = validated.transaction(at(1), from, second);
        // The page before has not heard that it is gone.
        assert_eq!(validated.validate(at(2), from, &of_second), Some(second));
        assert_eq!(validated.validate(at(3), from, &of_first), Some(second));
        assert_eq!(validated.session(from), Some(second));
        assert!(validated.note(at(4), from, third));
        assert_eq!(validated.validate(at(5), from, &of_second), Some(third));
        let of_first = validated.transaction(at(6), from, first);
        assert_eq!(validated.validate(at(7), from, &of_first), Some(first));
    }

    #[test]
    fn sources_are_bounded_of_a_site_and_in_all_and_the_latest_stays() {
        let (mut validated, now) = validated();
        let answer = |validated: &mut Validated, from| {
            let transaction = validated.transaction(now, from, FIRST);
            assert_eq!(validated.validate(now, from, &transaction), Some(FIRST));
            assert!(validated.contains(now, from));
        };
        // Eight sites of each version, with as many ports and networks as they like.
        for number in 0..1_000_u16 {
            for of in 0..8_u16 {
                answer(&mut validated, source(of, number));
                answer(&mut validated, ([0x2001, 0xdb8, of, number, 0, 0, 0, 1], 1).into());
            }
        }
        let [taken, of_sites] = [validated.sources.len(), validated.of_site.taken()];
        assert!((6_000..7_500).contains(&taken), "{taken}");
        assert_eq!([of_sites, validated.ends.len()], [taken; 2]);
        // Others have places of their own, which nothing takes from them.
        let other = source(100, 1);
        answer(&mut validated, other);
        for number in 0..1_000 {
            answer(&mut validated, source(1, 10_000 + number));
        }
        assert!(validated.contains(now, other));
    }
}
