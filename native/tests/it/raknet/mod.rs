//! Endpoints of RakNet over loopback.

mod admission;
mod library;

#[cfg(target_os = "linux")]
mod shards;
mod simulation;
