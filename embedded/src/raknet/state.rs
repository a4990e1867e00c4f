//! The memory of a peer, and what is made of it.

use core::cell::OnceCell;
use core::mem::ManuallyDrop;

use embassy_net::Stack;
use heapless::Vec;
use rakwire::raknet::{Config, Peer, Resources};
use rakwire::wire::MAX_DATAGRAM;

use super::handle::Handle;
use super::protocol::RakNet;
use crate::port::{Buffers, Port};
use crate::runner::Loop;
use crate::shared::{Seat, Shared};

/// All memory of a peer and its socket: `CONNECTIONS` connections that share `BLOCKS` blocks of `BLOCK_SIZE` bytes, as
/// [`Resources`] explains, and `DATAGRAMS` datagrams that have arrived and were not handled yet.
///
/// A server that sends a message in parts sends as many datagrams at once as its window allows. Those for which there is
/// no room are lost and come again, so `DATAGRAMS` is a matter of speed: 2 for small messages now and then, 4 to 8 for
/// large ones. Each takes about 1.5 KB; whatever arrives or leaves takes another 4.5 KB.
///
/// A new one is all zero bytes, so a static takes no flash.
///
/// ```
/// use rakwire_embassy::raknet::State;
/// use static_cell::ConstStaticCell;
///
/// static MEMORY: ConstStaticCell<State<'static, 1, 24, 64, 2>> = ConstStaticCell::new(State::new());
///
/// let memory: &'static mut State<'static, 1, 24, 64, 2> = MEMORY.take();
/// # let _ = memory;
/// ```
#[derive(Debug)]
pub struct State<
    'd,
    const CONNECTIONS: usize,
    const BLOCKS: usize,
    const BLOCK_SIZE: usize,
    const DATAGRAMS: usize,
> {
    // Nothing in here is worth dropping, and what is never dropped may borrow from its neighbour.
    resources: ManuallyDrop<Resources<CONNECTIONS, BLOCKS, BLOCK_SIZE>>,
    seats: ManuallyDrop<Vec<Option<Seat<RakNet>>, CONNECTIONS>>,
    buffers: Buffers<DATAGRAMS, MAX_DATAGRAM>,
    shared: OnceCell<ManuallyDrop<Shared<'d, RakNet>>>,
}

impl<const CONNECTIONS: usize, const BLOCKS: usize, const BLOCK_SIZE: usize, const DATAGRAMS: usize>
    State<'_, CONNECTIONS, BLOCKS, BLOCK_SIZE, DATAGRAMS>
{
    /// The bytes of it that are the protocol's own; the rest is the socket's.
    pub const RESOURCES_BYTES: usize = size_of::<Resources<CONNECTIONS, BLOCKS, BLOCK_SIZE>>();

    /// Memory that no peer uses yet.
    #[must_use]
    pub const fn new() -> Self {
        const { assert!(DATAGRAMS >= 1, "DATAGRAMS must be at least 1") };
        Self {
            resources: ManuallyDrop::new(Resources::new()),
            seats: ManuallyDrop::new(Vec::new()),
            buffers: Buffers::new(),
            shared: OnceCell::new(),
        }
    }
}

impl<const CONNECTIONS: usize, const BLOCKS: usize, const BLOCK_SIZE: usize, const DATAGRAMS: usize> Default
    for State<'_, CONNECTIONS, BLOCKS, BLOCK_SIZE, DATAGRAMS>
{
    fn default() -> Self {
        Self::new()
    }
}

/// Makes a peer on UDP port `port` of `stack`; 0 is any port that is free. The [`Runner`] must run for anything to
/// happen; the [`Handle`] may be copied to every task of the same executor.
///
/// With `config.max_incoming` above 0 it is a server too.
///
/// # Panics
/// If the [`StackResources`](embassy_net::StackResources) of the stack have no room for another socket: DHCP and DNS
/// take one each.
pub fn new<
    'd,
    const CONNECTIONS: usize,
    const BLOCKS: usize,
    const BLOCK_SIZE: usize,
    const DATAGRAMS: usize,
>(
    state: &'d mut State<'d, CONNECTIONS, BLOCKS, BLOCK_SIZE, DATAGRAMS>,
    stack: Stack<'d>,
    port: u16,
    config: Config,
) -> (Handle<'d>, Runner<'d>) {
    let State { resources, seats, buffers, shared } = state;
    seats.clear();
    while seats.push(None).is_ok() {}
    let peer = Peer::new(resources, config);
    let shared: &'d Shared<'d, RakNet> = shared.get_or_init(|| ManuallyDrop::new(Shared::new(peer, seats)));
    (Handle::new(shared), Runner { turns: Loop::new(Port::new(buffers, stack, port), shared) })
}

/// The task of a peer: it owns the socket and the timer.
///
/// ```
/// use rakwire_embassy::raknet::Runner;
///
/// // `#[embassy_executor::task]` in a real program.
/// async fn network(mut runner: Runner<'static>) -> ! {
///     runner.run().await
/// }
/// ```
#[derive(Debug)]
pub struct Runner<'d> {
    turns: Loop<'d, Shared<'d, RakNet>>,
}

impl Runner<'_> {
    /// Moves datagrams and time. Nothing happens while this future is not polled, and nothing is lost either.
    pub async fn run(&mut self) -> ! {
        self.turns.run().await
    }
}
