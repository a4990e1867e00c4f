//! Large messages with their bytes in a vector instead of blocks (feature `zero-copy`).
//!
//! An outgoing message is not copied, and an incoming one is assembled in the vector that the application receives.
//! Without the feature the bytes of every message are in blocks, and [`OwnedId`] is uninhabited, so the compiler
//! removes all code for vectors.

#[cfg(feature = "zero-copy")]
use alloc::vec::Vec;
#[cfg(feature = "zero-copy")]
use core::num::NonZeroU16;

/// True if messages may be in vectors.
pub(crate) const ZERO_COPY: bool = cfg!(feature = "zero-copy");

/// The default message size from which vectors are used, in bytes. For smaller messages a copy takes less time than a
/// vector.
#[cfg(feature = "zero-copy")]
const LARGE: usize = 64 << 10;

/// The id of a vector, stored in each block that refers to it.
#[cfg(feature = "zero-copy")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnedId(NonZeroU16);

#[cfg(feature = "zero-copy")]
impl OwnedId {
    const fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// The vectors of large messages.
#[cfg(feature = "zero-copy")]
#[derive(Debug)]
pub(super) struct OwnedBuffers {
    entries: Vec<Entry>,
    /// Unused entries.
    vacant: Vec<OwnedId>,
    /// The message size in bytes from which vectors are used.
    pub(super) from: usize,
}

#[cfg(feature = "zero-copy")]
impl Default for OwnedBuffers {
    fn default() -> Self {
        Self { entries: Vec::new(), vacant: Vec::new(), from: LARGE }
    }
}

#[cfg(feature = "zero-copy")]
#[derive(Debug, Default)]
struct Entry {
    bytes: Vec<u8>,
    /// The number of blocks that refer to the vector.
    references: u32,
    /// The number of blocks charged for the bytes, in addition to the blocks that refer to the vector.
    charged: usize,
}

#[cfg(feature = "zero-copy")]
impl OwnedBuffers {
    /// Allocates a vector with a capacity of `room` bytes for a message of about `length` bytes.
    ///
    /// Returns `None` if the message is not large, or if there is no memory.
    pub(super) fn reserve(&mut self, length: usize, room: usize) -> Option<OwnedId> {
        if length < self.from {
            return None;
        }
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length.min(room)).ok()?;
        let id = self.insert()?;
        if let Some(entry) = self.entries.get_mut(id.index()) {
            entry.bytes = bytes;
        }
        Some(id)
    }

    /// Returns an id for a message of `length` bytes, for a later call of [`fill`](Self::fill); `None` if it is not
    /// large.
    pub(super) fn name(&mut self, length: usize) -> Option<OwnedId> {
        if length < self.from { None } else { self.insert() }
    }

    /// Returns an id for a vector; `None` if all ids are in use.
    fn insert(&mut self) -> Option<OwnedId> {
        if let Some(id) = self.vacant.pop() {
            return Some(id);
        }
        let id = u16::try_from(self.entries.len() + 1).ok().and_then(NonZeroU16::new).map(OwnedId)?;
        self.entries.push(Entry::default());
        Some(id)
    }

    /// Stores a vector under its id; drops it if no block refers to the id.
    pub(super) fn fill(&mut self, id: OwnedId, bytes: Vec<u8>) {
        let Some(entry) = self.entries.get_mut(id.index()) else { return };
        entry.bytes = bytes;
        if entry.references == 0 {
            self.vacate(id);
        }
    }

    /// Adds the reference of one more block.
    pub(super) fn refer(&mut self, id: OwnedId) {
        if let Some(entry) = self.entries.get_mut(id.index()) {
            entry.references += 1;
        }
    }

    /// Removes the reference of one block.
    ///
    /// When the last reference is removed, it returns the number of blocks charged for the bytes; before, it returns 0.
    pub(super) fn release(&mut self, id: OwnedId) -> usize {
        let Some(entry) = self.entries.get_mut(id.index()) else { return 0 };
        entry.references = entry.references.saturating_sub(1);
        if entry.references > 0 {
            return 0;
        }
        let charged = entry.charged;
        self.vacate(id);
        charged
    }

