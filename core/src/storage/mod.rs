//! Memory of fixed size, lent by the caller: one pool of blocks and the lists, heaps and tables that run through it.
//!
//! Everything that a connection keeps is a list of blocks, so an idle connection holds none and a busy one takes what
//! the others leave. Nothing here knows a protocol. Links are an index plus one, so an empty value is all zero bits
//! and statics stay out of flash.

mod bounded_queue;
mod deadlines;
mod index;
mod link;
mod list;
mod order_heap;
#[cfg(feature = "hand-over")]
mod outside;
#[cfg(not(feature = "hand-over"))]
#[path = "no_outside.rs"]
mod outside;
mod pool;
mod queue;
mod ring;
mod share;
mod slot_index;
mod slots;
mod window;

pub(crate) use bounded_queue::BoundedQueue;
pub(crate) use deadlines::{Deadline, Deadlines};
pub(crate) use index::Index;
pub(crate) use link::{Block, BlockLink, RawLink};
pub(crate) use list::List;
pub(crate) use order_heap::OrderHeap;
pub(crate) use outside::{HAND_OVER, OutsideId};
#[cfg(test)]
pub(crate) use pool::tests::with_pool;
pub(crate) use pool::{Node, Pool};
pub(crate) use queue::Queue;
pub(crate) use ring::Ring;
pub(crate) use share::{Claim, NoRoom, Share, Shares};
pub(crate) use slot_index::{AddressKey, SlotEntry, SlotIndex};
pub(crate) use slots::{SlotQueue, Slots};
pub(crate) use window::{Arrival, SparseWindow};

/// Whether there may be more than one connection (feature `connections`).
pub(crate) const SEVERAL: bool = cfg!(feature = "connections");
