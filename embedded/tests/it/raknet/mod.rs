//! RakNet between machines.

mod both;
mod own;
mod secure;
mod server;
pub(crate) mod silence;
mod unconnected;
