//! Tables that the caller lends, or that the allocator gives (feature `alloc`).

use core::ops::{Deref, DerefMut};

use heapless::deque::DequeView;

/// A table of fixed length. Both kinds are a pointer and a length, so that an access need not ask which it is.
#[derive(Debug)]
pub(crate) enum Slots<'a, T> {
    Lent(&'a mut [T]),
    #[cfg(feature = "alloc")]
    Owned(alloc::boxed::Box<[T]>),
}

#[cfg(feature = "alloc")]
impl<T: Default> Slots<'_, T> {
    /// A table of empty values.
    pub(crate) fn owned(length: usize) -> Self {
        Self::Owned(core::iter::repeat_with(T::default).take(length).collect())
    }
}

impl<T: Default> Slots<'_, T> {
    /// Makes sure that the table of the allocator, which may grow to `capacity` values, has one at `place`. It grows by
    /// an eighth at a time: memory that nobody uses is never written.
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
        /// Values that a table grows by at least.
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
    /// A table of zeros, which takes no memory of the machine before it is used.
    pub(crate) fn zeros(zero: T, length: usize) -> Self {
        Self::Owned(alloc::vec![zero; length].into())
    }
}

impl<T> Deref for Slots<'_, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Self::Lent(slots) => slots,
            #[cfg(feature = "alloc")]
            Self::Owned(slots) => slots,
        }
    }
}

impl<T> DerefMut for Slots<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::Lent(slots) => slots,
            #[cfg(feature = "alloc")]
            Self::Owned(slots) => slots,
        }
    }
}

/// A first-in-first-out queue of connection slots, with room for each slot once.
#[derive(Debug)]
pub(crate) enum SlotQueue<'a> {
    Lent(&'a mut DequeView<u16>),
    #[cfg(feature = "alloc")]
    Owned(alloc::collections::VecDeque<u16>),
}

impl SlotQueue<'_> {
    /// Appends a slot. The caller keeps a mark in the slot, so that none stands here twice and there is always room.
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) fn push(&mut self, slot: u16) {
        match self {
            Self::Lent(queue) => {
                let full = queue.push_back(slot).is_err();
                debug_assert!(!full, "a slot stands in a queue twice");
            }
            #[cfg(feature = "alloc")]
            Self::Owned(queue) => {
                debug_assert!(!queue.contains(&slot), "a slot stands in a queue twice");
                queue.push_back(slot);
            }
        }
    }

    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) fn front(&self) -> Option<u16> {
        match self {
            Self::Lent(queue) => queue.front().copied(),
            #[cfg(feature = "alloc")]
            Self::Owned(queue) => queue.front().copied(),
        }
    }

    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) fn pop(&mut self) -> Option<u16> {
        match self {
            Self::Lent(queue) => queue.pop_front(),
            #[cfg(feature = "alloc")]
            Self::Owned(queue) => queue.pop_front(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.front().is_none()
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Lent(queue) => queue.iter().len(),
            #[cfg(feature = "alloc")]
            Self::Owned(queue) => queue.len(),
        }
    }
}
