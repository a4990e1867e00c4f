//! The interface for JavaScript: a class for each protocol. Each class exchanges only numbers and bytes with
//! JavaScript, because objects would need conversion code. Reasons are numbers; their codes and texts are in `texts/`.

mod buffer;
mod class;
#[cfg(feature = "npm-game-protocol")]
mod game_protocol;
mod numbers;
#[cfg(feature = "npm-raknet")]
mod raknet;
mod record;
#[cfg(target_arch = "wasm32")]
mod runtime;
#[cfg(feature = "npm-secure")]
mod secure;
#[cfg(feature = "npm-raknet-server")]
mod server;

#[cfg(feature = "npm-game-protocol")]
pub use game_protocol::GameProtocolPeer;
#[cfg(feature = "npm-raknet")]
pub use raknet::RakNetPeer;
#[cfg(feature = "npm-secure")]
pub use secure::KeyPair;
#[cfg(feature = "npm-raknet-server")]
pub use server::RakNetServer;
