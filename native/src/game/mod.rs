//! The Game Protocol over UDP sockets: messages in chunks, reliable or not one by one. The tasks are those of
//! [`crate::Endpoint`]; the protocol is [`rakwire::game_protocol`].
//!
//! ```
//! use rakwire_native::game::{self, Endpoint, Options, Reliability};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Endpoint::bind("127.0.0.1:0", Options::server(64)?).await?;
//! let here = game::connect(server.local_addr(), Options::client()?).await?;
//! let there = server.accept().await.ok_or("the server is closed")?;
//!
//! here.send(b"hello", Reliability::Reliable).await?;
//! let message = there.recv().await.ok_or("the client is gone")?;
//! assert_eq!(message.bytes, b"hello");
//!
//! here.disconnect().await;
//! assert!(there.recv().await.is_none());
//! # Ok(())
//! # }
//! ```

mod connection;
mod endpoint;
mod error;
mod options;
mod plugin;
mod state;

pub use connection::{Connection, Incoming};
pub use endpoint::{Endpoint, connect};
pub use error::{ConnectError, DialError};
pub use options::Options;
pub use rakwire::game_protocol::{
    Capacity, Config, ConnectFailure, ConnectionStats, DisconnectReason, DropReason, Hook, PeerStats, Redial,
    Reliability, Resend, SendError, Verdict,
};
