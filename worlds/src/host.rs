//! A process with a peer, a clock and a socket, which can be suspended.

use core::time::Duration;
use std::collections::VecDeque;
use std::net::SocketAddr;

use rakwire::raknet::Peer;
use rakwire::wire::MAX_DATAGRAM;
use rakwire::{Instant, Machine};

/// The number of datagrams that the socket buffers while its process is suspended.
const SOCKET_BUFFER: usize = 256;

pub(crate) struct Host {
    pub(crate) peer: Peer<'static>,
    /// The time by which the process's clock is ahead of the world's.
    ahead: Duration,
    stalled_until: Option<Instant>,
    inbox: VecDeque<(SocketAddr, Box<[u8]>)>,
    pub(crate) handles_timeouts: bool,
}

impl Host {
    pub(crate) const fn new(peer: Peer<'static>) -> Self {
        Self {
            peer,
            ahead: Duration::ZERO,
            stalled_until: None,
            inbox: VecDeque::new(),
            handles_timeouts: true,
        }
    }

    /// Returns the time of the process's clock.
    pub(crate) fn clock(&self, now: Instant) -> Instant {
        now + self.ahead
    }

    pub(crate) fn advance_clock(&mut self, by: Duration) {
        self.ahead += by;
    }

    pub(crate) fn stall(&mut self, until: Instant) {
        self.stalled_until = Some(self.stalled_until.map_or(until, |stalled| stalled.max(until)));
    }

    pub(crate) fn is_stalled(&self, now: Instant) -> bool {
        self.stalled_until.is_some_and(|until| now < until)
    }

    /// Restarts the process with another peer and an empty socket.
    pub(crate) fn restart(&mut self, peer: Peer<'static>) {
        self.peer = peer;
        self.inbox.clear();
        self.stalled_until = None;
    }

    /// Delivers a datagram to the peer, or buffers it while the process is suspended.
    pub(crate) fn receive(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        if !self.is_stalled(now) {
            let clock = self.clock(now);
            self.peer.handle_datagram(clock, from, datagram);
        } else if self.inbox.len() < SOCKET_BUFFER {
            self.inbox.push_back((from, datagram.into()));
        }
    }

    /// Delivers buffered datagrams and handles a due timeout, unless the process is suspended.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.is_stalled(now) {
            return;
        }
        let clock = self.clock(now);
        while let Some((from, datagram)) = self.inbox.pop_front() {
            self.peer.handle_datagram(clock, from, &datagram);
        }
        if self.handles_timeouts && self.peer.poll_timeout().is_some_and(|due| due <= clock) {
            self.peer.handle_timeout(clock);
        }
    }

    /// Returns the peer's next datagram with its destination, unless the process is suspended.
    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<(SocketAddr, Vec<u8>)> {
        if self.is_stalled(now) {
            return None;
        }
        let clock = self.clock(now);
        let mut buffer = [0; MAX_DATAGRAM];
        let transmit = Machine::poll_transmit(&mut self.peer, clock, &mut buffer)?;
        Some((transmit.to, transmit.payload.to_vec()))
    }

    /// Returns the world's time at which [`handle_timeout`](Self::handle_timeout) is due next.
    pub(crate) fn next(&self, now: Instant) -> Option<Instant> {
        if self.is_stalled(now) {
            return self.stalled_until;
        }
        if !self.inbox.is_empty() {
            return Some(now);
        }
        let due = self.peer.poll_timeout().filter(|_| self.handles_timeouts)?;
        Some(now + due.saturating_since(self.clock(now)))
    }
}
