//! RakNet: client and small server.
//!
//! [`new`] makes a [`Handle`] and a [`Runner`] out of the memory of a [`State`].

#[cfg(feature = "unconnected")]
mod asking;
mod connection;
mod error;
mod handle;
pub mod profiles;
mod protocol;
mod received;
mod state;

pub use connection::{Connection, Event};
pub use error::{ConnectError, PingError};
pub use handle::Handle;
pub use received::{Pong, Received};
pub use state::{Runner, State, new};
