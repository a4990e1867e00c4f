//! A conformance suite for RakNet.
//!
//! Numbered cases judge a server over raw datagrams by docs/raknet.md of rakwire. The suite depends on no crate of
//! rakwire: its encoder, decoder and clock are its own.

pub mod case;
pub mod cases;
pub mod check;
pub mod link;
pub mod model;
pub mod report;
pub mod session;
pub mod wire;
