//! Fixed-size memory borrowed from the caller: one pool of blocks, with lists, heaps and tables in it.
//!
//! All messages of a connection are lists of blocks. An idle connection therefore holds no blocks, and a busy
//! connection may use blocks that the others do not need. The module does not depend on a protocol. A link is an index
//! plus one, so an empty value is all zero bits, and statics take no flash.

mod index;
mod pool;
mod queues;
mod share;
mod slots;
mod window;
mod zero_copy;

pub(crate) use index::{AddressKey, Deadline, Deadlines, Index, SlotEntry, SlotIndex};
#[cfg(test)]
pub(crate) use pool::tests::with_pool;
pub(crate) use pool::{Node, Pool};
pub(crate) use queues::{List, OrderHeap, Queue};
pub(crate) use share::{NoRoom, Purpose, Share, Shares};
pub(crate) use slots::{BoundedQueue, Ring, SlotQueue, Slots};
pub(crate) use window::{Arrival, SparseWindow};
pub(crate) use zero_copy::{OwnedId, ZERO_COPY};

/// True if there may be more than one connection (feature `full`).
pub(crate) const SEVERAL: bool = cfg!(feature = "full");

/// The width of a block index: 16 bits on microcontrollers and in WebAssembly, 32 bits on 64-bit machines.
#[cfg(target_pointer_width = "64")]
mod width {
    pub(super) type Raw = u32;
    pub(super) type NonZeroRaw = core::num::NonZeroU32;
}
#[cfg(not(target_pointer_width = "64"))]
mod width {
    pub(super) type Raw = u16;
    pub(super) type NonZeroRaw = core::num::NonZeroU16;
}
use width::{NonZeroRaw, Raw};

/// A block of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block(NonZeroRaw);

/// A block or none; `None` is all zero bits.
pub(crate) type BlockLink = Option<Block>;

/// A link as a number, so that the allocator can return a zeroed table of links without writing to it.
pub(crate) type RawLink = Raw;

impl Block {
    /// The maximum number of blocks in a pool.
    pub(crate) const MAX_COUNT: usize = Raw::MAX as usize;

    /// Returns the block at `index`, or `None` if a link cannot represent it.
    #[inline]
    pub(crate) fn at(index: usize) -> BlockLink {
        Raw::try_from(index).ok().and_then(|index| index.checked_add(1)).and_then(NonZeroRaw::new).map(Self)
    }

    pub(crate) const fn from_raw(link: RawLink) -> BlockLink {
        match NonZeroRaw::new(link) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    pub(crate) const fn to_raw(link: BlockLink) -> RawLink {
        match link {
            Some(Self(number)) => number.get(),
            None => 0,
        }
    }

    /// Returns the block with the number that [`number`](Self::number) returned.
    pub(crate) fn numbered(number: u32) -> BlockLink {
        Raw::try_from(number).ok().and_then(NonZeroRaw::new).map(Self)
    }

    /// Returns a non-zero number that identifies the block.
    #[allow(clippy::useless_conversion, reason = "the width differs by target")]
    pub(crate) fn number(self) -> u32 {
        self.0.get().into()
    }

    #[inline]
    pub(crate) const fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}
