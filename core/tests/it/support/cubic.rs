//! A flow with CUBIC (RFC 9438), the congestion control of most TCP implementations.
//!
//! All datagrams have the same length. The flow models only the congestion window of TCP: it never retransmits a lost
//! datagram, and measures only how many datagrams arrive.

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::BTreeMap;

use rakwire::{Instant, Machine, Transmit};

/// The length of a datagram in bytes, without IP and UDP headers.
pub(crate) const DATAGRAM: usize = 1_464;
/// The growth constant of the window (RFC 9438 section 5).
const C: f64 = 0.4;
/// The multiplicative decrease factor (RFC 9438 section 4.6).
const BETA: f64 = 0.7;
/// RFC 9438, section 4.3: the growth in the Reno-friendly region.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
const INITIAL_WINDOW: f64 = 10.0;
/// The number of later acknowledgements after which a datagram is declared lost (RFC 5681, section 3.2).
const REORDERING: u64 = 3;
/// The minimum retransmission timeout, as in Linux.
const MIN_TIMEOUT: Duration = Duration::from_millis(200);
/// The maximum acknowledgement delay, as in Linux.
const ACK_DELAY: Duration = Duration::from_millis(40);

/// The congestion window in datagrams.
struct Window {
    datagrams: f64,
    slow_start_until: f64,
    /// The window before the last reduction.
    max: f64,
    /// The window that Reno would have.
    reno: f64,
    /// The start of the current congestion avoidance stage, and the window at that time.
    epoch: Option<(Instant, f64)>,
}

impl Window {
    const fn new() -> Self {
        Self { datagrams: INITIAL_WINDOW, slow_start_until: f64::INFINITY, max: 0.0, reno: 0.0, epoch: None }
    }

    fn on_ack(&mut self, now: Instant, round_trip: f64) {
        if self.datagrams < self.slow_start_until {
            self.datagrams += 1.0;
            return;
        }
        let (since, start) = *self.epoch.get_or_insert_with(|| {
            self.reno = self.datagrams;
            (now, self.datagrams)
        });
        let time = now.saturating_since(since).as_secs_f64();
        let inflection = (self.max.max(start) - start) / C;
        let cubic = |time: f64| C * (time - inflection.cbrt()).powi(3) + self.max.max(start);
        let alpha = if self.reno < self.max { ALPHA } else { 1.0 };
        self.reno += alpha / self.datagrams;
        if cubic(time) < self.reno {
            self.datagrams = self.datagrams.max(self.reno);
        } else {
            let target = cubic(time + round_trip).clamp(self.datagrams, 1.5 * self.datagrams);
            self.datagrams += (target - self.datagrams) / self.datagrams;
        }
    }

    /// Reduces the window after a loss.
    ///
    /// If the window was still below its last maximum, the next maximum is lower (fast convergence, RFC 9438,
    /// section 4.7).
    fn reduce(&mut self) {
        let is_lower = self.datagrams < self.max;
        self.max = if is_lower { self.datagrams * (1.0 + BETA) / 2.0 } else { self.datagrams };
        self.datagrams = (self.datagrams * BETA).max(2.0);
        self.slow_start_until = self.datagrams;
        self.epoch = None;
    }

    /// Restarts from the minimum window after a timeout.
    fn restart(&mut self) {
        self.reduce();
        self.datagrams = 1.0;
    }
}

/// A sender that always has data to send after its start time.
pub(crate) struct CubicSender {
    to: SocketAddr,
    starts: Instant,
    window: Window,
    next: u64,
    in_flight: BTreeMap<u64, Instant>,
    newest_acked: Option<u64>,
    /// Losses of datagrams before this number do not reduce the window again.
    recovery_until: u64,
    /// The smoothed RTT and its variation, in seconds; zero before the first sample.
    round_trip: f64,
    variation: f64,
    /// The time of the last acknowledgement, which restarts the timer (RFC 6298, section 5.3).
    acked_at: Instant,
    backoff: u32,
}

impl CubicSender {
    pub(crate) const fn new(to: SocketAddr, starts: Instant) -> Self {
        Self {
            to,
            starts,
            window: Window::new(),
            next: 0,
            in_flight: BTreeMap::new(),
            newest_acked: None,
            recovery_until: 0,
            round_trip: 0.0,
            variation: 0.0,
            acked_at: Instant::ZERO,
            backoff: 0,
        }
    }

