//! A network in memory that loses, delays, doubles and reorders datagrams, by a seed.
//!
//! A [`Link`] is one direction of a path. It knows no clock and no socket, so it stands in a test between two machines
//! under virtual time, or in a real driver between its machine and its socket. A [`Pair`] joins two machines by two
//! links and moves the time to whatever happens next; a [`Dumbbell`] joins several pairs by one link each way, so that
//! they share its [`Bottleneck`].

use alloc::boxed::Box;
use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::net::SocketAddr;
use core::time::Duration;

use rand_pcg::Pcg32;
use rand_pcg::rand_core::{Rng, SeedableRng};

use crate::machine::Machine;
use crate::time::Instant;
use crate::wire::IP_UDP_OVERHEAD;

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
    /// The slowest place of the path, if it has one.
    pub bottleneck: Option<Bottleneck>,
}

/// A place that datagrams pass one after the other, and the queue before it: first in, first out, and what finds it
/// full is lost. Datagrams count with their IP and UDP headers.
///
/// ```
/// use core::time::Duration;
/// use rakwire::sim::Bottleneck;
///
/// let link = Bottleneck::with_queue_of(100_000_000, Duration::from_millis(50));
/// assert_eq!(link.queue, 625_000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bottleneck {
    /// How fast datagrams pass; 0 is a path that is cut.
    pub bits_per_second: u64,
    /// Bytes that may wait.
    pub queue: u64,
}

impl Bottleneck {
    /// A bottleneck whose queue takes `delay` to drain.
    #[must_use]
    pub const fn with_queue_of(bits_per_second: u64, delay: Duration) -> Self {
        Self { bits_per_second, queue: bits_per_second / 8 * delay.as_millis() as u64 / 1_000 }
    }
}

/// What happened to the datagrams that a link was given.
///
/// ```
/// use core::time::Duration;
///
/// assert_eq!(rakwire::sim::LinkStats::default().mean_queueing(), Duration::ZERO);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkStats {
    /// Datagrams put on their way, doubled ones twice.
    pub carried: u64,
    /// Bytes of them, without IP and UDP headers.
    pub bytes: u64,
    /// Datagrams lost by chance.
    pub lost: u64,
    /// Datagrams that found the queue of the bottleneck full.
    pub overflowed: u64,
    /// The time that all carried datagrams together stood in the queue.
    pub queueing: Duration,
    /// The longest time that one of them stood there.
    pub longest_queueing: Duration,
}

impl LinkStats {
    /// The time that a carried datagram stood in the queue, on average.
    #[must_use]
    pub fn mean_queueing(&self) -> Duration {
        let nanos = self.queueing.as_nanos() / u128::from(self.carried.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
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
    /// When the bottleneck is idle again, in nanoseconds: a datagram takes less than a microsecond at some speeds.
    busy_until: u128,
    stats: LinkStats,
}

/// A datagram under way; the earliest arrival comes first, and of two at once the one sent first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Datagram {
    arrival: Instant,
    number: u64,
    flow: usize,
    payload: Box<[u8]>,
}

impl Link {
    /// A link with these conditions. The same seed and the same datagrams meet the same fate.
    #[must_use]
    pub fn new(conditions: Conditions, seed: u64) -> Self {
        Self {
            conditions,
            random: Pcg32::seed_from_u64(seed),
            transit: BinaryHeap::new(),
            busy_until: 0,
            stats: LinkStats::default(),
        }
    }

    /// What happened to the datagrams so far.
    #[must_use]
    pub const fn stats(&self) -> &LinkStats {
        &self.stats
    }

    /// What happened since the last call, and begins to count anew.
    pub const fn take_stats(&mut self) -> LinkStats {
        core::mem::replace(
            &mut self.stats,
            LinkStats {
                carried: 0,
                bytes: 0,
                lost: 0,
                overflowed: 0,
                queueing: Duration::ZERO,
                longest_queueing: Duration::ZERO,
            },
        )
    }

    /// Changes the conditions for what is sent from now on.
    pub const fn set_conditions(&mut self, conditions: Conditions) {
        self.conditions = conditions;
    }

    /// Takes a datagram at `now`.
    pub fn send(&mut self, now: Instant, payload: &[u8]) {
        self.send_of(now, 0, payload);
    }

    fn send_of(&mut self, now: Instant, flow: usize, payload: &[u8]) {
        if self.chance(self.conditions.loss) {
            self.stats.lost += 1;
        } else {
            self.carry(now, flow, payload);
        }
        if self.chance(self.conditions.duplication) {
            self.carry(now, flow, payload);
        }
    }

    fn carry(&mut self, now: Instant, flow: usize, payload: &[u8]) {
        let Some(passage) = self.pass(now, payload.len()) else {
            self.stats.overflowed += 1;
            return;
        };
        let mut delay = passage + self.conditions.latency + self.up_to(self.conditions.jitter);
        if self.chance(self.conditions.reordering) {
            delay += self.up_to(2 * self.conditions.latency);
        }
        self.stats.carried += 1;
        self.stats.bytes += payload.len() as u64;
        let (arrival, number) = (now + delay, self.stats.carried);
        self.transit.push(Reverse(Datagram { arrival, number, flow, payload: payload.into() }));
    }

