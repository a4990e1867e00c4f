//! A table that finds messages by a number, threaded through their first blocks.

use super::{Block, BlockLink, Pool, RawLink, Slots};

/// A hash table, shared by all connections. It has as many buckets as the pool has blocks, or fewer in a large pool.
///
/// Some numbers are a peer's choice. The table mixes them with a secret multiplier, so a peer that does not know it
/// cannot aim at one bucket.
#[derive(Debug)]
pub(crate) struct Index<'a> {
    buckets: Slots<'a, RawLink>,
    multiplier: u64,
}

impl<'a> Index<'a> {
    pub(crate) const fn new(buckets: Slots<'a, RawLink>, secret: u64) -> Self {
        Self { buckets, multiplier: secret | 1 }
    }

    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn bucket(&mut self, key: u64) -> Option<&mut RawLink> {
        let hash = key.wrapping_add(1).wrapping_mul(self.multiplier) >> 32;
        let place = (hash * self.buckets.len() as u64) >> 32;
        debug_assert!(place < self.buckets.len() as u64 || self.buckets.is_empty(), "no bucket {place}");
        usize::try_from(place).ok().and_then(|place| self.buckets.get_mut(place))
    }

    /// Adds a message under `key`.
    #[inline]
    pub(crate) fn insert<H: Copy + Default>(&mut self, pool: &mut Pool<'_, H>, key: u64, message: Block) {
        let Some(bucket) = self.bucket(key) else {
            debug_assert!(false, "a message for a table without buckets");
            return;
        };
        pool.node_mut(message).bucket = Block::from_raw(*bucket);
        *bucket = Block::to_raw(Some(message));
    }

    /// The first message under `key` of which `is_it` is true.
    #[inline]
    pub(crate) fn find<H: Copy + Default>(
        &mut self,
        pool: &Pool<'_, H>,
        key: u64,
        is_it: impl Fn(&H) -> bool,
    ) -> BlockLink {
        let mut at = Block::from_raw(*self.bucket(key)?);
        while let Some(message) = at {
            if is_it(pool.header(message)) {
                return Some(message);
            }
            at = pool.node(message).bucket;
        }
        None
    }

    /// Takes a message out.
    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) fn remove<H: Copy + Default>(&mut self, pool: &mut Pool<'_, H>, key: u64, message: Block) {
        let Some(bucket) = self.bucket(key) else {
            debug_assert!(false, "a message in a table without buckets");
            return;
        };
        let rest = pool.node_mut(message).bucket.take();
        let mut at = Block::from_raw(*bucket);
        if at == Some(message) {
            *bucket = Block::to_raw(rest);
            return;
        }
        while let Some(before) = at {
            at = pool.node(before).bucket;
            if at == Some(message) {
                pool.node_mut(before).bucket = rest;
                return;
            }
        }
        debug_assert!(false, "a message that is not in the table");
    }
}

#[cfg(test)]
mod tests {
    use super::super::pool::tests::with_pool;
    use super::*;
    use heapless::Vec;

    #[test]
    fn messages_are_found_until_removed() {
        with_pool(|pool| {
            let mut buckets: Vec<RawLink, 4> = Vec::new();
            buckets.resize_default(4).expect("as long as its capacity");
            let mut index = Index::new(Slots::Lent(&mut buckets), 0x9E37_79B9_7F4A_7C15);
            for key in 0..16_u32 {
                let message = pool.store(b"x", &key).expect("room");
                index.insert(pool, key.into(), message);
            }
            for key in [3, 0, 15, 7, 8, 1, 2, 4, 5, 6, 9, 10, 11, 12, 13, 14] {
                let found = index.find(pool, key.into(), |header| *header == key).expect("inserted");
                index.remove(pool, key.into(), found);
                pool.free(found);
                assert!(index.find(pool, key.into(), |header| *header == key).is_none());
            }
            assert_eq!(pool.available(), 16);
        });
    }
}
