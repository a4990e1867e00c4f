//! RakNet and the Game Protocol on a microcontroller: the [`rakwire`] core over [embassy-net](embassy_net)'s UDP, without
//! an allocator.
//!
//! [`raknet::new`] takes the memory of a peer, a network stack and a configuration, and gives a [`raknet::Runner`],
//! which a task of its own runs for ever, and a [`raknet::Handle`], which any number of tasks copy. [`game_protocol::new`]
//! does the same for the Game Protocol, with the same types; one stack may carry both. It works with every driver that
//! embassy-net knows: Ethernet, Wi-Fi or a modem. Time comes from embassy-time, and random bytes from a
//! generator that the caller names ([`entropy`]).
//!
//! ```
//! use embassy_net::Stack;
//! use rakwire::raknet::{Config, Delivery};
//! use rakwire_embassy::raknet::{self, Handle, Runner, State};
//! use static_cell::ConstStaticCell;
//!
//! // One connection, 48 blocks of 128 bytes, and room for 4 datagrams that nobody has read yet.
//! static MEMORY: ConstStaticCell<State<'static, 1, 48, 128, 4>> = ConstStaticCell::new(State::new());
//!
//! fn start(stack: Stack<'static>, rng: &mut impl rand_core::RngCore) -> (Handle<'static>, Runner<'static>) {
//!     let config = Config::new(rakwire_embassy::entropy(rng));
//!     raknet::new(MEMORY.take(), stack, 0, config)
//! }
//!
//! // `#[embassy_executor::task]` in a real program.
//! async fn network(mut runner: Runner<'static>) -> ! {
//!     runner.run().await
//! }
//!
//! // Another task: joins, says something, and reads what comes until the end.
//! async fn player(handle: Handle<'static>) -> Result<(), Box<dyn std::error::Error>> {
//!     let connection = handle.connect("192.0.2.1:19132".parse()?).await?;
//!     connection.send(b"\xFEhello", Delivery::RELIABLE_ORDERED).await?;
//!     while let Some(message) = connection.recv().await {
//!         let length = message.read(|bytes| bytes.chunks().map(<[u8]>::len).sum::<usize>());
//!         assert_eq!(length, message.len());
//!     }
//!     Ok(())
//! }
//! ```
//!
//! # Layers
//!
//! All is generic over the [`Protocol`](rakwire::endpoint::Protocol); [`raknet`] and [`game_protocol`] name it for each,
//! and add what only one has. `port` is the only module that calls embassy-net, `clock` the only one that reads the time.
//! `shared` is what tasks and the [`Runner`] share: the peer, and in `slots` the connections that tasks refer to.
//!
//! # Features
//!
//! `ipv4` (default) and `ipv6`: the addresses that the network has. `defmt`: errors print with defmt.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]

mod clock;
mod connection;
mod error;
pub mod game_protocol;
mod handle;
mod mac_address;
mod port;
pub mod raknet;
mod read_guard;
mod received;
mod reference;
mod runner;
mod shared;
mod slots;
mod state;

pub use connection::{Connection, Event};
pub use error::ConnectError;
pub use handle::Handle;
pub use mac_address::mac_address;
pub use received::Received;
pub use runner::Runner;
pub use state::{State, new};

/// 32 random bytes for a configuration. The generator must be one that nobody can guess: that of the chip.
///
/// ```
/// use rakwire::raknet::Config;
///
/// fn configure(rng: &mut impl rand_core::RngCore) -> Config {
///     Config::new(rakwire_embassy::entropy(rng))
/// }
/// ```
pub fn entropy(rng: &mut impl rand_core::RngCore) -> [u8; 32] {
    let mut bytes = [0; 32];
    rng.fill_bytes(&mut bytes);
    bytes
}