    /// How long a datagram takes to pass the bottleneck, or that its queue is full.
    fn pass(&mut self, now: Instant, length: usize) -> Option<Duration> {
        let Some(Bottleneck { bits_per_second, queue }) = self.conditions.bottleneck else {
            return Some(Duration::ZERO);
        };
        let bits = 8 * (length as u128 + u128::from(IP_UDP_OVERHEAD));
        let rate = u128::from(bits_per_second);
        let now = u128::from(now.as_micros()) * 1_000;
        let waiting = self.busy_until.saturating_sub(now);
        if waiting * rate / 1_000_000_000 + bits > u128::from(queue) * 8 {
            return None;
        }
        let passing = waiting + (bits * 1_000_000_000).checked_div(rate)?;
        self.busy_until = now + passing;
        let waiting = Duration::from_nanos(u64::try_from(waiting).unwrap_or(u64::MAX));
        self.stats.queueing += waiting;
        self.stats.longest_queueing = self.stats.longest_queueing.max(waiting);
        Some(Duration::from_nanos(u64::try_from(passing).unwrap_or(u64::MAX)))
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
        self.receive_of(now).map(|(_, payload)| payload)
    }

    fn receive_of(&mut self, now: Instant) -> Option<(usize, Box<[u8]>)> {
        if self.next_arrival()? > now {
            return None;
        }
        self.transit.pop().map(|Reverse(datagram)| (datagram.flow, datagram.payload))
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
        transmit(self.now, &mut self.a, &mut self.a_to_b, 0, self.b_address);
        transmit(self.now, &mut self.b, &mut self.b_to_a, 0, self.a_address);
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
        wake(self.now, &mut self.a);
        wake(self.now, &mut self.b);
        true
    }

    /// Changes the conditions of both directions for what is sent from now on.
    pub const fn set_conditions(&mut self, conditions: Conditions) {
        self.a_to_b.set_conditions(conditions);
        self.b_to_a.set_conditions(conditions);
    }

    /// The direction from `a` to `b`.
    pub const fn forth(&mut self) -> &mut Link {
        &mut self.a_to_b
    }

    /// The direction from `b` to `a`.
    pub const fn back(&mut self) -> &mut Link {
        &mut self.b_to_a
    }
}

/// One pair of a [`Dumbbell`].
///
/// ```
/// fn addresses<A, B>(ends: &rakwire::sim::Ends<A, B>) -> [core::net::SocketAddr; 2] {
///     [ends.a_address, ends.b_address]
/// }
/// ```
#[derive(Debug)]
pub struct Ends<A, B> {
    /// One machine.
    pub a: A,
    /// The other machine.
    pub b: B,
    /// Where `b` sees `a`.
    pub a_address: SocketAddr,
    /// Where `a` sees `b`.
    pub b_address: SocketAddr,
}

/// Any number of pairs of machines that share one link each way, under one virtual clock: how flows get along with each
/// other.
///
/// ```
/// use core::time::Duration;
/// use rakwire::raknet::{Capacity, Config, Peer};
/// use rakwire::sim::{Bottleneck, Conditions, Dumbbell};
///
/// let shared = Bottleneck::with_queue_of(20_000_000, Duration::from_millis(50));
/// let latency = Duration::from_millis(25);
/// let conditions = Conditions { latency, bottleneck: Some(shared), ..Conditions::default() };
/// let mut dumbbell = Dumbbell::new(conditions, 7);
/// for number in 1..=4 {
///     let mut server = Config::new([100 + number; 32]);
///     server.max_incoming = 1;
///     let client = Peer::with_capacity(Capacity::default(), Config::new([number; 32]));
///     dumbbell.join(client, Peer::with_capacity(Capacity::default(), server));
/// }
/// let now = dumbbell.now;
/// for ends in dumbbell.pairs_mut() {
///     ends.a.connect(now, ends.b_address)?;
/// }
/// while dumbbell.now < now + Duration::from_millis(500) && dumbbell.step() {}
/// assert!(dumbbell.pairs().iter().all(|ends| ends.b.connections().count() == 1));
/// # Ok::<(), rakwire::raknet::ConnectError>(())
/// ```
#[derive(Debug)]
pub struct Dumbbell<A, B> {
    /// The time.
    pub now: Instant,
    pairs: Vec<Ends<A, B>>,
    forth: Link,
    back: Link,
}

impl<A: Machine, B: Machine> Dumbbell<A, B> {
    /// Two links with the same conditions and different luck, and nobody at their ends.
    #[must_use]
    pub fn new(conditions: Conditions, seed: u64) -> Self {
        Self {
            now: Instant::from_micros(1_000_000),
            pairs: Vec::new(),
            forth: Link::new(conditions, seed.wrapping_mul(2)),
            back: Link::new(conditions, seed.wrapping_mul(2).wrapping_add(1)),
        }
    }

