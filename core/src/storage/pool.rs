//! The pool: fixed-size blocks, chained into messages.

use super::zero_copy::OwnedBuffers;
use super::{Block, BlockLink, OwnedId, Shares, Slots};
use crate::cursor::Piece;

/// The metadata of a block.
///
/// `H` is the protocol's header of a message, stored in the first block of the message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Node<H> {
    /// The next block of the same message.
    next: BlockLink,
    /// In the first block of a message: its last block.
    last: BlockLink,
    /// The next message in a queue, or the next sibling in a heap.
    pub(super) after: BlockLink,
    /// The previous member of a list, or the first child in a heap.
    pub(super) older: BlockLink,
    /// The next member of a list.
    pub(super) newer: BlockLink,
    /// The next message in the same bucket of an index.
    pub(super) bucket: BlockLink,
    /// The number of bytes used in this block.
    used: u16,
    /// In the first block of a message: the vector with its bytes, if there is one.
    owned: Option<OwnedId>,
    /// In the first block of a message: its length in bytes.
    size: u32,
    /// In the first block of a message: its header.
    pub(crate) header: H,
}

/// Fixed-size blocks and the messages stored in them.
#[derive(Debug)]
pub(crate) struct Pool<'a, H> {
    /// The bytes of all blocks, consecutively.
    bytes: Slots<'a, u8>,
    nodes: Slots<'a, Node<H>>,
    /// The metadata that is read and written for a block that does not exist.
    ///
    /// A link to such a block would be a bug, but must not make a server panic.
    canary: Node<H>,
    block_size: usize,
    /// The first free block in the list of blocks that were used before.
    free: BlockLink,
    /// The index of the first block that was never used.
    fresh: usize,
    /// The total number of blocks.
    capacity: usize,
    /// The number of free blocks.
    available: usize,
    /// The accounts that decide which connection may take blocks.
    pub(crate) shares: Shares,
    owned: OwnedBuffers,
}

impl<'a, H: Copy + Default> Pool<'a, H> {
    pub(crate) fn new(
        bytes: Slots<'a, u8>,
        nodes: Slots<'a, Node<H>>,
        block_size: usize,
        shares: Shares,
    ) -> Self {
        // The table of nodes may grow as blocks are used.
        let capacity = bytes.len().checked_div(block_size).unwrap_or(0).min(Block::MAX_COUNT);
        Self {
            bytes,
            nodes,
            canary: Node::default(),
            block_size,
            free: None,
            fresh: 0,
            capacity,
            available: capacity,
            shares,
            owned: OwnedBuffers::default(),
        }
    }

    /// Returns the total number of blocks.
    pub(crate) const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the number of free blocks.
    pub(crate) const fn available(&self) -> usize {
        self.available
    }

    /// Returns the bytes of all blocks.
    #[cfg(feature = "alloc")]
    pub(crate) fn memory(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) const fn block_size(&self) -> usize {
        // Never zero, so divisions by it cannot panic. The compiler cannot infer this.
        if self.block_size == 0 { 1 } else { self.block_size }
    }

