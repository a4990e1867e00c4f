//! RakNet and the Game Protocol in browsers, through a relay: the sans-IO core of `rakwire` with two doors.
//!
//! - Feature `npm`, the default: the classes [`Peer`] and [`GamePeer`] for JavaScript. They only answer calls, and the TypeScript of the npm
//!   package `rakwire` owns socket and timers.
//! - Feature `web`: the module `web` with `connect`, `send` and `recv` for games that are Rust themselves. It exports
//!   nothing to JavaScript. Such games turn the default features off.
#![forbid(unsafe_code)]

#[cfg(any(feature = "npm", feature = "web"))]
mod client;
#[cfg(any(feature = "npm", feature = "web"))]
mod game_client;
#[cfg(feature = "npm")]
mod npm;
#[cfg(feature = "web")]
pub mod web;

#[cfg(feature = "npm")]
pub use npm::{Bytes, GamePeer, Peer, PeerEvent, PeerStats};
