//! RakNet and the Game Protocol on a microcontroller: the [`rakwire`] core over [embassy-net](embassy_net)'s UDP, without
//! an allocator.
//!
//! [`raknet::new`] takes the memory of a peer, a network stack and a configuration, and gives a [`raknet::Runner`],
//! which a task of its own runs for ever, and a [`raknet::Handle`], which any number of tasks copy. [`game::new`] does the
//! same for the Game Protocol, with the same verbs; one stack may carry both. It works with every
//! driver that embassy-net knows: Ethernet, Wi-Fi or a modem. Time comes from embassy-time, and random bytes from a
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
//! `port` is the only module that calls embassy-net, `clock` the only one that reads the time, `runner` drives any
//! `protocol` over the two, `shared`, `hold` and `loan` know who holds which connection, who waits, and what is lent;
//! [`raknet`] and [`game`] give each protocol its handles.
//!
//! # Features
//!
//! `ipv4` (default) and `ipv6`: the addresses that the network has. `defmt`: errors print with defmt.
#![no_std]
// What is left out leaves some of its helpers without a caller; the whole is checked.
#![cfg_attr(not(feature = "unconnected"), allow(dead_code))]
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
pub mod game;
mod hold;
mod loan;
mod port;
mod protocol;
pub mod raknet;
mod runner;
mod shared;

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
