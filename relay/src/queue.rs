//! A bounded queue that drops its oldest item when it is full.
//!
//! A late datagram is worth less than a fresh one: RakNet resends reliable messages, and newer messages supersede
//! unreliable ones.

use std::collections::VecDeque;
use std::num::NonZeroUsize;

/// The result of a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Pushed {
    Stored,
    DroppedOldest,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct DropOldest<T> {
    items: VecDeque<T>,
    capacity: NonZeroUsize,
}

impl<T> DropOldest<T> {
    /// An empty queue, which allocates only as it fills.
    pub(crate) const fn new(capacity: NonZeroUsize) -> Self {
        Self { items: VecDeque::new(), capacity }
    }

    /// Appends `item`; a full queue drops its oldest item.
    pub(crate) fn push(&mut self, item: T) -> Pushed {
        let pushed = if self.room() == 0 {
            self.items.pop_front();
            Pushed::DroppedOldest
        } else {
            Pushed::Stored
        };
        self.items.push_back(item);
        pushed
    }

    /// The oldest item.
    pub(crate) fn front(&self) -> Option<&T> {
        self.items.front()
    }

    /// Removes the oldest item.
    pub(crate) fn pop(&mut self) -> Option<T> {
        self.items.pop_front()
    }

    /// How many items fit before one is dropped.
    pub(crate) fn room(&self) -> usize {
        self.capacity.get().saturating_sub(self.items.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(capacity: usize) -> DropOldest<u32> {
        DropOldest::new(NonZeroUsize::new(capacity).unwrap())
    }

    #[test]
    fn a_full_queue_keeps_the_newest_in_order() {
        let mut queue = queue(3);
        let pushed: Vec<Pushed> = (0..5).map(|item| queue.push(item)).collect();
        assert_eq!(pushed[..3], [Pushed::Stored; 3]);
        assert_eq!(pushed[3..], [Pushed::DroppedOldest; 2]);
        assert_eq!(queue.front(), Some(&2));
        assert_eq!(std::iter::from_fn(|| queue.pop()).collect::<Vec<_>>(), [2, 3, 4]);
        assert_eq!(queue.front(), None);
    }

    #[test]
    fn room_is_the_number_of_items_that_fit_without_a_drop() {
        let mut queue = queue(2);
        assert_eq!(queue.room(), 2);
        let _ = queue.push(1);
        assert_eq!(queue.room(), 1);
        let _ = queue.push(2);
        assert_eq!(queue.room(), 0);
    }
}
