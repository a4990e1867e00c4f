//! The memory of a peer, and what is made of it.

use core::cell::OnceCell;
use core::mem::ManuallyDrop;

use embassy_net::Stack;
use heapless::Vec;
use rakwire::endpoint::{Peer, Protocol, Resources};

use crate::handle::Handle;
use crate::port::{Buffers, Port};
use crate::runner::Runner;
use crate::shared::Shared;
use crate::slots::Slot;

/// All memory of a peer and its socket: `CONNECTIONS` connections that share `BLOCKS` blocks of `BLOCK_SIZE` bytes, as
/// [`Resources`] explains, and `DATAGRAMS` datagrams that have arrived and were not handled yet, each of
/// `DATAGRAM_SIZE` bytes, the protocol's [`MAX_DATAGRAM`](Protocol::MAX_DATAGRAM).
///
/// A new one is all zero bytes, so a static takes no flash. [`raknet::State`](crate::raknet::State) and
/// [`game_protocol::State`](crate::game_protocol::State) say how to choose the sizes.
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
    // Nothing in here is worth dropping, and what is never dropped may borrow from its neighbour.
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
    /// The bytes of it that are the protocol's own; the rest is the socket's.
    pub const RESOURCES_BYTES: usize = size_of::<Resources<P, CONNECTIONS, BLOCKS, BLOCK_SIZE>>();

    /// Memory that no peer uses yet.
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

/// Makes a peer on UDP port `port` of `stack`; 0 is any port that is free. The [`Runner`] must run for anything to
/// happen; the [`Handle`] may be copied to every task of the same executor.
///
/// With `max_incoming` of the configuration above 0 it is a server too, which needs a port of its own.
///
/// # Panics
/// If the [`StackResources`](embassy_net::StackResources) of the stack have no room for another socket: DHCP and DNS
/// take one each.
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
    (Handle { shared }, Runner::new(Port::new(buffers, stack, port), shared))
}
