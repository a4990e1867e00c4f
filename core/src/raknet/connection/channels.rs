//! The state of the 32 channels of a connection.
//!
//! The first few channels are stored in the connection. The others are stored in the pool, because few games use
//! them.

use crate::raknet::config::FAR_CHANNELS;
use crate::raknet::delivery::Channel;
use crate::storage::{Block, BlockLink, Pool, Purpose, Share};

/// The number of channels stored in the connection itself.
pub(crate) const NEAR: usize = 4;

/// Channel state that is stored as bytes. An unused channel is all zeros.
pub(crate) trait Packed: Copy + Default {
    /// The size in bytes; at most 32, the minimum block size.
    const BYTES: usize;

    fn pack(&self, bytes: &mut [u8]);

    fn unpack(bytes: &[u8]) -> Self;
}

/// Encodes three numbers.
pub(crate) fn pack(numbers: [u32; 3], bytes: &mut [u8]) {
    for (bytes, number) in bytes.chunks_exact_mut(4).zip(numbers) {
        bytes.copy_from_slice(&number.to_le_bytes());
    }
}

/// Decodes the numbers encoded by [`pack`].
pub(crate) fn unpack(bytes: &[u8]) -> [u32; 3] {
    let mut numbers =
        bytes.chunks_exact(4).map(|bytes| bytes.first_chunk().copied().map_or(0, u32::from_le_bytes));
    core::array::from_fn(|_| numbers.next().unwrap_or(0))
}

/// The state of every channel.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Channels<T> {
    near: [T; NEAR],
    /// The blocks with the state of all other channels; allocated when the first of those channels is used.
    far: BlockLink,
}

impl<T: Packed> Channels<T> {
    /// Returns the number of blocks to allocate before the state of `channel` can be changed.
    #[inline]
    pub(crate) fn missing_blocks<H: Copy + Default>(&self, pool: &Pool<'_, H>, channel: u8) -> usize {
        if !FAR_CHANNELS || usize::from(channel) < NEAR || self.far.is_some() {
            0
        } else {
            Self::far_blocks(pool)
        }
    }

    fn far_blocks<H: Copy + Default>(pool: &Pool<'_, H>) -> usize {
        (Channel::COUNT - NEAR).div_ceil(Self::in_block(pool))
    }

    fn in_block<H: Copy + Default>(pool: &Pool<'_, H>) -> usize {
        (pool.block_size() / T::BYTES).max(1)
    }

    /// Allocates the missing blocks. If `share` may not hold that many, it allocates none and returns false.
    #[inline]
    pub(crate) fn prepare<H: Copy + Default>(
        &mut self,
        pool: &mut Pool<'_, H>,
        share: &mut Share,
        purpose: Purpose,
        channel: u8,
    ) -> bool {
        let missing = self.missing_blocks(pool, channel);
        missing == 0 || self.take(pool, share, purpose, missing)
    }

    #[cold]
    fn take<H: Copy + Default>(
        &mut self,
        pool: &mut Pool<'_, H>,
        share: &mut Share,
        purpose: Purpose,
        blocks: usize,
    ) -> bool {
        if !pool.shares.charge_table(share, blocks, purpose) {
            return false;
        }
        for _ in 0..blocks {
            let Some(block) = pool.store_zeroed() else { return false };
            match self.far {
                None => self.far = Some(block),
                Some(first) => pool.join(first, block),
            }
        }
        true
    }

