//! The access network of a client: two links behind a router, or two streams.
//!
//! A datagram carries the address that the other side sees, since the router may get another one meanwhile.

use core::time::Duration;
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};

use rakwire::Instant;
use rakwire::sim::{Conditions, Link};

use crate::random::Random;

/// The wait of a stream for a segment that was lost.
const RESEND: Duration = Duration::from_millis(250);
/// The bytes that a stream keeps before its sender has to wait.
const STREAM_BUFFER: usize = 64 * 1_024;
const HEAD: usize = 6;

/// Returns a datagram behind an address of IPv4.
pub(crate) fn wrap(address: SocketAddr, datagram: &[u8]) -> Vec<u8> {
    let ip = match address {
        SocketAddr::V4(address) => *address.ip(),
        SocketAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
    };
    ip.octets().into_iter().chain(address.port().to_be_bytes()).chain(datagram.iter().copied()).collect()
}

/// Returns the address and the datagram of [`wrap`].
pub(crate) fn unwrap(bytes: &[u8]) -> Option<(SocketAddr, &[u8])> {
    let ([a, b, c, d, high, low], datagram) = bytes.split_first_chunk::<HEAD>()?;
    Some((([*a, *b, *c, *d], u16::from_be_bytes([*high, *low])).into(), datagram))
}

/// One direction of an access network.
pub(crate) enum Way {
    Datagrams(Link),
    Stream(Stream),
}

/// A stream that loses nothing: a lost segment delays all later ones.
pub(crate) struct Stream {
    frames: VecDeque<(Instant, Vec<u8>)>,
    last: Instant,
    blocked_until: Instant,
    conditions: Conditions,
    random: Random,
}

impl Way {
    pub(crate) fn new(is_stream: bool, conditions: Conditions, seed: u64) -> Self {
        if is_stream {
            Self::Stream(Stream {
                frames: VecDeque::new(),
                last: Instant::ZERO,
                blocked_until: Instant::ZERO,
                conditions,
                random: Random::new(seed),
            })
        } else {
            Self::Datagrams(Link::new(conditions, seed))
        }
    }

    pub(crate) fn set_conditions(&mut self, conditions: Conditions) {
        match self {
            Self::Datagrams(link) => link.set_conditions(conditions),
            Self::Stream(stream) => stream.conditions = conditions,
        }
    }

    /// Carries nothing until this time; a stream resends then.
    pub(crate) fn block(&mut self, until: Instant) {
        match self {
            Self::Datagrams(link) => link.set_conditions(Conditions { loss: 1.0, ..Conditions::default() }),
            Self::Stream(stream) => stream.blocked_until = stream.blocked_until.max(until),
        }
    }

    /// Returns true if the sender need not wait.
    pub(crate) fn has_room(&self) -> bool {
        match self {
            Self::Datagrams(_) => true,
            Self::Stream(stream) => {
                stream.frames.iter().map(|(_, frame)| frame.len()).sum::<usize>() < STREAM_BUFFER
            }
        }
    }

    pub(crate) fn send(&mut self, now: Instant, bytes: Vec<u8>) {
        match self {
            Self::Datagrams(link) => link.send(now, &bytes),
            Self::Stream(stream) => stream.send(now, bytes),
        }
    }

    pub(crate) fn next_arrival(&self) -> Option<Instant> {
        match self {
            Self::Datagrams(link) => link.next_arrival(),
            Self::Stream(stream) => stream.frames.front().map(|(arrival, _)| *arrival),
        }
    }

    pub(crate) fn receive(&mut self, now: Instant) -> Option<Vec<u8>> {
        match self {
            Self::Datagrams(link) => link.receive(now).map(Vec::from),
            Self::Stream(stream) => {
                stream.frames.front().filter(|(arrival, _)| *arrival <= now)?;
                stream.frames.pop_front().map(|(_, frame)| frame)
            }
        }
    }

    /// Discards everything that is under way, as when the connection is lost.
    pub(crate) fn clear(&mut self) {
        match self {
            // A datagram that is under way may still arrive.
            Self::Datagrams(_) => {}
            Self::Stream(stream) => stream.frames.clear(),
        }
    }
}

impl Stream {
    fn send(&mut self, now: Instant, frame: Vec<u8>) {
        let is_lost = self.random.below(1_000) < (self.conditions.loss * 1_000.0) as u64;
        let wait = if is_lost { RESEND } else { Duration::ZERO };
        let arrival = (now.max(self.blocked_until) + self.conditions.latency + wait).max(self.last);
        self.last = arrival;
        self.frames.push_back((arrival, frame));
    }
}
