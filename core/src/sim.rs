//! A network in memory that loses, delays, doubles and reorders datagrams, by a seed.
//!
//! A [`Link`] is one direction of a path. It knows no clock and no socket, so it stands in a test between two machines
//! under virtual time, or in a real driver between its machine and its socket. A [`Pair`] joins two machines by two
//! links and moves the time to whatever happens next.

use alloc::boxed::Box;
use alloc::collections::BinaryHeap;
use core::cmp::Reverse;
use core::net::SocketAddr;
use core::time::Duration;

use rand_pcg::Pcg32;
use rand_pcg::rand_core::{Rng, SeedableRng};

use crate::machine::Machine;
use crate::time::Instant;

/// What a path does to datagrams.
///
/// ```
/// use core::time::Duration;
/// use rakwire::sim::Conditions;
///
/// let bad_wifi = Conditions {
///     loss: 0.05,
///     latency: Duration::from_millis(30),
///     jitter: Duration::from_millis(10),
///     ..Conditions::default()
/// };
/// assert_eq!(bad_wifi.duplication, 0.0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Conditions {
    /// The share of datagrams that vanish, 0 to 1.
    pub loss: f64,
    /// The share of datagrams that arrive twice, 0 to 1.
    pub duplication: f64,
    /// The share of datagrams that are held back for up to twice the latency more, 0 to 1.
    pub reordering: f64,
    /// The time that every datagram takes.
    pub latency: Duration,
    /// The most that is added to it, evenly spread; it may reorder too.
    pub jitter: Duration,
}

/// One direction of a path.
///
/// ```
/// use rakwire::Instant;
/// use rakwire::sim::{Conditions, Link};
///
/// let mut link = Link::new(Conditions::default(), 1);
/// link.send(Instant::ZERO, b"hello");
/// assert_eq!(link.receive(Instant::ZERO).as_deref(), Some(&b"hello"[..]));
/// ```
#[derive(Debug)]
pub struct Link {
    conditions: Conditions,
    random: Pcg32,
    transit: BinaryHeap<Reverse<Datagram>>,
    sent: u64,
}

/// A datagram under way; the earliest arrival comes first, and of two at once the one sent first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Datagram {
    arrival: Instant,
    number: u64,
    payload: Box<[u8]>,
}

impl Link {
    /// A link with these conditions. The same seed and the same datagrams meet the same fate.
    #[must_use]
    pub fn new(conditions: Conditions, seed: u64) -> Self {
        Self { conditions, random: Pcg32::seed_from_u64(seed), transit: BinaryHeap::new(), sent: 0 }
    }

    /// Takes a datagram at `now`.
    pub fn send(&mut self, now: Instant, payload: &[u8]) {
        if !self.chance(self.conditions.loss) {
            self.carry(now, payload);
        }
        if self.chance(self.conditions.duplication) {
            self.carry(now, payload);
        }
    }

    fn carry(&mut self, now: Instant, payload: &[u8]) {
        let mut delay = self.conditions.latency + self.up_to(self.conditions.jitter);
        if self.chance(self.conditions.reordering) {
            delay += self.up_to(2 * self.conditions.latency);
        }
        self.sent += 1;
        let arrival = now + delay;
        self.transit.push(Reverse(Datagram { arrival, number: self.sent, payload: payload.into() }));
    }

    fn chance(&mut self, share: f64) -> bool {
        f64::from(self.random.next_u32()) < share * (f64::from(u32::MAX) + 1.0)
    }

    fn up_to(&mut self, most: Duration) -> Duration {
        let micros = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
        let share = (u128::from(self.random.next_u32()) * u128::from(micros)) >> 32;
        Duration::from_micros(u64::try_from(share).unwrap_or(micros))
    }

    /// When the next datagram arrives, if any is under way.
    #[must_use]
    pub fn next_arrival(&self) -> Option<Instant> {
        self.transit.peek().map(|Reverse(datagram)| datagram.arrival)
    }

    /// The next datagram that has arrived by `now`.
    pub fn receive(&mut self, now: Instant) -> Option<Box<[u8]>> {
        if self.next_arrival()? > now {
            return None;
        }
        self.transit.pop().map(|Reverse(datagram)| datagram.payload)
    }
}

/// Two machines, joined by two links, under one virtual clock.
///
/// ```
/// use rakwire::raknet::{Capacity, Config, Event, Peer};
/// use rakwire::sim::{Conditions, Pair};
///
/// let mut server = Config::new([1; 32]);
/// server.max_incoming = 1;
/// let client = Peer::with_capacity(Capacity::default(), Config::new([2; 32]));
/// let mut pair = Pair::new(client, Peer::with_capacity(Capacity::default(), server), Conditions::default(), 7);
/// pair.a.connect(pair.now, pair.b_address)?;
/// let connected = loop {
///     if let Some(Event::Connected { .. }) = pair.a.poll_event() {
///         break true;
///     }
///     if !pair.step() {
///         break false;
///     }
/// };
/// assert!(connected);
/// # Ok::<(), rakwire::raknet::ConnectError>(())
/// ```
#[derive(Debug)]
pub struct Pair<A, B> {
    /// The time.
    pub now: Instant,
    /// One machine.
    pub a: A,
    /// The other machine.
    pub b: B,
    /// Where `b` sees `a`.
    pub a_address: SocketAddr,
    /// Where `a` sees `b`.
    pub b_address: SocketAddr,
    a_to_b: Link,
    b_to_a: Link,
}

