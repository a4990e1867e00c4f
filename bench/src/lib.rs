//! What the benchmarks of this repository have in common: the core at work without sockets.

#![forbid(unsafe_code)]

pub mod core_alone;
pub mod hot;
