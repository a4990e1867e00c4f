//! The access network of a client: a link or a stream in each direction.
//!
//! A datagram in flight carries the router's public address at the time of sending, since the router may get another
//! address before the datagram arrives.

use core::time::Duration;
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};

use rakwire::Instant;
use rakwire::sim::{Conditions, Link};

use crate::random::Random;

/// The time for which a lost segment delays a stream.
const RESEND: Duration = Duration::from_millis(250);
/// The number of bytes in flight at which the sender of a stream must wait.
const STREAM_BUFFER: usize = 64 * 1_024;
const HEAD: usize = 6;

/// Prepends an IPv4 address and a port to a datagram. An IPv6 address becomes 0.0.0.0; its port is kept.
pub(crate) fn wrap(address: SocketAddr, datagram: &[u8]) -> Vec<u8> {
    let ip = match address {
        SocketAddr::V4(address) => *address.ip(),
        SocketAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
    };
    ip.octets().into_iter().chain(address.port().to_be_bytes()).chain(datagram.iter().copied()).collect()
}

/// Returns the address and the datagram that [`wrap`] combined.
pub(crate) fn unwrap(bytes: &[u8]) -> Option<(SocketAddr, &[u8])> {
    let ([a, b, c, d, high, low], datagram) = bytes.split_first_chunk::<HEAD>()?;
    Some((([*a, *b, *c, *d], u16::from_be_bytes([*high, *low])).into(), datagram))
}

/// One direction of an access network.
pub(crate) enum Way {
    Datagrams(Link),
    Stream(Stream),
}

/// A reliable ordered stream: a lost segment delays all later ones.
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

    /// Blocks the direction. A stream delivers its data after `until`; a link loses all datagrams until its conditions
    /// change.
    pub(crate) fn block(&mut self, until: Instant) {
        match self {
            Self::Datagrams(link) => link.set_conditions(Conditions { loss: 1.0, ..Conditions::default() }),
            Self::Stream(stream) => stream.blocked_until = stream.blocked_until.max(until),
        }
    }

    /// Returns false while the sender of a stream must wait.
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

    /// Discards the data in flight of a stream with a lost connection.
    pub(crate) fn clear(&mut self) {
        match self {
            // A datagram in flight may still arrive.
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
