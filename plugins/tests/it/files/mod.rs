//! File transfer, in both protocols where they differ.

mod hostile;
mod simulated;
mod transfers;
mod tree;
mod wire;
