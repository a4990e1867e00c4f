//! The Game Protocol: messages in chunks, unordered, each sent reliably or unreliably.
//!
//! [`new`] creates a [`Handle`] and a [`Runner`] in the memory of a [`State`]. The API is that of
//! [`raknet`](crate::raknet).
//!
//! ```
//! use embassy_net::Stack;
//! use rakwire::codec::rabbit::{Reader, Unpack};
//! use rakwire::game_protocol::{Config, GameProtocol, Reliability};
//! use rakwire_embassy::game_protocol::{self, Handle, Runner, profiles::Player};
//! use static_cell::ConstStaticCell;
//!
//! static MEMORY: ConstStaticCell<Player<'static>> = ConstStaticCell::new(Player::new());
//!
//! fn start(stack: Stack<'static>, rng: &mut impl rand_core::RngCore) -> (Handle<'static>, Runner<'static>) {
//!     game_protocol::new(MEMORY.take(), stack, 0, Config::new(rakwire_embassy::entropy(rng)))
//! }
//!
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/loopback.rs"));
//! # fn main() -> Result<(), Box<dyn std::error::Error>> { loopback::run(async |stack| {
//! # let (_, server) = loopback::peers::<GameProtocol>(stack);
//! # tokio::task::spawn_local(loopback::echo(server));
//! # let (handle, mut runner) = start(stack, &mut loopback::Rng);
//! # tokio::task::spawn_local(async move { runner.run().await });
//! let connection = handle.connect(loopback::SERVER).await?;
//! connection.send(b"hello", Reliability::Reliable).await?;
//! let message = connection.recv().await.ok_or("the connection has ended")?;
//! assert_eq!(message.delivery(), Reliability::Reliable);
//! // Rabbit reads a message in place.
//! assert_eq!(message.read(|bytes| u8::unpack(&mut Reader::over(&bytes))), Ok(b'h'));
//! # Ok(()) }) }
//! ```

pub mod profiles;

use rakwire::game_protocol::GameProtocol;
use rakwire::game_protocol::wire::MAX_PACKET;

pub use crate::state::{new, new_with_hook};

/// A handle of a peer of the Game Protocol.
pub type Handle<'d, H = ()> = crate::Handle<'d, GameProtocol, H>;
/// An open connection of the Game Protocol.
pub type Connection<'d, H = ()> = crate::Connection<'d, GameProtocol, H>;
/// An event of a connection of the Game Protocol.
pub type Event<'d, H = ()> = crate::Event<'d, GameProtocol, H>;
/// A received message of the Game Protocol.
pub type Received<'d, H = ()> = crate::Received<'d, GameProtocol, H>;
/// The reason why a connection of the Game Protocol could not be opened.
pub type ConnectError = crate::ConnectError<GameProtocol>;
/// The task of a peer of the Game Protocol.
pub type Runner<'d, H = ()> = crate::Runner<'d, GameProtocol, H>;

/// The memory of a peer, like [`raknet::State`](crate::raknet::State).
///
/// The chunks of a long message arrive in a burst. Chunks that do not fit into the receive buffer are lost, and are
/// resent if the message is reliable. `DATAGRAMS` should therefore be at least the number of chunks, of 504 bytes each,
/// in a typical message. Each datagram takes about half a kilobyte; the rest of the sockets takes another 2 KB.
pub type State<
    'd,
    const CONNECTIONS: usize,
    const BLOCKS: usize,
    const BLOCK_SIZE: usize,
    const DATAGRAMS: usize,
    H = (),
> = crate::State<'d, GameProtocol, CONNECTIONS, BLOCKS, BLOCK_SIZE, DATAGRAMS, MAX_PACKET, H>;
