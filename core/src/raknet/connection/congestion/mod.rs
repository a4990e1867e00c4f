//! Congestion control: the congestion window and the pacing rate.
//!
//! It also exports the delay-based controller for use outside RakNet.

#[cfg(feature = "delay-based")]
mod delay_based;
mod new_reno;

#[cfg(feature = "delay-based")]
use delay_based::DelayBased;
pub(super) use new_reno::{AckSample, INITIAL_DATAGRAMS, Loss, LossTrigger};
use new_reno::{NewReno, Pace};

use crate::raknet::config::CongestionControl;
#[cfg(feature = "delay-based")]
use crate::serial::U24;
use crate::time::{Instant, divide};

/// A congestion controller. Its window stays within fixed bounds for any sequence of acknowledgements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Congestion {
    controller: Controller,
}

#[derive(Clone, Copy, Debug)]
enum Controller {
    NewReno(NewReno),
    #[cfg(feature = "delay-based")]
    DelayBased(DelayBased),
}

/// Calls a method of the active controller.
macro_rules! dispatch {
    ($controller:expr, $method:ident($($argument:expr)?)) => {
        match $controller {
            Controller::NewReno(controller) => controller.$method($($argument)?),
            #[cfg(feature = "delay-based")]
            Controller::DelayBased(controller) => controller.$method($($argument)?),
        }
    };
}

impl Default for Congestion {
    fn default() -> Self {
        Self::new(CongestionControl::default(), 0)
    }
}

impl Congestion {
    pub(super) fn new(control: CongestionControl, datagram: u32) -> Self {
        let controller = match control {
            CongestionControl::NewReno => Controller::NewReno(NewReno::new(datagram)),
            #[cfg(feature = "delay-based")]
            CongestionControl::DelayBased => Controller::DelayBased(DelayBased::new(datagram)),
        };
        Self { controller }
    }

    /// Returns the congestion window in bytes.
    pub(super) fn window(&self) -> u32 {
        dispatch!(&self.controller, window())
    }

    /// Returns the pacing rate in bytes per second for an RTT of `rtt` microseconds.
    ///
    /// It is 5/4 of a window per RTT (RFC 9002 section 7.7), and two windows in slow start, so that pacing is never
    /// the bottleneck.
    pub(super) fn rate(&self, rtt: u32) -> u32 {
        let window = u64::from(self.window());
        let bytes_per_rtt = match self.pace() {
            Pace::SlowStart => 2 * window,
            Pace::Steady => window + window / 4,
        };
        u32::try_from(divide(bytes_per_rtt * 1_000_000, rtt)).unwrap_or(u32::MAX)
    }

    /// Returns true if a datagram sent at `sent_at` belongs to a recovery period; always false without NewReno.
    pub(super) fn is_in_recovery(&self, sent_at: Instant) -> bool {
        match &self.controller {
            Controller::NewReno(new_reno) => new_reno.is_in_recovery(sent_at),
            #[cfg(feature = "delay-based")]
            Controller::DelayBased(_) => false,
        }
    }

    fn pace(&self) -> Pace {
        dispatch!(&self.controller, pace())
    }

    /// Returns true in slow start.
    pub(super) fn is_in_slow_start(&self) -> bool {
        self.pace() == Pace::SlowStart
    }

    pub(super) fn on_ack(&mut self, sample: &AckSample) {
        dispatch!(&mut self.controller, on_ack(sample))
    }

    /// Handles a datagram that was declared lost.
    pub(super) fn on_lost(&mut self, loss: &Loss) {
        dispatch!(&mut self.controller, on_lost(loss))
    }

    /// Handles a spurious loss: a datagram declared lost was acknowledged. `ordinal` is the ordinal of the loss.
    pub(super) fn on_spurious_loss(&mut self, ordinal: u32) {
        dispatch!(&mut self.controller, on_spurious_loss(ordinal))
    }

    /// Handles persistent congestion (similar to RFC 9002 section 7.6).
    ///
    /// It is declared after several consecutive timeouts.
    pub(super) fn on_persistent_congestion(&mut self) {
        dispatch!(&mut self.controller, on_persistent_congestion())
    }
}