    /// Returns the block and offset of the state of `channel`.
    fn place<H: Copy + Default>(&self, pool: &Pool<'_, H>, channel: u8) -> Option<(Block, usize)> {
        let place = usize::from(channel).checked_sub(NEAR).filter(|_| FAR_CHANNELS)?;
        let in_block = Self::in_block(pool);
        let mut block = self.far?;
        for _ in 0..place.checked_div(in_block)? {
            block = pool.next(block)?;
        }
        Some((block, place.checked_rem(in_block)? * T::BYTES))
    }

    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) fn get<H: Copy + Default>(&self, pool: &Pool<'_, H>, channel: u8) -> T {
        match self.near.get(usize::from(channel)) {
            Some(state) => *state,
            None if FAR_CHANNELS => self.get_far(pool, channel).unwrap_or_default(),
            None => T::default(),
        }
    }

    #[cold]
    fn get_far<H: Copy + Default>(&self, pool: &Pool<'_, H>, channel: u8) -> Option<T> {
        let (block, at) = self.place(pool, channel)?;
        pool.bytes(block).get(at..at + T::BYTES).map(T::unpack)
    }

    /// Changes the state of a channel. Precondition: [`prepare`](Self::prepare) returned true.
    #[inline]
    pub(crate) fn update<'a, H: Copy + Default, R>(
        &mut self,
        pool: &mut Pool<'a, H>,
        channel: u8,
        change: impl FnOnce(&mut T, &mut Pool<'a, H>) -> R,
    ) -> R {
        // On 32-bit targets one code path for all channels is smaller.
        if cfg!(target_pointer_width = "64")
            && let Some(near) = self.near.get_mut(usize::from(channel))
        {
            return change(near, pool);
        }
        let mut state = self.get(pool, channel);
        let result = change(&mut state, pool);
        self.put(pool, channel, state);
        result
    }

    #[cold]
    fn put<H: Copy + Default>(&mut self, pool: &mut Pool<'_, H>, channel: u8, state: T) {
        if let Some(near) = self.near.get_mut(usize::from(channel)) {
            *near = state;
        } else if FAR_CHANNELS
            && let Some((block, at)) = self.place(pool, channel)
            && let Some(bytes) = pool.bytes_mut(block).get_mut(at..at + T::BYTES)
        {
            state.pack(bytes);
        } else {
            debug_assert!(false, "no memory was taken for channel {channel}");
        }
    }

    /// Resets all channels and frees their blocks.
    pub(crate) fn clear<H: Copy + Default>(&mut self, pool: &mut Pool<'_, H>, share: &mut Share) {
        if let (Some(far), true) = (core::mem::take(self).far, FAR_CHANNELS) {
            let freed = pool.free(far);
            pool.shares.release_table(share, freed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::with_pool;

    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    struct Number(u32);

    impl Packed for Number {
        const BYTES: usize = 4;

        fn pack(&self, bytes: &mut [u8]) {
            bytes.copy_from_slice(&self.0.to_le_bytes());
        }

        fn unpack(bytes: &[u8]) -> Self {
            Self(bytes.first_chunk().copied().map_or(0, u32::from_le_bytes))
        }
    }

    const ALL: core::ops::Range<u8> = 0..Channel::COUNT as u8;

    #[test]
    fn channels_have_independent_state() {
        with_pool(|pool| {
            let mut share = Share::default();
            let mut channels = Channels::default();
            for channel in ALL {
                assert_eq!(channels.get(pool, channel), Number(0));
                assert!(channels.prepare(pool, &mut share, Purpose::Receive, channel));
                channels.update(pool, channel, |state, _| *state = Number(u32::from(channel) + 1));
            }
            for channel in ALL {
                assert_eq!(channels.get(pool, channel), Number(u32::from(channel) + 1));
            }
        });
    }

    #[test]
    fn blocks_for_high_channels_are_allocated_on_demand_and_freed() {
        with_pool(|pool| {
            let mut share = Share::default();
            let mut channels = Channels::<Number>::default();
            let free = pool.available();
            assert!(channels.prepare(pool, &mut share, Purpose::Receive, 3));
            assert_eq!((pool.available(), channels.missing_blocks(pool, 3)), (free, 0));
            let missing = channels.missing_blocks(pool, 31);
            assert!(missing > 0);
            assert!(channels.prepare(pool, &mut share, Purpose::Receive, 31));
            assert_eq!((pool.available(), channels.missing_blocks(pool, 4)), (free - missing, 0));
            channels.clear(pool, &mut share);
            assert_eq!(pool.available(), free);
        });
    }

    #[test]
    fn preparing_a_channel_without_memory_allocates_nothing() {
        with_pool(|pool| {
            assert!(pool.shares.charge_common(16));
            let mut share = Share::default();
            let mut channels = Channels::<Number>::default();
            assert!(!channels.prepare(pool, &mut share, Purpose::Receive, 31));
            assert_eq!(channels.get(pool, 31), Number(0));
            channels.clear(pool, &mut share);
            assert!(pool.available() == 16 && share.is_empty());
        });
    }
}
