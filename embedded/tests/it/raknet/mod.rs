//! RakNet between machines.

mod both;
mod own;
mod silence;
