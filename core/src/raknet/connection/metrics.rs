//! What was counted in the last second and since the beginning (docs/raknet.md#statistics).

use crate::raknet::stats::{Amount, Waiting};
use crate::time::{Instant, divide};

const MICROS_PER_SECOND: u64 = 1_000_000;

/// How often something happened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Count(u64);

impl Count {
    #[inline]
    pub(crate) const fn add_one(&mut self) {
        self.0 += 1;
    }

    pub(crate) const fn get(self) -> u64 {
        self.0
    }
}

/// How much waits in each of `N` queues.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingAmounts<const N: usize>([Waiting; N]);

impl<const N: usize> Default for WaitingAmounts<N> {
    fn default() -> Self {
        Self(const { [Waiting { messages: 0, bytes: 0 }; N] })
    }
}

impl<const N: usize> WaitingAmounts<N> {
    /// A message came into a queue.
    pub(crate) fn count_in(&mut self, queue: usize, bytes: usize) {
        if let Some(amount) = self.0.get_mut(queue) {
            amount.messages += 1;
            amount.bytes = amount.bytes.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        }
    }

    /// A message left a queue.
    pub(crate) fn count_out(&mut self, queue: usize, bytes: usize) {
        if let Some(amount) = self.0.get_mut(queue) {
            amount.messages = amount.messages.saturating_sub(1);
            amount.bytes = amount.bytes.saturating_sub(u32::try_from(bytes).unwrap_or(u32::MAX));
        }
    }

    pub(crate) const fn amounts(self) -> [Waiting; N] {
        self.0
    }
}

/// Bytes of one kind: in all, in the second that is running, and in the last whole one.
///
/// Counters are aligned to four bytes, so that an odd number of words is wasted by none of the two ends.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, packed(4))]
struct Counter {
    total: u64,
    running: u32,
    last: u32,
}

/// Counters of bytes, one for each of `N` metrics.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Metrics<const N: usize> {
    counters: [Counter; N],
    second: u32,
}

impl<const N: usize> Default for Metrics<N> {
    fn default() -> Self {
        Self { counters: const { [Counter { total: 0, running: 0, last: 0 }; N] }, second: 0 }
    }
}

impl<const N: usize> Metrics<N> {
    #[inline]
    pub(crate) fn add(&mut self, now: Instant, metric: usize, bytes: usize) {
        add(&mut self.counters, &mut self.second, now, metric, bytes);
    }

    /// All counters as they are read at `now`.
    pub(crate) fn amounts(&self, now: Instant) -> [Amount; N] {
        let mut metrics = *self;
        start_second(&mut metrics.counters, &mut metrics.second, now);
        metrics.counters.map(|counter| Amount { total: counter.total, last_second: counter.last })
    }
}

#[cfg_attr(target_pointer_width = "64", inline)]
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
fn add(counters: &mut [Counter], second: &mut u32, now: Instant, metric: usize, bytes: usize) {
    start_second(counters, second, now);
    if let Some(counter) = counters.get_mut(metric) {
        counter.total += bytes as u64;
        counter.running = counter.running.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
    }
}

fn start_second(counters: &mut [Counter], second: &mut u32, now: Instant) {
    let start = u64::from(*second) * MICROS_PER_SECOND;
    // Where there is no instruction for the division below, it costs more than all the rest.
    if now.as_micros().wrapping_sub(start) < MICROS_PER_SECOND {
        return;
    }
    let new = divide(now.as_micros(), MICROS_PER_SECOND as u32) as u32;
    if new != *second {
        let follows = new == second.wrapping_add(1);
        for counter in counters {
            let running = core::mem::take(&mut counter.running);
            counter.last = if follows { running } else { 0 };
        }
        *second = new;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_micros(millis * 1_000)
    }

    const FIRST: usize = 0;

    #[test]
    fn seconds_turn_into_the_last_one() {
        let mut metrics = Metrics::<2>::default();
        let last_second = |metrics: &Metrics<2>, millis| metrics.amounts(at(millis))[FIRST].last_second;
        metrics.add(at(100), FIRST, 10);
        metrics.add(at(900), FIRST, 5);
        assert_eq!(last_second(&metrics, 999), 0);
        assert_eq!(last_second(&metrics, 1_000), 15);
        metrics.add(at(1_500), FIRST, 1);
        assert_eq!(last_second(&metrics, 1_999), 15);
        assert_eq!(last_second(&metrics, 2_000), 1);
        assert_eq!(last_second(&metrics, 3_000), 0);
        let [first, second] = metrics.amounts(at(3_000));
        assert_eq!((first.total, second.total), (16, 0));
    }
}
