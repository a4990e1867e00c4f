//! Replication, in both protocols where they differ.

mod hostile;
mod laws;
mod simulated;
mod wire;
mod world;