impl<A: Machine, B: Machine> Pair<A, B> {
    /// Joins two machines by two links with the same conditions and different luck.
    #[must_use]
    pub fn new(a: A, b: B, conditions: Conditions, seed: u64) -> Self {
        Self {
            now: Instant::from_micros(1_000_000),
            a,
            b,
            a_address: SocketAddr::from(([192, 0, 2, 1], 1)),
            b_address: SocketAddr::from(([192, 0, 2, 2], 2)),
            a_to_b: Link::new(conditions, seed.wrapping_mul(2)),
            b_to_a: Link::new(conditions, seed.wrapping_mul(2).wrapping_add(1)),
        }
    }

    /// Puts what both have to send on its way.
    pub fn transmit(&mut self) {
        transmit(self.now, &mut self.a, &mut self.a_to_b, self.b_address);
        transmit(self.now, &mut self.b, &mut self.b_to_a, self.a_address);
    }

    /// Puts what both have to send on its way, moves the clock to what happens next and lets it happen. False when
    /// nothing ever will.
    pub fn step(&mut self) -> bool {
        self.transmit();
        let next = [
            self.a.poll_timeout(),
            self.b.poll_timeout(),
            self.a_to_b.next_arrival(),
            self.b_to_a.next_arrival(),
        ];
        let Some(next) = next.into_iter().flatten().min() else {
            return false;
        };
        self.now = self.now.max(next);
        while let Some(datagram) = self.a_to_b.receive(self.now) {
            self.b.handle_datagram(self.now, self.a_address, &datagram);
        }
        while let Some(datagram) = self.b_to_a.receive(self.now) {
            self.a.handle_datagram(self.now, self.b_address, &datagram);
        }
        if self.a.poll_timeout().is_some_and(|at| at <= self.now) {
            self.a.handle_timeout(self.now);
        }
        if self.b.poll_timeout().is_some_and(|at| at <= self.now) {
            self.b.handle_timeout(self.now);
        }
        true
    }

    /// Changes the conditions of both directions for what is sent from now on.
    pub const fn set_conditions(&mut self, conditions: Conditions) {
        self.a_to_b.conditions = conditions;
        self.b_to_a.conditions = conditions;
    }
}

/// Datagrams for anywhere else are lost, as on a real path.
fn transmit(now: Instant, machine: &mut impl Machine, link: &mut Link, peer: SocketAddr) {
    let mut buffer = [0; 2048];
    while let Some(transmit) = machine.poll_transmit(now, &mut buffer) {
        if transmit.to == peer {
            link.send(now, transmit.payload);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(conditions: Conditions, seed: u64) -> alloc::vec::Vec<(u64, u8)> {
        let mut link = Link::new(conditions, seed);
        (0..200).for_each(|number| link.send(Instant::from_micros(u64::from(number) * 1_000), &[number]));
        let mut arrived = alloc::vec::Vec::new();
        while let Some(at) = link.next_arrival() {
            let datagram = link.receive(at).expect("it arrives now");
            arrived.push((at.as_micros(), datagram[0]));
        }
        arrived
    }

    #[test]
    fn a_perfect_link_changes_nothing() {
        let arrived = arrivals(Conditions::default(), 1);
        assert!(
            arrived
                .iter()
                .zip(0..200)
                .all(|(arrived, number)| *arrived == (u64::from(number) * 1_000, number))
        );
        assert_eq!(arrived.len(), 200);
    }

    #[test]
    fn a_seed_decides() {
        let conditions = Conditions {
            loss: 0.3,
            duplication: 0.2,
            reordering: 0.2,
            latency: Duration::from_millis(10),
            jitter: Duration::from_millis(3),
        };
        let arrived = arrivals(conditions, 1);
        assert_eq!(arrived, arrivals(conditions, 1));
        assert_ne!(arrived, arrivals(conditions, 2));
        assert!((120..240).contains(&arrived.len()), "{}", arrived.len());
        assert!(arrived.iter().all(|(at, number)| *at >= u64::from(*number) * 1_000 + 10_000));
        assert!(arrived.windows(2).any(|pair| pair[0].1 > pair[1].1), "nothing was reordered");
        assert!(arrived.windows(2).any(|pair| pair[0].1 == pair[1].1), "nothing was doubled");
    }

    #[test]
    fn everything_may_be_lost() {
        assert!(arrivals(Conditions { loss: 1.0, ..Conditions::default() }, 1).is_empty());
    }
}
