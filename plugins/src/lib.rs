//! Plugins for rakwire peers: game features built on ordinary messages.
//!
//! | plugin | purpose | protocol | documentation |
//! |---|---|---|---|
//! | [`ready`] | peers agree that all of them are ready; wire-compatible with C++ RakNet | RakNet | `docs/plugins/ready.md` |
//! | [`calls`] | remote functions by name, with answers and deadlines; signals; [`calls::rpc4`] is wire-compatible with C++ RakNet | both, RPC4 RakNet | `docs/plugins/calls.md` |
//! | [`files`] | copies a directory from one peer to another | both | `docs/plugins/files.md` |
//! | [`mesh`] | the connection graph, fully connected meshes, and the choice of a host | RakNet | `docs/plugins/mesh.md` |
//! | [`nat`] | connects two peers behind routers, with the help of a third that both can reach | RakNet | `docs/plugins/nat.md` |
//! | [`replication`] | replicates the entities of a server to its clients: changes only, in scope, within a budget | both | `docs/plugins/replication.md` |
//! | [`voice`] | voice frames from each peer to all others, with adaptive jitter buffers | RakNet | `docs/plugins/voice.md` |
//!
//! A plugin is attached to a [`PluginHost`](rakwire::endpoint::PluginHost), which is the hook of a peer in every
//! driver. It needs no allocator: its sizes are parameters of its type. [`registry`] lists the owner of each message
//! id.

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

/// The tokio driver. Re-exported so that a program needs no other rakwire dependency (feature `native`).
#[cfg(feature = "native")]
pub use rakwire_native as native;

/// The core, which contains the peers that plugins are attached to.
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
