//! Responses to unconnected peers.
//!
//! No state is kept for a source before its address is validated. There are two exceptions if no cookie is requested:
//!
//! - the set of sources that received reply 1 without a cookie, with the length of their address lists,
//! - the anti-amplification limit (RFC 9000 section 8.1).

use core::hash::{Hash, Hasher};
use core::net::SocketAddr;
use core::time::Duration;

use heapless::Deque;
use siphasher::sip::SipHasher13;

use crate::cookie;
use crate::cursor::{WireError, Writer};
use crate::endpoint::PeerStats;
use crate::raknet::config::{Config, SERVER, UNCONNECTED, room};
use crate::raknet::connection::BlockHeader;
use crate::raknet::connection::handshake::internal_addresses::ListLength;
use crate::raknet::stats::DropReason;
use crate::raknet::wire::offline::{
    MAX_OUT_OF_BAND_DATA, MAX_PONG_DATA, Offline, PingScope, Refusal, ServerSecurity,
};
use crate::raknet::wire::{IP_UDP_OVERHEAD, PongFraming, Wire};
use crate::rate_limit::{ADDRESS_GROUPS, Bucket, RateLimit, Rates};
use crate::storage::{AddressKey, Block, BoundedQueue, Pool};
use crate::time::Instant;

/// The maximum number of queued responses; a further one replaces the oldest.
///
/// If a driver handles more requests than this between two calls of `poll_transmit`, responses are lost; the clients
/// retransmit their requests half a second later.
const ANSWERS: usize = room(SERVER, if cfg!(feature = "alloc") { 256 } else { 16 });
/// The maximum number of this peer's pings that await their pongs.
const PINGS: usize = room(UNCONNECTED, 8);
/// The maximum number of queued out-of-band messages.
const OUT_OF_BAND: usize = room(UNCONNECTED, 8);
/// The number of groups of networks; each group has its own rate limit for pongs.
const NETWORKS: usize = room(SERVER, 32);
/// The divisor that yields the guaranteed pong rate of one address from the rate of its network.
const ADDRESSES: u16 = 4;
/// The maximum size of a pong's data in bytes.
const ADVERTISEMENT: usize = room(SERVER, MAX_PONG_DATA);

/// The size of reply 1 without a cookie, in bytes.
const REPLY_1: usize = 28;
/// The size of reply 2 to an IPv4 address, in bytes.
const REPLY_2_IPV4: usize = 35;
const REPLY_2_IPV6: usize = 57;
/// The number of retransmitted second requests that the budget must still be able to answer: reply 2 is longer than
/// request 2.
const REPEATED_REQUESTS: usize = 4;

/// Returns the size of a reply 2 to the address `to` in bytes.
const fn reply_2(to: &SocketAddr) -> usize {
    if to.is_ipv4() { REPLY_2_IPV4 } else { REPLY_2_IPV6 }
}

/// The response to a first request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reply1 {
    pub(super) mtu: u16,
    pub(super) requires_cookie: bool,
    /// Derived from the protocol version in request 1. Request 2 does not contain the version, so the cookie encodes
    /// the list length.
    pub(super) list_length: ListLength,
}

/// A queued response, encoded when it is sent.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    Reply1(Reply1),
    Reply2 { mtu: u16 },
    Incompatible,
    Refused(Refusal),
}

/// The addresses from which a pong is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answerers {
    /// Only the pinged address, once.
    One,
    /// Any address for a limited time, because the ping was broadcast.
    #[cfg_attr(
        not(feature = "unconnected"),
        expect(dead_code, reason = "only pings and out-of-band messages use it")
    )]
    Many,
}

/// The time for which pongs to a broadcast ping are accepted.
const DISCOVERY: Duration = Duration::from_secs(5);

/// A ping from this peer that awaits its pong.
#[derive(Clone, Copy, Debug)]
struct Ping {
    to: SocketAddr,
    answerers: Answerers,
    scope: PingScope,
    at: Instant,
    sent: bool,
}

