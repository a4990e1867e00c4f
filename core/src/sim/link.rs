//! One direction of a path and its effect on datagrams.

use alloc::boxed::Box;
use alloc::collections::BinaryHeap;
use core::cmp::Reverse;
use core::time::Duration;

use rand_pcg::Pcg32;
use rand_pcg::rand_core::{Rng, SeedableRng};

use crate::time::Instant;
use crate::wire::IP_UDP_OVERHEAD;

/// Counters of the datagrams sent over a link.
///
/// ```
/// use core::time::Duration;
/// use rakwire::Instant;
/// use rakwire::sim::{Bottleneck, Conditions, Link};
///
/// // 1,000 bytes per second, and two datagrams of 1,000 bytes sent together: the second waits for the first.
/// let bottleneck = Some(Bottleneck::with_queue_of(8_000, Duration::from_secs(5)));
/// let mut link = Link::new(Conditions { bottleneck, ..Conditions::default() }, 1);
/// link.send(Instant::ZERO, &[0; 972]);
/// link.send(Instant::ZERO, &[0; 972]);
/// let stats = link.stats();
/// assert_eq!((stats.forwarded, stats.max_queueing_delay), (2, Duration::from_secs(1)));
/// assert_eq!(stats.mean_queueing_delay(), Duration::from_millis(500));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkStats {
    /// Datagrams forwarded, without lost and overflowed ones; a duplicated datagram counts twice.
    pub forwarded: u64,
    /// Bytes of the forwarded datagrams, without IP and UDP headers.
    pub bytes: u64,
    /// Datagrams lost at random.
    pub lost: u64,
    /// Datagrams dropped because the bottleneck's queue was full.
    pub overflowed: u64,
    /// The sum of the queueing delays of all forwarded datagrams.
    pub queueing_delay: Duration,
    /// The maximum queueing delay.
    pub max_queueing_delay: Duration,
}

impl LinkStats {
    /// Returns the mean queueing delay of the forwarded datagrams.
    #[must_use]
    pub fn mean_queueing_delay(&self) -> Duration {
        let nanos = self.queueing_delay.as_nanos() / u128::from(self.forwarded.max(1));
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
    /// Set during a burst of losses.
    in_burst: bool,
    transit: BinaryHeap<Reverse<Datagram>>,
    /// The time at which the bottleneck finishes its queue, in nanoseconds: a datagram may take less than a
    /// microsecond.
    busy_until: u128,
    stats: LinkStats,
}

/// A datagram in flight, ordered by arrival time, then by the order of sending.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Datagram {
    arrival: Instant,
    number: u64,
    flow: usize,
    payload: Box<[u8]>,
}

impl Link {
    /// Creates a link with these conditions. Equal seeds and equal datagrams give equal results.
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

    /// Returns the counters so far.
    #[must_use]
    pub const fn stats(&self) -> &LinkStats {
        &self.stats
    }

    /// Returns the counters since the last call and resets them.
    pub const fn take_stats(&mut self) -> LinkStats {
        core::mem::replace(
            &mut self.stats,
            LinkStats {
                forwarded: 0,
                bytes: 0,
                lost: 0,
                overflowed: 0,
                queueing_delay: Duration::ZERO,
                max_queueing_delay: Duration::ZERO,
            },
        )
    }

    /// Changes the conditions for datagrams sent from then on.
    pub const fn set_conditions(&mut self, conditions: Conditions) {
        self.conditions = conditions;
    }

    /// Sends a datagram at `now`.
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
        self.stats.forwarded += 1;
        self.stats.bytes += payload.len() as u64;
        let (arrival, number) = (now + delay, self.stats.forwarded);
        self.transit.push(Reverse(Datagram { arrival, number, flow, payload: payload.into() }));
    }

    /// Returns the time that a datagram needs to pass through the bottleneck, or `None` if the queue is full.
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
        self.stats.queueing_delay += waiting;
        self.stats.max_queueing_delay = self.stats.max_queueing_delay.max(waiting);
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

    /// Returns the arrival time of the next datagram in flight, if any.
    #[must_use]
    pub fn next_arrival(&self) -> Option<Instant> {
        self.transit.peek().map(|Reverse(datagram)| datagram.arrival)
    }

    /// Returns the next datagram that has arrived by `now`.
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

