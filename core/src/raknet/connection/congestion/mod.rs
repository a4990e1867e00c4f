//! Congestion control: the bytes that may be in flight, and their pacing rate.
//!
//! It also contains the delay-based controller for carriers other than RakNet.

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

/// A congestion controller. Its window stays within bounds whatever the peer acknowledges.
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
    /// It is 5/4 of a window per RTT (RFC 9002 section 7.7), and two windows in slow start, so that pacing alone never
    /// leaves the window unused.
    pub(super) fn rate(&self, rtt: u32) -> u32 {
        let window = u64::from(self.window());
        let bytes_per_rtt = match self.pace() {
            Pace::SlowStart => 2 * window,
            Pace::Steady => window + window / 4,
        };
        u32::try_from(divide(bytes_per_rtt * 1_000_000, rtt)).unwrap_or(u32::MAX)
    }

    /// Returns true if a datagram sent at this time belongs to a recovery period. Only NewReno has one.
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

    /// Returns true in slow start, in which the window grows as fast as it can.
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

    /// Handles a spurious loss: a datagram declared lost was acknowledged. `ordinal` is that of its loss.
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

/// The datagrams that one acknowledgement of a carrier acknowledged for the first time.
#[cfg(feature = "delay-based")]
#[derive(Clone, Copy, Debug)]
pub struct PathSample {
    /// When the acknowledgement arrived.
    pub now: Instant,
    /// When the oldest of the datagrams was sent.
    pub oldest_sent_at: Instant,
    /// When the newest of them was sent.
    pub newest_sent_at: Instant,
    /// Their size in bytes.
    pub bytes: u32,
    /// Bytes in flight before the acknowledgement.
    pub in_flight: u32,
    /// The highest number ever acknowledged.
    pub newest: u64,
    /// The number of the next datagram to be sent.
    pub next: u64,
}

/// The delay-based congestion control of RakNet, for another carrier of datagrams.
///
/// A relay that carries RakNet in QUIC or SCTP needs a controller there too. A controller that treats each loss as
/// congestion would throttle the connection inside. `docs/congestion.md` describes the controller and its measurements.
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
    /// The highest number of the first acknowledgement, which is the base of the controller's numbers.
    ///
    /// It also ends the first round. The numbers of a connection continue when its path changes, and those of the
    /// controller are shorter.
    first: Option<u64>,
}

#[cfg(feature = "delay-based")]
impl PathWindow {
    /// Creates a window for datagrams of this size that never exceeds `max` bytes.
    ///
    /// Its minimum of eight datagrams takes precedence.
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

    /// Sets the size of a full datagram, the unit of growth and of the minimum.
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

    /// Handles a loss of `bytes`; the newest of them were sent at `sent_at`.
    pub fn on_lost(&mut self, now: Instant, sent_at: Instant, bytes: u32) {
        self.controller.on_lost(&Loss {
            now,
            sent_at,
            bytes,
            ordinal: 0,
            trigger: LossTrigger::TimeThreshold,
        });
    }

    /// Handles an ECN mark (RFC 9002 section 7.1) on datagrams; the newest of them was sent at `sent_at`.
    ///
    /// The window shrinks by 15 % (RFC 8511 section 3.1), at most once for datagrams sent before the reduction.
    pub fn on_ecn_mark(&mut self, now: Instant, sent_at: Instant) {
        self.controller.on_ecn_mark(now, sent_at);
    }

    /// Handles persistent congestion (RFC 9002 section 7.6).
    ///
    /// Sets the window to its minimum and restarts slow start.
    pub fn on_persistent_congestion(&mut self) {
        self.controller.on_persistent_congestion();
    }
}

/// Converts a number for the controller, which only needs the order within a window.
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

    /// Acknowledges windows that are completely in flight, since a peer can acknowledge anything.
    fn acknowledge(path: &mut PathWindow, rounds: u64) {
        acknowledge_from(path, 0, 1..=rounds);
    }

    /// The same for a path on which the first datagram has the number `first`.
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
    fn the_minimum_window_outweighs_the_maximum() {
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
    /// A connection that changes its path builds a new window, and its numbers continue.
    #[test]
    fn rounds_end_for_any_first_datagram_number() {
        let grown = |first| {
            let mut path = PathWindow::new(DATAGRAM, 1 << 30);
            acknowledge_from(&mut path, first, 1..=4);
            // The mark ends slow start, after which the window grows only when a round ends.
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
    fn an_ecn_mark_shrinks_the_window_once_a_round_trip() {
        let mut path = PathWindow::new(DATAGRAM, 1 << 30);
        acknowledge(&mut path, 5);
        let mark = |path: &mut PathWindow, sent_at| {
            let sent_at = Instant::from_micros(sent_at);
            path.on_ecn_mark(sent_at + Duration::from_millis(50), sent_at);
            path.bytes()
        };
        let before = path.bytes();
        let shrunk = mark(&mut path, 260_000);
        assert!((before / 100 * 84..=before / 100 * 86).contains(&shrunk), "{shrunk} of {before}");
        // Datagrams sent before the reduction met the same queue.
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
        assert!(path.bytes() < 2 * shrunk, "{} after {shrunk}", path.bytes());
    }
}
