//! RakNet for games that are Rust themselves and run in a browser.
//!
//! [`connect`] opens a WebSocket to a relay and a RakNet connection through it. It works in pages and in workers, and
//! with every executor that runs there; `wasm_bindgen_futures::spawn_local` is one.
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
//! println!("over: {}", connection.ending().map_or_else(String::new, |ending| ending.to_string()));
//! # Ok(())
//! # }
//! ```

mod browser;
mod connection;
mod driver;
mod error;
pub mod game;
mod mail;
mod socket;

pub use connection::{Connection, Message, Options, connect};
pub use error::{ConnectError, Ending, RelayClose};
