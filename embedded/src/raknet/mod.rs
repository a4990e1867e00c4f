//! RakNet: client and small server.
//!
//! [`new`] makes a [`Handle`] and a [`Runner`] out of the memory of a [`State`].

mod addresses;
#[cfg(feature = "unconnected")]
mod ping;
pub mod profiles;
#[cfg(feature = "server")]
mod server;

use rakwire::raknet::RakNet;
use rakwire::wire::MAX_DATAGRAM;

pub use crate::state::new;
#[cfg(feature = "unconnected")]
pub use ping::{PingError, Pong};

/// The memory of a peer: `CONNECTIONS` connections that share `BLOCKS` blocks of `BLOCK_SIZE` bytes, and `DATAGRAMS`
/// datagrams that have arrived and were not handled yet.
///
/// A server that sends a message in parts sends as many datagrams at once as its window allows. Those for which there is
/// no room are lost and come again, so `DATAGRAMS` is a matter of speed: 2 for small messages now and then, 4 to 8 for
/// large ones. Each takes about 1.5 KB; whatever arrives or leaves takes another 4.5 KB.
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
pub type State<
    'd,
    const CONNECTIONS: usize,
    const BLOCKS: usize,
    const BLOCK_SIZE: usize,
    const DATAGRAMS: usize,
> = crate::State<'d, RakNet, CONNECTIONS, BLOCKS, BLOCK_SIZE, DATAGRAMS, MAX_DATAGRAM>;

/// A peer that speaks RakNet.
pub type Handle<'d> = crate::Handle<'d, RakNet>;
/// An open connection by RakNet.
pub type Connection<'d> = crate::Connection<'d, RakNet>;
/// Something that happened on a connection by RakNet.
pub type Event<'d> = crate::Event<'d, RakNet>;
/// A message that arrived by RakNet.
pub type Received<'d> = crate::Received<'d, RakNet>;
/// Why a connection by RakNet was not opened.
pub type ConnectError = crate::ConnectError<RakNet>;
/// The task of a peer that speaks RakNet.
pub type Runner<'d> = crate::Runner<'d, RakNet>;
