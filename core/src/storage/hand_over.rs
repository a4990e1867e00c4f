//! Large messages that keep their bytes in a vector instead of blocks (feature `hand-over`).
//!
//! An outgoing message is not copied, and an incoming one is assembled in the vector that the application receives.
//! Without the feature the bytes of every message are in blocks. [`HandOverId`] is then uninhabited, so the compiler
//! removes all code that handles one.

#[cfg(feature = "hand-over")]
use alloc::vec::Vec;
#[cfg(feature = "hand-over")]
use core::num::NonZeroU16;

/// True if messages may be handed over.
pub(crate) const HAND_OVER: bool = cfg!(feature = "hand-over");

/// The default size from which a message is handed over; for smaller ones a copy costs less than a vector.
#[cfg(feature = "hand-over")]
const LARGE: usize = 64 << 10;

/// The id of a vector, stored in each block that refers to it.
#[cfg(feature = "hand-over")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HandOverId(NonZeroU16);

#[cfg(feature = "hand-over")]
impl HandOverId {
    const fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// The vectors of messages that are handed over.
#[cfg(feature = "hand-over")]
#[derive(Debug)]
pub(super) struct HandedOver {
    entries: Vec<Entry>,
    /// Unused entries.
    vacant: Vec<HandOverId>,
    /// The size in bytes from which a message is handed over.
    pub(super) from: usize,
}

#[cfg(feature = "hand-over")]
impl Default for HandedOver {
    fn default() -> Self {
        Self { entries: Vec::new(), vacant: Vec::new(), from: LARGE }
    }
}

#[cfg(feature = "hand-over")]
#[derive(Debug, Default)]
struct Entry {
    bytes: Vec<u8>,
    /// The number of blocks that refer to the vector.
    references: u32,
    /// Blocks charged for the bytes, in addition to those that refer to them.
    charged: usize,
}

#[cfg(feature = "hand-over")]
impl HandedOver {
    /// Reserves a vector with capacity for `room` bytes of a message of about `length` bytes.
    ///
    /// Returns `None` if the message is not large, or if there is no memory.
    pub(super) fn reserve(&mut self, length: usize, room: usize) -> Option<HandOverId> {
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

    /// Returns an id for a message of `length` bytes that [`fill`](Self::fill) will store; `None` if it is not large.
    pub(super) fn name(&mut self, length: usize) -> Option<HandOverId> {
        if length < self.from { None } else { self.insert() }
    }

    /// Returns an id for a vector; `None` if there are too many.
    fn insert(&mut self) -> Option<HandOverId> {
        if let Some(id) = self.vacant.pop() {
            return Some(id);
        }
        let id = u16::try_from(self.entries.len() + 1).ok().and_then(NonZeroU16::new).map(HandOverId)?;
        self.entries.push(Entry::default());
        Some(id)
    }

    /// Stores a vector for the blocks that refer to it; drops it if no block does.
    pub(super) fn fill(&mut self, id: HandOverId, bytes: Vec<u8>) {
        let Some(entry) = self.entries.get_mut(id.index()) else { return };
        entry.bytes = bytes;
        if entry.references == 0 {
            self.vacate(id);
        }
    }

    /// Adds a reference from one more block.
    pub(super) fn refer(&mut self, id: HandOverId) {
        if let Some(entry) = self.entries.get_mut(id.index()) {
            entry.references += 1;
        }
    }

    /// Removes the reference of one block.
    ///
    /// Returns the number of blocks charged for the bytes if this was the last reference, and 0 otherwise.
    pub(super) fn release(&mut self, id: HandOverId) -> usize {
        let Some(entry) = self.entries.get_mut(id.index()) else { return 0 };
        entry.references = entry.references.saturating_sub(1);
        if entry.references > 0 {
            return 0;
        }
        let charged = entry.charged;
        self.vacate(id);
        charged
    }

    fn vacate(&mut self, id: HandOverId) {
        if let Some(entry) = self.entries.get_mut(id.index()) {
            *entry = Entry::default();
            self.vacant.push(id);
        }
    }

    /// Ensures that `length` more bytes can be [appended](Self::append); returns false if there is no memory for them.
    ///
    /// A vector that is too short grows at once to hold the `room` bytes that its message may still take.
    pub(super) fn make_room(&mut self, id: HandOverId, length: usize, room: usize) -> bool {
        let Some(entry) = self.entries.get_mut(id.index()) else { return false };
        let spare = entry.bytes.capacity() - entry.bytes.len();
        spare >= length || entry.bytes.try_reserve_exact(length.max(room)).is_ok()
    }

    /// Appends bytes for which [`make_room`](Self::make_room) made room and `charged` blocks were charged.
    pub(super) fn append(&mut self, id: HandOverId, bytes: &[u8], charged: usize) {
        if let Some(entry) = self.entries.get_mut(id.index()) {
            entry.bytes.extend_from_slice(bytes);
            entry.charged += charged;
        }
    }

    /// Returns excess capacity of a complete message to the allocator.
    ///
    /// Shrinks the vector if its excess is larger than the charged blocks or than an eighth of the message.
    /// `block_size` is in bytes.
    pub(super) fn shrink(&mut self, id: HandOverId, block_size: usize) {
        let Some(Entry { bytes, charged, .. }) = self.entries.get_mut(id.index()) else { return };
        let most = bytes.len() + bytes.len() / 8;
        if bytes.capacity() > most.min(charged.saturating_mul(block_size)) {
            bytes.shrink_to_fit();
        }
    }

    pub(super) fn bytes(&self, id: HandOverId) -> &[u8] {
        self.entries.get(id.index()).map_or(&[], |entry| &entry.bytes)
    }

    pub(super) fn bytes_mut(&mut self, id: HandOverId) -> &mut [u8] {
        self.entries.get_mut(id.index()).map_or(&mut [], |entry| &mut entry.bytes)
    }

    /// Takes the bytes out; their charge remains until the last block that refers to them is freed.
    pub(super) fn take(&mut self, id: HandOverId) -> Vec<u8> {
        self.entries.get_mut(id.index()).map_or_else(Vec::new, |entry| core::mem::take(&mut entry.bytes))
    }
}

/// The id of a vector; uninhabited, because there are no vectors in this build.
#[cfg(not(feature = "hand-over"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandOverId {}

/// The empty table of vectors.
#[cfg(not(feature = "hand-over"))]
#[derive(Debug, Default)]
pub(super) struct HandedOver(());

#[cfg(not(feature = "hand-over"))]
#[expect(
    clippy::needless_pass_by_ref_mut,
    clippy::unused_self,
    reason = "the methods are those of the other variant"
)]
impl HandedOver {
    pub(super) const fn reserve(&mut self, _: usize, _: usize) -> Option<HandOverId> {
        None
    }

