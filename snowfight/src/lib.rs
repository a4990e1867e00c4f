//! A multiplayer snowball fight: the messages, the rules, and the state machines of client and server.
//!
//! - [`message`]: the messages of client and server, encoded as Rabbit.
//! - [`world`]: the rules, which give the same results on every machine.
//! - [`server`], [`client`]: the two state machines, which consume and produce messages.
//! - [`bot`]: an automatic player; [`wanderer`]: an automatic player for a board with a button.
//! - [`advertisement`]: server discovery.
//!
//! The Game Protocol is the network protocol that was designed for this game. The crate uses no sockets, clock or
//! allocator.
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