impl Ping {
    fn is_answered_by(&self, from: SocketAddr, now: Instant) -> bool {
        let in_time = self.at + DISCOVERY > now;
        self.sent
            && match self.answerers {
                Answerers::One => self.to == from,
                Answerers::Many => in_time,
            }
    }
}

/// The destination of a datagram that was encoded.
type Written = Result<SocketAddr, WireError>;

/// The queues for unconnected peers: a bounded number of responses and pings.
#[derive(Debug)]
pub(super) struct StatelessResponder {
    // Pongs have a separate queue, so that a flood of pings does not displace handshakes.
    answers: BoundedQueue<(SocketAddr, Answer), ANSWERS>,
    pongs: BoundedQueue<(SocketAddr, u64), ANSWERS>,
    pings: Deque<Ping, PINGS>,
    out_of_band: Deque<(SocketAddr, Block), OUT_OF_BAND>,
    limit: RateLimit<NETWORKS, { room(SERVER, ADDRESS_GROUPS) }>,
    amplification_budget: AmplificationBudget,
    pub(super) cookieless: CookielessSources,
    /// The data of pongs, including a length prefix.
    advertisement: heapless::Vec<u8, ADVERTISEMENT>,
}

/// Returns the rate limits of pongs.
pub(super) const fn pong_rates(config: &Config) -> Rates {
    let network = config.pongs_per_network;
    let share = network / ADDRESSES;
    Rates { all: config.pongs_per_second, network, address: if share > 0 { share } else { 1 } }
}

impl StatelessResponder {
    #[inline(always)] // avoids a copy of the value
    pub(super) fn new(config: &Config) -> Self {
        let mut responder = Self {
            answers: BoundedQueue::default(),
            pongs: BoundedQueue::default(),
            pings: Deque::new(),
            out_of_band: Deque::new(),
            limit: RateLimit::default(),
            amplification_budget: AmplificationBudget::default(),
            cookieless: CookielessSources::default(),
            advertisement: heapless::Vec::new(),
        };
        if SERVER {
            responder.advertise(config, &[]);
        }
        responder
    }

    pub(super) fn answer(&mut self, stats: &mut PeerStats<DropReason>, to: SocketAddr, answer: Answer) {
        push_out(&mut self.answers, (to, answer), stats);
    }

    /// Queues the response to a first request of `length` bytes, and credits the rest of its bytes to the
    /// anti-amplification budget.
    pub(super) fn answer_request_1(
        &mut self,
        config: &Config,
        stats: &mut PeerStats<DropReason>,
        now: Instant,
        to: SocketAddr,
        reply: Reply1,
        length: usize,
    ) {
        if reply.requires_cookie {
            self.cookieless.remove(&config.secret, &to);
        } else {
            self.amplification_budget.add(&config.secret, &to, length, REPLY_1);
            self.cookieless.add(&config.secret, now, &to, reply.list_length);
        }
        self.answer(stats, to, Answer::Reply1(reply));
    }

    /// Returns the anti-amplification budget of a connection without a cookie, after its second request of `length`
    /// bytes.
    ///
    /// It is three times the bytes of both requests (RFC 9000 section 8.1), minus reply 2. The first request has the
    /// size of the MTU.
    pub(super) fn connection_budget(
        &mut self,
        config: &Config,
        to: &SocketAddr,
        mtu: u16,
        length: usize,
    ) -> usize {
        let most = usize::from(mtu).saturating_sub(usize::from(IP_UDP_OVERHEAD) + REPLY_1);
        // Reserve budget for retransmissions of the second request.
        let rest = REPEATED_REQUESTS * reply_2(to).saturating_sub(length);
        let of_first = self.amplification_budget.take_up_to(&config.secret, to, most, rest);
        (3 * (of_first + length)).saturating_sub(reply_2(to))
    }

    /// Charges the budget for the response to a second request of `length` bytes without a cookie.
    ///
    /// The source may be forged, and the response is longer than the request. Returns false if the budget is too
    /// small.
    pub(super) fn charge_reply_2(&mut self, config: &Config, to: &SocketAddr, length: usize) -> bool {
        self.amplification_budget.take(&config.secret, to, length, reply_2(to))
    }

