//! Shared by the benchmarks of this repository: the core without sockets.

#![forbid(unsafe_code)]

pub mod connected_peers;
pub mod hot_path;