    pub(super) const fn make_room(&mut self, id: HandOverId, _: usize, _: usize) -> bool {
        match id {}
    }

    pub(super) const fn shrink(&mut self, id: HandOverId, _: usize) {
        match id {}
    }

    pub(super) const fn refer(&mut self, id: HandOverId) {
        match id {}
    }

    pub(super) const fn release(&mut self, id: HandOverId) -> usize {
        match id {}
    }

    pub(super) const fn append(&mut self, id: HandOverId, _: &[u8], _: usize) {
        match id {}
    }

    pub(super) const fn bytes(&self, id: HandOverId) -> &[u8] {
        match id {}
    }

    pub(super) const fn bytes_mut(&mut self, id: HandOverId) -> &mut [u8] {
        match id {}
    }
}

#[cfg(all(test, feature = "hand-over"))]
mod tests {
    use super::*;

    #[test]
    fn a_vector_stays_as_long_as_a_block_refers_to_it() {
        let mut handed_over = HandedOver::default();
        let id = handed_over.insert().expect("room");
        handed_over.refer(id);
        handed_over.refer(id);
        handed_over.fill(id, b"message".to_vec());
        assert_eq!(handed_over.release(id), 0);
        assert_eq!(handed_over.bytes(id), b"message");
        assert_eq!(handed_over.release(id), 0);
        assert_eq!(handed_over.bytes(id), b"");
        assert_eq!(handed_over.insert(), Some(id), "its name is free again");
    }

    #[test]
    fn unreferenced_bytes_are_dropped() {
        let mut handed_over = HandedOver::default();
        let id = handed_over.insert().expect("room");
        handed_over.fill(id, b"message".to_vec());
        assert_eq!(handed_over.bytes(id), b"");
        assert_eq!(handed_over.insert(), Some(id));
    }

    #[test]
    fn charge_is_released_with_the_last_block() {
        let mut handed_over = HandedOver::default();
        let id = handed_over.insert().expect("room");
        handed_over.refer(id);
        assert!(handed_over.make_room(id, 7, 7));
        handed_over.append(id, b"mess", 3);
        handed_over.append(id, b"age", 2);
        assert_eq!(handed_over.take(id), b"message");
        assert_eq!(handed_over.release(id), 5);
    }

    fn capacity(handed_over: &HandedOver, id: HandOverId) -> usize {
        handed_over.entries.get(id.index()).map_or(0, |entry| entry.bytes.capacity())
    }

    #[test]
    fn capacity_is_reserved_at_once() {
        let mut handed_over = HandedOver::default();
        let id = handed_over.reserve(LARGE, 2 * LARGE).expect("room");
        assert_eq!(capacity(&handed_over, id), LARGE);
        assert_eq!(handed_over.reserve(usize::MAX, usize::MAX), None);
    }

    #[test]
    fn reservation_is_bounded_by_the_room_of_the_message() {
        let mut handed_over = HandedOver::default();
        let id = handed_over.reserve(usize::MAX, 1_000).expect("room");
        assert_eq!(capacity(&handed_over, id), 1_000);
        assert!(handed_over.make_room(id, 1_000, 3_000), "there is room");
        assert_eq!(capacity(&handed_over, id), 1_000);
        assert!(handed_over.make_room(id, 1_001, 3_000));
        assert_eq!(capacity(&handed_over, id), 3_000);
        assert!(!handed_over.make_room(id, usize::MAX, 0));
    }

    #[test]
    fn excess_capacity_is_returned() {
        for (length, charged, most) in [(1_000, 2, 1_000), (1_000, 3, 1_100), (900, 3, 900)] {
            let mut handed_over = HandedOver::default();
            let id = handed_over.reserve(LARGE, 1_100).expect("room");
            handed_over.refer(id);
            handed_over.append(id, &[0; 1_000][..length], charged);
            handed_over.shrink(id, 512);
            assert_eq!(capacity(&handed_over, id), most, "{length} bytes in {charged} blocks");
        }
    }

    #[test]
    fn small_messages_are_stored_in_blocks() {
        let mut handed_over = HandedOver::default();
        assert_eq!((handed_over.reserve(LARGE - 1, LARGE), handed_over.name(LARGE - 1)), (None, None));
        assert!(handed_over.name(LARGE).is_some());
    }

    #[test]
    fn ids_are_bounded() {
        let mut handed_over = HandedOver::default();
        let names = core::iter::from_fn(|| handed_over.insert()).count();
        assert_eq!(names, usize::from(u16::MAX));
    }
}
