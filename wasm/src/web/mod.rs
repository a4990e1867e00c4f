//! RakNet and the Game Protocol for games written in Rust that run in a browser.
//!
//! [`connect`] opens a [`Connection`] through a relay, over WebTransport or a WebSocket ([`Transport`]). It works in
//! pages and in workers, and with every executor that runs there, such as `wasm_bindgen_futures::spawn_local`.
//!
//! This module re-exports the types of [`raknet`]. [`game_protocol`] has the corresponding types for the Game Protocol,
//! and [`connection`] the types for code that is generic over the protocol.
//!
//! ```no_run
//! use rakwire::raknet::Delivery;
//! use rakwire_wasm::web::{Options, connect};
//!
//! # async fn play() -> Result<(), Box<dyn std::error::Error>> {
//! let connection = connect("wss://play.example.org/ws", "game", Options::default()).await?;
//! connection.send(b"\xFEhello", Delivery::RELIABLE_ORDERED)?;
//! while let Some(message) = connection.recv().await {
//!     // message.bytes, message.delivery
//! }
//! println!("over: {}", connection.closed_reason().map_or_else(String::new, |reason| reason.to_string()));
//! # Ok(())
//! # }
//! ```

mod announced;
mod browser;
mod carriers;
pub mod connection;
mod driver;
mod error;
pub mod game_protocol;
mod local_network;
mod ping;
pub mod raknet;
mod receive_queue;
mod session;
mod socket;

pub use crate::Memory;
pub use carriers::Transport;
pub use error::RelayClose;
pub use ping::{PingError, Pong, ping};
pub use raknet::{CloseReason, ConnectError, Connection, Message, Options, connect, connect_with_hook};
pub use rakwire::wire::offline::PingScope;
