//! What the world of the game costs a client.

use game_bandwidth::{Seconds, compare};

#[path = "../examples/game_bandwidth.rs"]
#[expect(dead_code, reason = "the test prints no table")]
mod game_bandwidth;

/// With 200 players, where nothing is lost and over a bad path.
#[test]
fn a_game_by_replication_costs_a_fifth_of_full_snapshots() {
    for loss in [0.0, 0.05] {
        let ways = compare(loss, Seconds { warm_up: 5, measured: 5 }).expect("it runs");
        let [full, deltas, replication] = &ways;
        assert!(ways.iter().all(|way| way.players > 199.0), "{ways:?}");
        assert!(replication.mean <= full.mean * 1.05, "{ways:?}");
        assert!(replication.down * 5.0 <= full.down, "{ways:?}");
        assert!(replication.down * 5.0 <= deltas.down, "{ways:?}");
    }
}
