//! Answers to those that are not connected. Nothing is kept of a source before its address is proved.

use core::net::SocketAddr;

use heapless::Deque;

use super::config::{Config, CookiePolicy};
use super::pong_limit::PongLimit;
use super::stats::{DropReason, PeerStats};
use super::wire::Wire;
use super::wire::offline::{Offline, Refusal, ServerSecurity};
use crate::cookie;
use crate::cursor::Writer;
use crate::time::Instant;
use crate::wire::offline::MAX_PONG_DATA;

/// Answers that wait to be sent; a further one pushes the oldest out. A driver that takes more datagrams than this
/// before it sends loses handshakes, which clients begin again half a second later.
const ANSWERS: usize = if cfg!(feature = "alloc") { 256 } else { 16 };
/// Pings of our own that wait for a pong.
const PINGS: usize = 8;

/// An answer, kept as what it says; it is written when it is sent.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    Reply1 { mtu: u16 },
    Reply2 { mtu: u16 },
    Incompatible,
    Refused(Refusal),
}

/// A ping of our own that waits for its pong.
#[derive(Clone, Copy, Debug)]
struct Ping {
    to: SocketAddr,
    at: Instant,
    sent: bool,
}

/// What the offline side of a peer keeps: a few answers and pings, whoever they are for.
#[derive(Debug, Default)]
pub(super) struct Desk {
    // Pongs stand apart, so that a flood of pings pushes out no handshake.
    answers: Deque<(SocketAddr, Answer), ANSWERS>,
    pongs: Deque<(SocketAddr, u64), ANSWERS>,
    pings: Deque<Ping, PINGS>,
    limit: PongLimit,
    advertisement: heapless::Vec<u8, MAX_PONG_DATA>,
}

impl Desk {
    pub(super) fn answer(&mut self, stats: &mut PeerStats, to: SocketAddr, answer: Answer) {
        push_out(&mut self.answers, (to, answer), stats);
    }

    /// Queues a pong, unless its network or all together had enough.
    pub(super) fn pong(
        &mut self,
        config: &Config,
        stats: &mut PeerStats,
        now: Instant,
        to: SocketAddr,
        ping_time: u64,
    ) {
        if self.limit.admits(config, now, to.ip()) {
            push_out(&mut self.pongs, (to, ping_time), stats);
        } else {
            stats.drop(DropReason::PongLimit);
        }
    }

    /// Queues a ping; false when too many wait.
    pub(super) fn ping(&mut self, to: SocketAddr, now: Instant) -> bool {
        self.forget_ping(to);
        self.pings.push_back(Ping { to, at: now, sent: false }).is_ok()
    }

    /// Takes the ping that a pong from `from` answers, and returns when it was sent.
    pub(super) fn take_ping(&mut self, from: SocketAddr) -> Option<Instant> {
        let ping = self.pings.iter().find(|ping| ping.to == from && ping.sent)?.at;
        self.forget_ping(from);
        Some(ping)
    }

    /// Gives up the ping to `to`, if there is one.
    pub(super) fn forget_ping(&mut self, to: SocketAddr) {
        self.pings.retain(|ping| ping.to != to);
    }

    /// Sets what pongs say; false when it is longer than a pong may be.
    pub(super) fn advertise(&mut self, data: &[u8]) -> bool {
        let fits = data.len() <= MAX_PONG_DATA;
        if fits {
            self.advertisement.clear();
            // The length was checked.
            let _ = self.advertisement.extend_from_slice(data);
        }
        fits
    }

    pub(super) fn is_idle(&self) -> bool {
        self.answers.is_empty() && self.pongs.is_empty() && self.pings.iter().all(|ping| ping.sent)
    }

    /// Writes the next message at the front of `buffer` and returns its length and where it goes.
    pub(super) fn poll_transmit(
        &mut self,
        config: &Config,
        now: Instant,
        buffer: &mut [u8],
    ) -> Option<(SocketAddr, usize)> {
        let mut writer = Writer::new(buffer);
        let to = if let Some((to, answer)) = self.answers.pop_front() {
            write_answer(config, now, to, answer, &mut writer)
        } else if let Some((to, time)) = self.pongs.pop_front() {
            let pong = Offline::Pong { time, guid: config.guid, data: &self.advertisement };
            pong.write(&mut writer).map(|()| to)
        } else {
            let ping = self.pings.iter_mut().find(|ping| !ping.sent)?;
            ping.sent = true;
            ping.at = now;
            let scope = crate::wire::offline::PingScope::Any;
            let message = Offline::Ping { scope, time: now.as_millis(), guid: Some(config.guid) };
            message.write(&mut writer).map(|()| ping.to)
        };
        Some((to.ok()?, writer.written()))
    }
}

fn push_out<T, const N: usize>(queue: &mut Deque<T, N>, value: T, stats: &mut PeerStats) {
    if queue.is_full() {
        queue.pop_front();
        stats.drop(DropReason::AnswersFull);
    }
    // There is room now.
    let _ = queue.push_back(value);
}

fn write_answer(
    config: &Config,
    now: Instant,
    to: SocketAddr,
    answer: Answer,
    writer: &mut Writer<'_>,
) -> Result<SocketAddr, crate::wire::WireError> {
    let guid = config.guid;
    let message = match answer {
        Answer::Reply1 { mtu } => {
            let security = match config.cookies {
                CookiePolicy::Required => ServerSecurity::Cookie(cookie::issue(&config.secret, &to, now)),
                CookiePolicy::Off => ServerSecurity::None,
            };
            Offline::Reply1 { guid, security, mtu }
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