    /// Adds a pair. All `a` are at one side, all `b` at the other; only the two of a pair reach each other.
    pub fn join(&mut self, a: A, b: B) {
        let port = u16::try_from(self.pairs.len() + 1).unwrap_or(u16::MAX);
        let a_address = SocketAddr::from(([192, 0, 2, 1], port));
        let b_address = SocketAddr::from(([192, 0, 2, 2], port));
        self.pairs.push(Ends { a, b, a_address, b_address });
    }

    /// The pairs in the order in which they joined.
    #[must_use]
    pub fn pairs(&self) -> &[Ends<A, B>] {
        &self.pairs
    }

    /// The pairs in the order in which they joined.
    pub fn pairs_mut(&mut self) -> &mut [Ends<A, B>] {
        &mut self.pairs
    }

    /// The link from every `a` to its `b`.
    pub const fn forth(&mut self) -> &mut Link {
        &mut self.forth
    }

    /// The link from every `b` to its `a`.
    pub const fn back(&mut self) -> &mut Link {
        &mut self.back
    }

    /// Puts what all have to send on its way, moves the clock to what happens next and lets it happen. False when
    /// nothing ever will.
    pub fn step(&mut self) -> bool {
        let mut next = None;
        for (flow, ends) in self.pairs.iter_mut().enumerate() {
            transmit(self.now, &mut ends.a, &mut self.forth, flow, ends.b_address);
            transmit(self.now, &mut ends.b, &mut self.back, flow, ends.a_address);
            next = earliest(next, earliest(ends.a.poll_timeout(), ends.b.poll_timeout()));
        }
        next = earliest(next, earliest(self.forth.next_arrival(), self.back.next_arrival()));
        let Some(next) = next else {
            return false;
        };
        self.now = self.now.max(next);
        while let Some((flow, datagram)) = self.forth.receive_of(self.now) {
            if let Some(ends) = self.pairs.get_mut(flow) {
                ends.b.handle_datagram(self.now, ends.a_address, &datagram);
            }
        }
        while let Some((flow, datagram)) = self.back.receive_of(self.now) {
            if let Some(ends) = self.pairs.get_mut(flow) {
                ends.a.handle_datagram(self.now, ends.b_address, &datagram);
            }
        }
        for ends in &mut self.pairs {
            wake(self.now, &mut ends.a);
            wake(self.now, &mut ends.b);
        }
        true
    }
}

fn earliest(left: Option<Instant>, right: Option<Instant>) -> Option<Instant> {
    [left, right].into_iter().flatten().min()
}

/// Datagrams for anywhere else are lost, as on a real path.
fn transmit(now: Instant, machine: &mut impl Machine, link: &mut Link, flow: usize, peer: SocketAddr) {
    let mut buffer = [0; 2048];
    while let Some(transmit) = machine.poll_transmit(now, &mut buffer) {
        if transmit.to == peer {
            link.send_of(now, flow, transmit.payload);
        }
    }
}

fn wake(now: Instant, machine: &mut impl Machine) {
    if machine.poll_timeout().is_some_and(|at| at <= now) {
        machine.handle_timeout(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(conditions: Conditions, seed: u64) -> Vec<(u64, u8)> {
        let mut link = Link::new(conditions, seed);
        (0..200).for_each(|number| link.send(Instant::from_micros(u64::from(number) * 1_000), &[number]));
        let mut arrived = Vec::new();
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
            bottleneck: None,
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

    /// 1,000 bytes at 8 Mbit/s take a millisecond; with 3,000 bytes of queue three of them are kept at once.
    #[test]
    fn a_bottleneck_delays_and_drops() {
        let bottleneck = Some(Bottleneck { bits_per_second: 8_000_000, queue: 3_000 });
        let latency = Duration::from_millis(5);
        let mut link = Link::new(Conditions { latency, bottleneck, ..Conditions::default() }, 1);
        let payload = [0; 1_000 - IP_UDP_OVERHEAD as usize];
        (0..5).for_each(|_| link.send(Instant::ZERO, &payload));
        link.send(Instant::from_micros(2_500), &payload);
        let mut arrivals = Vec::new();
        while let Some(at) = link.next_arrival() {
            link.receive(at).expect("it arrives now");
            arrivals.push(at.as_micros());
        }
        assert_eq!(arrivals, [6_000, 7_000, 8_000, 9_000]);
        let stats = link.take_stats();
        assert_eq!((stats.carried, stats.overflowed, stats.lost), (4, 2, 0));
        assert_eq!(stats.longest_queueing, Duration::from_millis(2));
        assert_eq!(stats.mean_queueing(), Duration::from_micros((1_000 + 2_000 + 500) / 4));
        assert_eq!(*link.stats(), LinkStats::default());
    }
}
