//! A snowball fight: the game that the Game Protocol was made for.
//!
//! - [`message`]: what client and server say, packed as Rabbit.
//! - [`world`]: the rules, the same on every machine.
//! - [`server`], [`client`]: the state machines of both sides; messages in, messages out.
//! - [`bot`]: somebody to play with; [`wanderer`]: one that somebody may guide.
//! - [`advertisement`]: how servers are found.
//!
//! Nothing here knows a socket, a clock or an allocator.
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

#[cfg(test)]
extern crate std;

pub mod advertisement;
pub mod bot;
pub mod client;
pub mod message;
pub mod server;
pub mod wanderer;
pub mod world;
