//! Tests of the Game Protocol.

mod carrier;
mod connection;
mod hostile;
mod lossy;
mod places;
mod readable;

use rakwire::game_protocol::DropReason;

/// Fails for a new reason until a test covers it.
#[test]
fn a_test_names_every_drop_reason() {
    let tests = concat!(include_str!("connection.rs"), include_str!("hostile.rs"), include_str!("places.rs"));
    let is_missing = |reason: &&DropReason| !tests.contains(&format!("DropReason::{reason:?}"));
    let missing: Vec<_> = DropReason::ALL.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "no test in core/tests/it/game_protocol counts {missing:?}");
}
