//! Replication, in both protocols where they differ.

mod classes;
mod hostile;
mod laws;
mod recorded;
mod sent;
mod simulated;
mod wire;
mod world;

#[path = "../../../examples/replication_bandwidth.rs"]
#[expect(dead_code, reason = "the test prints no table")]
mod bandwidth;

/// The graph has an area for each field, with its name.
#[test]
fn a_graph_shows_which_fields_take_the_bandwidth() {
    let svg = bandwidth::bandwidth_graph(20).expect("it runs");
    assert_eq!(svg.matches("<polygon").count(), bandwidth::PARTS.len());
    for part in bandwidth::PARTS {
        assert!(svg.contains(&format!(">{part}</text>")), "{part}");
    }
}

/// All of 200 players cost at most a fifth of full snapshots and are as accurate, and more so what a player sees of them.
#[test]
fn replication_costs_a_fifth_of_full_snapshots() {
    const TICKS: u32 = 600;
    for loss in [0.0, 0.05] {
        let [full, all, near] = bandwidth::compare(loss, TICKS).expect("it runs");
        assert!(full[3] > 199.0 && all[3] > 199.0 && near[3] > 5.0, "{full:?} {all:?} {near:?}");
        for [bytes, _, error, _] in [all, near] {
            assert!(error <= full[2] * 1.2 + 1.0, "off by {error} cm, and by {} cm with snapshots", full[2]);
            assert!(bytes * 5.0 <= full[0], "{bytes} bytes a second, and {} of snapshots", full[0]);
        }
    }
}
