//! Without the feature `hand-over` every message stands in blocks. No value of the name exists, so that nothing of this is
//! left in the program.

/// Whether messages may stand outside of the blocks.
pub(crate) const HAND_OVER: bool = false;

/// The name of a vector, of which there are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutsideId {}

#[derive(Debug, Default)]
pub(super) struct Outside(());

#[expect(
    clippy::needless_pass_by_ref_mut,
    clippy::unused_self,
    reason = "the methods are those of the other variant"
)]
impl Outside {
    pub(super) const fn reserve(&mut self, _: usize, _: usize) -> Option<OutsideId> {
        None
    }

    pub(super) const fn make_room(&mut self, id: OutsideId, _: usize, _: usize) -> bool {
        match id {}
    }

    pub(super) const fn shrink(&mut self, id: OutsideId, _: usize) {
        match id {}
    }

    pub(super) const fn refer(&mut self, id: OutsideId) {
        match id {}
    }

    pub(super) const fn release(&mut self, id: OutsideId) -> usize {
        match id {}
    }

    pub(super) const fn append(&mut self, id: OutsideId, _: &[u8], _: usize) {
        match id {}
    }

    pub(super) const fn bytes(&self, id: OutsideId) -> &[u8] {
        match id {}
    }

    pub(super) const fn bytes_mut(&mut self, id: OutsideId) -> &mut [u8] {
        match id {}
    }
}
