//! What the firmwares have in common: the network's configuration, the server's address, a telemetry client, and the
//! pulse that tells a watchdog that the program lives.

#![no_std]
#![forbid(unsafe_code)]

pub mod network;
pub mod pulse;
pub mod server;
pub mod telemetry;
