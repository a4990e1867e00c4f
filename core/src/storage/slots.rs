//! Tables and queues of plain values, in memory that is borrowed from the caller or allocated (feature `alloc`).

use core::ops::{Deref, DerefMut};

use heapless::deque::DequeView;

/// A table of fixed length.
///
/// Both variants are a pointer and a length, so an access need not branch on the variant.
#[derive(Debug)]
pub(crate) enum Slots<'a, T> {
    Borrowed(&'a mut [T]),
    #[cfg(feature = "alloc")]
    Owned(alloc::boxed::Box<[T]>),
}

#[cfg(feature = "alloc")]
impl<T: Default> Slots<'_, T> {
    /// Creates a table of default values.
    pub(crate) fn owned(length: usize) -> Self {
        Self::Owned(core::iter::repeat_with(T::default).take(length).collect())
    }
}

impl<T: Default> Slots<'_, T> {
    /// Grows an allocated table, up to `capacity` values, until it has a value at `place`.
    ///
    /// It grows by an eighth at a time, so that unused memory is not written to.
    #[cfg_attr(
        not(feature = "alloc"),
        expect(clippy::needless_pass_by_ref_mut, reason = "only a table of the allocator grows")
    )]
    #[inline]
    pub(crate) fn reach(&mut self, place: usize, capacity: usize) {
        #[cfg(feature = "alloc")]
        if place >= self.len() {
            self.grow(place, capacity);
        }
        let _ = (place, capacity);
    }

    #[cfg(feature = "alloc")]
    #[cold]
    fn grow(&mut self, place: usize, capacity: usize) {
        /// The minimum number of values by which a table grows.
        const STEP: usize = 256;
        let Self::Owned(slots) = self else { return };
        let mut values = core::mem::take(slots).into_vec();
        let length = (place + STEP.max(place / 8)).min(capacity).max(place + 1);
        values.reserve_exact(length - values.len());
        values.resize_with(length, T::default);
        *slots = values.into_boxed_slice();
    }
}

#[cfg(feature = "alloc")]
impl<T: Copy> Slots<'_, T> {
    /// Creates a zeroed table, which takes no physical memory before it is written to.
    pub(crate) fn zeros(zero: T, length: usize) -> Self {
        Self::Owned(alloc::vec![zero; length].into())
    }
}

impl<T> Deref for Slots<'_, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Self::Borrowed(slots) => slots,
            #[cfg(feature = "alloc")]
            Self::Owned(slots) => slots,
        }
    }
}

impl<T> DerefMut for Slots<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::Borrowed(slots) => slots,
            #[cfg(feature = "alloc")]
            Self::Owned(slots) => slots,
        }
    }
}

/// A FIFO queue of connection slots; its capacity is the number of slots.
#[derive(Debug)]
pub(crate) enum SlotQueue<'a> {
    Borrowed(&'a mut DequeView<u16>),
    #[cfg(feature = "alloc")]
    Owned(alloc::collections::VecDeque<u16>),
}

impl SlotQueue<'_> {
    /// Appends a slot.
    ///
    /// The caller marks queued slots, so no slot is queued twice and the capacity always suffices.
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) fn push(&mut self, slot: u16) {
        match self {
            Self::Borrowed(queue) => {
                let full = queue.push_back(slot).is_err();
                debug_assert!(!full, "a slot is in a queue twice");
            }
            #[cfg(feature = "alloc")]
            Self::Owned(queue) => {
                debug_assert!(!queue.contains(&slot), "a slot is in a queue twice");
                queue.push_back(slot);
            }
        }
    }

    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) fn front(&self) -> Option<u16> {
        match self {
            Self::Borrowed(queue) => queue.front().copied(),
            #[cfg(feature = "alloc")]
            Self::Owned(queue) => queue.front().copied(),
        }
    }

    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) fn pop(&mut self) -> Option<u16> {
        match self {
            Self::Borrowed(queue) => queue.pop_front(),
            #[cfg(feature = "alloc")]
            Self::Owned(queue) => queue.pop_front(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.front().is_none()
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Borrowed(queue) => queue.iter().len(),
            #[cfg(feature = "alloc")]
            Self::Owned(queue) => queue.len(),
        }
    }
}

/// A FIFO queue in memory that is borrowed from the caller or allocated.
#[derive(Debug)]
pub(crate) enum Ring<'a, T> {
    Borrowed(&'a mut DequeView<T>),
    #[cfg(feature = "alloc")]
    Owned {
        queue: alloc::collections::VecDeque<T>,
        capacity: usize,
    },
}

impl<T: Copy> Ring<'_, T> {
    /// Appends a value; returns false if the queue is full.
    pub(crate) fn push(&mut self, value: T) -> bool {
        match self {
            Self::Borrowed(queue) => queue.push_back(value).is_ok(),
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
            Self::Borrowed(queue) => queue.pop_front(),
            #[cfg(feature = "alloc")]
            Self::Owned { queue, .. } => queue.pop_front(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Borrowed(queue) => queue.is_empty(),
            #[cfg(feature = "alloc")]
            Self::Owned { queue, .. } => queue.is_empty(),
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        match self {
            Self::Borrowed(queue) => queue.is_full(),
            #[cfg(feature = "alloc")]
            Self::Owned { queue, capacity } => queue.len() >= *capacity,
        }
    }
}

#[cfg(not(feature = "alloc"))]
type Places<T, const N: usize> = heapless::Deque<T, N>;
#[cfg(feature = "alloc")]
type Places<T, const N: usize> = alloc::collections::VecDeque<T>;

/// A FIFO queue of at most `N` values.
///
/// With the feature `alloc` the values are in one heap allocation, so that a type containing the queue is small and
/// cheap to move.
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
    /// Appends a value; does nothing if the queue is full.
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
    fn a_full_queue_drops_new_values() {
        let mut queue = BoundedQueue::<u8, 2>::default();
        assert!(queue.is_empty());
        for value in 1..=3 {
            queue.push(value);
        }
        assert!(queue.is_full());
        assert_eq!([queue.pop(), queue.pop(), queue.pop()], [Some(1), Some(2), None]);
    }
}
