//! Dispatches datagrams to sessions by their source address, and decides which datagrams begin a session. No state is
//! kept for a source before it has answered a check of the relay, and only briefly afterwards.
//!
//! A NAT may assign another port to a page. The page's checks then come from that port. Once the page has answered a
//! check there, datagrams from that port are also offered to its session. The session moves to the port once it has
//! decrypted one of them.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use super::counters::{WebRtcCounters, WebRtcDropReason};
use super::stun::{DatagramKind, Fingerprint, Password, RECEIVE_MAX, Stun, is_client_hello};
use super::validated::{ChallengeKey, IceSession, Validated};
use crate::front::{FREE_SHARE, Places, Rates, Rations, site};

/// The maximum number of challenges per second. A browser may send a few checks before it has answered a challenge.
const CHECKS: Rates = Rates { all: 20_000, network: 2_000 };

/// The maximum number of new sessions per second. Each session costs memory, and the time of a signature.
const SESSIONS: Rates = Rates { all: 500, network: 64 };

/// The maximum number of half-open sessions in total.
const HALF_OPEN: usize = 1_024;
/// The maximum number of half-open sessions by site: an IPv4 /24 or an IPv6 /48, with a quarter of the free slots at most.
const HALF_OPEN_OF_SITE: usize = 128;

/// The outcome of a datagram.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DatagramEvent<S> {
    /// Send this reply. No state is kept.
    Answer(Vec<u8>),
    /// Send the check, then the answer. The response to the check validates the source. No state is kept until then.
    Challenge { check: Vec<u8>, answer: Vec<u8> },
    /// The source has proved that it receives datagrams sent to it.
    Validated,
    /// Pass the datagram to these sessions of its source: the established session, and a half-open one.
    Sessions([Option<S>; 2]),
    /// Begin a session, and register it with [`Endpoint::open`].
    Begin,
    /// The datagram was dropped and counted.
    Dropped,
}

/// The outcome of a datagram, or the reason for dropping it.
type Handled<S> = Result<DatagramEvent<S>, WebRtcDropReason>;

/// The dispatcher of datagrams; see the module. `S` is a handle to a session.
#[derive(Debug)]
pub(crate) struct Endpoint<S> {
    password: Password,
    sessions: HashMap<SocketAddr, Entry<S>>,
    /// The locations of established sessions.
    places: HashMap<IceSession, Place>,
    /// Sessions by the ports to which their pages have moved.
    others: HashMap<SocketAddr, IceSession>,
    validated: Validated,
    /// The half-open sessions by number.
    half_open: BTreeMap<u64, SocketAddr>,
    /// The number of half-open sessions by site.
    half_open_of: Places,
    checks: Rations,
    begins: Rations,
    next_number: u64,
    counters: Arc<WebRtcCounters>,
}

/// The sessions of one source address. A reloaded page may reuse the port of its predecessor.
#[derive(Debug)]
struct Entry<S> {
    /// The established session, with its ICE session if that is known.
    proved: Option<(S, Option<IceSession>)>,
    /// The half-open session.
    half_open: Option<HalfOpen<S>>,
}

#[derive(Debug)]
struct HalfOpen<S> {
    number: u64,
    session: S,
    ice: Option<IceSession>,
}

/// The location of an established session.
#[derive(Debug)]
struct Place {
    at: SocketAddr,
    /// The port to which its page has moved since.
    other: Option<SocketAddr>,
}

impl<S> Default for Entry<S> {
    fn default() -> Self {
        Self { proved: None, half_open: None }
    }
}

impl<S: Clone + PartialEq> Endpoint<S> {
    /// Creates an endpoint. Returns `None` if the HMAC library rejects the key, which this length prevents.
    pub(crate) fn new(
        fingerprint: &Fingerprint,
        key: &ChallengeKey,
        counters: Arc<WebRtcCounters>,
        now: Instant,
    ) -> Option<Self> {
        Some(Self {
            password: Password::new(fingerprint)?,
            sessions: HashMap::new(),
            places: HashMap::new(),
            others: HashMap::new(),
            validated: Validated::new(key, now)?,
            half_open: BTreeMap::new(),
            half_open_of: Places::default(),
            checks: Rations::new(CHECKS),
            begins: Rations::new(SESSIONS),
            next_number: 0,
            counters,
        })
    }