    fn sample(&mut self, round_trip: f64) {
        if self.round_trip == 0.0 {
            (self.round_trip, self.variation) = (round_trip, round_trip / 2.0);
        } else {
            self.variation += ((round_trip - self.round_trip).abs() - self.variation) / 4.0;
            self.round_trip += (round_trip - self.round_trip) / 8.0;
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let (_, oldest) = self.in_flight.first_key_value()?;
        let timeout = Duration::from_secs_f64(self.round_trip + 4.0 * self.variation).max(MIN_TIMEOUT);
        let timeout = if self.round_trip == 0.0 { Duration::from_secs(1) } else { timeout };
        Some(self.acked_at.max(*oldest) + timeout * (1 << self.backoff.min(6)))
    }

    fn detect_lost(&mut self) {
        let Some(newest) = self.newest_acked else { return };
        let kept = self.in_flight.split_off(&(newest + 1).saturating_sub(REORDERING));
        let lost = core::mem::replace(&mut self.in_flight, kept);
        if lost.last_key_value().is_some_and(|(number, _)| *number >= self.recovery_until) {
            self.window.reduce();
            self.recovery_until = self.next;
        }
    }
}

impl Machine for CubicSender {
    fn handle_datagram(&mut self, now: Instant, _: SocketAddr, datagram: &[u8]) {
        for number in
            datagram.chunks_exact(8).map(|bytes| u64::from_be_bytes(bytes.try_into().expect("eight bytes")))
        {
            let Some(sent) = self.in_flight.remove(&number) else { continue };
            (self.acked_at, self.backoff) = (now, 0);
            self.newest_acked = self.newest_acked.max(Some(number));
            self.sample(now.saturating_since(sent).as_secs_f64());
            if number >= self.recovery_until {
                self.window.on_ack(now, self.round_trip);
            }
        }
        self.detect_lost();
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.deadline().is_some_and(|at| at <= now) {
            self.in_flight.clear();
            self.window.restart();
            self.recovery_until = self.next;
            self.backoff += 1;
        }
    }

    fn poll_transmit<'b>(&mut self, now: Instant, buffer: &'b mut [u8]) -> Option<Transmit<'b>> {
        if now < self.starts || self.in_flight.len() as f64 >= self.window.datagrams.floor() {
            return None;
        }
        let payload = &mut buffer[..DATAGRAM];
        payload[..8].copy_from_slice(&self.next.to_be_bytes());
        self.in_flight.insert(self.next, now);
        self.next += 1;
        Some(Transmit { to: self.to, payload })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.next == 0 { Some(self.starts) } else { self.deadline() }
    }
}

/// A receiver that acknowledges every second datagram, and immediately after a gap.
pub(crate) struct CubicReceiver {
    to: SocketAddr,
    next: u64,
    unacknowledged: Vec<u64>,
    due: Option<Instant>,
    /// The number of received datagrams.
    pub(crate) arrived: u64,
}

impl CubicReceiver {
    pub(crate) const fn new(to: SocketAddr) -> Self {
        Self { to, next: 0, unacknowledged: Vec::new(), due: None, arrived: 0 }
    }
}

impl Machine for CubicReceiver {
    fn handle_datagram(&mut self, now: Instant, _: SocketAddr, datagram: &[u8]) {
        let number = u64::from_be_bytes(datagram[..8].try_into().expect("eight bytes"));
        self.arrived += 1;
        self.unacknowledged.push(number);
        let is_next = number == self.next;
        self.next = self.next.max(number + 1);
        let waits = is_next && self.unacknowledged.len() < 2;
        self.due = Some(if waits { now + ACK_DELAY } else { now });
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit<'b>(&mut self, now: Instant, buffer: &'b mut [u8]) -> Option<Transmit<'b>> {
        self.due.take_if(|due| *due <= now)?;
        let mut length = 0;
        for number in self.unacknowledged.drain(..) {
            buffer[length..length + 8].copy_from_slice(&number.to_be_bytes());
            length += 8;
        }
        Some(Transmit { to: self.to, payload: &buffer[..length] })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }
}
