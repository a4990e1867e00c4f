//! Simultaneous connection attempts of two peers.
//!
//! They result in exactly one connection, regardless of the order in which datagrams arrive
//! (docs/raknet.md#both-dial).

mod every_order;
mod limits;
mod net;
mod random;