    fn vacate(&mut self, id: OwnedId) {
        if let Some(entry) = self.entries.get_mut(id.index()) {
            *entry = Entry::default();
            self.vacant.push(id);
        }
    }

    /// Ensures that `length` more bytes can be [appended](Self::append); returns false if there is no memory.
    ///
    /// If the capacity does not suffice, it is extended in one step for the `room` bytes that the message may still
    /// need.
    pub(super) fn make_room(&mut self, id: OwnedId, length: usize, room: usize) -> bool {
        let Some(entry) = self.entries.get_mut(id.index()) else { return false };
        let spare = entry.bytes.capacity() - entry.bytes.len();
        spare >= length || entry.bytes.try_reserve_exact(length.max(room)).is_ok()
    }

    /// Appends bytes, for which `charged` blocks were charged.
    ///
    /// Precondition: [`make_room`](Self::make_room) returned true.
    pub(super) fn append(&mut self, id: OwnedId, bytes: &[u8], charged: usize) {
        if let Some(entry) = self.entries.get_mut(id.index()) {
            entry.bytes.extend_from_slice(bytes);
            entry.charged += charged;
        }
    }

    /// Returns excess capacity of a complete message to the allocator.
    ///
    /// The vector is shrunk if its capacity exceeds the charged blocks, or if the excess is more than an eighth of the
    /// message. `block_size` is in bytes.
    pub(super) fn shrink(&mut self, id: OwnedId, block_size: usize) {
        let Some(Entry { bytes, charged, .. }) = self.entries.get_mut(id.index()) else { return };
        let most = bytes.len() + bytes.len() / 8;
        if bytes.capacity() > most.min(charged.saturating_mul(block_size)) {
            bytes.shrink_to_fit();
        }
    }

    pub(super) fn bytes(&self, id: OwnedId) -> &[u8] {
        self.entries.get(id.index()).map_or(&[], |entry| &entry.bytes)
    }

    pub(super) fn bytes_mut(&mut self, id: OwnedId) -> &mut [u8] {
        self.entries.get_mut(id.index()).map_or(&mut [], |entry| &mut entry.bytes)
    }

    /// Takes the vector out; its bytes stay charged until the last block that refers to it is freed.
    pub(super) fn take(&mut self, id: OwnedId) -> Vec<u8> {
        self.entries.get_mut(id.index()).map_or_else(Vec::new, |entry| core::mem::take(&mut entry.bytes))
    }
}

/// The id of a vector; uninhabited, because without the feature `zero-copy` there are no vectors.
#[cfg(not(feature = "zero-copy"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnedId {}

/// The empty table of vectors.
#[cfg(not(feature = "zero-copy"))]
#[derive(Debug, Default)]
pub(super) struct OwnedBuffers(());

#[cfg(not(feature = "zero-copy"))]
#[expect(
    clippy::needless_pass_by_ref_mut,
    clippy::unused_self,
    reason = "the methods are those of the other variant"
)]
impl OwnedBuffers {
    pub(super) const fn reserve(&mut self, _: usize, _: usize) -> Option<OwnedId> {
        None
    }

    pub(super) const fn make_room(&mut self, id: OwnedId, _: usize, _: usize) -> bool {
        match id {}
    }

    pub(super) const fn shrink(&mut self, id: OwnedId, _: usize) {
        match id {}
    }

    pub(super) const fn refer(&mut self, id: OwnedId) {
        match id {}
    }

    pub(super) const fn release(&mut self, id: OwnedId) -> usize {
        match id {}
    }

    pub(super) const fn append(&mut self, id: OwnedId, _: &[u8], _: usize) {
        match id {}
    }

