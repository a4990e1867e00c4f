//! Meshes: the graph, vectors, hostile peers, and what members agree on.

mod agreement;
mod graph;
mod hostile;
mod network;
mod simulated;
mod wire;
