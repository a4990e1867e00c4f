//! A first-in-first-out queue of messages, threaded through their first blocks.

use super::{Block, Link, Pool};

/// Heads and tails of a queue; the links between stand in the pool.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Queue {
    head: Link,
    tail: Link,
}

impl Queue {
    pub(crate) const fn is_empty(&self) -> bool {
        self.head.is_none()
    }

    pub(crate) const fn front(&self) -> Link {
        self.head
    }

    pub(crate) const fn back(&self) -> Link {
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
    pub(crate) fn pop<H: Copy + Default>(&mut self, pool: &mut Pool<'_, H>) -> Link {
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
