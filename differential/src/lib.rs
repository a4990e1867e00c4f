//! Runs the same scripts of calls on the original C++ RakNet and on rakwire, in every combination, and compares the
//! events that applications receive.
//!
//! A [`script::Script`] lists peers and their calls. A [`run`] starts a driver process for each peer, with a proxy of
//! simulated links between them, and returns a [`trace::Trace`]. [`compare`] lists the differences between two traces
//! that no rule permits, and [`table`] contains the documented differences.

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
