//! Runs the same script of calls on the original C++ RakNet and on rakwire, in every combination, and compares the events that
//! applications get.
//!
//! A [`script::Script`] names peers and their calls. A [`run`] starts a driver for each peer, with a proxy of the core's simulator
//! between them, and returns a [`trace::Trace`]. [`compare`] lists the differences of two traces that no rule permits, and
//! [`table`] has those that are documented.

pub mod compare;
pub mod difference;
pub mod driver;
pub mod generate;
pub mod named_scripts;
pub mod pairing;
pub mod programs;
mod promises;
pub mod proxy;
pub mod run;
pub mod script;
pub mod suite;
pub mod table;
pub mod trace;
pub mod traffic;
