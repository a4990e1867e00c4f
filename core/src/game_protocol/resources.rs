//! The memory of a peer. The only type of this protocol whose sizes are in its name.

use heapless::{Deque, Vec};

use super::connection::{Acknowledgement, BlockHeader, Connection};
use crate::storage::{
    Block, Deadline, Deadlines, Index, Link, Node, Pool, Ring, SlotEntry, SlotIndex, SlotQueue, Slots,
};

/// All memory of a [`Peer`](super::Peer): `CONNECTIONS` connections that share `BLOCKS` blocks of `BLOCK_SIZE` bytes.
///
/// A chunk of a message, at most 504 bytes, takes as many blocks as its bytes fill, from the moment the message is
/// sent until the chunk is acknowledged, or from the moment it arrives until the message is read. A message of several
/// chunks takes one block more. What is sent leaves a quarter of the blocks to what arrives. One connection may use half
/// of the blocks for what it sends and half for what it receives.
///
/// `CONNECTIONS` is 1 to 65,534; `BLOCKS` is 4 to 65,535 (on 64-bit machines 4,294,967,295); `BLOCK_SIZE` is 32 to
/// 65,535 bytes; with 504 and more a chunk is one block. An empty value is a constant, so it can be a static that takes
/// no flash.
///
/// ```
/// use rakwire::game_protocol::{Config, Peer, Resources};
///
/// let mut resources = Resources::<1, 32, 128>::new();
/// let peer = Peer::new(&mut resources, Config::new([7; 32]));
/// assert_eq!(peer.blocks_available(), 32);
/// ```
#[derive(Debug)]
pub struct Resources<const CONNECTIONS: usize, const BLOCKS: usize, const BLOCK_SIZE: usize> {
    connections: Vec<Connection, CONNECTIONS>,
    addresses: Vec<SlotEntry, CONNECTIONS>,
    deadlines: Vec<Deadline, CONNECTIONS>,
    ready: Deque<u16, CONNECTIONS>,
    noticed: Deque<u16, CONNECTIONS>,
    vacant: Deque<u16, CONNECTIONS>,
    bytes: Vec<[u8; BLOCK_SIZE], BLOCKS>,
    nodes: Vec<Node<BlockHeader>, BLOCKS>,
    buckets: Vec<Link, BLOCKS>,
    acknowledgements: Deque<Acknowledgement, BLOCKS>,
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
            deadlines: Vec::new(),
            ready: Deque::new(),
            noticed: Deque::new(),
            vacant: Deque::new(),
            bytes: Vec::new(),
            nodes: Vec::new(),
            buckets: Vec::new(),
            acknowledgements: Deque::new(),
        }
    }

    /// Fills the tables, whatever an earlier peer left in them, and lends them.
    pub(super) fn lend(&mut self, secret: [u8; 16]) -> Tables<'_> {
        refill(&mut self.connections);
        refill(&mut self.addresses);
        refill(&mut self.deadlines);
        refill(&mut self.nodes);
        refill(&mut self.buckets);
        self.ready.clear();
        self.noticed.clear();
        self.vacant.clear();
        self.acknowledgements.clear();
        while self.vacant.push_back(self.vacant.len() as u16).is_ok() {}
        while self.bytes.push([0; BLOCK_SIZE]).is_ok() {}
        Tables {
            connections: Slots::Lent(&mut self.connections),
            addresses: SlotIndex::new(Slots::Lent(&mut self.addresses), secret),
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
            acknowledgements: Ring::Lent(&mut self.acknowledgements),
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

/// The multiplier of the index: the secret that hashes addresses, mixed so that neither tells the other.
fn index_secret(secret: [u8; 16]) -> u64 {
    use core::hash::Hasher;
    let mut hasher = siphasher::sip::SipHasher24::new_with_key(&secret);
    hasher.write(b"index");
    hasher.finish()
}

/// The tables of a peer, their sizes forgotten.
#[derive(Debug)]
pub(super) struct Tables<'a> {
    pub(super) connections: Slots<'a, Connection>,
    pub(super) addresses: SlotIndex<'a>,
    pub(super) deadlines: Deadlines<'a>,
    pub(super) ready: SlotQueue<'a>,
    pub(super) noticed: SlotQueue<'a>,
    /// Slots without a connection. The one that has been free longest is taken next.
    pub(super) vacant: SlotQueue<'a>,
    pub(super) pool: Pool<'a, BlockHeader>,
    pub(super) index: Index<'a>,
    pub(super) acknowledgements: Ring<'a, Acknowledgement>,
}

/// The sizes of a [`Peer`](super::Peer) whose memory the allocator gives; [`Resources`] says what they mean and where
/// they end. Values outside are brought inside.
///
/// ```
/// use rakwire::game_protocol::{Capacity, Config, Peer};
///
/// let capacity = Capacity { connections: 64, blocks: 4_096, block_size: 512 };
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
            deadlines: Deadlines::new(Slots::owned(connections)),
            ready: SlotQueue::Owned(alloc::collections::VecDeque::with_capacity(connections)),
            noticed: SlotQueue::Owned(alloc::collections::VecDeque::with_capacity(connections)),
            vacant: SlotQueue::Owned((0..).take(connections).collect()),
            pool: Pool::new(Slots::zeros(blocks * block_size), Slots::owned(blocks), block_size),
            index: Index::new(Slots::owned(blocks), index_secret(secret)),
            acknowledgements: Ring::Owned {
                queue: alloc::collections::VecDeque::with_capacity(blocks),
                capacity: blocks,
            },
        }
    }
}
