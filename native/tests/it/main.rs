//! Endpoints over loopback, of both protocols.

mod endpoint;
mod game_protocol;
mod raknet;
mod support;
