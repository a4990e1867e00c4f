//! Scheduling and pacing of messages: weighted fair queueing and a token bucket (docs/raknet.md#priorities).
//!
//! The token bucket spreads a window over a round trip (RFC 9002 section 7.7). Each message gets a virtual time when it
//! is queued, and the message with the earliest virtual time is sent first. The higher a priority, the smaller the
//! steps between the virtual times of its messages.

use crate::raknet::config::PRIORITIES;
use crate::raknet::delivery::Priority;
use crate::time::{Instant, divide};

/// The priorities that have a queue of their own.
///
/// In the small profile all messages share one queue.
pub(super) const CLASSES: &[Priority] = if PRIORITIES { &Priority::ALL } else { &[Priority::Medium] };

/// Returns the element of [`CLASSES`] that represents this priority.
pub(super) const fn class(priority: Priority) -> Priority {
    if PRIORITIES { priority } else { Priority::Medium }
}

/// Returns the index of a priority in [`CLASSES`].
pub(super) const fn place(priority: Priority) -> usize {
    if PRIORITIES { priority.index() } else { 0 }
}

/// The virtual time of the first message of each priority in an empty queue.
const FIRST: [u32; Priority::COUNT] = [0, 3, 10, 27];
/// The step between the virtual times of a priority's messages. Under load, the numbers of messages sent have a ratio
/// of about 35 : 7 : 2.5 : 1.
const STEP: [u32; Priority::COUNT] = [1, 5, 14, 35];

/// The virtual times of the next message of each priority.
#[derive(Clone, Copy, Debug)]
pub(super) struct VirtualClock {
    next: [u32; if PRIORITIES { Priority::COUNT } else { 0 }],
}

impl Default for VirtualClock {
    fn default() -> Self {
        Self { next: core::array::from_fn(|at| FIRST.get(at).copied().unwrap_or(0)) }
    }
}

impl VirtualClock {
    /// Returns the virtual time for a new message; `head` is the message that would be sent next.
    pub(super) fn assign(&mut self, priority: Priority, head: Option<(Priority, u32)>) -> u32 {
        let first = FIRST.get(priority.index()).copied().unwrap_or(0);
        let step = STEP.get(priority.index()).copied().unwrap_or(0);
        let Some(next) = self.next.get_mut(priority.index()) else {
            return 0;
        };
        let mut time = *next;
        match head {
            None => time = first,
            Some((head, head_time)) => {
                let p = u32::try_from(head.index()).unwrap_or(0);
                let start = head_time.wrapping_sub(p << p).wrapping_add(p);
                if is_earlier(time, start) {
                    time = start.wrapping_add(first);
                }
            }
        }
        *next = time.wrapping_add(step);
        time
    }
}

/// Compares virtual times, which wrap. The virtual times in a queue never differ by half of the range or more.
pub(super) const fn is_earlier(left: u32, right: u32) -> bool {
    left != right && right.wrapping_sub(left) <= u32::MAX / 2
}

/// The minimum burst in datagrams.
const BURST_DATAGRAMS: u32 = 4;
/// The burst size at a high rate, as a duration in microseconds: twice the resolution of a coarse timer (1 ms).
const BURST_MICROS: u32 = 2_000;
/// The minimum sleep before the next burst, in microseconds.
///
/// Waking up for each datagram would cost more.
const MIN_SLEEP_MICROS: u32 = 1_000;

/// A token bucket: tokens in bytes accumulate up to a burst, and each datagram takes some.
///
/// The struct is packed, because every connection has two.
#[derive(Clone, Copy, Debug, Default)]
#[repr(Rust, packed(4))]
pub(super) struct Pacer {
    tokens: i32,
    filled: Instant,
}

impl Pacer {
    /// Creates a pacer that allows an initial burst of `bytes`.
    pub(super) fn new(bytes: u32) -> Self {
        Self { tokens: i32::try_from(bytes).unwrap_or(i32::MAX), filled: Instant::ZERO }
    }

    /// Returns true if a datagram may be sent now.
    ///
    /// The clock is only consulted when the tokens are used up, so a burst is cheap.
    #[inline]
    pub(super) fn allows(&mut self, now: Instant, datagram: u32, rate: impl FnOnce() -> u32) -> bool {
        if self.tokens <= 0 {
            self.fill(now, datagram, rate());
        }
        self.tokens > 0
    }

    fn fill(&mut self, now: Instant, datagram: u32, rate: u32) {
        let gained = in_time(rate, now.micros_since(self.filled));
        if gained > 0 {
            let burst = in_time(rate, BURST_MICROS).max(BURST_DATAGRAMS.saturating_mul(datagram));
            let burst = i32::try_from(burst).unwrap_or(i32::MAX);
            let gained = i32::try_from(gained).unwrap_or(i32::MAX);
            self.tokens = self.tokens.saturating_add(gained).min(burst);
            self.filled = now;
        }
    }

    #[inline]
    pub(super) fn spend(&mut self, bytes: usize) {
        self.tokens = self.tokens.saturating_sub(i32::try_from(bytes).unwrap_or(i32::MAX));
    }

    /// Returns when the next datagrams may be sent; a time in the past means immediately.
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(super) fn ready_at(&self, rate: u32) -> Instant {
        let Some(debt) = 0_i32.checked_sub(self.tokens).and_then(|debt| u32::try_from(debt).ok()) else {
            return self.filled;
        };
        let wanted = u64::from(debt) + u64::from(in_time(rate, MIN_SLEEP_MICROS).max(1));
        let wait = divide(wanted * 1_000_000, rate) + 1;
        self.filled.plus_micros(u32::try_from(wait).unwrap_or(u32::MAX))
    }
}

/// Returns the bytes that a rate in bytes per second transfers in `micros` microseconds.
fn in_time(rate: u32, micros: u32) -> u32 {
    u32::try_from(divide(u64::from(rate) * u64::from(micros), 1_000_000)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATAGRAM: u32 = 1_000;

    fn at(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    /// Sends whenever allowed, waking up `late` microseconds too late; returns the bytes sent in a second.
    fn run(rate: u32, late: u64) -> u32 {
        let mut pacer = Pacer::new(0);
        let (mut now, mut sent) = (0, 0);
        pacer.allows(at(now), DATAGRAM, || rate);
        while now < 1_000_000 {
            while pacer.allows(at(now), DATAGRAM, || rate) {
                pacer.spend(DATAGRAM as usize);
                sent += DATAGRAM;
            }
            let next = pacer.ready_at(rate).as_micros();
            assert!(next > now, "the next burst is due in the past");
            now = next + late;
        }
        sent
    }

    #[test]
    fn the_pacing_rate_is_reached_with_coarse_timers() {
        for rate in [20_000, 1_000_000, 100_000_000, 4_000_000_000] {
            for late in [0, 999] {
                let sent = run(rate, late);
                assert!(
                    sent.abs_diff(rate) <= rate / 50 + 4 * DATAGRAM,
                    "sent {sent} at {rate} B/s, {late} us late"
                );
            }
        }
    }

    #[test]
    fn an_idle_sender_accumulates_at_most_one_burst() {
        let mut pacer = Pacer::new(10 * DATAGRAM);
        let mut burst = |now| {
            let mut datagrams = 0;
            while pacer.allows(at(now), DATAGRAM, || 100_000) {
                pacer.spend(DATAGRAM as usize);
                datagrams += 1;
            }
            datagrams
        };
        assert_eq!(burst(0), 10);
        assert_eq!(burst(10_000_000), BURST_DATAGRAMS);
        assert_eq!(burst(10_010_000), 1);
        assert_eq!(burst(10_010_001), 0);
    }
}