/// The conditions of a path: losses, delays, duplication, reordering and bandwidth.
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
    /// The fraction of datagrams lost at random, 0 to 1.
    pub loss: f64,
    /// Losses in bursts, in addition to `loss`.
    pub bursts: Option<GilbertElliott>,
    /// The fraction of datagrams that are duplicated, 0 to 1.
    pub duplication: f64,
    /// The fraction of datagrams that get an additional delay of up to twice the latency, 0 to 1.
    pub reordering: f64,
    /// The one-way delay of every datagram.
    pub latency: Duration,
    /// The maximum jitter. Each datagram gets an additional delay, uniformly distributed from zero to this maximum,
    /// which may reorder datagrams.
    pub jitter: Duration,
    /// The slowest hop of the path, if it has one.
    pub bottleneck: Option<Bottleneck>,
}

impl Conditions {
    /// Creates an otherwise perfect path with a bottleneck and this round-trip time; `queue` is the time to drain a
    /// full queue.
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

/// The Gilbert-Elliott model of bursty losses: a Markov chain with a good and a bad state.
///
/// No datagram is lost in the good state, and every datagram is lost in the bad state. The state may change before each
/// datagram.
///
/// ```
/// use rakwire::Instant;
/// use rakwire::sim::{Conditions, GilbertElliott, Link};
///
/// // On average a burst of five datagrams every hundred datagrams: about 5 % are lost.
/// let bursts = GilbertElliott { good_to_bad: 0.01, bad_to_good: 0.2 };
/// assert!((bursts.loss() - 0.048).abs() < 0.001);
/// let mut link = Link::new(Conditions { bursts: Some(bursts), ..Conditions::default() }, 7);
/// (0..10_000).for_each(|_| link.send(Instant::ZERO, b"position"));
/// assert!((300..700).contains(&link.stats().lost));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// The probability of a transition from good to bad, 0 to 1.
    pub good_to_bad: f64,
    /// The probability of a transition from bad to good, 0 to 1. Its reciprocal is the mean length of a burst.
    pub bad_to_good: f64,
}

impl GilbertElliott {
    /// Returns the long-term loss rate, 0 to 1; 0 if the state never changes.
    #[must_use]
    pub fn loss(self) -> f64 {
        let sum = self.good_to_bad + self.bad_to_good;
        if sum > 0.0 { self.good_to_bad / sum } else { 0.0 }
    }
}

/// A rate-limited hop with a tail-drop FIFO queue. The sizes of datagrams include their IP and UDP headers.
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
    /// The rate in bits per second; 0 interrupts the path.
    pub bits_per_second: u64,
    /// The capacity of the queue in bytes.
    pub queue: u64,
}

impl Bottleneck {
    /// Creates a bottleneck with a queue that takes `delay` to drain.
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
            let datagram = link.receive(at).expect("a datagram that arrives now");
            arrived.push((at.as_micros(), datagram[0]));
        }
        arrived
    }

    #[test]
    fn a_perfect_link_delivers_datagrams_unchanged() {
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
    fn equal_seeds_reproduce_losses_delays_and_duplicates() {
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
        assert!(arrived.windows(2).any(|pair| pair[0].1 > pair[1].1), "no datagram was reordered");
        assert!(arrived.windows(2).any(|pair| pair[0].1 == pair[1].1), "no datagram was duplicated");
    }

    #[test]
    fn a_loss_rate_of_one_loses_everything() {
        assert!(received(Conditions { loss: 1.0, ..Conditions::default() }, 1).is_empty());
    }

    /// At 8 Mbit/s, 1,000 bytes take a millisecond, and a queue of 3,000 bytes holds three such datagrams.
    #[test]
    fn a_bottleneck_queues_datagrams_and_drops_them_when_the_queue_is_full() {
        let bottleneck = Some(Bottleneck { bits_per_second: 8_000_000, queue: 3_000 });
        let latency = Duration::from_millis(5);
        let mut link = Link::new(Conditions { latency, bottleneck, ..Conditions::default() }, 1);
        let payload = [0; 1_000 - IP_UDP_OVERHEAD as usize];
        (0..5).for_each(|_| link.send(Instant::ZERO, &payload));
        link.send(Instant::from_micros(2_500), &payload);
        let mut received = Vec::new();
        while let Some(at) = link.next_arrival() {
            link.receive(at).expect("a datagram that arrives now");
            received.push(at.as_micros());
        }
        assert_eq!(received, [6_000, 7_000, 8_000, 9_000]);
        let stats = link.take_stats();
        assert_eq!((stats.forwarded, stats.overflowed, stats.lost), (4, 2, 0));
        assert_eq!(stats.max_queueing_delay, Duration::from_millis(2));
        assert_eq!(stats.mean_queueing_delay(), Duration::from_micros((1_000 + 2_000 + 500) / 4));
        assert_eq!(*link.stats(), LinkStats::default());
    }
}
