//! Orders of messages, linked through their first blocks: a queue, a doubly linked list and a heap.

use super::{Block, BlockLink, Pool};

/// The first and the last message of a queue; the links between them are in the pool.
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

    /// Moves all messages of `other` to the end of this queue.
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

    /// Sorts by merging runs. The sort is stable.
    ///
    /// It takes `n log r` comparisons for `n` messages in `r` sorted runs.
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

    /// Takes the first sorted run of messages off the queue.
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

    /// Removes a message, in time linear in its position.
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

    /// Frees all messages; returns the number of blocks charged for them.
    pub(crate) fn free_all<H: Copy + Default>(&mut self, pool: &mut Pool<'_, H>) -> usize {
        let mut freed = 0;
        while let Some(message) = self.pop(pool) {
            freed += pool.free(message);
        }
        freed
    }
}

/// The oldest and the newest member; the links between them are in the pool.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct List {
    oldest: BlockLink,
    newest: BlockLink,
}

impl List {
    pub(crate) const fn is_empty(&self) -> bool {
        self.oldest.is_none()
    }

    pub(crate) const fn oldest(&self) -> BlockLink {
        self.oldest
    }

    pub(crate) const fn newest(&self) -> BlockLink {
        self.newest
    }

    /// Returns all members, from the oldest to the newest.
    pub(crate) fn members<'p, H: Copy + Default>(
        &self,
        pool: &'p Pool<'_, H>,
    ) -> impl Iterator<Item = (Block, &'p H)> + use<'p, H> {
        let members = core::iter::successors(self.oldest, |member| pool.node(*member).newer);
        members.map(|member| (member, pool.header(member)))
    }

    /// Returns the member after this one.
    pub(crate) fn newer<H: Copy + Default>(pool: &Pool<'_, H>, member: Block) -> BlockLink {
        pool.node(member).newer
    }

    pub(crate) fn push<H: Copy + Default>(&mut self, pool: &mut Pool<'_, H>, member: Block) {
        let before = self.newest.replace(member);
        match before {
            None => self.oldest = Some(member),
            Some(before) => pool.node_mut(before).newer = Some(member),
        }
        let node = pool.node_mut(member);
        node.older = before;
        node.newer = None;
    }

    /// Inserts a member before the first member that must follow it.
    ///
    /// Only the oldest `most` members are searched. If none of them must follow it, the member is added at the end.
    pub(crate) fn insert<H: Copy + Default>(
        &mut self,
        pool: &mut Pool<'_, H>,
        member: Block,
        most: usize,
        comes_before: impl Fn(&H, &H) -> bool,
    ) {
        let is_before = |pool: &Pool<'_, H>, other| comes_before(pool.header(member), pool.header(other));
        let after_all = self.newest.is_none_or(|newest| !is_before(pool, newest));
        let mut at = self.oldest.filter(|_| !after_all);
        for _ in 0..most {
            let Some(newer) = at else { break };
            if is_before(pool, newer) {
                self.put_before(pool, member, newer);
                return;
            }
            at = pool.node(newer).newer;
        }
        self.push(pool, member);
    }

    fn put_before<H: Copy + Default>(&mut self, pool: &mut Pool<'_, H>, member: Block, newer: Block) {
        let older = pool.node_mut(newer).older.replace(member);
        match older {
            None => self.oldest = Some(member),
            Some(older) => pool.node_mut(older).newer = Some(member),
        }
        let node = pool.node_mut(member);
        node.older = older;
        node.newer = Some(newer);
    }

    pub(crate) fn remove<H: Copy + Default>(&mut self, pool: &mut Pool<'_, H>, member: Block) {
        let node = pool.node_mut(member);
        let (older, newer) = (node.older.take(), node.newer.take());
        match older {
            None => self.oldest = newer,
            Some(older) => pool.node_mut(older).newer = newer,
        }
        match newer {
            None => self.newest = older,
            Some(newer) => pool.node_mut(newer).older = older,
        }
    }
}

/// The root of a heap; the links are in the pool.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OrderHeap {
    root: BlockLink,
}

impl OrderHeap {
    /// Creates a heap from its root, as returned by [`first`](Self::first).
    pub(crate) const fn with_first(first: BlockLink) -> Self {
        Self { root: first }
    }

    /// Returns the first message in order.
    pub(crate) const fn first(&self) -> BlockLink {
        self.root
    }

    /// Adds a message; `before(left, right)` returns true if `left` precedes `right`.
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

    /// Takes the first message in order.
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

    /// Frees all messages; returns the number of blocks charged for them.
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
    use std::vec::Vec;

    use super::super::pool::tests::{with_blocks, with_pool};
    use super::*;

    fn queue_of(pool: &mut Pool<'_, u32>, keys: &[u32]) -> Queue {
        let mut queue = Queue::default();
        for key in keys {
            let message = pool.store(b"x", key).expect("enough space");
            queue.push(pool, message);
        }
        queue
    }

    fn keys(queue: &mut Queue, pool: &mut Pool<'_, u32>) -> Vec<u32> {
        core::iter::from_fn(|| queue.pop(pool).map(|message| *pool.header(message))).collect()
    }

    #[test]
    fn a_queue_is_fifo_and_messages_can_be_removed() {
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

    /// A remote peer controls the order in which parts are lost, by the order of its acknowledgements.
    #[test]
    fn sorting_takes_at_most_18_comparisons_per_message() {
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
    fn freeing_a_queue_returns_the_number_of_blocks() {
        with_pool(|pool| {
            let mut queue = queue_of(pool, &[1, 2]);
            let long = pool.store(&[0; 20], &3).expect("enough space");
            let blocks = pool.blocks_for(20);
            queue.push(pool, long);
            assert!(blocks > 1);
            assert_eq!(queue.free_all(pool), 2 + blocks);
            assert_eq!(queue.free_all(pool), 0);
        });
    }

    #[test]
    fn list_members_are_inserted_in_order_within_the_search_limit() {
        with_pool(|pool| {
            let mut list = List::default();
            for key in [5_u32, 3, 9, 1, 4, 7, 8] {
                let member = pool.store(b"x", &key).expect("enough space");
                list.insert(pool, member, 3, |left, right| left < right);
            }
            let mut keys = Vec::new();
            while let Some(oldest) = list.oldest() {
                keys.push(*pool.header(oldest));
                list.remove(pool, oldest);
            }
            assert_eq!(keys, [1, 3, 4, 5, 9, 7, 8]);
            assert!(list.is_empty());
        });
    }

    #[test]
    fn a_heap_pops_the_smallest_message_first() {
        with_pool(|pool| {
            for stride in [1, 3, 5, 7, 9, 11] {
                let mut heap = OrderHeap::default();
                for index in 0..16_u32 {
                    let message = pool.store(b"x", &(index * stride % 16)).expect("enough space");
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
    fn freeing_a_heap_returns_all_blocks() {
        with_pool(|pool| {
            let mut heap = OrderHeap::default();
            for index in 0..8_u32 {
                let message = pool.store(&[0; 12], &index).expect("enough space");
                heap.push(pool, message, |a, b| a < b);
            }
            assert_eq!(heap.free_all(pool), 16);
            assert_eq!(pool.available(), 16);
        });
    }
}
