//! The sizes of a connection's memory, as JavaScript gives them.

use crate::client::Memory;

/// The default with what is given instead.
pub(super) fn memory(default: Memory, blocks: Option<u32>, block_size: Option<u32>) -> Memory {
    Memory {
        blocks: blocks.map_or(default.blocks, |blocks| blocks as usize),
        block_size: block_size.map_or(default.block_size, |bytes| bytes as usize),
    }
}
