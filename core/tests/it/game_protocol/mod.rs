//! Tests of the Game Protocol.

mod carrier;
mod connection;
mod hostile;
mod lossy;
mod places;
mod readable;
mod resends;

use rakwire::game_protocol::DropReason;

/// Fails for a new drop reason until one of these files mentions it.
#[test]
fn every_drop_reason_is_mentioned_in_the_tests() {
    let tests = concat!(include_str!("connection.rs"), include_str!("hostile.rs"), include_str!("places.rs"));
    let is_missing = |reason: &&DropReason| !tests.contains(&format!("DropReason::{reason:?}"));
    let missing: Vec<_> = DropReason::ALL.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "connection.rs, hostile.rs and places.rs do not mention {missing:?}");
}