    /// Handles a datagram that is STUN or DTLS.
    pub(crate) fn handle(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) -> DatagramEvent<S> {
        let event = match DatagramKind::of(datagram) {
            DatagramKind::Stun => self.stun(now, from, datagram),
            DatagramKind::Dtls => self.route(now, from, datagram),
            DatagramKind::Other => Err(WebRtcDropReason::Unreadable),
        };
        event.unwrap_or_else(|reason| {
            self.counters.dropped(reason);
            DatagramEvent::Dropped
        })
    }

    /// Returns the established session of a source address.
    pub(crate) fn session(&self, of: SocketAddr) -> Option<&S> {
        self.sessions.get(&of)?.proved.as_ref().map(|(session, _)| session)
    }

    fn stun(&mut self, now: Instant, from: SocketAddr, message: &[u8]) -> Handled<S> {
        match self.password.read(message)? {
            Stun::Check(check) => {
                let ice = self.validated.session_with(check.username);
                let is_validated = self.is_validated(now, from, ice);
                if !is_validated && !self.checks.admits(now, site(from.ip())) {
                    return Err(WebRtcDropReason::CheckRation);
                }
                let answer = self.password.answer(&check, from)?;
                if is_validated {
                    self.counters.answered();
                    self.note_port(from, ice);
                    return Ok(DatagramEvent::Answer(answer));
                }
                // The check is answered immediately. If the answer waited for the validation, the page would have to
                // wait until its next check.
                let check = check.challenge(&self.validated.transaction(now, from, ice))?;
                self.counters.answered();
                self.counters.challenged();
                Ok(DatagramEvent::Challenge { check, answer })
            }
            Stun::Answer(transaction) => {
                let ice = self.validated.validate(now, from, transaction);
                self.note_port(from, ice.ok_or(WebRtcDropReason::UnknownAnswer)?);
                Ok(DatagramEvent::Validated)
            }
        }
    }

    /// Returns true if the page of a check, known by its user names, has answered a challenge or has a live session.
    fn is_validated(&mut self, now: Instant, from: SocketAddr, ice: IceSession) -> bool {
        let proved = self.sessions.get(&from).and_then(|entry| entry.proved.as_ref());
        self.validated.note(now, from, ice) || proved.is_some_and(|(_, own)| *own == Some(ice))
    }

    /// Records the location of a page. If its session is at another port of the same address, the session may follow.
    fn note_port(&mut self, from: SocketAddr, ice: IceSession) {
        if self.sessions.contains_key(&from) {
            return;
        }
        // Limits and bans apply by address, so a session never moves to another one.
        let Some(place) = self.places.get_mut(&ice).filter(|place| place.at.ip() == from.ip()) else {
            return;
        };
        let former = place.other.replace(from).filter(|former| *former != from);
        if let Some(former) = former {
            self.others.remove(&former);
        }
        let former = self.others.insert(from, ice).filter(|former| *former != ice);
        if let Some(place) = former.and_then(|former| self.places.get_mut(&former)) {
            place.other = None;
        }
    }

    /// Returns the session of a page that has moved to this port.
    fn session_elsewhere(&self, page: SocketAddr) -> Option<&S> {
        self.session(self.places.get(self.others.get(&page)?)?.at)
    }

    /// Moves a session to another port from which it has decrypted a datagram, and returns true if it moved.
    pub(crate) fn follow(&mut self, from: SocketAddr, to: SocketAddr, session: &S) -> bool {
        self.try_follow(from, to, session).is_some()
    }

