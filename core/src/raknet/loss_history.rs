//! What connections remember of datagrams that were lost or overtaken. It stands in a table of its own, beside the places of
//! the connections: a connection to which neither happens never touches its part, and memory of the allocator that nobody
//! has touched takes none of the machine.

use crate::storage::Slots;

/// Words for the receive window of a connection.
pub(super) const WINDOW_WORDS: usize = 64;
/// Words for what a connection has lost last.
pub(super) const LOST_WORDS: usize = 24;
/// Words for each connection.
pub(super) const WORDS: usize = WINDOW_WORDS + LOST_WORDS;

/// The words of all connections, one after the other. What they mean is up to those who write them, who must not take it
/// for granted that words they have not written are zero: an earlier connection may have used them.
#[derive(Debug)]
pub(crate) struct LossHistory<'a>(Slots<'a, u32>);

impl<'a> LossHistory<'a> {
    pub(super) const fn new(words: Slots<'a, u32>) -> Self {
        Self(words)
    }

    /// The receive window of a connection.
    #[inline]
    pub(crate) fn window(&mut self, slot: u16) -> Option<&mut [u32; WINDOW_WORDS]> {
        self.part(slot, 0)
    }

    /// What a connection has lost last.
    #[inline]
    pub(crate) fn lost(&mut self, slot: u16) -> Option<&mut [u32; LOST_WORDS]> {
        self.part(slot, WINDOW_WORDS)
    }

    #[inline]
    fn part<const LENGTH: usize>(&mut self, slot: u16, from: usize) -> Option<&mut [u32; LENGTH]> {
        let part = self.0.get_mut(usize::from(slot) * WORDS + from..)?.first_chunk_mut();
        debug_assert!(part.is_some(), "no words for slot {slot}");
        part
    }
}
