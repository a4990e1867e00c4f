//! NAT traversal: its messages, pairs of routers, link-local addresses, and peers that lie.

mod hostile;
mod internet;
mod links;
mod pairs;
mod wire;
