//! Both peers dial each other at once: exactly one connection comes of it, whatever crosses on the way
//! (docs/raknet.md#both-dial).

mod every_order;
mod limits;
mod net;
mod random;