    pub(super) const fn bytes(&self, id: OwnedId) -> &[u8] {
        match id {}
    }

    pub(super) const fn bytes_mut(&mut self, id: OwnedId) -> &mut [u8] {
        match id {}
    }
}

#[cfg(all(test, feature = "zero-copy"))]
mod tests {
    use super::*;

    #[test]
    fn a_vector_is_kept_until_its_last_block_is_released() {
        let mut owned = OwnedBuffers::default();
        let id = owned.insert().expect("enough space");
        owned.refer(id);
        owned.refer(id);
        owned.fill(id, b"message".to_vec());
        assert_eq!(owned.release(id), 0);
        assert_eq!(owned.bytes(id), b"message");
        assert_eq!(owned.release(id), 0);
        assert_eq!(owned.bytes(id), b"");
        assert_eq!(owned.insert(), Some(id), "the id is free again");
    }

    #[test]
    fn a_vector_without_blocks_is_dropped() {
        let mut owned = OwnedBuffers::default();
        let id = owned.insert().expect("enough space");
        owned.fill(id, b"message".to_vec());
        assert_eq!(owned.bytes(id), b"");
        assert_eq!(owned.insert(), Some(id));
    }

    #[test]
    fn the_charge_of_a_vector_is_released_with_its_last_block() {
        let mut owned = OwnedBuffers::default();
        let id = owned.insert().expect("enough space");
        owned.refer(id);
        assert!(owned.make_room(id, 7, 7));
        owned.append(id, b"mess", 3);
        owned.append(id, b"age", 2);
        assert_eq!(owned.take(id), b"message");
        assert_eq!(owned.release(id), 5);
    }

    fn capacity(owned: &OwnedBuffers, id: OwnedId) -> usize {
        owned.entries.get(id.index()).map_or(0, |entry| entry.bytes.capacity())
    }

    #[test]
    fn a_vector_is_allocated_for_the_whole_message() {
        let mut owned = OwnedBuffers::default();
        let id = owned.reserve(LARGE, 2 * LARGE).expect("enough space");
        assert_eq!(capacity(&owned, id), LARGE);
        assert_eq!(owned.reserve(usize::MAX, usize::MAX), None);
    }

    #[test]
    fn the_capacity_of_a_vector_does_not_exceed_the_charged_blocks() {
        let mut owned = OwnedBuffers::default();
        let id = owned.reserve(usize::MAX, 1_000).expect("enough space");
        assert_eq!(capacity(&owned, id), 1_000);
        assert!(owned.make_room(id, 1_000, 3_000), "the capacity suffices");
        assert_eq!(capacity(&owned, id), 1_000);
        assert!(owned.make_room(id, 1_001, 3_000));
        assert_eq!(capacity(&owned, id), 3_000);
        assert!(!owned.make_room(id, usize::MAX, 0));
    }

    #[test]
    fn excess_capacity_of_a_complete_message_is_freed() {
        for (length, charged, most) in [(1_000, 2, 1_000), (1_000, 3, 1_100), (900, 3, 900)] {
            let mut owned = OwnedBuffers::default();
            let id = owned.reserve(LARGE, 1_100).expect("enough space");
            owned.refer(id);
            owned.append(id, &[0; 1_000][..length], charged);
            owned.shrink(id, 512);
            assert_eq!(capacity(&owned, id), most, "{length} bytes in {charged} blocks");
        }
    }

    #[test]
    fn messages_below_the_threshold_get_no_vector() {
        let mut owned = OwnedBuffers::default();
        assert_eq!((owned.reserve(LARGE - 1, LARGE), owned.name(LARGE - 1)), (None, None));
        assert!(owned.name(LARGE).is_some());
    }

    #[test]
    fn the_number_of_vectors_is_limited_by_their_ids() {
        let mut owned = OwnedBuffers::default();
        let names = core::iter::from_fn(|| owned.insert()).count();
        assert_eq!(names, usize::from(u16::MAX));
    }
}
