//! Simultaneous connection attempts of two peers: they result in exactly one connection, in any order of the
//! datagrams (docs/raknet.md#both-dial).

mod every_order;
mod limits;
mod net;
mod random;
