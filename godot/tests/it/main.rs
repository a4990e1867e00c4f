//! Tests of servers and clients over loopback, without the engine.

mod connections;
mod packets;
mod support;
