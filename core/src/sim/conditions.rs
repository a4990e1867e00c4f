//! What a path does to datagrams.

use core::time::Duration;

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