/// A summary of the datagrams that one acknowledgement acknowledged for the first time.
#[cfg(feature = "delay-based")]
#[derive(Clone, Copy, Debug)]
pub struct PathSample {
    /// The time at which the acknowledgement was received.
    pub now: Instant,
    /// The send time of the oldest of these datagrams.
    pub oldest_sent_at: Instant,
    /// The send time of the newest of these datagrams.
    pub newest_sent_at: Instant,
    /// The total size of these datagrams in bytes.
    pub bytes: u32,
    /// Bytes in flight before the acknowledgement.
    pub in_flight: u32,
    /// The highest datagram number acknowledged so far.
    pub newest: u64,
    /// The number of the next datagram to be sent.
    pub next: u64,
}

/// The delay-based congestion controller of this crate, for a tunnel that carries RakNet datagrams.
///
/// A relay that carries RakNet in QUIC or SCTP needs congestion control for the outer connection too. A controller
/// that treats each loss as congestion would throttle the RakNet connection inside. `docs/congestion.md` describes
/// the controller and its measurements.
///
/// ```
/// use core::time::Duration;
/// use rakwire::Instant;
/// use rakwire::raknet::{PathSample, PathWindow};
///
/// let mut path = PathWindow::new(1_200, 1 << 20);
/// let window = path.bytes();
/// let sent_at = Instant::from_micros(1_000);
/// let now = sent_at + Duration::from_millis(50);
/// let sample = PathSample {
///     now,
///     oldest_sent_at: sent_at,
///     newest_sent_at: sent_at,
///     bytes: window,
///     in_flight: window,
///     newest: 9,
///     next: 10,
/// };
/// path.on_ack(&sample);
/// assert_eq!(path.bytes(), 2 * window);
/// ```
#[cfg(feature = "delay-based")]
#[derive(Clone, Copy, Debug)]
pub struct PathWindow {
    controller: DelayBased,
    max: u32,
    /// The highest number in the first acknowledgement, the base of the controller's 24-bit numbers.
    ///
    /// It also ends the first round. It need not be zero: after a path change, the numbers of a connection continue.
    first: Option<u64>,
}

#[cfg(feature = "delay-based")]
impl PathWindow {
    /// Creates a window for datagrams of `datagram` bytes, limited to `max` bytes.
    ///
    /// The minimum window of eight datagrams takes precedence over `max`.
    #[must_use]
    pub fn new(datagram: u32, max: u32) -> Self {
        let mut controller = DelayBased::new(datagram);
        controller.bound_window(max);
        Self { controller, max, first: None }
    }

    /// Returns the congestion window in bytes.
    #[must_use]
    pub const fn bytes(&self) -> u32 {
        self.controller.window()
    }

    /// Sets the size of a full datagram in bytes, the unit of growth and of the minimum window.
    pub const fn set_datagram(&mut self, datagram: u32) {
        self.controller.set_datagram(datagram);
    }

    /// Handles an acknowledgement.
    pub fn on_ack(&mut self, sample: &PathSample) {
        let first = *self.first.get_or_insert(sample.newest);
        self.controller.on_ack(&AckSample {
            now: sample.now,
            bytes: sample.bytes,
            bytes_after_recovery: sample.bytes,
            in_flight: sample.in_flight,
            newest: number(first, sample.newest),
            next: number(first, sample.next),
            rtt: sample.now.micros_since(sample.newest_sent_at).max(1),
            ack_span: sample.newest_sent_at.micros_since(sample.oldest_sent_at),
            is_over_stream: false,
        });
        self.controller.bound_window(self.max);
    }

    /// Handles a loss of `bytes` bytes; the newest lost datagram was sent at `sent_at`.
    pub fn on_lost(&mut self, now: Instant, sent_at: Instant, bytes: u32) {
        self.controller.on_lost(&Loss {
            now,
            sent_at,
            bytes,
            ordinal: 0,
            trigger: LossTrigger::TimeThreshold,
        });
    }

    /// Handles an ECN mark (RFC 9002 section 7.1); the newest marked datagram was sent at `sent_at`.
    ///
    /// The window is reduced by 15 % (RFC 8511 section 3.1), once for all datagrams sent before the reduction.
    pub fn on_ecn_mark(&mut self, now: Instant, sent_at: Instant) {
        self.controller.on_ecn_mark(now, sent_at);
    }

    /// Handles persistent congestion (RFC 9002 section 7.6).
    ///
    /// The window becomes the minimum, and slow start restarts.
    pub fn on_persistent_congestion(&mut self) {
        self.controller.on_persistent_congestion();
    }
}

