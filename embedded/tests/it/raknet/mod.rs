//! RakNet between machines.

mod both;
mod own;
mod secure;
mod server;
mod silence;
mod unconnected;
