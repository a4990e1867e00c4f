//! Workloads for the core without sockets, shared by the `rakwire-bench` program and the Criterion benchmarks.

#![forbid(unsafe_code)]

pub mod connected_peers;
pub mod hot_path;
