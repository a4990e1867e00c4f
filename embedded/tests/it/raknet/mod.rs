//! RakNet between machines.

mod both;
mod own;
mod server;
mod silence;
mod unconnected;
