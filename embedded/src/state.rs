//! The memory of a peer, and the function that creates a peer in it.

use core::cell::OnceCell;
use core::mem::ManuallyDrop;

use embassy_net::Stack;
use heapless::Vec;
use rakwire::endpoint::{Peer, Protocol, Resources};

use crate::handle::Handle;
use crate::runner::Runner;
use crate::shared::Shared;
use crate::slots::Slot;
use crate::socket::{Buffers, Socket};

/// The memory of a peer and its socket: `CONNECTIONS` connections that share `BLOCKS` blocks of `BLOCK_SIZE` bytes (see
/// [`Resources`]), and a receive buffer for `DATAGRAMS` datagrams of `DATAGRAM_SIZE` bytes, the
/// [`MAX_DATAGRAM`](Protocol::MAX_DATAGRAM) of the protocol.
///
/// A new state is all zero bytes, so a static takes no flash. [`raknet::State`](crate::raknet::State) and
/// [`game_protocol::State`](crate::game_protocol::State) explain how to choose the sizes.
#[derive(Debug)]
pub struct State<
    'd,
    P: Protocol,
    const CONNECTIONS: usize,
    const BLOCKS: usize,
    const BLOCK_SIZE: usize,
    const DATAGRAMS: usize,
    const DATAGRAM_SIZE: usize,
> {
    // `ManuallyDrop`, because a field that is never dropped may borrow from another one.
    resources: ManuallyDrop<Resources<P, CONNECTIONS, BLOCKS, BLOCK_SIZE>>,
    slots: ManuallyDrop<Vec<Option<Slot<P>>, CONNECTIONS>>,
    buffers: Buffers<DATAGRAMS, DATAGRAM_SIZE>,
    shared: OnceCell<ManuallyDrop<Shared<'d, P>>>,
}

impl<
    P: Protocol,
    const CONNECTIONS: usize,
    const BLOCKS: usize,
    const BLOCK_SIZE: usize,
    const DATAGRAMS: usize,
    const DATAGRAM_SIZE: usize,
> State<'_, P, CONNECTIONS, BLOCKS, BLOCK_SIZE, DATAGRAMS, DATAGRAM_SIZE>
{
    /// The size of the [`Resources`] in bytes, without the socket and the peer itself.
    pub const RESOURCES_BYTES: usize = size_of::<Resources<P, CONNECTIONS, BLOCKS, BLOCK_SIZE>>();

    /// Unused memory.
    #[must_use]
    pub const fn new() -> Self {
        const {
            assert!(DATAGRAMS >= 1, "DATAGRAMS must be at least 1");
            assert!(DATAGRAM_SIZE >= P::MAX_DATAGRAM, "DATAGRAM_SIZE must be at least P::MAX_DATAGRAM");
        };
        Self {
            resources: ManuallyDrop::new(Resources::new()),
            slots: ManuallyDrop::new(Vec::new()),
            buffers: Buffers::new(),
            shared: OnceCell::new(),
        }
    }
}

impl<
    P: Protocol,
    const CONNECTIONS: usize,
    const BLOCKS: usize,
    const BLOCK_SIZE: usize,
    const DATAGRAMS: usize,
    const DATAGRAM_SIZE: usize,
> Default for State<'_, P, CONNECTIONS, BLOCKS, BLOCK_SIZE, DATAGRAMS, DATAGRAM_SIZE>
{
    fn default() -> Self {
        Self::new()
    }
}

/// Creates a peer on UDP port `port` of `stack`; 0 picks a free port. The peer works while the [`Runner`] runs. The
/// [`Handle`] can be copied to all tasks of the same executor.
///
/// A peer accepts connections if `max_incoming` of the configuration is above 0; it should have a fixed port then.
///
/// # Panics
/// If the [`StackResources`](embassy_net::StackResources) of the stack have no space for another socket. DHCP and DNS use
/// one each.
pub fn new<
    'd,
    P: Protocol,
    const CONNECTIONS: usize,
    const BLOCKS: usize,
    const BLOCK_SIZE: usize,
    const DATAGRAMS: usize,
    const DATAGRAM_SIZE: usize,
>(
    state: &'d mut State<'d, P, CONNECTIONS, BLOCKS, BLOCK_SIZE, DATAGRAMS, DATAGRAM_SIZE>,
    stack: Stack<'d>,
    port: u16,
    config: P::Config,
) -> (Handle<'d, P>, Runner<'d, P>) {
    let State { resources, slots, buffers, shared } = state;
    slots.clear();
    while slots.push(None).is_ok() {}
    let peer = Peer::new(resources, config);
    let shared: &'d Shared<'d, P> = shared.get_or_init(|| ManuallyDrop::new(Shared::new(peer, slots)));
    (Handle { shared }, Runner::new(Socket::new(buffers, stack, port), shared))
}
