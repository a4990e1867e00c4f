//! Integration tests of the game: its messages, and both of its state machines over the transports.

mod hostile;
mod lent;
#[path = "../model/mod.rs"]
#[allow(unreachable_pub, reason = "the fuzz targets use this module from their own crate")]
mod model;
mod pacing;
mod prediction;
mod support;
mod transports;
mod vectors;
