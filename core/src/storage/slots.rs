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

#[cfg(feature = "alloc")]
impl Slots<'_, u8> {
    /// A table of zeros, which takes no memory of the machine before it is used.
    pub(crate) fn zeros(length: usize) -> Self {
        Self::Owned(alloc::vec![0; length].into())
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
                debug_assert!(queue.len() < queue.capacity(), "a slot stands in a queue twice");
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
}
