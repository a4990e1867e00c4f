//! A conformance suite for RakNet.
//!
//! Numbered cases test a server or a client with raw datagrams, against docs/raknet.md, docs/game-protocol.md and
//! docs/secure.md of rakwire. The suite depends on no rakwire crate: it has its own encoder, decoder and clock.

pub mod case;
pub mod cases;
pub mod check;
pub mod game;
pub mod html;
pub mod link;
pub mod listen;
pub mod model;
pub mod packet;
pub mod page;
pub mod report;
pub mod secure;
pub mod secured;
pub mod session;
pub mod start;
pub mod wire;
