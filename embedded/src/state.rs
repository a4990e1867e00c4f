//! The memory of a peer, and the function that creates a peer in it.

use core::cell::OnceCell;
use core::mem::ManuallyDrop;

use embassy_net::Stack;
use heapless::Vec;
use rakwire::endpoint::{Hook, Hooked, Peer, Protocol, Resources};

use crate::handle::Handle;
use crate::runner::Runner;
use crate::shared::Shared;
use crate::slots::Slot;
use crate::socket::{Buffers, Neighbour, Neighbours, Storage};

/// The memory of a peer and its sockets.
///
/// The memory has `CONNECTIONS` connections, which share `BLOCKS` blocks of `BLOCK_SIZE` bytes (see [`Resources`]). Its
/// receive buffer holds `DATAGRAMS` datagrams of `DATAGRAM_SIZE` bytes, the [`MAX_DATAGRAM`](Protocol::MAX_DATAGRAM) of
/// the protocol.
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
    H: Hook<P> = (),
> {
    // `ManuallyDrop`, because a field that is never dropped may be borrowed by another field.
    resources: ManuallyDrop<Resources<P, CONNECTIONS, BLOCKS, BLOCK_SIZE>>,
    slots: ManuallyDrop<Vec<Option<Slot<P>>, CONNECTIONS>>,
    neighbours: Vec<Option<Neighbour>, CONNECTIONS>,
    buffers: Buffers<DATAGRAMS, DATAGRAM_SIZE>,
    shared: OnceCell<ManuallyDrop<Shared<'d, P, H>>>,
}

impl<
    P: Protocol,
    const CONNECTIONS: usize,
    const BLOCKS: usize,
    const BLOCK_SIZE: usize,
    const DATAGRAMS: usize,
    const DATAGRAM_SIZE: usize,
    H: Hook<P>,
> State<'_, P, CONNECTIONS, BLOCKS, BLOCK_SIZE, DATAGRAMS, DATAGRAM_SIZE, H>
{
    /// The size of the [`Resources`] in bytes, without the sockets and the peer itself.
    pub const RESOURCES_BYTES: usize = size_of::<Resources<P, CONNECTIONS, BLOCKS, BLOCK_SIZE>>();

    /// Creates memory for one peer.
    #[must_use]
    pub const fn new() -> Self {
        const {
            assert!(DATAGRAMS >= 1, "DATAGRAMS must be at least 1");
            assert!(DATAGRAM_SIZE >= P::MAX_DATAGRAM, "DATAGRAM_SIZE must be at least P::MAX_DATAGRAM");
        };
        Self {
            resources: ManuallyDrop::new(Resources::new()),
            slots: ManuallyDrop::new(Vec::new()),
            neighbours: Vec::new(),
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
    H: Hook<P>,
> Default for State<'_, P, CONNECTIONS, BLOCKS, BLOCK_SIZE, DATAGRAMS, DATAGRAM_SIZE, H>
{
    fn default() -> Self {
        Self::new()
    }
}

/// Creates a peer on UDP port `port` of `stack`; 0 picks a free port. The peer works only while the [`Runner`] runs.
/// The [`Handle`] can be copied to all tasks of the same executor.
///
/// A peer accepts connections if `max_incoming` of the configuration is above 0; it should then have a fixed port.
///
/// # Panics
/// If the [`StackResources`](embassy_net::StackResources) of the stack have no space for two more sockets. DHCP and DNS
/// use one each.
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
    new_with_hook(state, stack, port, config, ())
}

/// Creates a peer like [`new`], with a hook that inspects, filters and injects datagrams, messages and events. The
/// memory must be a [`State`] with the same hook type. A peer without a hook has no extra cost.
///
/// ```
/// use embassy_futures::join::join;
/// use rakwire::raknet::{Config, Delivery, FilterGroup, MessageFilter, RakNet};
/// use rakwire_embassy::raknet::{State, new_with_hook};
/// use static_cell::ConstStaticCell;
///
/// static MEMORY: ConstStaticCell<State<'static, 2, 64, 128, 4, MessageFilter<2>>> =
///     ConstStaticCell::new(State::new());
///
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/loopback.rs"));
/// # fn main() -> Result<(), Box<dyn std::error::Error>> { loopback::run(async |stack| {
/// # let (client, _) = loopback::peers::<RakNet>(stack);
/// let mut config = Config::new(rakwire_embassy::entropy(&mut loopback::Rng));
/// config.max_incoming = 2;
/// let mut filter = MessageFilter::new();
/// filter.deny(FilterGroup::DEFAULT, [0x90]);
/// let (server, mut runner) = new_with_hook(MEMORY.take(), stack, 19_133, config, filter);
/// # tokio::task::spawn_local(async move { runner.run().await });
/// # let address = (loopback::SERVER.ip(), 19_133).into();
/// let (opened, accepted) = join(client.connect(address), server.accept()).await;
/// let (guest, id) = (opened?, accepted.id().ok_or("the connection has ended")?);
/// guest.send(b"\x90dropped", Delivery::RELIABLE_ORDERED).await?;
/// guest.send(b"\x86passed", Delivery::RELIABLE_ORDERED).await?;
/// assert_eq!(accepted.recv().await.and_then(|message| message.read(|bytes| bytes.as_slice().map(|b| b[0]))), Some(0x86));
/// assert_eq!(server.with_hook(|filter| filter.dropped()), 1);
///
/// assert!(server.with_hook(|filter| filter.set_group(id, FilterGroup(1))));
/// guest.send(b"\x90passed", Delivery::RELIABLE_ORDERED).await?;
/// assert!(accepted.recv().await.is_some());
/// # Ok(()) }) }
/// ```
///
/// # Panics
/// The same as [`new`].
pub fn new_with_hook<
    'd,
    P: Protocol,
    H: Hook<P>,
    const CONNECTIONS: usize,
    const BLOCKS: usize,
    const BLOCK_SIZE: usize,
    const DATAGRAMS: usize,
    const DATAGRAM_SIZE: usize,
>(
    state: &'d mut State<'d, P, CONNECTIONS, BLOCKS, BLOCK_SIZE, DATAGRAMS, DATAGRAM_SIZE, H>,
    stack: Stack<'d>,
    port: u16,
    config: P::Config,
    hook: H,
) -> (Handle<'d, P, H>, Runner<'d, P, H>) {
    let State { resources, slots, neighbours, buffers, shared } = state;
    slots.clear();
    while slots.push(None).is_ok() {}
    neighbours.clear();
    while neighbours.push(None).is_ok() {}
    let hooked = Hooked::new(Peer::new(resources, config), hook);
    let shared: &'d Shared<'d, P, H> = shared.get_or_init(|| ManuallyDrop::new(Shared::new(hooked, slots)));
    (Handle { shared }, Runner::new(Storage::new(buffers, Neighbours::new(neighbours), stack, port), shared))
}
