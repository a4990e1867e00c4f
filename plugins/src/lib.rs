//! Plugins: what games do over and over again with messages, ready to be attached to a peer of rakwire.
//!
//! | plugin | what | protocol | documentation |
//! |---|---|---|---|
//! | [`ready`] | several peers agree that all of them are ready, on the wire as the original's | RakNet | `docs/plugins/ready.md` |
//! | [`calls`] | functions of another peer by name, with answers and deadlines; signals; [`calls::rpc4`] is on the wire as the original's | both, RPC4 RakNet | `docs/plugins/calls.md` |
//! | [`files`] | a directory of one peer, as another peer has it afterwards | both | `docs/plugins/files.md` |
//! | [`mesh`] | who is connected to whom, peers that all connect to each other, and which of them is the host | RakNet | `docs/plugins/mesh.md` |
//! | [`nat`] | two peers behind routers connect, by a third one that both can reach | RakNet | `docs/plugins/nat.md` |
//! | [`replication`] | the entities of a server, as its clients have them: what has changed, in scope, within a budget | both | `docs/plugins/replication.md` |
//! | [`voice`] | frames of sound from each to all others, and buffers that adapt to how unevenly they arrive | RakNet | `docs/plugins/voice.md` |
//!
//! A plugin is attached to a [`PluginHost`](rakwire::endpoint::PluginHost), which is the hook of a peer in every driver. It
//! needs no allocator: its sizes are parameters of its type. [`registry`] says which message ids are whose.

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

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "directory")]
extern crate std;

/// The driver for tokio, so that a program needs no other dependency of rakwire (feature `native`).
#[cfg(feature = "native")]
pub use rakwire_native as native;

/// The core: what the plugins are attached to.
pub use rakwire;

mod bytes;
#[cfg(feature = "native")]
pub mod caller;
pub mod calls;
#[cfg(feature = "directory")]
pub mod directory;
pub mod files;
pub mod mesh;
pub mod nat;
pub mod ready;
pub mod registry;
pub mod replication;
pub mod voice;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
