//! Replication, in both protocols where they differ.

mod hostile;
mod laws;
mod recorded;
mod simulated;
mod wire;
mod world;
