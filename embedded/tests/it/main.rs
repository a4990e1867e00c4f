//! Machines on one simulated network. What both protocols do is tested in `common`, for each of them.

mod common;
mod game_protocol;
mod neighbours;
mod raknet;
mod support;
mod tcp;
