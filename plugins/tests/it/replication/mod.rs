//! Replication, over both protocols where the protocol makes a difference.

mod classes;
mod hostile;
mod laws;
mod recorded;
mod sent;
mod simulated;
mod wire;
mod world;

#[path = "../../../examples/replication_bandwidth.rs"]
#[expect(dead_code, reason = "only the example prints a table")]
mod bandwidth;

/// The graph has a labelled area for each field.
#[test]
fn the_example_graph_shows_the_bandwidth_of_each_field() {
    let svg = bandwidth::bandwidth_graph(20).expect("the simulation succeeds");
    assert_eq!(svg.matches("<polygon").count(), bandwidth::PARTS.len());
    for part in bandwidth::PARTS {
        assert!(svg.contains(&format!(">{part}</text>")), "{part}");
    }
}

/// Replicating 200 players takes at most a fifth of the bandwidth of full snapshots, at an error at most 20 % and 1 cm
/// larger.
#[test]
fn replication_uses_at_most_a_fifth_of_the_bandwidth_of_snapshots() {
    const TICKS: u32 = 600;
    for loss in [0.0, 0.05] {
        let [full, all, near] = bandwidth::compare(loss, TICKS).expect("the simulation succeeds");
        assert!(full[3] > 199.0 && all[3] > 199.0 && near[3] > 5.0, "{full:?} {all:?} {near:?}");
        for [bytes, _, error, _] in [all, near] {
            assert!(error <= full[2] * 1.2 + 1.0, "off by {error} cm, and by {} cm with snapshots", full[2]);
            assert!(bytes * 5.0 <= full[0], "{bytes} bytes a second, and {} of snapshots", full[0]);
        }
    }
}
