//! A first-in-first-out queue of at most `N` values.

#[cfg(not(feature = "alloc"))]
type Places<T, const N: usize> = heapless::Deque<T, N>;
#[cfg(feature = "alloc")]
type Places<T, const N: usize> = alloc::collections::VecDeque<T>;

/// A queue of at most `N` values. With the feature `alloc` they stand apart from it, so that what it is a part of is small
/// and can be moved at little cost; all their memory is taken at once.
#[derive(Debug)]
pub(crate) struct BoundedQueue<T, const N: usize>(Places<T, N>);

impl<T, const N: usize> Default for BoundedQueue<T, N> {
    fn default() -> Self {
        #[cfg(not(feature = "alloc"))]
        let places = Places::new();
        #[cfg(feature = "alloc")]
        let places = Places::<T, N>::with_capacity(N);
        Self(places)
    }
}

impl<T, const N: usize> BoundedQueue<T, N> {
    /// Appends a value. Nothing happens if the queue is full.
    pub(crate) fn push(&mut self, value: T) {
        #[cfg(not(feature = "alloc"))]
        let _ = self.0.push_back(value);
        #[cfg(feature = "alloc")]
        if !self.is_full() {
            self.0.push_back(value);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        self.0.pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.0.len() >= N
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_takes_no_more() {
        let mut queue = BoundedQueue::<u8, 2>::default();
        assert!(queue.is_empty());
        for value in 1..=3 {
            queue.push(value);
        }
        assert!(queue.is_full());
        assert_eq!([queue.pop(), queue.pop(), queue.pop()], [Some(1), Some(2), None]);
    }
}