    /// Queues a pong, unless the rate of its network or the total rate is used up.
    ///
    /// If this peer shares admission with others, `is_admitted` replaces its own rate limit.
    pub(super) fn pong(
        &mut self,
        config: &Config,
        stats: &mut PeerStats<DropReason>,
        now: Instant,
        to: SocketAddr,
        ping_time: u64,
        is_admitted: Option<bool>,
    ) {
        let alone = || self.limit.admits(&config.secret, pong_rates(config), now, to.ip());
        if is_admitted.unwrap_or_else(alone) {
            push_out(&mut self.pongs, (to, ping_time), stats);
        } else {
            stats.drop(DropReason::PongLimit);
        }
    }

    /// Queues a ping; returns false if too many are pending.
    #[cfg_attr(
        not(feature = "unconnected"),
        expect(dead_code, reason = "only pings and out-of-band messages use it")
    )]
    pub(super) fn ping(
        &mut self,
        to: SocketAddr,
        answerers: Answerers,
        scope: PingScope,
        now: Instant,
    ) -> bool {
        self.keep_pings(|ping| {
            ping.to != to && (ping.answerers == Answerers::One || ping.at + DISCOVERY > now)
        });
        self.pings.push_back(Ping { to, answerers, scope, at: now, sent: false }).is_ok()
    }

    /// Removes the ping that a pong from `from` answers, and returns when the ping was sent.
    pub(super) fn take_ping(&mut self, from: SocketAddr, now: Instant) -> Option<Instant> {
        let answered = |ping: &&Ping| ping.is_answered_by(from, now);
        let one = self.pings.iter().filter(answered).find(|ping| ping.answerers == Answerers::One);
        if let Some(at) = one.map(|ping| ping.at) {
            self.forget_ping(from);
            return Some(at);
        }
        self.pings.iter().find(answered).map(|ping| ping.at)
    }

    /// Queues an out-of-band message, stored in the pool; returns false if the queue is full.
    #[cfg_attr(
        not(feature = "unconnected"),
        expect(dead_code, reason = "only pings and out-of-band messages use it")
    )]
    pub(super) fn out_of_band(&mut self, to: SocketAddr, data: Block) -> bool {
        self.out_of_band.push_back((to, data)).is_ok()
    }

    /// Keeps the pings for which `wanted` returns true, in order. (`Deque::retain` may panic.)
    fn keep_pings(&mut self, wanted: impl Fn(&Ping) -> bool) {
        for _ in 0..self.pings.len() {
            if let Some(ping) = self.pings.pop_front().filter(&wanted) {
                // Cannot fail: one ping was just removed.
                let _ = self.pings.push_back(ping);
            }
        }
    }

    /// Removes the ping to `to`, if there is one.
    pub(super) fn forget_ping(&mut self, to: SocketAddr) {
        self.keep_pings(|ping| ping.to != to);
    }

    /// Sets the data of pongs; returns false if it is too long.
    ///
    /// Data that already begins with its length gets no second length.
    pub(super) fn advertise(&mut self, config: &Config, data: &[u8]) -> bool {
        let framing = match config.sent_pong_framing(data) {
            PongFraming::Prefixed if PongFraming::of(data) == PongFraming::Raw => PongFraming::Prefixed,
            PongFraming::Prefixed | PongFraming::Raw => PongFraming::Raw,
        };
        let mut buffer = [0; MAX_PONG_DATA];
        let Ok(data) = framing.frame(data, &mut buffer) else { return false };
        self.advertisement.clear();
        self.advertisement.extend_from_slice(data).is_ok()
    }

    /// Returns true if a ping is still to be sent. Usually there are no pings, so the queue is not searched.
    #[inline]
    fn has_unsent_pings(&self) -> bool {
        !self.pings.is_empty() && self.pings.iter().any(|ping| !ping.sent)
    }

    pub(super) fn is_idle(&self) -> bool {
        let all_answered = !SERVER || self.answers.is_empty() && self.pongs.is_empty();
        let all_sent = !UNCONNECTED || self.out_of_band.is_empty() && !self.has_unsent_pings();
        all_answered && all_sent
    }

    /// Encodes the next datagram into `buffer` and returns its length and destination.
    pub(super) fn poll_transmit(
        &mut self,
        config: &Config,
        pool: &mut Pool<'_, BlockHeader>,
        now: Instant,
        buffer: &mut [u8],
    ) -> Option<(SocketAddr, usize)> {
        let mut writer = Writer::new(buffer);
        let answer = if SERVER { self.write_answer(config, now, &mut writer) } else { None };
        let to = match answer {
            None if UNCONNECTED => self.write_question(config, pool, now, &mut writer)?,
            answer => answer?,
        };
        Some((to.ok()?, writer.written()))
    }

    fn write_answer(&mut self, config: &Config, now: Instant, writer: &mut Writer<'_>) -> Option<Written> {
        if let Some((to, answer)) = self.answers.pop() {
            return Some(write_answer(config, now, to, answer, writer));
        }
        let (to, time) = self.pongs.pop()?;
        let pong = Offline::Pong { time, guid: config.guid, data: &self.advertisement };
        Some(pong.write(writer).map(|()| to))
    }

    fn write_question(
        &mut self,
        config: &Config,
        pool: &mut Pool<'_, BlockHeader>,
        now: Instant,
        writer: &mut Writer<'_>,
    ) -> Option<Written> {
        if let Some((to, data)) = self.out_of_band.pop_front() {
            return Some(write_out_of_band(config, pool, data, writer).map(|()| to));
        }
        if self.pings.is_empty() {
            return None;
        }
        let ping = self.pings.iter_mut().find(|ping| !ping.sent)?;
        ping.sent = true;
        ping.at = now;
        let (scope, time) = (ping.scope, now.as_millis());
        let message = Offline::Ping { scope, time, guid: Some(config.guid) };
        Some(message.write(writer).map(|()| ping.to))
    }
}

