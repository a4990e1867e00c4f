//! The memory of a peer. The only type of the crate whose sizes are in its name.

use heapless::{Deque, Vec};

use super::connection::{BlockHeader, Connection};
use super::features::SERVER;
use crate::storage::{
    Block, Deadline, Deadlines, Index, Link, Node, Pool, SlotEntry, SlotIndex, SlotQueue, Slots,
};

/// All memory of a [`Peer`](super::Peer): `CONNECTIONS` connections that share `BLOCKS` blocks of `BLOCK_SIZE` bytes.
///
/// A message takes as many blocks as its bytes fill, at least one, from the moment it is sent until it is
/// acknowledged, or from the moment it arrives until it is read. What is sent leaves a quarter of the blocks to what
/// arrives. A message that arrives in parts needs blocks for all its parts. One connection may use half of the blocks
/// for what it sends and half for what it receives, or less (`Config::connection_blocks`); what arrives before its turn may use half of that. So an ordered
/// message should need no more than a quarter of all blocks: a larger one arrives only while nothing waits for it.
///
/// The first message on one of the channels 4 to 31 takes blocks for their state, beside those shares and in each
/// direction, until the connection ends: 28 times 12 bytes, each within one block, which is 6 blocks of 64 bytes and 14
/// of 32. A peer too small for them sends and takes on the channels 0 to 3 only: [`send`](super::Peer::send) says
/// [`TooLong`](super::SendError::TooLong), and a connection whose other end uses a higher channel ends for want of
/// memory.
///
/// `CONNECTIONS` is 1 to 65,534; `BLOCKS` is 4 to 65,535 (on 64-bit machines 4,294,967,295); `BLOCK_SIZE` is 32 to
/// 65,535 bytes, best 64 to 256 on a microcontroller and 256 to 1,464 elsewhere. An empty value is a constant, so it
/// can be a static that takes no flash.
///
/// ```
/// use rakwire::raknet::{Config, Peer, Resources};
///
/// let mut resources = Resources::<1, 32, 128>::new();
/// let peer = Peer::new(&mut resources, Config::new([7; 32]));
/// assert_eq!(peer.blocks_available(), 32);
/// ```
#[derive(Debug)]
pub struct Resources<const CONNECTIONS: usize, const BLOCKS: usize, const BLOCK_SIZE: usize> {
    connections: Vec<Connection, CONNECTIONS>,
    addresses: Vec<SlotEntry, CONNECTIONS>,
    guids: Vec<SlotEntry, CONNECTIONS>,
    deadlines: Vec<Deadline, CONNECTIONS>,
    ready: Deque<u16, CONNECTIONS>,
    noticed: Deque<u16, CONNECTIONS>,
    vacant: Deque<u16, CONNECTIONS>,
    bytes: Vec<[u8; BLOCK_SIZE], BLOCKS>,
    nodes: Vec<Node<BlockHeader>, BLOCKS>,
    buckets: Vec<Link, BLOCKS>,
}

impl<const CONNECTIONS: usize, const BLOCKS: usize, const BLOCK_SIZE: usize>
    Resources<CONNECTIONS, BLOCKS, BLOCK_SIZE>
{
    const CHECK: () = {
        assert!(CONNECTIONS >= 1 && CONNECTIONS < u16::MAX as usize, "CONNECTIONS must be 1 to 65,534");
        assert!(
            BLOCKS >= 4 && BLOCKS <= Block::MAX_COUNT,
            "BLOCKS must be at least 4 and no more than links can name"
        );
        assert!(BLOCK_SIZE >= 32 && BLOCK_SIZE <= u16::MAX as usize, "BLOCK_SIZE must be 32 to 65,535");
    };

    /// Memory that no peer uses yet.
    #[must_use]
    pub const fn new() -> Self {
        const { Self::CHECK };
        Self {
            connections: Vec::new(),
            addresses: Vec::new(),
            guids: Vec::new(),
            deadlines: Vec::new(),
            ready: Deque::new(),
            noticed: Deque::new(),
            vacant: Deque::new(),
            bytes: Vec::new(),
            nodes: Vec::new(),
            buckets: Vec::new(),
        }
    }

    /// Fills the tables, whatever an earlier peer left in them, and lends them.
    pub(super) fn lend(&mut self, secret: [u8; 16]) -> Tables<'_> {
        refill(&mut self.connections);
        refill(&mut self.addresses);
        refill(&mut self.guids);
        refill(&mut self.deadlines);
        refill(&mut self.nodes);
        refill(&mut self.buckets);
        self.ready.clear();
        self.noticed.clear();
        self.vacant.clear();
        while self.vacant.push_back(self.vacant.len() as u16).is_ok() {}
        while self.bytes.push([0; BLOCK_SIZE]).is_ok() {}
        Tables {
            connections: Slots::Lent(&mut self.connections),
            addresses: SlotIndex::new(Slots::Lent(&mut self.addresses), secret),
            guids: SlotIndex::new(Slots::Lent(&mut self.guids), secret),
            deadlines: Deadlines::new(Slots::Lent(&mut self.deadlines)),
            ready: SlotQueue::Lent(&mut self.ready),
            noticed: SlotQueue::Lent(&mut self.noticed),
            vacant: SlotQueue::Lent(&mut self.vacant),
            pool: Pool::new(
                Slots::Lent(self.bytes.as_flattened_mut()),
                Slots::Lent(&mut self.nodes),
                BLOCK_SIZE,
            ),
            index: Index::new(Slots::Lent(&mut self.buckets), index_secret(secret)),
        }
    }
}

