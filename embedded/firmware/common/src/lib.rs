//! What the firmwares have in common: the network's configuration, the server's address, a telemetry client, a player of
//! the snowball fight, and the pulse that tells a watchdog that the program lives.

#![no_std]
#![forbid(unsafe_code)]

pub mod echo;
pub mod network;
pub mod panel;
pub mod player;
pub mod pulse;
pub mod search;
pub mod server;
pub mod telemetry;