    /// Returns the number of blocks for `bytes` bytes; a message takes at least one.
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) const fn blocks_for(&self, bytes: usize) -> usize {
        // Most messages take one block. For them the division would be the most expensive part of this function.
        if bytes <= self.block_size {
            return 1;
        }
        let size = self.block_size();
        bytes / size + if bytes.is_multiple_of(size) { 0 } else { 1 }
    }

    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) fn node(&self, block: Block) -> &Node<H> {
        debug_assert!(block.index() < self.nodes.len(), "a link to no block: {block:?}");
        self.nodes.get(block.index()).unwrap_or(&self.canary)
    }

    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) fn node_mut(&mut self, block: Block) -> &mut Node<H> {
        debug_assert!(block.index() < self.nodes.len(), "a link to no block: {block:?}");
        self.nodes.get_mut(block.index()).unwrap_or(&mut self.canary)
    }

    /// Returns false after a write through a dangling link, or if the free blocks do not match the accounts.
    ///
    /// Either would be a bug. Dangling writes go to the canary, so its contents show them; counting them would take 2 %
    /// of all instructions.
    pub(crate) fn is_intact(&self) -> bool {
        let is_charged = match self.available == self.capacity {
            true => self.shares.is_whole(),
            false => self.shares.free() <= self.available,
        };
        let Node { next, last, after, older, newer, bucket, used, owned, size, header: _ } = self.canary;
        [next, last, after, older, newer, bucket].iter().all(Option::is_none)
            && used == 0
            && owned.is_none()
            && size == 0
            && is_charged
    }

    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) fn header(&self, message: Block) -> &H {
        &self.node(message).header
    }

    #[inline]
    pub(crate) fn header_mut(&mut self, message: Block) -> &mut H {
        &mut self.node_mut(message).header
    }

    /// Returns the length of a message in bytes.
    #[inline]
    pub(crate) fn size(&self, message: Block) -> usize {
        self.node(message).size as usize
    }

    /// Returns the message that follows this one in its queue.
    #[inline]
    pub(crate) fn after(&self, message: Block) -> BlockLink {
        self.node(message).after
    }

    /// Links a message to the message that follows it in a chain. The owner of the chain stores the first message.
    pub(crate) fn put_before(&mut self, message: Block, after: BlockLink) {
        self.node_mut(message).after = after;
    }

    /// Copies `payload` into as many blocks as it needs. Precondition: the blocks are charged.
    #[inline]
    pub(crate) fn store(&mut self, payload: &[u8], header: &H) -> BlockLink {
        if self.blocks_for(payload.len()) > self.available {
            return None;
        }
        let (part, mut rest) = payload.split_at_checked(self.block_size).unwrap_or((payload, &[]));
        let first = self.take_block(part, payload.len(), header)?;
        if rest.is_empty() {
            return Some(first);
        }
        let mut last = first;
        while !rest.is_empty() {
            let (part, remaining) = rest.split_at_checked(self.block_size).unwrap_or((rest, &[]));
            let block = self.take_block(part, 0, &H::default())?;
            self.node_mut(last).next = Some(block);
            last = block;
            rest = remaining;
        }
        self.node_mut(first).last = Some(last);
        Some(first)
    }

    /// Takes a block as the first block of a message of `size` bytes.
    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn take_block(&mut self, part: &[u8], size: usize, header: &H) -> BlockLink {
        let block = match self.free {
            Some(block) => {
                self.free = self.node(block).next;
                block
            }
            None => {
                let block = Block::at(self.fresh).filter(|block| block.index() < self.capacity)?;
                self.nodes.reach(self.fresh, self.capacity);
                self.fresh += 1;
                block
            }
        };
        self.available = self.available.saturating_sub(1);
        let node = self.node_mut(block);
        let used = u16::try_from(part.len()).unwrap_or(u16::MAX);
        *node = Node {
            next: None,
            last: Some(block),
            after: None,
            older: None,
            newer: None,
            bucket: None,
            used,
            owned: None,
            size: u32::try_from(size).unwrap_or(u32::MAX),
            header: *header,
        };
        let start = block.index() * self.block_size;
        let rest = self.bytes.get_mut(start..);
        if let Some(bytes) = rest.and_then(|rest| rest.get_mut(..part.len())) {
            bytes.copy_from_slice(part);
        }
        Some(block)
    }

    /// Creates a vector for a message of about `length` bytes, with a capacity of at most `room` blocks.
    ///
    /// Returns false if the message is not large, or if there is no memory.
    pub(crate) fn begin_owned(&mut self, message: Block, length: usize, room: usize) -> bool {
        let Some(id) = self.owned.reserve(length, self.bytes_in(room)) else { return false };
        self.refer(message, id);
        true
    }

    /// Ensures that `length` more bytes can be [appended](Self::append_owned) to a message in a vector.
    ///
    /// `room` is the number of blocks charged for the missing bytes of the message. Returns false if there is no
    /// memory.
    pub(crate) fn grow_owned(&mut self, message: Block, length: usize, room: usize) -> bool {
        let room = self.bytes_in(room);
        self.node(message).owned.is_some_and(|id| self.owned.make_room(id, length, room))
    }

    /// Returns excess capacity of a complete message in a vector to the allocator.
    pub(crate) fn shrink_owned(&mut self, message: Block) {
        if let Some(id) = self.node(message).owned {
            self.owned.shrink(id, self.block_size);
        }
    }

    const fn bytes_in(&self, blocks: usize) -> usize {
        blocks.saturating_mul(self.block_size)
    }

    /// Takes a block for a message, or a part, of `length` bytes in a vector. Precondition: the block is charged.
    pub(crate) fn store_owned(&mut self, id: OwnedId, length: usize, header: &H) -> BlockLink {
        let block = self.take_block(&[], length, header)?;
        self.refer(block, id);
        Some(block)
    }

    /// Makes a message refer to the bytes in a vector.
    pub(crate) fn refer(&mut self, message: Block, id: OwnedId) {
        self.owned.refer(id);
        self.node_mut(message).owned = Some(id);
    }

    /// Returns the vector with the bytes of a message, if there is one.
    pub(crate) fn owned(&self, message: Block) -> Option<OwnedId> {
        self.node(message).owned
    }

    /// Returns true if the bytes of a message are in a vector.
    #[inline]
    pub(crate) fn is_owned(&self, message: Block) -> bool {
        self.node(message).owned.is_some()
    }

    /// Appends bytes to a message in a vector. Precondition: [`grow_owned`](Self::grow_owned) returned true for this
    /// number of bytes.
    ///
    /// `charged` blocks were charged for the bytes, and count as blocks of the message.
    pub(crate) fn append_owned(&mut self, message: Block, bytes: &[u8], charged: usize) {
        if let Some(id) = self.node(message).owned {
            self.owned.append(id, bytes, charged);
            let node = self.node_mut(message);
            node.size = node.size.saturating_add(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        }
    }

    /// Moves the bytes of the message `tail`, which is in blocks, to the end of a message in a vector.
    ///
    /// Precondition: [`grow_owned`](Self::grow_owned) returned true for the length of `tail`.
    ///
    /// The blocks of `tail` are freed but stay charged.
    pub(crate) fn move_to_owned(&mut self, message: Block, tail: Block) {
        let Some(id) = self.node(message).owned else { return };
        let mut at = Some(tail);
        while let Some(block) = at {
            let start = block.index() * self.block_size;
            let node = self.node(block);
            let (used, next) = (usize::from(node.used), node.next);
            self.owned.append(id, self.bytes.get(start..start + used).unwrap_or(&[]), 1);
            at = next;
        }
        let size = self.node(tail).size;
        let node = self.node_mut(message);
        node.size = node.size.saturating_add(size);
        self.free(tail);
    }

    /// Copies data that belongs to no connection into blocks of the shared part.
    pub(crate) fn store_common(&mut self, payload: &[u8], header: &H) -> BlockLink {
        let blocks = self.blocks_for(payload.len());
        if !self.shares.charge_common(blocks) {
            return None;
        }
        let stored = self.store(payload, header);
        if stored.is_none() {
            self.shares.release_common(blocks);
        }
        stored
    }

    /// Frees data that belongs to no connection.
    pub(crate) fn free_common(&mut self, message: Block) {
        let blocks = self.free(message);
        self.shares.release_common(blocks);
    }

    /// Takes a zeroed block for a table. Precondition: the block is charged.
    pub(crate) fn store_zeroed(&mut self) -> BlockLink {
        let length = self.block_size;
        let block = self.take_block(&[], length, &H::default())?;
        self.node_mut(block).used = u16::try_from(length).unwrap_or(u16::MAX);
        self.bytes_mut(block).fill(0);
        Some(block)
    }

    /// Returns a piece of the message that begins with `first`, and the position of the next piece.
    pub(crate) fn piece(&self, first: BlockLink, at: Piece) -> (&[u8], Option<Piece>) {
        let block = if at == Piece::FIRST { first } else { Block::numbered(at.number()) };
        // The position may belong to a message of another peer, so it is checked.
        let block = block.filter(|block| block.index() < self.nodes.len());
        let Some(block) = block else { return (&[], None) };
        (self.contents(block), self.next(block).map(|next| Piece::new(next.number())))
    }

    /// Returns the bytes of one block.
    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) fn bytes(&self, block: Block) -> &[u8] {
        let start = block.index() * self.block_size;
        let used = usize::from(self.node(block).used);
        self.bytes.get(start..start + used).unwrap_or(&[])
    }

    /// Returns the bytes of one block, or the bytes of the vector to which the block refers.
    pub(crate) fn contents(&self, block: Block) -> &[u8] {
        match self.node(block).owned {
            None => self.bytes(block),
            Some(id) => self.owned.bytes(id),
        }
    }

    /// The mutable variant of `contents`.
    pub(crate) fn contents_mut(&mut self, block: Block) -> &mut [u8] {
        match self.node(block).owned {
            None => self.bytes_mut(block),
            Some(id) => self.owned.bytes_mut(id),
        }
    }

    /// The mutable variant of `bytes`.
    pub(crate) fn bytes_mut(&mut self, block: Block) -> &mut [u8] {
        let start = block.index() * self.block_size;
        let used = usize::from(self.node(block).used);
        self.bytes.get_mut(start..start + used).unwrap_or(&mut [])
    }

    /// Returns the next block of the message.
    #[inline]
    pub(crate) fn next(&self, block: Block) -> BlockLink {
        self.node(block).next
    }

    /// Copies a message to the front of `buffer`; returns `None` if it does not fit.
    pub(crate) fn copy<'b>(&self, message: Block, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        let target = buffer.get_mut(..self.size(message))?;
        let mut rest = &mut *target;
        let mut at = Some(message);
        while let Some(block) = at {
            let bytes = self.contents(block);
            let (part, remaining) = rest.split_at_mut_checked(bytes.len())?;
            part.copy_from_slice(bytes);
            rest = remaining;
            at = self.next(block);
        }
        Some(target)
    }

    /// Appends the blocks of the message `tail` to the message `head`.
    pub(crate) fn join(&mut self, head: Block, tail: Block) {
        let (end, size) = (self.node(tail).last, self.node(tail).size);
        if let Some(last) = self.node(head).last {
            self.node_mut(last).next = Some(tail);
        }
        let node = self.node_mut(head);
        node.last = end;
        node.size = node.size.saturating_add(size);
    }

    /// Appends `parts` to a message of one block; returns false and appends nothing if they do not fit.
    pub(crate) fn append(&mut self, message: Block, parts: [&[u8]; 2]) -> bool {
        let node = self.node(message);
        let used = usize::from(node.used);
        let length: usize = parts.iter().map(|part| part.len()).sum();
        if node.next.is_some() || node.owned.is_some() || used + length > self.block_size {
            return false;
        }
        let node = self.node_mut(message);
        node.used = u16::try_from(used + length).unwrap_or(u16::MAX);
        node.size = node.used.into();
        let mut room = self.bytes_mut(message).get_mut(used..).unwrap_or_default();
        for part in parts {
            let Some((front, rest)) = room.split_at_mut_checked(part.len()) else { break };
            copy(front, part);
            room = rest;
        }
        true
    }

    /// Removes `length` bytes from the front of a message of one block.
    pub(crate) fn drop_front(&mut self, message: Block, length: usize) {
        let bytes = self.bytes_mut(message);
        let length = length.min(bytes.len());
        for at in length..bytes.len() {
            if let Some(byte) = bytes.get(at).copied()
                && let Some(moved) = bytes.get_mut(at.saturating_sub(length))
            {
                *moved = byte;
            }
        }
        let node = self.node_mut(message);
        node.used = node.used.saturating_sub(u16::try_from(length).unwrap_or(u16::MAX));
        node.size = node.used.into();
    }

    /// Moves the first `length` bytes of a message of one block into a new block. Precondition: the new block is
    /// charged.
    pub(crate) fn split_front(&mut self, message: Block, length: usize, header: &H) -> BlockLink {
        let length = length.min(self.bytes(message).len());
        let front = self.take_block(&[], length, header)?;
        self.node_mut(front).used = u16::try_from(length).unwrap_or(u16::MAX);
        let (from, to) = (message.index() * self.block_size, front.index() * self.block_size);
        let (lower, upper) = self.bytes.split_at_mut_checked(from.max(to)).unwrap_or_default();
        let lower = lower.get_mut(from.min(to)..).unwrap_or_default();
        let (source, destination) = if from < to { (lower, upper) } else { (upper, lower) };
        copy(destination, source.get(..length).unwrap_or_default());
        self.drop_front(message, length);
        Some(front)
    }

    /// Frees all blocks of a message except the first, which keeps the header; returns the number of freed blocks.
    pub(crate) fn truncate(&mut self, message: Block) -> usize {
        let node = self.node_mut(message);
        node.size = 0;
        node.used = 0;
        node.last = Some(message);
        let rest = node.next.take();
        let owned = if self.is_owned(message) { self.release_owned(message) } else { 0 };
        owned + rest.map_or(0, |rest| self.free(rest))
    }

    /// Frees the blocks of a message and its vector; returns the number of blocks charged for them.
    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) fn free(&mut self, message: Block) -> usize {
        let mut freed = 1;
        let mut last = message;
        while let Some(next) = self.node(last).next {
            last = next;
            freed += 1;
        }
        let free = self.free;
        self.node_mut(last).next = free;
        self.free = Some(message);
        self.available += freed;
        if self.is_owned(message) { freed + self.release_owned(message) } else { freed }
    }

    /// Releases the vector of a message; returns the number of blocks charged for it.
    #[cold]
    fn release_owned(&mut self, message: Block) -> usize {
        self.node_mut(message).owned.take().map_or(0, |id| self.owned.release(id))
    }
}

