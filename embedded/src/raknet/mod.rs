//! RakNet clients and small servers.
//!
//! [`new`] creates a [`Handle`] and a [`Runner`] in the memory of a [`State`]. The [crate] has an example.

mod addresses;
mod identity;
#[cfg(feature = "unconnected")]
mod ping;
pub mod profiles;
#[cfg(feature = "secure")]
mod secure;
#[cfg(feature = "server")]
mod server;
#[cfg(all(feature = "secure", feature = "server"))]
mod tokens;
#[cfg(feature = "unconnected")]
mod unconnected;

#[cfg(feature = "server")]
use rakwire::raknet::Guid;
use rakwire::raknet::RakNet;
use rakwire::wire::MAX_DATAGRAM;

pub use crate::state::{new, new_with_hook};
#[cfg(feature = "unconnected")]
pub use ping::{PingError, Pong};
#[cfg(feature = "server")]
pub use server::BanError;
#[cfg(all(feature = "secure", feature = "server"))]
pub use tokens::UsedTokenTable;
#[cfg(feature = "unconnected")]
pub use unconnected::{Unconnected, UnconnectedKind};

/// The memory of a peer: `CONNECTIONS` connections that share `BLOCKS` blocks of `BLOCK_SIZE` bytes, and a receive
/// buffer for `DATAGRAMS` datagrams.
///
/// The sender of a large message sends as many datagrams in a burst as its window permits. Datagrams that do not fit
/// into the receive buffer are lost and resent, so `DATAGRAMS` affects only the speed. Use 2 for occasional small
/// messages, and 4 to 8 for large ones. Each datagram takes about 1.5 KB; the rest of the sockets takes another 6 KB.
///
/// ```
/// use rakwire_embassy::raknet::State;
///
/// type Small = State<'static, 1, 24, 64, 2>;
/// type Larger = State<'static, 1, 24, 64, 3>;
///
/// let datagram = size_of::<Larger>() - size_of::<Small>();
/// assert!((1_464..1_700).contains(&datagram), "{datagram}");
/// ```
pub type State<
    'd,
    const CONNECTIONS: usize,
    const BLOCKS: usize,
    const BLOCK_SIZE: usize,
    const DATAGRAMS: usize,
    H = (),
> = crate::State<'d, RakNet, CONNECTIONS, BLOCKS, BLOCK_SIZE, DATAGRAMS, MAX_DATAGRAM, H>;

/// A handle of a RakNet peer.
pub type Handle<'d, H = ()> = crate::Handle<'d, RakNet, H>;
/// An open RakNet connection.
pub type Connection<'d, H = ()> = crate::Connection<'d, RakNet, H>;
/// An event of a RakNet connection.
pub type Event<'d, H = ()> = crate::Event<'d, RakNet, H>;
/// A received RakNet message.
pub type Received<'d, H = ()> = crate::Received<'d, RakNet, H>;
/// A client that a RakNet server has refused.
#[cfg(feature = "server")]
pub type RefusedClient = crate::RefusedClient<Guid>;
/// The reason why a RakNet connection could not be opened.
pub type ConnectError = crate::ConnectError<RakNet>;
/// The task of a RakNet peer.
pub type Runner<'d, H = ()> = crate::Runner<'d, RakNet, H>;
