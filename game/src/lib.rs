//! A snowball fight: the game that the Game Protocol was made for.
//!
//! - [`message`]: what client and server say, packed as Rabbit.
//! - [`world`]: the rules.
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

pub mod message;
pub mod world;
