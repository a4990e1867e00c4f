//! Machines on one simulated network. `common` has the tests that run with both protocols.

mod common;
mod game_protocol;
mod neighbours;
mod raknet;
mod support;
mod tcp;
