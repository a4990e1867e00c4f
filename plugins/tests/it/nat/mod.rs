//! NAT traversal: its messages, pairs of routers, and peers that lie.

mod hostile;
mod internet;
mod pairs;
mod wire;