/// Converts a datagram number to 24 bits; the controller only needs the order within a window.
#[cfg(feature = "delay-based")]
fn number(first: u64, number: u64) -> U24 {
    U24::new(u32::try_from(number.wrapping_sub(first) & 0xff_ffff).unwrap_or_default())
}

#[cfg(all(test, feature = "delay-based"))]
mod tests {
    use core::ops::RangeInclusive;
    use core::time::Duration;

    use super::*;

    const DATAGRAM: u32 = 1_200;

    /// Acknowledges a whole window in each of `rounds` round trips.
    fn acknowledge(path: &mut PathWindow, rounds: u64) {
        acknowledge_from(path, 0, 1..=rounds);
    }

    /// Acknowledges the rounds `rounds` of a path with datagram numbers from `first` on.
    fn acknowledge_from(path: &mut PathWindow, first: u64, rounds: RangeInclusive<u64>) {
        for round in rounds {
            let sent_at = Instant::from_micros(round * 50_000);
            path.on_ack(&PathSample {
                now: sent_at + Duration::from_millis(50),
                oldest_sent_at: sent_at,
                newest_sent_at: sent_at,
                bytes: path.bytes(),
                in_flight: path.bytes(),
                newest: first + round * 100,
                next: first + round * 100 + 100,
            });
        }
    }

    #[test]
    fn the_window_never_exceeds_its_maximum() {
        let mut path = PathWindow::new(DATAGRAM, 1 << 20);
        acknowledge(&mut path, 1_000);
        assert_eq!(path.bytes(), 1 << 20);
    }

    #[test]
    fn the_minimum_window_takes_precedence_over_the_maximum() {
        let mut path = PathWindow::new(DATAGRAM, 0);
        acknowledge(&mut path, 10);
        path.on_persistent_congestion();
        assert_eq!(path.bytes(), 8 * DATAGRAM);
    }

    #[test]
    fn random_losses_leave_the_window_unchanged() {
        let mut path = PathWindow::new(DATAGRAM, 1 << 20);
        acknowledge(&mut path, 3);
        let before = path.bytes();
        let now = Instant::from_micros(300_000);
        path.on_lost(now, now, before / 20);
        assert_eq!(path.bytes(), before);
    }
    /// A connection that changes its path creates a new window, and its datagram numbers continue.
    #[test]
    fn the_window_does_not_depend_on_the_first_datagram_number() {
        let grown = |first| {
            let mut path = PathWindow::new(DATAGRAM, 1 << 30);
            acknowledge_from(&mut path, first, 1..=4);
            // The mark ends slow start, so the window then grows only at the end of a round.
            path.on_ecn_mark(Instant::from_micros(255_000), Instant::from_micros(205_000));
            let shrunk = path.bytes();
            acknowledge_from(&mut path, first, 6..=20);
            assert!(path.bytes() > shrunk, "{first}");
            path.bytes()
        };
        for first in [1 << 23, (1 << 24) - 150, 1 << 40] {
            assert_eq!(grown(first), grown(0), "{first}");
        }
    }

    #[test]
    fn ecn_marks_reduce_the_window_once_per_round_trip() {
        let mut path = PathWindow::new(DATAGRAM, 1 << 30);
        acknowledge(&mut path, 5);
        let mark = |path: &mut PathWindow, sent_at| {
            let sent_at = Instant::from_micros(sent_at);
            path.on_ecn_mark(sent_at + Duration::from_millis(50), sent_at);
            path.bytes()
        };
        let before = path.bytes();
        let shrunk = mark(&mut path, 260_000);
        assert!((before / 100 * 84..=before / 100 * 86).contains(&shrunk), "window {shrunk} after {before}");
        // A mark on a datagram sent before the reduction is ignored.
        assert_eq!(mark(&mut path, 305_000), shrunk);
        assert!(mark(&mut path, 320_000) < shrunk / 100 * 86);
    }

    #[test]
    fn an_ecn_mark_ends_slow_start() {
        let mut path = PathWindow::new(DATAGRAM, 1 << 30);
        acknowledge(&mut path, 3);
        path.on_ecn_mark(Instant::from_micros(210_000), Instant::from_micros(160_000));
        let shrunk = path.bytes();
        acknowledge_from(&mut path, 0, 5..=9);
        assert!(path.bytes() < 2 * shrunk, "window {} after {shrunk}", path.bytes());
    }
}
