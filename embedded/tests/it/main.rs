//! Machines on one simulated network, for both protocols.

mod game_protocol;
mod raknet;
mod support;
