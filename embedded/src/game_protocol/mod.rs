//! The Game Protocol: messages in chunks, each reliable or not, without order.
//!
//! [`new`] makes a [`Handle`] and a [`Runner`] out of the memory of a [`State`]. The verbs are those of
//! [`raknet`](crate::raknet).
//!
//! ```
//! use embassy_net::Stack;
//! use rakwire::game_protocol::{Config, Reliability};
//! use rakwire_embassy::game_protocol::{self, Handle, Runner, profiles::Player};
//! use static_cell::ConstStaticCell;
//!
//! static MEMORY: ConstStaticCell<Player<'static>> = ConstStaticCell::new(Player::new());
//!
//! fn start(stack: Stack<'static>, rng: &mut impl rand_core::RngCore) -> (Handle<'static>, Runner<'static>) {
//!     game_protocol::new(MEMORY.take(), stack, 0, Config::new(rakwire_embassy::entropy(rng)))
//! }
//!
//! // `#[embassy_executor::task]` in a real program.
//! async fn network(mut runner: Runner<'static>) -> ! {
//!     runner.run().await
//! }
//!
//! // Another task: joins, says something, and reads what comes until the end.
//! async fn player(handle: Handle<'static>) -> Result<(), Box<dyn std::error::Error>> {
//!     let connection = handle.connect("192.0.2.1:8999".parse()?).await?;
//!     connection.send(b"hello", Reliability::Reliable).await?;
//!     while let Some(message) = connection.recv().await {
//!         let length = message.read(|bytes| bytes.chunks().map(<[u8]>::len).sum::<usize>());
//!         assert_eq!(length, message.len());
//!     }
//!     Ok(())
//! }
//! ```

pub mod profiles;

use rakwire::game_protocol::GameProtocol;
use rakwire::game_protocol::wire::MAX_PACKET;

pub use crate::state::new;

/// A peer that speaks the Game Protocol.
pub type Handle<'d> = crate::Handle<'d, GameProtocol>;
/// An open connection by the Game Protocol.
pub type Connection<'d> = crate::Connection<'d, GameProtocol>;
/// Something that happened on a connection by the Game Protocol.
pub type Event<'d> = crate::Event<'d, GameProtocol>;
/// A message that arrived by the Game Protocol.
///
/// ```
/// use rakwire::codec::rabbit::{Reader, Unpack};
/// use rakwire_embassy::game_protocol::Received;
///
/// /// A number, read where it lies, in however many pieces.
/// fn number(message: &Received<'_>) -> Option<u32> {
///     message.read(|bytes| u32::unpack(&mut Reader::over(&bytes)).ok())
/// }
/// ```
pub type Received<'d> = crate::Received<'d, GameProtocol>;
/// Why a connection by the Game Protocol was not opened.
pub type ConnectError = crate::ConnectError<GameProtocol>;
/// The task of a peer that speaks the Game Protocol.
pub type Runner<'d> = crate::Runner<'d, GameProtocol>;

/// The memory of a peer, as [`raknet::State`](crate::raknet::State).
///
/// The chunks of a long message arrive all at once. Those for which there is no room are lost, and come again if the
/// message is reliable: `DATAGRAMS` should be at least as many as the chunks of 504 bytes that a usual message has. Each
/// takes about half a kilobyte; whatever leaves takes another 1.5 KB.
pub type State<
    'd,
    const CONNECTIONS: usize,
    const BLOCKS: usize,
    const BLOCK_SIZE: usize,
    const DATAGRAMS: usize,
> = crate::State<'d, GameProtocol, CONNECTIONS, BLOCKS, BLOCK_SIZE, DATAGRAMS, MAX_PACKET>;