#[cfg(feature = "zero-copy")]
impl<H: Copy + Default> Pool<'_, H> {
    /// Sets the message size in bytes from which vectors are used.
    pub(crate) const fn set_zero_copy_threshold(&mut self, bytes: usize) {
        self.owned.from = bytes;
    }

    /// Returns an id for a message of `length` bytes, for a later call of [`fill_owned`](Self::fill_owned).
    ///
    /// Returns `None` if the message is not large.
    pub(crate) fn reserve_owned(&mut self, length: usize) -> Option<OwnedId> {
        self.owned.name(length)
    }

    /// Stores a vector until no block refers to its id.
    pub(crate) fn fill_owned(&mut self, id: OwnedId, bytes: alloc::vec::Vec<u8>) {
        self.owned.fill(id, bytes);
    }

    /// Takes the vector of a message out of the pool, if there is one.
    pub(crate) fn take_owned(&mut self, message: Block) -> Option<alloc::vec::Vec<u8>> {
        let id = self.node(message).owned?;
        Some(self.owned.take(id))
    }
}

/// Copies as many bytes as fit. Unlike `copy_from_slice` it cannot panic.
fn copy(to: &mut [u8], from: &[u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use heapless::Vec;
    use std::vec::Vec as StdVec;

    /// Runs `check` on a pool of 16 blocks of 8 bytes.
    pub(crate) fn with_pool(check: impl FnOnce(&mut Pool<'_, u32>)) {
        with_blocks::<16>(check);
    }

    /// Runs `check` on a pool of `BLOCKS` blocks of 8 bytes.
    pub(crate) fn with_blocks<const BLOCKS: usize>(check: impl FnOnce(&mut Pool<'_, u32>)) {
        let mut bytes = [[0; 8]; BLOCKS];
        let bytes = bytes.as_flattened_mut();
        let mut nodes: Vec<Node<u32>, BLOCKS> = Vec::new();
        nodes.resize_default(BLOCKS).expect("a length within the capacity");
        let shares = Shares::new(BLOCKS, 1, None);
        let mut pool = Pool::new(Slots::Borrowed(bytes), Slots::Borrowed(&mut nodes), 8, shares);
        check(&mut pool);
    }

    fn content(pool: &Pool<'_, u32>, message: Block) -> StdVec<u8> {
        let mut bytes = StdVec::new();
        let mut at = Some(message);
        while let Some(block) = at {
            bytes.extend_from_slice(pool.bytes(block));
            at = pool.next(block);
        }
        bytes
    }

    #[test]
    fn a_message_takes_blocks_until_it_is_freed() {
        with_pool(|pool| {
            let message = pool.store(b"twenty bytes of text", &7).expect("enough space");
            assert_eq!((pool.available(), pool.size(message), *pool.header(message)), (13, 20, 7));
            assert_eq!(content(pool, message), b"twenty bytes of text");
            let other = pool.store(b"!", &8).expect("enough space");
            pool.join(message, other);
            assert_eq!(content(pool, message), b"twenty bytes of text!");
            assert_eq!(pool.free(message), 4);
            assert_eq!(pool.available(), 16);
        });
    }

    #[test]
    fn data_outside_connections_is_charged_to_the_shared_part() {
        with_pool(|pool| {
            let stored = pool.store_common(&[0; 20], &0).expect("enough space");
            assert_eq!((pool.available(), pool.shares.free()), (13, 13));
            assert!(pool.store_common(&[0; 14 * 8], &0).is_none());
            pool.free_common(stored);
            assert_eq!((pool.available(), pool.shares.free()), (16, 16));
        });
    }

    #[test]
    fn bytes_are_appended_to_a_block_and_removed_from_its_front() {
        with_pool(|pool| {
            let message = pool.store(b"abc", &5).expect("enough space");
            assert!(pool.append(message, [b"d", b"ef"]));
            assert!(!pool.append(message, [b"gh", b"i"]));
            let front = pool.split_front(message, 3, &6).expect("enough space");
            assert_eq!((content(pool, front), *pool.header(front)), (b"abc".to_vec(), 6));
            pool.drop_front(message, 1);
            assert_eq!((content(pool, message), pool.size(message)), (b"ef".to_vec(), 2));
            let long = pool.store(&[1; 9], &7).expect("enough space");
            assert!(!pool.append(long, [b"", b"j"]));
        });
    }

    #[test]
    fn truncating_a_message_keeps_its_first_block_and_header() {
        with_pool(|pool| {
            let message = pool.store(&[1; 30], &5).expect("enough space");
            assert_eq!(pool.truncate(message), 3);
            assert_eq!((pool.size(message), *pool.header(message), pool.available()), (0, 5, 15));
            assert_eq!(pool.free(message), 1);
        });
    }

    /// With debug assertions the write panics; without them `is_intact` detects it.
    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "a link to no block"))]
    fn a_write_to_a_missing_block_is_detected() {
        with_pool(|pool| {
            assert!(pool.is_intact());
            let nowhere = Block::at(16).expect("a number for a link");
            pool.node_mut(nowhere).older = Block::at(0);
            assert!(!pool.is_intact());
        });
    }
}