impl<const CONNECTIONS: usize, const BLOCKS: usize, const BLOCK_SIZE: usize> Default
    for Resources<CONNECTIONS, BLOCKS, BLOCK_SIZE>
{
    fn default() -> Self {
        Self::new()
    }
}

fn refill<T: Default, const N: usize>(table: &mut Vec<T, N>) {
    table.clear();
    while table.push(T::default()).is_ok() {}
}

/// The multiplier of the index: half of the secret that hashes addresses, mixed so that neither tells the other.
fn index_secret(secret: [u8; 16]) -> u64 {
    use core::hash::Hasher;
    // A pure client hashes no addresses.
    if let (false, Some(half)) = (SERVER, secret.first_chunk()) {
        return u64::from_ne_bytes(*half);
    }
    let mut hasher = siphasher::sip::SipHasher24::new_with_key(&secret);
    hasher.write(b"index");
    hasher.finish()
}

/// The tables of a peer, their sizes forgotten.
#[derive(Debug)]
pub(super) struct Tables<'a> {
    pub(super) connections: Slots<'a, Connection>,
    pub(super) addresses: SlotIndex<'a>,
    pub(super) guids: SlotIndex<'a>,
    pub(super) deadlines: Deadlines<'a>,
    pub(super) ready: SlotQueue<'a>,
    pub(super) noticed: SlotQueue<'a>,
    /// Slots without a connection. The one that has been free longest is taken next.
    pub(super) vacant: SlotQueue<'a>,
    pub(super) pool: Pool<'a, BlockHeader>,
    pub(super) index: Index<'a>,
}

/// The sizes of a [`Peer`](super::Peer) whose memory the allocator gives; [`Resources`] says what they mean and where
/// they end. Values outside are brought inside.
///
/// ```
/// use rakwire::raknet::{Capacity, Config, Peer};
///
/// let capacity = Capacity { connections: 64, blocks: 4_096, block_size: 256 };
/// let peer = Peer::with_capacity(capacity, Config::new([7; 32]));
/// assert_eq!(peer.blocks_available(), 4_096);
/// ```
#[cfg(feature = "alloc")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Connections, 1 to 65,534.
    pub connections: usize,
    /// Blocks that all connections share, at least 4.
    pub blocks: usize,
    /// Bytes of a block, 32 to 65,535.
    pub block_size: usize,
}

#[cfg(feature = "alloc")]
impl Default for Capacity {
    /// A client or a small server: 64 connections, 16,384 blocks of 512 bytes, about 10 MB.
    fn default() -> Self {
        Self { connections: 64, blocks: 16_384, block_size: 512 }
    }
}

#[cfg(feature = "alloc")]
impl Capacity {
    pub(super) fn allocate(self, secret: [u8; 16]) -> Tables<'static> {
        let connections = self.connections.clamp(1, usize::from(u16::MAX) - 1);
        let blocks = self.blocks.clamp(4, Block::MAX_COUNT);
        let block_size = self.block_size.clamp(32, usize::from(u16::MAX));
        Tables {
            connections: Slots::owned(connections),
            addresses: SlotIndex::new(Slots::owned(connections), secret),
            guids: SlotIndex::new(Slots::owned(connections), secret),
            deadlines: Deadlines::new(Slots::owned(connections)),
            ready: SlotQueue::Owned(alloc::collections::VecDeque::with_capacity(connections)),
            noticed: SlotQueue::Owned(alloc::collections::VecDeque::with_capacity(connections)),
            vacant: SlotQueue::Owned((0..).take(connections).collect()),
            pool: Pool::new(Slots::zeros(blocks * block_size), Slots::owned(blocks), block_size),
            index: Index::new(Slots::owned(blocks), index_secret(secret)),
        }
    }
}
