//! File transfer, in both protocols where they differ.

mod directories;
mod hostile;
mod patches;
mod simulated;
mod tcp;
mod transfers;
mod tree;
mod wire;