    fn try_follow(&mut self, from: SocketAddr, to: SocketAddr, session: &S) -> Option<()> {
        if self.sessions.contains_key(&to) {
            return None;
        }
        let place = self.places.get_mut(self.others.get(&to)?).filter(|place| place.at == from)?;
        let entry = self.sessions.get_mut(&from)?;
        let proved = entry.proved.take_if(|(proved, _)| proved == session)?;
        *place = Place { at: to, other: None };
        if entry.half_open.is_none() {
            self.sessions.remove(&from);
        }
        self.others.remove(&to);
        self.sessions.entry(to).or_default().proved = Some(proved);
        Some(())
    }

    fn route(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) -> Handled<S> {
        if datagram.len() > RECEIVE_MAX {
            return Err(WebRtcDropReason::Unreadable);
        }
        let is_hello = is_client_hello(datagram);
        match self.sessions.get(&from) {
            // The hello comes from a page that reuses the port of an earlier page, or its address is forged.
            Some(Entry { half_open: None, .. }) if is_hello => {}
            Some(Entry { proved, half_open }) => {
                let proved = proved.as_ref().map(|(session, _)| session.clone());
                let half_open = half_open.as_ref().map(|half_open| half_open.session.clone());
                return Ok(DatagramEvent::Sessions([proved, half_open]));
            }
            None if is_hello => {}
            None => {
                let session = self.session_elsewhere(from).cloned();
                let session = session.ok_or(WebRtcDropReason::UnknownSource)?;
                return Ok(DatagramEvent::Sessions([Some(session), None]));
            }
        }
        if !self.validated.contains(now, from) {
            return Err(WebRtcDropReason::UnvalidatedSource);
        }
        let site = site(from.ip());
        let free = HALF_OPEN.saturating_sub(self.half_open.len());
        let has_place = self.half_open_of.admits(site, HALF_OPEN_OF_SITE.min(free / FREE_SHARE));
        if !has_place || !self.begins.admits(now, site) {
            return Err(WebRtcDropReason::SessionRation);
        }
        Ok(DatagramEvent::Begin)
    }

    /// Registers a new session. Returns the session that was evicted for it, if any.
    pub(crate) fn open(&mut self, from: SocketAddr, session: S) -> Option<S> {
        let evicted = (self.half_open.len() >= HALF_OPEN).then(|| self.evict()).flatten();
        let number = self.next_number;
        self.next_number += 1;
        let ice = self.validated.session(from);
        self.sessions.entry(from).or_default().half_open = Some(HalfOpen { number, session, ice });
        self.half_open.insert(number, from);
        self.half_open_of.take(site(from.ip()));
        evicted
    }

    /// Marks the handshake of a session as complete. Returns the earlier session of its source address.
    pub(crate) fn prove(&mut self, from: SocketAddr, session: &S) -> Option<S> {
        let entry = self.sessions.get_mut(&from)?;
        let proved = entry.half_open.take_if(|half_open| half_open.session == *session)?;
        let former = entry.proved.replace((proved.session, proved.ice));
        self.forget_half_open(proved.number);
        if let Some((_, Some(ice))) = former {
            self.forget_place(from, ice);
        }
        if let Some(ice) = proved.ice {
            // A page that copies the user names of another page does not replace the location of that page.
            self.places.entry(ice).or_insert(Place { at: from, other: None });
        }
        former.map(|(session, _)| session)
    }

    /// Removes a session that has ended.
    pub(crate) fn close(&mut self, from: SocketAddr, session: &S) {
        let Some(entry) = self.sessions.get_mut(&from) else { return };
        let proved = entry.proved.take_if(|(proved, _)| proved == session);
        let closed = entry.half_open.take_if(|half_open| half_open.session == *session);
        if entry.proved.is_none() && entry.half_open.is_none() {
            self.sessions.remove(&from);
        }
        if let Some((_, Some(ice))) = proved {
            self.forget_place(from, ice);
        }
        if let Some(closed) = closed {
            self.forget_half_open(closed.number);
        }
    }

