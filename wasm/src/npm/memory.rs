//! What a connection is made with, as JavaScript gives it.

use core::time::Duration;

use crate::client::Memory;

/// The default, with what is given instead; 0 stands for what is not given.
pub(super) fn memory(default: Memory, blocks: u32, block_size: u32) -> Memory {
    let given = |number: u32, default: usize| if number == 0 { default } else { number as usize };
    Memory { blocks: given(blocks, default.blocks), block_size: given(block_size, default.block_size) }
}

/// How long the server may be silent; 0 stands for the default.
pub(super) fn timeout(milliseconds: u32) -> Option<Duration> {
    (milliseconds > 0).then(|| Duration::from_millis(milliseconds.into()))
}

/// The random bytes of a peer.
pub(super) fn entropy(words: [u64; 4]) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}