fn write_out_of_band(
    config: &Config,
    pool: &mut Pool<'_, BlockHeader>,
    stored: Block,
    writer: &mut Writer<'_>,
) -> Result<(), WireError> {
    let mut buffer = [0; MAX_OUT_OF_BAND_DATA];
    let data = pool.copy(stored, &mut buffer);
    pool.free_common(stored);
    Offline::OutOfBand { guid: config.guid, data: data.unwrap_or(&[]) }.write(writer)
}

fn push_out<T, const N: usize>(queue: &mut BoundedQueue<T, N>, value: T, stats: &mut PeerStats<DropReason>) {
    if queue.is_full() {
        queue.pop();
        stats.drop(DropReason::AnswersFull);
    }
    queue.push(value);
}

fn write_answer(
    config: &Config,
    now: Instant,
    to: SocketAddr,
    answer: Answer,
    writer: &mut Writer<'_>,
) -> Written {
    let guid = config.guid;
    let message = match answer {
        Answer::Reply1(Reply1 { mtu, requires_cookie, list_length }) => {
            let mut field = [0; 64];
            let security = if requires_cookie {
                let cookie = cookie::issue(&config.secret, &to, now, list_length.is_twenty());
                config.server_security(cookie, mtu, &mut field)
            } else {
                ServerSecurity::None
            };
            let reply = Offline::Reply1 { guid, security, mtu };
            return reply.write(writer).map(|()| to);
        }
        Answer::Reply2 { mtu } => Offline::Reply2 { guid, client: to, mtu, answer: None },
        Answer::Incompatible => {
            let protocol = config.accepted_versions.iter().copied().max().unwrap_or(config.protocol_version);
            Offline::IncompatibleProtocol { protocol, guid }
        }
        Answer::Refused(refusal) => Offline::Refused { refusal, guid },
    };
    message.write(writer).map(|()| to)
}

/// The number of entries in the table of sources.
const SOURCES: usize = room(SERVER, if cfg!(feature = "alloc") { 1_024 } else { 64 });
/// The number of new sources per second from which a server requests cookies.
///
/// At this rate, an entry survives a round trip of 100 ms with a probability of 98 %.
const SOURCES_PER_SECOND: u16 = if cfg!(feature = "alloc") { 200 } else { 12 };

