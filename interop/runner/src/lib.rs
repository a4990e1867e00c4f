//! A runner for RakNet peers, after the interop runner of QUIC.
//!
//! A peer is a program that reads its task from environment variables. The runner starts a server and a client with a proxy
//! between them, keeps every datagram, and judges the capture by docs/raknet.md. Exit statuses and output of programs decide
//! nothing once they have started.

pub mod capture;
pub mod cases;
pub mod cell;
pub mod dissect;
pub mod finding;
pub mod judge;
pub mod limits;
pub mod page;
pub mod path;
pub mod peers;
pub mod proxy;
pub mod report;
pub mod rules;
pub mod workers;
