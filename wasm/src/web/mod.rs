//! RakNet and the Game Protocol for games that are Rust themselves and run in a browser.
//!
//! [`raknet::connect`] and [`game_protocol::connect`] open a WebSocket to a relay and a [`Connection`] through it. They
//! work in pages and in workers, and with every executor that runs there; `wasm_bindgen_futures::spawn_local` is one.
//!
//! ```no_run
//! use rakwire::raknet::Delivery;
//! use rakwire_wasm::web::raknet::{Options, connect};
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
pub mod game_protocol;
pub mod raknet;
mod receive_queue;
mod socket;

pub use connection::Connection;
pub use error::{ConnectError, Ending, RelayClose};
pub use receive_queue::Message;