/// Sources that received reply 1 without a cookie last, in a table indexed by a keyed hash.
///
/// A new source may replace another source, which then has to repeat its first request. The table is needed because
/// request 2 contains neither the protocol version nor whether a cookie was requested.
#[derive(Debug)]
pub(super) struct CookielessSources {
    /// 15 bits of a hash, not all zero, and one bit for the length of the address list.
    ///
    /// Zero is an empty entry.
    entries: [u16; SOURCES],
    added: Bucket,
}

impl Default for CookielessSources {
    fn default() -> Self {
        Self { entries: [0; SOURCES], added: Bucket::default() }
    }
}

impl CookielessSources {
    /// Returns the entry for a source, and the upper 15 bits of the entry if it belongs to this source.
    fn place(&mut self, secret: &[u8; 16], source: &SocketAddr) -> Option<(&mut u16, u16)> {
        let mut hasher = SipHasher13::new_with_key(secret);
        AddressKey(*source).hash(&mut hasher);
        let hash = hasher.finish();
        let place = usize::try_from((hash & 0xFFFF_FFFF) % SOURCES as u64).unwrap_or(0);
        let tag = u16::try_from(hash >> 49).unwrap_or(0).max(1) << 1;
        Some((self.entries.get_mut(place)?, tag))
    }

    /// Returns true if another source can be added with little risk of displacing a recent one.
    pub(super) fn has_room(&mut self, now: Instant) -> bool {
        self.added.fill_up(SOURCES_PER_SECOND, now)
    }

    fn add(&mut self, secret: &[u8; 16], now: Instant, source: &SocketAddr, reads: ListLength) {
        self.added.take(SOURCES_PER_SECOND, now);
        if let Some((entry, tag)) = self.place(secret, source) {
            *entry = tag | u16::from(reads.is_twenty());
        }
    }

    /// Returns the address list length of a source, or `None` if it is not in the table.
    pub(super) fn list_length(&mut self, secret: &[u8; 16], source: &SocketAddr) -> Option<ListLength> {
        let (entry, tag) = self.place(secret, source)?;
        (*entry & !1 == tag).then(|| ListLength::from_bit(*entry & 1 != 0))
    }

    /// Removes a source from which a cookie is now requested; returns false if it is not in the table.
    pub(super) fn remove(&mut self, secret: &[u8; 16], source: &SocketAddr) -> bool {
        let Some((entry, tag)) = self.place(secret, source) else { return false };
        let is_kept = *entry & !1 == tag;
        if is_kept {
            *entry = 0;
        }
        is_kept
    }
}

/// The number of groups of addresses, each with its own budget.
const GROUPS: usize = room(SERVER, 32);

/// The bytes received minus the bytes sent in response, for each group of addresses. A keyed hash selects the group.
///
/// A group is never sent more bytes than were received from its addresses.
#[derive(Debug, Default)]
struct AmplificationBudget {
    groups: [u16; GROUPS],
}

impl AmplificationBudget {
    /// Returns the budget of the group of `source`.
    fn group(&mut self, secret: &[u8; 16], source: &SocketAddr) -> Option<&mut u16> {
        let mut hasher = SipHasher13::new_with_key(secret);
        AddressKey(*source).hash(&mut hasher);
        let group = hasher.finish() % GROUPS as u64;
        self.groups.get_mut(usize::try_from(group).unwrap_or(0))
    }

    /// Credits a first request of `request` bytes minus its response of `answer` bytes.
    fn add(&mut self, secret: &[u8; 16], source: &SocketAddr, request: usize, answer: usize) {
        let surplus = u16::try_from(request.saturating_sub(answer)).unwrap_or(u16::MAX);
        let Some(budget) = self.group(secret, source) else { return };
        *budget = budget.saturating_add(surplus);
    }

    /// Takes up to `most` bytes, but leaves `rest` in the budget; returns the number taken.
    fn take_up_to(&mut self, secret: &[u8; 16], source: &SocketAddr, most: usize, rest: usize) -> usize {
        let Some(budget) = self.group(secret, source) else { return 0 };
        let rest = u16::try_from(rest).unwrap_or(u16::MAX);
        let taken = u16::try_from(most).unwrap_or(u16::MAX).min(budget.saturating_sub(rest));
        *budget -= taken;
        taken.into()
    }

