//! Endpoints over loopback, of both protocols, and the program `rakwire`.

mod endpoint;
mod game_protocol;
mod program;
mod raknet;
mod support;
