//! A first-in-first-out queue of plain values with a fixed number of places.

use heapless::deque::DequeView;

/// A queue in memory that the caller lends, or that the allocator gives.
#[derive(Debug)]
pub(crate) enum Ring<'a, T> {
    Lent(&'a mut DequeView<T>),
    #[cfg(feature = "alloc")]
    Owned {
        queue: alloc::collections::VecDeque<T>,
        capacity: usize,
    },
}

impl<T: Copy> Ring<'_, T> {
    /// Appends a value; false when every place is taken.
    pub(crate) fn push(&mut self, value: T) -> bool {
        match self {
            Self::Lent(queue) => queue.push_back(value).is_ok(),
            #[cfg(feature = "alloc")]
            Self::Owned { queue, capacity } => {
                let fits = queue.len() < *capacity;
                if fits {
                    queue.push_back(value);
                }
                fits
            }
        }
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        match self {
            Self::Lent(queue) => queue.pop_front(),
            #[cfg(feature = "alloc")]
            Self::Owned { queue, .. } => queue.pop_front(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Lent(queue) => queue.is_empty(),
            #[cfg(feature = "alloc")]
            Self::Owned { queue, .. } => queue.is_empty(),
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        match self {
            Self::Lent(queue) => queue.is_full(),
            #[cfg(feature = "alloc")]
            Self::Owned { queue, capacity } => queue.len() >= *capacity,
        }
    }
}
