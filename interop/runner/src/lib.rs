//! An interop runner for RakNet peers, modelled on the QUIC interop runner.
//!
//! A peer is a program that reads its task from environment variables. The runner starts a server and a
//! client with a proxy between them, captures every datagram, and judges the capture by docs/raknet.md. Once
//! the programs have started, their exit status and output do not matter.

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
