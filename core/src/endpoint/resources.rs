//! The memory of a peer. Only [`Resources`] has sizes in its type.

use heapless::{Deque, Vec};

use super::member::AdmissionMember;
use super::protocol::{Peer, Protocol, Storage};
use super::tables::{ConnectionTable, EventQueue, Slot, Tables, Wakeups, Writable};
use super::types::PeerStats;
use crate::storage::{
    Block, Deadline, Deadlines, Index, Node, Pool, RawLink, SEVERAL, Shares, SlotEntry, SlotIndex, SlotQueue,
    Slots,
};
use crate::time::Instant;

/// The memory of a [`Peer`]: `CONNECTIONS` connections that share `BLOCKS` blocks of `BLOCK_SIZE` bytes.
///
/// A message takes as many blocks as its bytes fill, at least one. An outgoing message holds them until it is
/// acknowledged, an incoming one until it is read.
///
/// `CONNECTIONS` is 1 to 65,534. `BLOCKS` is 4 to 65,535, on 64-bit machines up to 4,294,967,295. `BLOCK_SIZE` is 32
/// to 65,535 bytes: 64 to 256 are best on a microcontroller, and 256 to 1,464 elsewhere. `Resources::new` is a
/// constant function, so the memory can be a static, which takes no flash.
///
/// With one connection, half of the blocks may be used for sending and half for receiving. Sending always leaves a
/// quarter of the blocks to receiving.
///
/// With several connections, half of the blocks are guaranteed to them in equal parts: `BLOCKS / 4 / CONNECTIONS`
/// (rounded down) in each direction. The other half is shared. In each direction, a connection that needs more than its
/// guaranteed part borrows blocks. It may borrow a block if at least as many shared blocks then remain free as it has
/// borrowed. A single borrower thus gets up to a quarter of all blocks, and each further borrower half of the
/// remainder. The configuration's `connection_blocks` can lower the limit of a connection.
///
/// A message larger than the guaranteed part may have to wait until other connections return borrowed blocks. If they
/// do not, the message is not delivered, and RakNet closes its connection after `timeout`.
///
/// RakNet: a split message needs blocks for all its parts, and out-of-order messages may use half of a connection's
/// share. An ordered message should therefore need at most a quarter of all blocks with one connection, and an eighth
/// with several. A larger message is received only while the application has read all other messages.
///
/// The first message on one of the channels 4 to 31 allocates the state of these channels in each direction. It is held
/// until the connection closes, in addition to `connection_blocks`. The state takes 12 bytes for each of the 28
/// channels, and does not cross block boundaries: 6 blocks of 64 bytes, or 14 blocks of 32 bytes. A peer with too few
/// blocks for this state supports only the channels 0 to 3: [`send`](Peer::send) returns
/// [`NeverFits`](super::SendError::NeverFits), and a connection closes with `DisconnectReason::ReceiveMemory` if the
/// remote peer uses a higher channel.
///
/// The Game Protocol: each chunk of a message has at most 504 bytes and takes its own blocks. With a block size of 504
/// or more, a chunk takes one block. A message of several chunks takes one more block.
///
/// ```
/// use rakwire::raknet::{Config, Peer, Resources};
///
/// let mut resources = Resources::<1, 32, 128>::new();
/// let peer = Peer::new(&mut resources, Config::new([7; 32]));
/// assert_eq!(peer.blocks_available(), 32);
/// ```
#[derive(Debug)]
pub struct Resources<P: Protocol, const CONNECTIONS: usize, const BLOCKS: usize, const BLOCK_SIZE: usize> {
    slots: Vec<Slot<P::Connection>, CONNECTIONS>,
    addresses: Vec<SlotEntry, CONNECTIONS>,
    deadlines: Vec<Deadline, CONNECTIONS>,
    ready: Deque<u16, CONNECTIONS>,
    readable: Deque<u16, CONNECTIONS>,
    blocked: Deque<u16, CONNECTIONS>,
    writable: Deque<u16, CONNECTIONS>,
    vacant: Deque<u16, CONNECTIONS>,
    bytes: Vec<[u8; BLOCK_SIZE], BLOCKS>,
    nodes: Vec<Node<P::BlockHeader>, BLOCKS>,
    buckets: Vec<RawLink, BLOCKS>,
    state: P::Storage<CONNECTIONS, BLOCKS>,
}

