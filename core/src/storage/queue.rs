//! A first-in-first-out queue of messages, threaded through their first blocks.

use super::{Block, BlockLink, Pool};

/// Heads and tails of a queue; the links between stand in the pool.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Queue {
    head: BlockLink,
    tail: BlockLink,
}

impl Queue {
    pub(crate) const fn is_empty(&self) -> bool {
        self.head.is_none()
    }

    pub(crate) const fn front(&self) -> BlockLink {
        self.head
    }

    pub(crate) const fn back(&self) -> BlockLink {
        self.tail
    }

    pub(crate) fn push<H: Copy + Default>(&mut self, pool: &mut Pool<'_, H>, message: Block) {
        pool.node_mut(message).after = None;
        match self.tail {
            None => self.head = Some(message),
            Some(tail) => pool.node_mut(tail).after = Some(message),
        }
        self.tail = Some(message);
    }

    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) fn pop<H: Copy + Default>(&mut self, pool: &mut Pool<'_, H>) -> BlockLink {
        let message = self.head?;
        self.head = pool.node_mut(message).after.take();
        if self.head.is_none() {
            self.tail = None;
        }
        Some(message)
    }

    /// Moves all of `other` to the end of this queue.
    pub(crate) fn append<H: Copy + Default>(&mut self, pool: &mut Pool<'_, H>, other: Self) {
        if other.is_empty() {
            return;
        }
        match self.tail {
            None => self.head = other.head,
            Some(tail) => pool.node_mut(tail).after = other.head,
        }
        self.tail = other.tail;
    }

    /// Sorts by merging: `n log r` comparisons for `n` messages of which `r` ones stand behind a later one, so one or two for each
    /// that stands in order. Equal ones keep their order.
    pub(crate) fn sort<H: Copy + Default>(
        &mut self,
        pool: &mut Pool<'_, H>,
        comes_before: impl Fn(&H, &H) -> bool,
    ) {
        let is_before = |pool: &Pool<'_, H>, left, right| comes_before(pool.header(left), pool.header(right));
        loop {
            let (mut rest, mut merges) = (core::mem::take(self), 0_u32);
            while !rest.is_empty() {
                let (mut left, mut right) =
                    (rest.take_run(pool, &is_before), rest.take_run(pool, &is_before));
                while let Some(second) = right.front() {
                    let from = if left.front().is_some_and(|first| !is_before(pool, second, first)) {
                        &mut left
                    } else {
                        &mut right
                    };
                    if let Some(next) = from.pop(pool) {
                        self.push(pool, next);
                    }
                }
                self.append(pool, left);
                merges += 1;
            }
            if merges <= 1 {
                return;
            }
        }
    }

    /// Takes messages off the front as long as they stand in order.
    fn take_run<H: Copy + Default>(
        &mut self,
        pool: &mut Pool<'_, H>,
        is_before: &impl Fn(&Pool<'_, H>, Block, Block) -> bool,
    ) -> Self {
        let mut run = Self::default();
        while let Some(next) = self.head {
            if run.tail.is_some_and(|last| is_before(pool, next, last)) {
                break;
            }
            self.pop(pool);
            run.push(pool, next);
        }
        run
    }

    /// Takes one message out of the middle; work grows with its place.
    pub(crate) fn remove<H: Copy + Default>(&mut self, pool: &mut Pool<'_, H>, message: Block) {
        let mut rest = core::mem::take(self);
        while let Some(other) = rest.pop(pool) {
            if other == message {
                self.append(pool, rest);
                return;
            }
            self.push(pool, other);
        }
    }

    /// Gives every message back to the pool and returns how many blocks that were.
    pub(crate) fn free_all<H: Copy + Default>(&mut self, pool: &mut Pool<'_, H>) -> usize {
        let mut freed = 0;
        while let Some(message) = self.pop(pool) {
            freed += pool.free(message);
        }
        freed
    }
}

#[cfg(test)]
mod tests {
    use super::super::pool::tests::{with_blocks, with_pool};
    use super::*;
    use std::vec::Vec;

    fn queue_of(pool: &mut Pool<'_, u32>, keys: &[u32]) -> Queue {
        let mut queue = Queue::default();
        for key in keys {
            let message = pool.store(b"x", key).expect("room");
            queue.push(pool, message);
        }
        queue
    }

    fn keys(queue: &mut Queue, pool: &mut Pool<'_, u32>) -> Vec<u32> {
        core::iter::from_fn(|| queue.pop(pool).map(|message| *pool.header(message))).collect()
    }

    #[test]
    fn the_first_in_is_the_first_out_and_one_may_leave_before() {
        with_pool(|pool| {
            let mut queue = queue_of(pool, &[1, 2, 3]);
            let more = queue_of(pool, &[4]);
            queue.append(pool, more);
            queue.append(pool, Queue::default());
            let second = pool.node(queue.front().expect("four messages")).after.expect("three more");
            queue.remove(pool, second);
            assert_eq!(queue.back().map(|last| *pool.header(last)), Some(4));
            assert_eq!(keys(&mut queue, pool), [1, 3, 4]);
            assert!(queue.is_empty());
        });
    }

    /// A peer that acknowledges in the order of its choice shapes the order in which parts are lost.
    #[test]
    fn sorting_takes_few_comparisons_however_the_messages_stand() {
        const COUNT: u32 = 256;
        let orders: [fn(u32) -> u32; 5] = [
            |at| at,
            |at| COUNT - at,
            |at| at * 167 % COUNT,
            |at| if at % 2 == 0 { at } else { COUNT - at },
            |at| at % 3,
        ];
        for (order, most) in orders.into_iter().zip([1, 18, 18, 18, 18]) {
            with_blocks::<{ COUNT as usize }>(|pool| {
                let mut shaped: Vec<u32> = (0..COUNT).map(order).collect();
                let mut queue = queue_of(pool, &shaped);
                let comparisons = core::cell::Cell::new(0);
                queue.sort(pool, |left, right| {
                    comparisons.set(comparisons.get() + 1);
                    left < right
                });
                assert!(comparisons.get() <= most * COUNT, "{}", comparisons.get());
                shaped.sort_unstable();
                assert_eq!(keys(&mut queue, pool), shaped);
            });
        }
    }

    #[test]
    fn all_blocks_that_are_given_back_are_counted() {
        with_pool(|pool| {
            let mut queue = queue_of(pool, &[1, 2]);
            let long = pool.store(&[0; 20], &3).expect("room");
            let blocks = pool.blocks_for(20);
            queue.push(pool, long);
            assert!(blocks > 1);
            assert_eq!(queue.free_all(pool), 2 + blocks);
            assert_eq!(queue.free_all(pool), 0);
        });
    }
}
