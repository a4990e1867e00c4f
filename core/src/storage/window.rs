//! The set of received reliable message numbers. It takes memory only while there is a gap.

use super::{Block, BlockLink, Pool, Purpose, Share};
use crate::serial::U24;

/// The classification of a message number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    New,
    Duplicate,
    /// Too far ahead of the first missing number to be tracked.
    TooFar,
}

/// The maximum number of blocks of a window.
const BLOCKS: usize = 16;

/// A bitmap of the numbers above the first missing number.
///
/// It takes as many blocks of the pool as it needs to cover the highest received number. Without a gap it stores only
/// `base`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SparseWindow {
    /// The first missing number.
    base: U24,
    /// The number of the first bit in the first block, at or before `base`.
    origin: U24,
    /// The count of received numbers above `base`.
    pending: u32,
    /// The first block; each block is linked to the next.
    first: BlockLink,
    /// The number of blocks.
    held: u8,
}

/// The position of a number: block, byte and bit.
struct Place {
    block: usize,
    byte: usize,
    mask: u8,
}

impl SparseWindow {
    pub(crate) const fn new(base: U24) -> Self {
        Self { base, origin: base, pending: 0, first: None, held: 0 }
    }

    /// Returns the binary logarithm of the number of bits in a block.
    const fn shift<H>(pool: &Pool<'_, H>) -> u32
    where
        H: Copy + Default,
    {
        pool.block_size().ilog2() + 3
    }

    fn place<H: Copy + Default>(&self, pool: &Pool<'_, H>, number: U24) -> Place {
        let shift = Self::shift(pool);
        let offset = number.since(self.origin) as usize;
        let bit = offset & ((1 << shift) - 1);
        Place { block: offset >> shift, byte: bit / 8, mask: 1 << (bit % 8) }
    }

    /// Classifies `number`.
    #[inline]
    pub(crate) fn check<H: Copy + Default>(&self, pool: &Pool<'_, H>, number: U24) -> Arrival {
        if number == self.base {
            return Arrival::New;
        }
        if number.is_older_than(self.base) {
            return Arrival::Duplicate;
        }
        let place = self.place(pool, number);
        if place.block >= BLOCKS {
            return Arrival::TooFar;
        }
        let byte = self.block(pool, place.block).and_then(|block| pool.bytes(block).get(place.byte).copied());
        if byte.unwrap_or(0) & place.mask == 0 { Arrival::New } else { Arrival::Duplicate }
    }

    /// Returns the block with this index in the window.
    ///
    /// It is usually the first block, because messages are rarely delayed by more numbers than a block covers.
    fn block<H: Copy + Default>(&self, pool: &Pool<'_, H>, number: usize) -> BlockLink {
        let mut block = self.first?;
        for _ in 0..number {
            block = pool.after(block)?;
        }
        Some(block)
    }

    /// Allocates the blocks for [`mark`](Self::mark); returns false if `share` may not hold them.
    #[inline]
    pub(crate) fn prepare<H: Copy + Default>(
        &mut self,
        pool: &mut Pool<'_, H>,
        share: &mut Share,
        number: U24,
    ) -> bool {
        number == self.base || self.prepare_ahead(pool, share, number)
    }

    /// Allocates the blocks for a number above a gap.
    #[cfg_attr(target_pointer_width = "64", inline(never))]
    fn prepare_ahead<H: Copy + Default>(
        &mut self,
        pool: &mut Pool<'_, H>,
        share: &mut Share,
        number: U24,
    ) -> bool {
        let block = self.place(pool, number).block;
        let missing = (block + 1).saturating_sub(self.held.into());
        block < BLOCKS
            && (missing == 0
                || pool.shares.charge_unlimited(share, missing, Purpose::Receive)
                    && (0..missing).all(|_| self.add_block(pool)))
    }

    /// Adds a block. Precondition: it is charged.
    fn add_block<H: Copy + Default>(&mut self, pool: &mut Pool<'_, H>) -> bool {
        let added = pool.store_zeroed();
        match self.last(pool) {
            None => self.first = added,
            Some(last) => pool.put_before(last, added),
        }
        self.held += u8::from(added.is_some());
        added.is_some()
    }

    fn last<H: Copy + Default>(&self, pool: &Pool<'_, H>) -> BlockLink {
        self.block(pool, usize::from(self.held).checked_sub(1)?)
    }

    /// Marks `number` as received. Precondition: it is new and [prepared](Self::prepare).
    #[inline]
    pub(crate) fn mark<H: Copy + Default>(&mut self, pool: &mut Pool<'_, H>, share: &mut Share, number: U24) {
        if number != self.base {
            let place = self.place(pool, number);
            if let Some(byte) = self.byte(pool, &place) {
                *byte |= place.mask;
                self.pending += 1;
            }
            return;
        }
        self.base = self.base.next();
        while self.pending > 0 && self.take(pool) {
            self.base = self.base.next();
            self.pending -= 1;
        }
        if self.pending == 0 {
            self.clear(pool, share);
        } else {
            self.slide(pool, share);
        }
    }

    fn byte<'p, H: Copy + Default>(&self, pool: &'p mut Pool<'_, H>, place: &Place) -> Option<&'p mut u8> {
        let block = self.block(pool, place.block)?;
        pool.bytes_mut(block).get_mut(place.byte)
    }

    /// Clears the bit at the base and returns its value.
    fn take<H: Copy + Default>(&self, pool: &mut Pool<'_, H>) -> bool {
        let place = self.place(pool, self.base);
        self.byte(pool, &place).is_some_and(|byte| *byte & place.mask != 0)
    }

    /// Frees the blocks that are completely below the base.
    fn slide<H: Copy + Default>(&mut self, pool: &mut Pool<'_, H>, share: &mut Share) {
        let bits = 1 << Self::shift(pool);
        while self.base.since(self.origin) >= bits {
            if let Some(first) = self.first {
                self.free_first(pool, share, first);
            }
            self.origin = self.origin.plus(bits);
        }
    }

    /// Frees all blocks and forgets the numbers received above the base.
    pub(crate) fn clear<H: Copy + Default>(&mut self, pool: &mut Pool<'_, H>, share: &mut Share) {
        if self.held > 0 {
            self.free_blocks(pool, share);
        }
        self.pending = 0;
        self.origin = self.base;
    }

    #[cfg_attr(target_pointer_width = "64", inline(never))]
    fn free_blocks<H: Copy + Default>(&mut self, pool: &mut Pool<'_, H>, share: &mut Share) {
        while let Some(first) = self.first {
            self.free_first(pool, share, first);
        }
    }

    fn free_first<H: Copy + Default>(&mut self, pool: &mut Pool<'_, H>, share: &mut Share, first: Block) {
        self.first = pool.after(first);
        self.held = self.held.saturating_sub(1);
        let freed = pool.free(first);
        pool.shares.release_unlimited(share, freed);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::vec::Vec;

    use bolero::produce;

    use super::super::pool::tests::with_pool;
    use super::*;

    fn arrive(
        window: &mut SparseWindow,
        pool: &mut Pool<'_, u32>,
        share: &mut Share,
        number: U24,
    ) -> Arrival {
        let arrival = window.check(pool, number);
        if arrival == Arrival::New {
            assert!(window.prepare(pool, share, number), "the pool has space");
            window.mark(pool, share, number);
        }
        arrival
    }

    /// Each number is new exactly once in any order of arrival, and memory is held only while there is a gap.
    #[test]
    fn the_window_agrees_with_a_reference_set_for_any_order_of_arrival() {
        let steps = produce::<Vec<u32>>().with().len(0..400_usize).values(0..600_u32);
        let input = (produce::<u32>(), steps);
        bolero::check!().with_iterations(if cfg!(miri) { 2 } else { 256 }).with_generator(input).for_each(
            |(start, steps)| {
                with_pool(|pool| {
                    let start = U24::new(*start);
                    let (mut window, mut share) = (SparseWindow::new(start), Share::default());
                    let (mut seen, mut first_missing) = (BTreeSet::new(), 0);
                    for &step in steps {
                        let number = start.plus(step);
                        let expected = if seen.contains(&step) { Arrival::Duplicate } else { Arrival::New };
                        assert_eq!(window.check(pool, number), expected, "number {step}, received {seen:?}");
                        if expected == Arrival::New && window.prepare(pool, &mut share, number) {
                            window.mark(pool, &mut share, number);
                            seen.insert(step);
                        }
                        while seen.contains(&first_missing) {
                            first_missing += 1;
                        }
                        let has_gap = seen.last().is_some_and(|last| *last > first_missing);
                        assert!(
                            has_gap || pool.available() == 16 && share.is_empty(),
                            "memory is held without a gap"
                        );
                    }
                    window.clear(pool, &mut share);
                    assert!(pool.available() == 16 && share.is_empty());
                });
            },
        );
    }

    #[test]
    fn numbers_in_order_take_no_memory() {
        with_pool(|pool| {
            let start = U24::new(0xFF_FFF0);
            let mut share = Share::default();
            let mut window = SparseWindow::new(start);
            for step in 0..100 {
                assert_eq!(arrive(&mut window, pool, &mut share, start.plus(step)), Arrival::New);
                assert_eq!(arrive(&mut window, pool, &mut share, start.plus(step)), Arrival::Duplicate);
                assert!(pool.available() == 16 && share.is_empty());
            }
        });
    }

    /// Each number of a shuffled range is new exactly once, even across the wrap, and all memory is returned.
    #[test]
    fn a_window_takes_memory_only_while_there_is_a_gap() {
        with_pool(|pool| {
            let start = U24::new(0xFF_FF80);
            let mut share = Share::default();
            let mut window = SparseWindow::new(start);
            for group in 0..10 {
                for step in 0..101 {
                    let number = start.plus(group * 101 + step * 37 % 101);
                    assert_eq!(arrive(&mut window, pool, &mut share, number), Arrival::New);
                    assert_eq!(arrive(&mut window, pool, &mut share, number), Arrival::Duplicate);
                }
                assert!(pool.available() == 16 && share.is_empty());
            }
        });
    }

    /// A window has at most 16 blocks, and a block of the pool has 64 bits.
    #[test]
    fn a_number_beyond_the_maximum_window_is_too_far_ahead() {
        with_pool(|pool| {
            let mut share = Share::default();
            let mut window = SparseWindow::new(U24::new(0));
            assert_eq!(window.check(pool, U24::new(16 * 64)), Arrival::TooFar);
            assert_eq!(arrive(&mut window, pool, &mut share, U24::new(16 * 64 - 1)), Arrival::New);
            window.clear(pool, &mut share);
            assert!(pool.available() == 16 && share.is_empty());
        });
    }

    #[test]
    fn prepare_fails_only_above_a_gap_if_the_pool_is_full() {
        with_pool(|pool| {
            assert!(pool.shares.charge_common(16));
            let mut share = Share::default();
            let mut window = SparseWindow::new(U24::new(0));
            assert!(!window.prepare(pool, &mut share, U24::new(5)));
            assert!(window.prepare(pool, &mut share, U24::new(0)));
        });
    }
}
