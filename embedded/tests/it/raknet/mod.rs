//! RakNet between machines.

mod both;
mod interface_mtu;
mod own;
mod refused;
mod secure;
mod server;
pub(crate) mod silence;
mod unconnected;
mod version;
