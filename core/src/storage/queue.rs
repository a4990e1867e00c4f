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
    use super::super::pool::tests::with_pool;
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
