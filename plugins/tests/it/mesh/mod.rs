//! Meshes: the graph, wire vectors, hostile peers, and agreement of the members.

mod agreement;
mod graph;
mod hostile;
mod network;
mod simulated;
mod wire;
