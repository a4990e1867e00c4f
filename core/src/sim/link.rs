//! One direction of a path, and what it does to datagrams.

use alloc::boxed::Box;
use alloc::collections::BinaryHeap;
use core::cmp::Reverse;
use core::time::Duration;

use rand_pcg::Pcg32;
use rand_pcg::rand_core::{Rng, SeedableRng};

use crate::time::Instant;
use crate::wire::IP_UDP_OVERHEAD;

/// What happened to the datagrams that a link was given.
///
/// ```
/// use core::time::Duration;
/// use rakwire::Instant;
/// use rakwire::sim::{Bottleneck, Conditions, Link};
///
/// // A thousand bytes a second, and two datagrams of that much at once: the second waits for the first.
/// let bottleneck = Some(Bottleneck::with_queue_of(8_000, Duration::from_secs(5)));
/// let mut link = Link::new(Conditions { bottleneck, ..Conditions::default() }, 1);
/// link.send(Instant::ZERO, &[0; 972]);
/// link.send(Instant::ZERO, &[0; 972]);
/// let stats = link.stats();
/// assert_eq!((stats.carried, stats.longest_queueing), (2, Duration::from_secs(1)));
/// assert_eq!(stats.mean_queueing(), Duration::from_millis(500));
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
    /// Whether a burst of losses is under way.
    in_burst: bool,
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
            in_burst: false,
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

    pub(super) fn send_of(&mut self, now: Instant, flow: usize, payload: &[u8]) {
        if self.chance(self.conditions.loss) || self.is_lost_in_burst() {
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

    fn is_lost_in_burst(&mut self) -> bool {
        let Some(bursts) = self.conditions.bursts else { return false };
        let change = if self.in_burst { bursts.bad_to_good } else { bursts.good_to_bad };
        self.in_burst ^= self.chance(change);
        self.in_burst
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

    pub(super) fn receive_of(&mut self, now: Instant) -> Option<(usize, Box<[u8]>)> {
        if self.next_arrival()? > now {
            return None;
        }
        self.transit.pop().map(|Reverse(datagram)| (datagram.flow, datagram.payload))
    }
}

/// What a path does to datagrams.
///
/// ```
/// use core::time::Duration;
/// use rakwire::Instant;
/// use rakwire::sim::{Conditions, Link};
///
/// let bad_wifi = Conditions {
///     loss: 0.05,
///     latency: Duration::from_millis(30),
///     jitter: Duration::from_millis(10),
///     ..Conditions::default()
/// };
/// let mut link = Link::new(bad_wifi, 7);
/// (0..1_000).for_each(|_| link.send(Instant::ZERO, b"position"));
/// assert!((30..70).contains(&link.stats().lost));
/// assert_eq!(link.receive(Instant::ZERO + Duration::from_millis(29)), None);
/// assert!(link.receive(Instant::ZERO + Duration::from_millis(40)).is_some());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Conditions {
    /// The share of datagrams that vanish, 0 to 1.
    pub loss: f64,
    /// Losses that come in bursts, beside those of `loss`.
    pub bursts: Option<GilbertElliott>,
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

impl Conditions {
    /// A path that is empty but for its bottleneck: with a round trip of so long, and a queue that takes so long to drain.
    ///
    /// ```
    /// use core::time::Duration;
    /// use rakwire::sim::Conditions;
    ///
    /// let path = Conditions::bottlenecked(Duration::from_millis(50), 20_000_000, Duration::from_millis(100));
    /// assert_eq!(path.latency, Duration::from_millis(25));
    /// assert_eq!(path.bottleneck.map(|bottleneck| bottleneck.queue), Some(250_000));
    /// ```
    #[must_use]
    pub fn bottlenecked(round_trip: Duration, bits_per_second: u64, queue: Duration) -> Self {
        let bottleneck = Some(Bottleneck::with_queue_of(bits_per_second, queue));
        Self { latency: round_trip / 2, bottleneck, ..Self::default() }
    }
}

/// Losses in bursts: the model of Gilbert and Elliott, a Markov chain of two states, good and bad. In the good state nothing
/// is lost, in the bad one everything. The state may change before each datagram.
///
/// ```
/// use rakwire::Instant;
/// use rakwire::sim::{Conditions, GilbertElliott, Link};
///
/// // Bursts of five datagrams on average, every hundred datagrams: about 5 % are lost.
/// let bursts = GilbertElliott { good_to_bad: 0.01, bad_to_good: 0.2 };
/// assert!((bursts.loss() - 0.048).abs() < 0.001);
/// let mut link = Link::new(Conditions { bursts: Some(bursts), ..Conditions::default() }, 7);
/// (0..10_000).for_each(|_| link.send(Instant::ZERO, b"position"));
/// assert!((300..700).contains(&link.stats().lost));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// The probability that the bad state follows the good one, 0 to 1.
    pub good_to_bad: f64,
    /// The probability that the good state follows the bad one, 0 to 1. Its reciprocal is the mean length of a burst.
    pub bad_to_good: f64,
}

impl GilbertElliott {
    /// The share of datagrams that are lost in the long run, 0 to 1; 0 if the state never changes.
    #[must_use]
    pub fn loss(self) -> f64 {
        let sum = self.good_to_bad + self.bad_to_good;
        if sum > 0.0 { self.good_to_bad / sum } else { 0.0 }
    }
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

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn received(conditions: Conditions, seed: u64) -> Vec<(u64, u8)> {
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
        let arrived = received(Conditions::default(), 1);
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
            bursts: None,
        };
        let arrived = received(conditions, 1);
        assert_eq!(arrived, received(conditions, 1));
        assert_ne!(arrived, received(conditions, 2));
        assert!((120..240).contains(&arrived.len()), "{}", arrived.len());
        assert!(arrived.iter().all(|(at, number)| *at >= u64::from(*number) * 1_000 + 10_000));
        assert!(arrived.windows(2).any(|pair| pair[0].1 > pair[1].1), "nothing was reordered");
        assert!(arrived.windows(2).any(|pair| pair[0].1 == pair[1].1), "nothing was doubled");
    }

    #[test]
    fn everything_may_be_lost() {
        assert!(received(Conditions { loss: 1.0, ..Conditions::default() }, 1).is_empty());
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
        let mut received = Vec::new();
        while let Some(at) = link.next_arrival() {
            link.receive(at).expect("it arrives now");
            received.push(at.as_micros());
        }
        assert_eq!(received, [6_000, 7_000, 8_000, 9_000]);
        let stats = link.take_stats();
        assert_eq!((stats.carried, stats.overflowed, stats.lost), (4, 2, 0));
        assert_eq!(stats.longest_queueing, Duration::from_millis(2));
        assert_eq!(stats.mean_queueing(), Duration::from_micros((1_000 + 2_000 + 500) / 4));
        assert_eq!(*link.stats(), LinkStats::default());
    }
}