impl<P: Protocol, const CONNECTIONS: usize, const BLOCKS: usize, const BLOCK_SIZE: usize>
    Resources<P, CONNECTIONS, BLOCKS, BLOCK_SIZE>
{
    const CHECK: () = {
        assert!(SEVERAL || CONNECTIONS == 1, "CONNECTIONS must be 1 without the feature `full`");
        assert!(CONNECTIONS >= 1 && CONNECTIONS < u16::MAX as usize, "CONNECTIONS must be 1 to 65,534");
        assert!(
            BLOCKS >= 4 && BLOCKS <= Block::MAX_COUNT,
            "BLOCKS must be 4 to 65,535, or up to 4,294,967,295 on 64-bit targets"
        );
        assert!(BLOCK_SIZE >= 32 && BLOCK_SIZE <= u16::MAX as usize, "BLOCK_SIZE must be 32 to 65,535");
    };

    /// Creates unused memory.
    #[must_use]
    pub const fn new() -> Self {
        const { Self::CHECK };
        Self {
            slots: Vec::new(),
            addresses: Vec::new(),
            deadlines: Vec::new(),
            ready: Deque::new(),
            readable: Deque::new(),
            blocked: Deque::new(),
            writable: Deque::new(),
            vacant: Deque::new(),
            bytes: Vec::new(),
            nodes: Vec::new(),
            buckets: Vec::new(),
            state: P::Storage::EMPTY,
        }
    }

    /// Clears the tables and lends them.
    fn lend(
        &mut self,
        config: &P::Config,
    ) -> (Tables<'_, P::Connection, P::BlockHeader>, P::StateTables<'_>) {
        let secret = P::secret(config);
        refill(&mut self.slots);
        refill(&mut self.addresses);
        refill(&mut self.deadlines);
        refill(&mut self.nodes);
        refill(&mut self.buckets);
        self.ready.clear();
        self.readable.clear();
        self.blocked.clear();
        self.writable.clear();
        self.vacant.clear();
        while self.vacant.push_back(self.vacant.len() as u16).is_ok() {}
        while self.bytes.push([0; BLOCK_SIZE]).is_ok() {}
        let tables = Tables {
            connections: ConnectionTable::new(
                Slots::Borrowed(&mut self.slots),
                SlotIndex::new(Slots::Borrowed(&mut self.addresses), secret),
                SlotQueue::Borrowed(&mut self.vacant),
            ),
            wakeups: Wakeups::new(
                SlotQueue::Borrowed(&mut self.ready),
                Deadlines::new(Slots::Borrowed(&mut self.deadlines)),
            ),
            events: EventQueue::new(SlotQueue::Borrowed(&mut self.readable)),
            writable: Writable::new(
                SlotQueue::Borrowed(&mut self.blocked),
                SlotQueue::Borrowed(&mut self.writable),
            ),
            pool: Pool::new(
                Slots::Borrowed(self.bytes.as_flattened_mut()),
                Slots::Borrowed(&mut self.nodes),
                BLOCK_SIZE,
                Shares::new(BLOCKS, CONNECTIONS, P::connection_blocks(config)),
            ),
            index: Index::new(Slots::Borrowed(&mut self.buckets), index_secret(secret)),
        };
        (tables, self.state.lend())
    }
}

impl<P: Protocol, const CONNECTIONS: usize, const BLOCKS: usize, const BLOCK_SIZE: usize> Default
    for Resources<P, CONNECTIONS, BLOCKS, BLOCK_SIZE>
{
    fn default() -> Self {
        Self::new()
    }
}

/// Fills a table to its capacity with default values.
pub(crate) fn refill<T: Default, const N: usize>(table: &mut Vec<T, N>) {
    table.clear();
    while table.push(T::default()).is_ok() {}
}

/// Returns the secret multiplier of the index.
///
/// It is one half of the address hash key, mixed so that neither value reveals the other.
fn index_secret(secret: [u8; 16]) -> u64 {
    use core::hash::Hasher;
    // A pure client hashes no addresses.
    if let (false, Some(half)) = (cfg!(feature = "server"), secret.first_chunk()) {
        return u64::from_ne_bytes(*half);
    }
    let mut hasher = siphasher::sip::SipHasher24::new_with_key(&secret);
    hasher.write(b"index");
    hasher.finish()
}

/// The sizes of a [`Peer`] in allocated memory; [`Resources`] documents their meaning and ranges.
///
/// Values out of range are clamped.
///
/// With the feature `zero-copy`, large RakNet messages are in vectors in addition to the blocks. Incoming ones take
/// at most as many bytes as all blocks together, so a peer may use twice the memory. Outgoing vectors come from the
/// application. [`blocks_available`](Peer::blocks_available) counts neither.
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
    /// The maximum number of connections, 1 to 65,534.
    pub connections: usize,
    /// The number of blocks shared by all connections, at least 4.
    ///
    /// One connection may hold half of them for sending. It accepts no further message to send once it holds a
    /// quarter of all blocks and at least 8,192 blocks.
    pub blocks: usize,
    /// The size of a block in bytes, 32 to 65,535.
    pub block_size: usize,
}

#[cfg(feature = "alloc")]
impl Default for Capacity {
    /// Returns the capacity for a client or a small server.
    ///
    /// It has 64 connections and 65,536 blocks of 512 bytes, which take about 38 MB of address space. Each connection
    /// is guaranteed 128 KB in each direction. It may hold a message of 4,000,000 bytes if the others leave enough
    /// memory.
    fn default() -> Self {
        Self::for_connections(64)
    }
}

