//! What JavaScript sees: a class for each protocol, plain objects, times in milliseconds.

#[cfg(target_arch = "wasm32")]
mod allocator;
mod bytes;
mod error;
mod event;
mod game;
mod panic;
mod peer;
mod stats;

pub use bytes::Bytes;
pub use event::PeerEvent;
pub use game::GamePeer;
pub use peer::Peer;
pub use stats::PeerStats;
