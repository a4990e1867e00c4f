//! The bandwidth of a game client with replication.

use game_bandwidth::{Seconds, compare};

#[path = "../examples/game_bandwidth.rs"]
#[expect(dead_code, reason = "only the example prints a table")]
mod game_bandwidth;

/// 200 players, without loss and with loss.
#[test]
fn replicated_game_uses_at_most_a_fifth_of_the_bandwidth_of_snapshots() {
    for loss in [0.0, 0.05] {
        let ways = compare(loss, Seconds { warm_up: 5, measured: 5 }).expect("the simulation succeeds");
        let [full, deltas, replication] = &ways;
        assert!(ways.iter().all(|way| way.players > 199.0), "{ways:?}");
        assert!(replication.mean <= full.mean * 1.05, "{ways:?}");
        assert!(replication.down * 5.0 <= full.down, "{ways:?}");
        assert!(replication.down * 5.0 <= deltas.down, "{ways:?}");
    }
}
