//! A heap of messages that wait for their turn, threaded through their first blocks.
//!
//! A pairing heap: a push costs one comparison, so a message far ahead of its turn costs no more than the next one,
//! and a pop costs what the pushes before it saved.

use super::{Block, BlockLink, Pool};

/// The root of a heap; the links between stand in the pool.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OrderHeap {
    root: BlockLink,
}

impl OrderHeap {
    /// The heap with this [`first`](Self::first) message.
    pub(crate) const fn with_first(first: BlockLink) -> Self {
        Self { root: first }
    }

    /// The message whose turn comes first.
    pub(crate) const fn first(&self) -> BlockLink {
        self.root
    }

    /// Adds a message; `before` says of two headers whether the left one comes first.
    pub(crate) fn push<H: Copy + Default>(
        &mut self,
        pool: &mut Pool<'_, H>,
        message: Block,
        before: impl Fn(&H, &H) -> bool,
    ) {
        let node = pool.node_mut(message);
        node.older = None;
        node.after = None;
        self.root = meld(pool, self.root, Some(message), &before);
    }

    /// Takes the first message.
    pub(crate) fn pop<H: Copy + Default>(
        &mut self,
        pool: &mut Pool<'_, H>,
        before: impl Fn(&H, &H) -> bool,
    ) -> BlockLink {
        let first = self.root?;
        let mut children = pool.node_mut(first).older.take();
        let mut pairs: BlockLink = None;
        while let Some(left) = children {
            let right = pool.node_mut(left).after.take();
            children = right.and_then(|right| pool.node_mut(right).after.take());
            let pair = meld(pool, Some(left), right, &before);
            if let Some(pair) = pair {
                pool.node_mut(pair).after = pairs;
            }
            pairs = pair;
        }
        let mut root: BlockLink = None;
        while let Some(pair) = pairs {
            pairs = pool.node_mut(pair).after.take();
            root = meld(pool, root, Some(pair), &before);
        }
        self.root = root;
        Some(first)
    }

    /// Gives every message back to the pool and returns how many blocks that were.
    pub(crate) fn free_all<H: Copy + Default>(&mut self, pool: &mut Pool<'_, H>) -> usize {
        let mut freed = 0;
        while let Some(first) = self.pop(pool, |_, _| true) {
            freed += pool.free(first);
        }
        freed
    }
}

fn meld<H: Copy + Default>(
    pool: &mut Pool<'_, H>,
    left: BlockLink,
    right: BlockLink,
    before: &impl Fn(&H, &H) -> bool,
) -> BlockLink {
    let (Some(left), Some(right)) = (left, right) else {
        return left.or(right);
    };
    let (parent, child) =
        if before(pool.header(right), pool.header(left)) { (right, left) } else { (left, right) };
    let sibling = pool.node_mut(parent).older.replace(child);
    pool.node_mut(child).after = sibling;
    Some(parent)
}

#[cfg(test)]
mod tests {
    use super::super::pool::tests::with_pool;
    use super::*;

    #[test]
    fn messages_leave_in_order_whatever_order_they_came_in() {
        with_pool(|pool| {
            for stride in [1, 3, 5, 7, 9, 11] {
                let mut heap = OrderHeap::default();
                for index in 0..16_u32 {
                    let message = pool.store(b"x", &(index * stride % 16)).expect("room");
                    heap.push(pool, message, |a, b| a < b);
                }
                for expected in 0..16 {
                    let first = heap.pop(pool, |a, b| a < b).expect("not empty yet");
                    assert_eq!(*pool.header(first), expected);
                    pool.free(first);
                }
                assert!(heap.pop(pool, |a, b| a < b).is_none());
                assert_eq!(pool.available(), 16);
            }
        });
    }

    #[test]
    fn freeing_gives_all_back() {
        with_pool(|pool| {
            let mut heap = OrderHeap::default();
            for index in 0..8_u32 {
                let message = pool.store(&[0; 12], &index).expect("room");
                heap.push(pool, message, |a, b| a < b);
            }
            assert_eq!(heap.free_all(pool), 16);
            assert_eq!(pool.available(), 16);
        });
    }
}
