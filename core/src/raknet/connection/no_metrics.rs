//! A peer that is built without statistics counts nothing.

use crate::raknet::stats::{Amount, Waiting};
use crate::time::Instant;

/// A counter that stays at 0.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Count;

impl Count {
    pub(crate) const fn add_one(self) {}

    pub(crate) const fn get(self) -> u64 {
        0
    }
}

/// Counters of bytes that stay at 0.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Metrics<const N: usize>;

impl<const N: usize> Metrics<N> {
    #[inline]
    pub(crate) const fn add(self, _: Instant, _: usize, _: usize) {}

    pub(crate) fn amounts(self, _: Instant) -> [Amount; N] {
        [Amount::default(); N]
    }
}

/// How much waits in each of `N` queues, which nobody counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WaitingAmounts<const N: usize>;

impl<const N: usize> WaitingAmounts<N> {
    pub(crate) const fn count_in(self, _: usize, _: usize) {}

    pub(crate) const fn count_out(self, _: usize, _: usize) {}

    pub(crate) fn amounts(self) -> [Waiting; N] {
        [Waiting::default(); N]
    }
}
