//! Servers and clients without the engine, over loopback.

mod connections;
mod packets;
mod support;
