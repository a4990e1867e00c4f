//! Code shared by the firmwares: the network configuration, discovery of servers, a telemetry client, a player of the
//! snowball fight, and a heartbeat for the watchdog.

#![no_std]
#![forbid(unsafe_code)]

pub mod discovery;
pub mod echo;
pub mod heartbeat;
pub mod network;
pub mod panel;
pub mod player;
pub mod server;
pub mod telemetry;
