//! RakNet and the Game Protocol on a microcontroller: the [`rakwire`] core over [embassy-net](embassy_net)'s UDP, without
//! an allocator.
//!
//! [`raknet::new`] creates a peer from memory, a network stack and a configuration. It returns a [`raknet::Runner`],
//! which needs a separate task, and a [`raknet::Handle`], which is `Copy` for all tasks. [`game_protocol::new`] does
//! the same for the Game Protocol; both kinds of peers can share a stack. All network drivers of embassy-net are
//! supported: Ethernet, Wi-Fi and modems. The clock is that of embassy-time. Random bytes come from a generator of the
//! caller ([`entropy`]).
//!
//! ```
//! use core::net::SocketAddr;
//! use embassy_net::Stack;
//! use rakwire::raknet::{Config, Delivery, RakNet};
//! use rakwire_embassy::raknet::{self, Handle, Runner, State};
//! use static_cell::ConstStaticCell;
//!
//! // One connection, 48 blocks of 128 bytes, and a receive buffer for 4 datagrams.
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
//! // Another task, with the address of an echo server.
//! async fn player(handle: Handle<'static>, server: SocketAddr) -> Result<(), Box<dyn std::error::Error>> {
//!     let connection = handle.connect(server).await?;
//!     connection.send(b"\xFEhello", Delivery::RELIABLE_ORDERED).await?;
//!     let message = connection.recv().await.ok_or("the connection has ended")?;
//!     message.read(|bytes| assert!(bytes.chunks().flatten().eq(b"\xFEhello")));
//!     Ok(())
//! }
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/loopback.rs"));
//! # fn main() -> Result<(), Box<dyn std::error::Error>> { loopback::run(async |stack| {
//! #     let (_, server) = loopback::peers::<RakNet>(stack);
//! #     tokio::task::spawn_local(loopback::echo(server));
//! #     let (handle, runner) = start(stack, &mut loopback::Rng);
//! #     tokio::task::spawn_local(network(runner));
//! #     player(handle, loopback::SERVER).await
//! # }) }
//! ```
//!
//! # Layers
//!
//! All types are generic over the [`Protocol`](rakwire::endpoint::Protocol). [`raknet`] and [`game_protocol`] contain
//! aliases, and features that only one protocol supports. Only `socket` uses the UDP sockets of embassy-net, and only
//! `clock` reads the time. `shared` is the state that tasks share with the [`Runner`]: the peer, and the `slots` of
//! connections that tasks refer to.
//!
//! # Features
//!
//! - `full`, `server`, `unconnected` and `delay-based` (default): the profile and the capabilities of the crate [`rakwire`].
//!   A board that only joins games can disable them to save flash.
//! - `secure`: secure connections of RakNet, as the crate [`rakwire`] has them. They need unpredictable random
//!   bytes: a board without a hardware generator must not use them.
//! - `tcp`: messages over TCP.
//! - `ipv4` (default) and `ipv6`: the address families of the network.
//! - `defmt`: events, reasons, errors and names implement `defmt::Format`, here and in the crate `rakwire`.
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

mod backlog;
mod clock;
mod connection;
mod error;
pub mod game_protocol;
mod handle;
mod interface_mtu;
mod mac_address;
pub mod raknet;
mod read_guard;
mod received;
mod reference;
mod refused;
mod runner;
mod shared;
mod slots;
mod socket;
mod state;
#[cfg(feature = "tcp")]
pub mod tcp;
mod unsent;

pub use connection::{Connection, Event};
pub use error::ConnectError;
pub use handle::Handle;
pub use interface_mtu::interface_mtu;
pub use mac_address::mac_address;
#[cfg(feature = "server")]
pub use rakwire::endpoint::RefusedClient;
pub use received::Received;
pub use runner::Runner;
pub use state::{State, new, new_with_hook};
pub use unsent::UnsentDatagrams;

/// Returns 32 random bytes for a configuration. The generator must be unpredictable, like a hardware generator.
pub fn entropy(rng: &mut impl rand_core::RngCore) -> [u8; 32] {
    let mut bytes = [0; 32];
    rng.fill_bytes(&mut bytes);
    bytes
}
