//! Sources that have shown that they receive what is sent to them: a source with a check is sent a check in turn, whose
//! transaction is a keyed hash of its address and names its session, so that nothing is kept before the answer (RFC 9000 section
//! 8.1 has the same idea).

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use hmac::digest::KeyInit;
use hmac::{Hmac, Mac};
use sha1::Sha1;

use super::stun::Transaction;
use crate::sites::{FREE_SHARE, Places, site};

/// How long a transaction counts, and at most as long again.
const PERIOD: Duration = Duration::from_secs(5);

/// How long a source counts as validated, which is as long as a handshake may take.
const LIFETIME: Duration = Duration::from_secs(10);

/// Validated sources: all together, and of a site (a /24 of IPv4, a /48 of IPv6), which has at most a quarter of what is free,
/// too. So each further site that takes all it gets leaves some to others.
const SOURCES: usize = 8_192;
const SOURCES_OF_SITE: usize = 512;

/// How much of a transaction proves that the relay has made it. The rest is the session.
const PROOF: usize = 8;

/// The key of the transactions.
pub(crate) type ChallengeKey = [u8; 20];

/// A session in ICE, as a hash of both user names, which fits into a transaction beside the proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct IceSession(u32);

/// See the module.
#[derive(Debug)]
pub(super) struct Validated {
    key: Hmac<Sha1>,
    start: Instant,
    /// The sources, with the session in ICE of the last check of each.
    sources: HashMap<SocketAddr, IceSession>,
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
        let sum = self.hash(self.period(now), to, session).finalize().into_bytes();
        let mut transaction = Transaction::default();
        let (proof, of) = transaction.split_at_mut(PROOF);
        proof.iter_mut().zip(sum).for_each(|(to, from)| *to = from);
        of.copy_from_slice(&session.0.to_be_bytes());
        transaction
    }

    /// Notes that a source has answered, and returns its session. `None` if it was not sent this transaction, or too long ago.
    pub(super) fn validate(
        &mut self,
        now: Instant,
        from: SocketAddr,
        transaction: &Transaction,
    ) -> Option<IceSession> {
        let (proof, of) = transaction.split_at(PROOF);
        let session = IceSession(u32::from_be_bytes(of.try_into().ok()?));
        let period = self.period(now);
        let mut periods = [Some(period), period.checked_sub(1)].into_iter().flatten();
        periods.find(|period| self.hash(*period, from, session).verify_truncated_left(proof).is_ok())?;
        self.insert(now, from, session);
        Some(session)
    }

    /// Whether a source has answered lately.
    pub(super) fn contains(&mut self, now: Instant, source: SocketAddr) -> bool {
        self.expire(now);
        self.sources.contains_key(&source)
    }

    /// Notes the session of a check. False if its source has not answered lately.
    pub(super) fn note(&mut self, now: Instant, source: SocketAddr, session: IceSession) -> bool {
        self.expire(now);
        self.sources.get_mut(&source).map(|noted| *noted = session).is_some()
    }

    /// The session of the last check of a source.
    pub(super) fn session(&self, of: SocketAddr) -> Option<IceSession> {
        self.sources.get(&of).copied()
    }

    /// Whether nothing is kept of anybody.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.sources.is_empty() && self.ends.is_empty() && self.of_site.taken() == 0
    }

    /// The session with these user names.
    pub(super) fn session_with(&self, username: &[u8]) -> IceSession {
        IceSession(self.hasher.hash_one(username) as u32)
    }

    fn insert(&mut self, now: Instant, from: SocketAddr, session: IceSession) {
        if self.note(now, from, session) {
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
        self.sources.insert(from, session);
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

    fn period(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.start).as_secs() / PERIOD.as_secs()
    }

    fn hash(&self, period: u64, source: SocketAddr, IceSession(session): IceSession) -> Hmac<Sha1> {
        let mut mac = self.key.clone();
        mac.update(&period.to_be_bytes());
        mac.update(&session.to_be_bytes());
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
        let soon = now + PERIOD;
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
        let transaction = validated.transaction(now, source(1, 1), IceSession(1));
        assert_eq!(validated.validate(now + 2 * PERIOD, source(1, 1), &transaction), None);
    }

    #[test]
    fn sources_are_bounded_of_a_site_and_in_all_and_the_latest_stays() {
        let (mut validated, now) = validated();
        let answer = |validated: &mut Validated, from| {
            let transaction = validated.transaction(now, from, IceSession(1));
            assert_eq!(validated.validate(now, from, &transaction), Some(IceSession(1)));
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
