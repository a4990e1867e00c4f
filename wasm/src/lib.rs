//! RakNet and the Game Protocol in browsers, through a relay, in one of two ways:
//!
//! - Feature `web`, the default: the module `web` with `connect`, `send` and `recv` for games written in Rust. It
//!   exports nothing to JavaScript. Feature `secure` adds secure connections of RakNet.
//! - Feature `npm`, without the default features: the classes `RakNetPeer` and `GameProtocolPeer` for JavaScript. They
//!   do no I/O; the TypeScript of the npm package `rakwire` owns sockets and timers. The feature `npm-raknet` or
//!   `npm-game-protocol` enables one class alone. `npm-secure` enables RakNet alone, with secure connections;
//!   `npm-raknet-server` RakNet alone, with the class `RakNetServer`.
//!
//! With the feature `std`, which `web` enables, panics are handled by the standard library. The npm package is built
//! without it.
#![forbid(unsafe_code)]
// The npm package has its own, smaller allocator and panic handler.
#![cfg_attr(
    all(
        target_arch = "wasm32",
        any(feature = "npm-raknet", feature = "npm-game-protocol"),
        not(feature = "std")
    ),
    no_std
)]

extern crate alloc;

#[cfg(any(feature = "npm-raknet", feature = "npm-game-protocol", feature = "web"))]
mod client;
#[cfg(any(feature = "npm-raknet", feature = "npm-game-protocol"))]
mod npm;
#[cfg(feature = "web")]
pub mod web;

#[cfg(any(feature = "npm-raknet", feature = "npm-game-protocol", feature = "web"))]
pub use client::Memory;
#[cfg(feature = "npm-game-protocol")]
pub use npm::GameProtocolPeer;
#[cfg(feature = "npm-secure")]
pub use npm::KeyPair;
#[cfg(feature = "npm-raknet")]
pub use npm::RakNetPeer;
#[cfg(feature = "npm-raknet-server")]
pub use npm::RakNetServer;