#[cfg(feature = "alloc")]
impl Capacity {
    /// Returns the capacity for `connections` connections. Physical memory is used only once it is written to.
    ///
    /// It has 128 blocks of 512 bytes per connection, at least 65,536 blocks and at most 2,097,152 (1 GiB) in total.
    /// A single connection has 32,768.
    ///
    /// Half of the blocks are guaranteed to the connections in equal parts: 16 KB in each direction with 512 to
    /// 16,384 connections.
    ///
    /// With 1 to 512 connections, one connection may hold 8 MiB in each direction if the others are idle. That suffices
    /// for a message of 4,000,000 bytes at any MTU: in the worst case, a part fills little more than half of its two
    /// blocks. It accepts further messages to send while it holds less than half of those 8 MiB, which is 8,192 small
    /// messages.
    ///
    /// ```
    /// use rakwire::raknet::Capacity;
    ///
    /// assert_eq!(Capacity::for_connections(1).blocks, 32_768);
    /// assert_eq!(Capacity::for_connections(1_000).blocks, 128_000);
    /// ```
    #[must_use]
    pub const fn for_connections(connections: usize) -> Self {
        let blocks = match connections.saturating_mul(128) {
            0..=128 => 32_768,
            129..=65_536 => 65_536,
            blocks @ 65_537..=2_097_152 => blocks,
            _ => 2_097_152,
        };
        Self { connections, blocks, block_size: 512 }
    }
}

/// The maximum number of buckets, of four bytes each, in the index of datagrams in flight.
///
/// Hashing touches every page of the table, so on a busy server all 256 KiB are resident. With 10,000 connections that
/// is 26 bytes per connection. With more datagrams in flight than buckets, the hash chains become longer.
#[cfg(feature = "alloc")]
const BUCKETS_MAX: usize = 65_536;

#[cfg(feature = "alloc")]
impl Capacity {
    #[expect(
        clippy::manual_clamp,
        reason = "`clamp` brings a panic and the formatting of numbers into the npm package"
    )]
    fn clamped(self) -> Self {
        Self {
            connections: if SEVERAL { self.connections.max(1).min(usize::from(u16::MAX) - 1) } else { 1 },
            blocks: self.blocks.max(4).min(Block::MAX_COUNT),
            block_size: self.block_size.max(32).min(usize::from(u16::MAX)),
        }
    }

    fn allocate<P: Protocol>(
        self,
        config: &P::Config,
    ) -> (Tables<'static, P::Connection, P::BlockHeader>, P::StateTables<'static>) {
        let secret = P::secret(config);
        let Self { connections, blocks, block_size } = self.clamped();
        let queue = || SlotQueue::Owned(alloc::collections::VecDeque::with_capacity(connections));
        let tables = Tables {
            connections: ConnectionTable::new(
                Slots::owned(connections),
                SlotIndex::new(Slots::owned(connections), secret),
                SlotQueue::Owned((0..).take(connections).collect()),
            ),
            wakeups: Wakeups::new(queue(), Deadlines::new(Slots::owned(connections))),
            events: EventQueue::new(queue()),
            writable: Writable::new(queue(), queue()),
            pool: Pool::new(
                Slots::zeros(0, blocks * block_size),
                Slots::owned(0),
                block_size,
                Shares::new(blocks, connections, P::connection_blocks(config)),
            ),
            index: Index::new(Slots::zeros(0, blocks.min(BUCKETS_MAX)), index_secret(secret)),
        };
        (tables, <P::Storage<0, 0> as Storage<P>>::allocate(connections, blocks))
    }
}

impl<'a, P: Protocol> Peer<'a, P> {
    /// Creates a peer in memory borrowed from the caller.
    #[must_use]
    pub fn new<const CONNECTIONS: usize, const BLOCKS: usize, const BLOCK_SIZE: usize>(
        resources: &'a mut Resources<P, CONNECTIONS, BLOCKS, BLOCK_SIZE>,
        config: P::Config,
    ) -> Self {
        let lent = resources.lend(&config);
        Self::over(lent, config)
    }

    /// Creates a peer in allocated memory.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn with_capacity(capacity: Capacity, config: P::Config) -> Peer<'static, P> {
        let allocated = capacity.allocate::<P>(&config);
        Peer::over(allocated, config)
    }

    #[inline(always)] // avoids a copy of the value
    fn over(
        (tables, state_tables): (Tables<'a, P::Connection, P::BlockHeader>, P::StateTables<'a>),
        mut config: P::Config,
    ) -> Self {
        Self {
            state: P::state(state_tables, &mut config),
            config,
            tables,
            stats: PeerStats::default(),
            last_now: Instant::ZERO,
            admission: AdmissionMember::default(),
        }
    }
}
