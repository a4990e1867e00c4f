//! Runs scripts of API calls on the original C++ RakNet and on rakwire, in every combination, and compares the events
//! that applications receive.
//!
//! A [`script::Script`] lists peers and their calls. The module [`run`] starts a driver process for each peer, connects
//! them by simulated links, and returns a [`trace::Trace`]. The module [`compare`] lists the differences between two
//! traces that no rule permits, and [`table`] contains the documented differences.

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
