//! NAT traversal: messages, pairs of routers, link-local addresses, and hostile peers.

mod hostile;
mod internet;
mod links;
mod pairs;
mod wire;
