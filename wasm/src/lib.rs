//! RakNet and the Game Protocol in browsers, through a relay, in one of two ways:
//!
//! - Feature `npm`, the default: the classes [`RakNetPeer`] and [`GameProtocolPeer`] for JavaScript. They only answer
//!   calls, and the TypeScript of the npm package `rakwire` owns socket and timers.
//! - Feature `web`: the module `web` with `connect`, `send` and `recv` for games that are Rust themselves. It exports
//!   nothing to JavaScript. Such games turn the default features off.
#![forbid(unsafe_code)]

#[cfg(any(feature = "npm", feature = "web"))]
mod client;
#[cfg(feature = "npm")]
mod npm;
#[cfg(feature = "web")]
pub mod web;

#[cfg(any(feature = "npm", feature = "web"))]
pub use client::Memory;
#[cfg(feature = "npm")]
pub use npm::{Bytes, GameProtocolPeer, PeerEvent, PeerStats, RakNetPeer};
