//! A snowball fight: the game for which the Game Protocol was designed.
//!
//! - [`message`]: the messages of client and server, packed as Rabbit.
//! - [`world`]: the rules, with the same results on every machine.
//! - [`server`], [`client`]: the state machines of both sides; messages in, messages out.
//! - [`bot`]: an automatic player; [`wanderer`]: one that a button can control.
//! - [`advertisement`]: server discovery.
//!
//! The crate uses no sockets, no clock and no allocator.
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