    /// Removes the location of a session that has ended.
    fn forget_place(&mut self, at: SocketAddr, ice: IceSession) {
        if self.places.get(&ice).is_some_and(|place| place.at == at) {
            let place = self.places.remove(&ice);
            place.and_then(|place| place.other).and_then(|other| self.others.remove(&other));
        }
    }

    /// Removes the oldest half-open session, and returns it.
    fn evict(&mut self) -> Option<S> {
        let (&number, &from) = self.half_open.first_key_value()?;
        let evicted = self.sessions.get_mut(&from)?.half_open.take()?.session;
        self.counters.dropped(WebRtcDropReason::HalfOpenFull);
        self.forget_half_open(number);
        if self.session(from).is_none() {
            self.sessions.remove(&from);
        }
        Some(evicted)
    }

    fn forget_half_open(&mut self, number: u64) {
        let Some(from) = self.half_open.remove(&number) else { return };
        self.half_open_of.release(site(from.ip()));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::stun::tests::{check, fingerprint, page_answer, username};
    use super::*;

    fn endpoint() -> (Endpoint<u32>, Arc<WebRtcCounters>, Instant) {
        let (counters, now) = (Arc::<WebRtcCounters>::default(), Instant::now());
        (Endpoint::new(&fingerprint(7), &[3; 20], Arc::clone(&counters), now).unwrap(), counters, now)
    }

    fn source(network: u16, port: u16) -> SocketAddr {
        let [high, low] = network.to_be_bytes();
        ([10, high, low, 1], port).into()
    }

    fn client_hello() -> Vec<u8> {
        [&[22, 0xfe, 0xfd][..], &[0; 8], &[0, 40], &[1], &[0; 39]].concat()
    }

    /// Returns a check of a page that knows the relay's fingerprint.
    fn page_check(name: &str) -> Vec<u8> {
        check(&Password::new(&fingerprint(7)).unwrap(), &username(name), 16)
    }

    /// Returns true if no state is kept for any source.
    fn keeps_nothing(endpoint: &Endpoint<u32>) -> bool {
        let Endpoint { sessions, places, others, validated, half_open, half_open_of, .. } = endpoint;
        sessions.is_empty()
            && places.is_empty()
            && others.is_empty()
            && validated.is_empty()
            && half_open.is_empty()
            && half_open_of.taken() == 0
    }

    /// Returns the challenge to a check. Asserts that challenge and answer are at most twice as long as the check.
    fn challenge(
        endpoint: &mut Endpoint<u32>,
        now: Instant,
        from: SocketAddr,
        page_check: &[u8],
    ) -> Option<Vec<u8>> {
        let event = endpoint.handle(now, from, page_check);
        let DatagramEvent::Challenge { check, answer } = event else { return None };
        assert!(check.len().max(answer.len()) <= page_check.len());
        Some(check)
    }

    /// Performs the steps of a page before its client hello: it sends a check, and answers the relay's challenge.
    fn validate(endpoint: &mut Endpoint<u32>, now: Instant, from: SocketAddr, name: &str) {
        let check = page_check(name);
        let challenge = challenge(endpoint, now, from, &check).expect("a challenge");
        assert_eq!(endpoint.handle(now, from, &page_answer(&challenge)), DatagramEvent::Validated);
        assert!(matches!(endpoint.handle(now, from, &check), DatagramEvent::Answer(_)));
    }

    /// Connects a page from this source.
    fn connect(endpoint: &mut Endpoint<u32>, now: Instant, from: SocketAddr, session: u32) {
        validate(endpoint, now, from, &session.to_string());
        assert_eq!(endpoint.handle(now, from, &client_hello()), DatagramEvent::Begin);
        assert_eq!(endpoint.open(from, session), None);
    }

    #[test]
    fn forged_checks_leave_no_state() {
        let (mut endpoint, counters, now) = endpoint();
        let right = page_check("a1b2");
        let wrong = check(&Password::new(&fingerprint(8)).unwrap(), &username("a1b2"), 16);
        let mut challenges = 0;
        for number in 0..100_000_u32 {
            let from = source((number >> 2) as u16, 1024 + (number & 3) as u16);
            let now = now + Duration::from_micros(100) * number;
            assert_eq!(endpoint.handle(now, from, &wrong), DatagramEvent::Dropped);
            challenges += u64::from(challenge(&mut endpoint, now, from, &right).is_some());
        }
        assert!(keeps_nothing(&endpoint));
        let snapshot = counters.snapshot();
        assert_eq!((snapshot.answers, snapshot.challenges), (challenges, challenges));
        let sum =
            |reasons: &[WebRtcDropReason]| reasons.iter().map(|reason| snapshot.drops(*reason)).sum::<u64>();
        assert_eq!(
            sum(&[WebRtcDropReason::WrongPassword, WebRtcDropReason::CheckRation]),
            200_000 - challenges
        );
        assert!(snapshot.drops(WebRtcDropReason::WrongPassword) > 90_000, "{snapshot:?}");
    }

    #[test]
    fn a_first_check_is_answered_and_challenged() {
        let (mut endpoint, counters, now) = endpoint();
        let (from, first) = (source(1, 1), page_check("a1b2"));
        let DatagramEvent::Challenge { check, answer } = endpoint.handle(now, from, &first) else {
            panic!("no challenge")
        };
        assert_eq!(DatagramKind::of(&answer), DatagramKind::Stun);
        assert_eq!(endpoint.handle(now, from, &client_hello()), DatagramEvent::Dropped);
        assert_eq!(counters.snapshot().drops(WebRtcDropReason::UnvalidatedSource), 1);
        assert_eq!(endpoint.handle(now, from, &page_answer(&check)), DatagramEvent::Validated);
        assert_eq!(endpoint.handle(now, from, &client_hello()), DatagramEvent::Begin);
        // A check from a validated source gets the same answer, without a challenge.
        assert_eq!(endpoint.handle(now, from, &first), DatagramEvent::Answer(answer));
    }

    #[test]
    fn one_check_per_port_suffices_to_follow_a_page() {
        let (mut endpoint, _, now) = endpoint();
        let [home, port] = [1, 2].map(|port| source(1, port));
        for from in [home, port] {
            let challenge = challenge(&mut endpoint, now, from, &page_check("7")).expect("a challenge");
            assert_eq!(endpoint.handle(now, from, &page_answer(&challenge)), DatagramEvent::Validated);
            if from == home {
                assert_eq!(endpoint.handle(now, from, &client_hello()), DatagramEvent::Begin);
                assert_eq!(endpoint.open(home, 7), None);
                assert_eq!(endpoint.prove(home, &7), None);
            }
        }
        assert_eq!(endpoint.handle(now, port, &[23; 60]), DatagramEvent::Sessions([Some(7), None]));
        assert!(endpoint.follow(home, port, &7));
    }

    #[test]
    fn a_duplicate_user_name_takes_over_no_session() {
        let (mut endpoint, _, now) = endpoint();
        let [first, second, port] = [1, 2, 3].map(|port| source(1, port));
        // A collision of hashes looks like equal user names.
        for (from, session) in [(first, 7), (second, 8)] {
            validate(&mut endpoint, now, from, "7");
            assert_eq!(endpoint.handle(now, from, &client_hello()), DatagramEvent::Begin);
            assert_eq!(endpoint.open(from, session), None);
            assert_eq!(endpoint.prove(from, &session), None);
        }
        let encrypted = [23; 60];
        for (from, session) in [(first, 7), (second, 8)] {
            assert_eq!(
                endpoint.handle(now, from, &encrypted),
                DatagramEvent::Sessions([Some(session), None])
            );
        }
        // Datagrams of the second page from another port are offered to the session of the first page, which cannot
        // decrypt them.
        validate(&mut endpoint, now, port, "7");
        assert_eq!(endpoint.handle(now, port, &encrypted), DatagramEvent::Sessions([Some(7), None]));
        assert!(!endpoint.follow(second, port, &8));
        assert!(endpoint.follow(first, port, &7));
        endpoint.close(port, &7);
        assert_eq!(endpoint.handle(now, second, &encrypted), DatagramEvent::Sessions([Some(8), None]));
        endpoint.close(second, &8);
        assert!(endpoint.sessions.is_empty() && endpoint.places.is_empty() && endpoint.others.is_empty());
    }

    #[test]
    fn a_forged_source_is_amplified_at_most_twofold() {
        let (mut endpoint, _, now) = endpoint();
        let victims: [SocketAddr; 2] = [source(1, 1), "[2001:db8::1]:1".parse().unwrap()];
        for (room, victim) in (0..200).flat_map(|room| victims.map(|victim| (room * 4, victim))) {
            let forged = check(&Password::new(&fingerprint(7)).unwrap(), &username("a"), room);
            let event = endpoint.handle(now, victim, &forged);
            if let DatagramEvent::Challenge { check, answer } = event {
                assert!(check.len() + answer.len() <= 2 * forged.len(), "{room}");
            } else {
                assert_eq!((event, forged.len() > 512), (DatagramEvent::Dropped, true));
            }
        }
        assert!(keeps_nothing(&endpoint));
    }

    #[test]
    fn a_flood_of_checks_is_limited_by_rate() {
        let (mut endpoint, counters, now) = endpoint();
        let right = page_check("a1b2");
        for number in 0..60_000_u32 {
            endpoint.handle(now, source(number as u16, 1), &right);
        }
        assert_eq!(counters.snapshot().challenges, u64::from(CHECKS.all));
        for port in 0..5_000 {
            endpoint.handle(now + Duration::from_secs(1), source(1, port), &right);
        }
        let snapshot = counters.snapshot();
        assert_eq!([snapshot.challenges, snapshot.answers], [u64::from(CHECKS.all + CHECKS.network); 2]);
    }

    #[test]
    fn only_a_client_hello_begins_a_session() {
        let (mut endpoint, counters, now) = endpoint();
        let hello = client_hello();
        for other in [&[23_u8; 60][..], &[20; 14], &hello[..13]] {
            assert_eq!(endpoint.handle(now, source(1, 1), other), DatagramEvent::Dropped);
        }
        assert_eq!(counters.snapshot().drops(WebRtcDropReason::UnknownSource), 3);
        assert_eq!(
            endpoint.handle(now, source(1, 1), &[&hello[..], &[0; RECEIVE_MAX]].concat()),
            DatagramEvent::Dropped
        );
        connect(&mut endpoint, now, source(1, 1), 5);
        assert_eq!(endpoint.handle(now, source(1, 1), &[23; 60]), DatagramEvent::Sessions([None, Some(5)]));
        endpoint.close(source(1, 1), &4);
        assert_eq!(endpoint.prove(source(1, 1), &5), None);
        assert_eq!(endpoint.session(source(1, 1)), Some(&5));
        endpoint.close(source(1, 1), &5);
        assert_eq!(endpoint.handle(now, source(1, 1), &[23; 60]), DatagramEvent::Dropped);
        assert!(endpoint.half_open.is_empty() && endpoint.half_open_of.taken() == 0);
    }

    #[test]
    fn only_an_established_session_replaces_the_session_of_its_source() {
        let (mut endpoint, counters, now) = endpoint();
        let (from, hello) = (source(1, 1), client_hello());
        connect(&mut endpoint, now, from, 1);
        endpoint.prove(from, &1);
        let now = now + Duration::from_secs(60);
        // A forger's hello begins no session.
        assert_eq!(endpoint.handle(now, from, &hello), DatagramEvent::Dropped);
        assert_eq!(counters.snapshot().drops(WebRtcDropReason::UnvalidatedSource), 1);
        // Checks of this page are answered. Checks of a page loaded later are challenged.
        assert!(matches!(endpoint.handle(now, from, &page_check("1")), DatagramEvent::Answer(_)));
        connect(&mut endpoint, now, from, 2);
        let both = DatagramEvent::Sessions([Some(1), Some(2)]);
        assert_eq!(endpoint.handle(now, from, &hello), both);
        assert_eq!(endpoint.handle(now, from, &[23; 60]), both);
        endpoint.close(from, &2);
        assert_eq!(endpoint.handle(now, from, &[23; 60]), DatagramEvent::Sessions([Some(1), None]));

        assert_eq!(endpoint.handle(now, from, &hello), DatagramEvent::Begin);
        endpoint.open(from, 3);
        assert_eq!(endpoint.prove(from, &3), Some(1));
        assert_eq!(endpoint.prove(from, &1), None);
        endpoint.close(from, &1);
        assert_eq!(endpoint.session(from), Some(&3));
        endpoint.close(from, &3);
        // The source counts as validated for a while.
        assert!(
            !keeps_nothing(&endpoint) && !endpoint.validated.contains(now + Duration::from_secs(60), from)
        );
        assert!(keeps_nothing(&endpoint));
    }

    #[test]
    fn a_session_moves_after_a_check_and_encrypted_data() {
        let (mut endpoint, counters, now) = endpoint();
        let [home, port, third] = [1, 2, 3].map(|port| source(1, port));
        let encrypted = [23; 60];
        connect(&mut endpoint, now, home, 7);
        assert_eq!(endpoint.prove(home, &7), None);

        // A check alone is not sufficient. A check with other user names, or from another address, belongs to another
        // page.
        assert_eq!(endpoint.handle(now, port, &encrypted), DatagramEvent::Dropped);
        assert!(challenge(&mut endpoint, now, port, &page_check("7")).is_some());
        assert_eq!(endpoint.handle(now, port, &encrypted), DatagramEvent::Dropped);
        validate(&mut endpoint, now, third, "8");
        validate(&mut endpoint, now, source(2, 1), "7");
        for other in [third, source(2, 1)] {
            assert_eq!(endpoint.handle(now, other, &encrypted), DatagramEvent::Dropped);
            assert!(!endpoint.follow(home, other, &7));
        }
        assert_eq!(counters.snapshot().drops(WebRtcDropReason::UnknownSource), 4);

        validate(&mut endpoint, now, port, "7");
        let session = DatagramEvent::Sessions([Some(7), None]);
        for from in [port, home] {
            assert_eq!(endpoint.handle(now, from, &encrypted), session);
        }
        assert_eq!((endpoint.session(home), endpoint.session(port)), (Some(&7), None));
        assert!(!endpoint.follow(home, port, &8) && endpoint.follow(home, port, &7));
        assert_eq!((endpoint.session(home), endpoint.session(port)), (None, Some(&7)));
        assert_eq!(endpoint.handle(now, home, &encrypted), DatagramEvent::Dropped);

        // A session follows its page only to the latest port, and never to the port of another session.
        for from in [home, third] {
            validate(&mut endpoint, now + Duration::from_secs(20), from, "7");
        }
        assert!(!endpoint.follow(port, home, &7));
        connect(&mut endpoint, now + Duration::from_secs(40), third, 9);
        assert!(!endpoint.follow(port, third, &7));
        endpoint.close(third, &9);
        endpoint.close(port, &7);
        assert!(!endpoint.validated.contains(now + Duration::from_secs(60), port));
        assert!(keeps_nothing(&endpoint));
    }

    /// Begins sessions from all these addresses, one per millisecond.
    fn flood(
        endpoint: &mut Endpoint<u32>,
        from: impl Fn(u32) -> SocketAddr,
        now: Instant,
        count: u32,
    ) -> u32 {
        let mut begun = 0;
        let check = page_check("flood");
        for number in 0..count {
            let (from, now) = (from(number), now + Duration::from_millis(u64::from(number)));
            if let Some(challenge) = challenge(endpoint, now, from, &check) {
                endpoint.handle(now, from, &page_answer(&challenge));
            }
            if endpoint.handle(now, from, &client_hello()) == DatagramEvent::Begin {
                endpoint.open(from, number);
                begun += 1;
            }
        }
        begun
    }

    #[test]
    fn half_open_sessions_are_bounded_by_network_and_in_total() {
        let (mut endpoint, counters, now) = endpoint();
        let proved = source(9_999, 1);
        connect(&mut endpoint, now, proved, u32::MAX);
        endpoint.prove(proved, &u32::MAX);
        assert_eq!(
            flood(&mut endpoint, |number| source(1, number as u16), now, 20_000),
            HALF_OPEN_OF_SITE as u32
        );
        assert_eq!(endpoint.half_open.len(), HALF_OPEN_OF_SITE);
        let now = now + Duration::from_secs(60);
        let begun =
            flood(&mut endpoint, |number| source(2 + (number >> 4) as u16, number as u16), now, 20_000);
        assert!(begun > 1_500, "{begun}");
        assert_eq!(endpoint.half_open.len(), HALF_OPEN);
        assert_eq!(endpoint.sessions.len(), HALF_OPEN + 1);
        assert!(counters.snapshot().drops(WebRtcDropReason::HalfOpenFull) > 0);
        // An established session is not evicted.
        assert_eq!(endpoint.session(proved), Some(&u32::MAX));
    }

    #[test]
    fn a_handshake_succeeds_among_ten_thousand_forged_per_second() {
        let (mut endpoint, counters, now) = endpoint();
        let (hello, forged_check) = (client_hello(), page_check("forged"));
        for number in 0..50_000_u32 {
            let now = now + Duration::from_micros(100) * number;
            let forged = source((number % 1_000) as u16, (number / 1_000) as u16);
            assert_eq!(endpoint.handle(now, forged, &hello), DatagramEvent::Dropped);
            endpoint.handle(now, forged, &forged_check);
            endpoint.handle(now, forged, &page_answer(&forged_check));
            if number % 500 == 0 {
                let honest = source(20_000 + (number / 500) as u16, 1);
                connect(&mut endpoint, now, honest, number);
                endpoint.prove(honest, &number);
            }
        }
        assert_eq!(endpoint.sessions.len(), 100);
        assert!(endpoint.half_open.is_empty());
        let snapshot = counters.snapshot();
        assert_eq!(snapshot.drops(WebRtcDropReason::UnvalidatedSource), 50_000);
        assert_eq!(snapshot.drops(WebRtcDropReason::UnknownAnswer), 50_000);
    }

    #[test]
    fn forged_checks_do_not_lock_out_a_network() {
        let (mut endpoint, counters, now) = endpoint();
        let empty = [&[0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42][..], &[7; 12]].concat();
        let wrong = check(&Password::new(&fingerprint(8)).unwrap(), &username("a1b2"), 16);
        for number in 0..20_000_u16 {
            let now = now + Duration::from_micros(100) * u32::from(number);
            for forged in [&empty, &wrong] {
                assert_eq!(endpoint.handle(now, source(1, number), forged), DatagramEvent::Dropped);
            }
            if number.is_multiple_of(500) {
                let honest = source(1, 30_000 + number);
                connect(&mut endpoint, now, honest, number.into());
                endpoint.prove(honest, &number.into());
            }
        }
        assert_eq!(endpoint.sessions.len(), 40);
        assert_eq!(counters.snapshot().drops(WebRtcDropReason::CheckRation), 0);
    }

    #[test]
    fn an_ipv6_site_leaves_half_open_sessions_for_others() {
        let (mut endpoint, _, now) = endpoint();
        let site = |number: u32| ([0x2001, 0xdb8, 1, number as u16, 0, 0, 0, 1], 1).into();
        let begun = flood(&mut endpoint, site, now, 2_000);
        assert_eq!((begun as usize, endpoint.half_open.len()), (HALF_OPEN_OF_SITE, HALF_OPEN_OF_SITE));
        connect(&mut endpoint, now + Duration::from_secs(2), source(1, 1), u32::MAX);
    }
}
