//! Simultaneous connection attempts of two peers: exactly one connection results, whatever crosses in transit
//! (docs/raknet.md#both-dial).

mod every_order;
mod limits;
mod net;
mod random;
