//! Endpoints over loopback, of both protocols.

mod endpoint;
mod game_protocol;
mod polled;
mod raknet;
mod reconnect;
mod support;