    /// Takes the bytes by which a response exceeds its request.
    ///
    /// Returns false and takes nothing if the budget is too small.
    fn take(&mut self, secret: &[u8; 16], source: &SocketAddr, request: usize, answer: usize) -> bool {
        let Ok(missing) = u16::try_from(answer.saturating_sub(request)) else { return false };
        let Some(budget) = self.group(secret, source) else { return false };
        let rest = budget.checked_sub(missing);
        *budget = rest.unwrap_or(*budget);
        rest.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: [u8; 16] = [3; 16];

    fn source(number: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], number))
    }

    #[test]
    fn a_new_source_may_replace_others_but_does_not_change_their_list_length() {
        let mut sources = CookielessSources::default();
        for number in 0..20_000_u16 {
            let reads = ListLength::from_bit(number % 3 == 0);
            sources.add(&SECRET, Instant::ZERO, &source(number), reads);
            assert_eq!(sources.list_length(&SECRET, &source(number)), Some(reads));
        }
        let kept = (0..20_000_u16).filter(|number| {
            let found = sources.list_length(&SECRET, &source(*number));
            // Two sources in the same entry have equal hash bits with a probability of 1 in 32,767.
            found == Some(ListLength::from_bit(number % 3 == 0))
        });
        assert!((SOURCES * 9 / 10..=SOURCES + 2).contains(&kept.count()));
    }

    #[test]
    fn a_source_that_must_return_a_cookie_is_removed() {
        let mut sources = CookielessSources::default();
        sources.add(&SECRET, Instant::ZERO, &source(1), ListLength::Twenty);
        assert!(!sources.remove(&SECRET, &source(2)));
        assert!(sources.remove(&SECRET, &source(1)));
        assert!(!sources.remove(&SECRET, &source(1)));
        assert_eq!(sources.list_length(&SECRET, &source(1)), None);
    }

    #[test]
    fn the_table_of_sources_is_full_after_one_second_of_the_maximum_rate() {
        let mut sources = CookielessSources::default();
        let mut now = Instant::from_micros(1_000_000);
        for number in 0..SOURCES_PER_SECOND {
            assert!(sources.has_room(now));
            sources.add(&SECRET, now, &source(number), ListLength::Ten);
        }
        assert!(!sources.has_room(now));
        now = Instant::from_micros(1_500_000);
        assert!(sources.has_room(now));
    }

    #[test]
    fn the_amplification_budget_never_exceeds_the_bytes_received() {
        let (secret, mut budget) = ([3; 16], AmplificationBudget::default());
        let source = SocketAddr::from(([10, 0, 0, 1], 9));
        assert!(
            budget.take(&secret, &source, 35, 35),
            "a response no longer than its request takes no budget"
        );
        assert!(!budget.take(&secret, &source, 34, 35));
        budget.add(&secret, &source, 31, 28);
        budget.add(&secret, &source, 20, 28);
        assert!(!budget.take(&secret, &source, 30, 34), "the budget contains only three bytes");
        assert_eq!((0..9).filter(|_| budget.take(&secret, &source, 34, 35)).count(), 3);
        (0..100).for_each(|_| budget.add(&secret, &source, 1_464, 28));
        assert!(budget.take(&secret, &source, 0, usize::from(u16::MAX)), "the budget saturates");
        assert!(!budget.take(&secret, &source, 0, 1));
    }

    #[test]
    fn less_than_an_eighth_of_sources_share_an_amplification_budget() {
        let (secret, mut budget) = ([3; 16], AmplificationBudget::default());
        budget.add(&secret, &SocketAddr::from(([10, 0, 0, 1], 9)), 1_464, 28);
        let others = (0..320).map(|port| SocketAddr::from(([10, 0, 0, 2], port)));
        let lucky = others.filter(|other| budget.take(&secret, other, 34, 35)).count();
        assert!((1..40).contains(&lucky), "{lucky} of 320 share the group");
    }
}
