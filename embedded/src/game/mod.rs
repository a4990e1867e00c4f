//! The Game Protocol: messages in chunks, each reliable or not, without order.
//!
//! [`new`] makes a [`Handle`] and a [`Runner`] out of the memory of a [`State`]. The verbs are those of
//! [`raknet`](crate::raknet).
//!
//! ```
//! use embassy_net::Stack;
//! use rakwire::game_protocol::{Config, Reliability};
//! use rakwire_embassy::game::{self, Handle, Runner, profiles::Player};
//! use static_cell::ConstStaticCell;
//!
//! static MEMORY: ConstStaticCell<Player<'static>> = ConstStaticCell::new(Player::new());
//!
//! fn start(stack: Stack<'static>, rng: &mut impl rand_core::RngCore) -> (Handle<'static>, Runner<'static>) {
//!     game::new(MEMORY.take(), stack, 0, Config::new(rakwire_embassy::entropy(rng)))
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

mod connection;
mod error;
mod handle;
pub mod profiles;
mod protocol;
mod received;
mod state;

pub use connection::{Connection, Event};
pub use error::ConnectError;
pub use handle::Handle;
pub use received::Received;
pub use state::{Runner, State, new};
