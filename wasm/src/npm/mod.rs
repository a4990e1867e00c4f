//! What JavaScript sees: a class for each protocol, plain objects, times in milliseconds.

#[cfg(target_arch = "wasm32")]
mod allocator;
mod bytes;
mod class;
mod error;
mod event;
mod game_protocol;
mod memory;
mod panic;
mod raknet;
mod stats;

pub use bytes::Bytes;
pub use event::PeerEvent;
pub use game_protocol::GameProtocolPeer;
pub use raknet::RakNetPeer;
pub use stats::PeerStats;
