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

/// Returns the heights of the areas of a graph, each with the heights of one area in all ticks.
fn areas(svg: &str) -> Vec<Vec<f64>> {
    let polygons = svg.split("points=\"").skip(1).map(|rest| rest.split('"').next().expect("a string's end"));
    let heights = polygons.map(|points| {
        let y = |point: &str| point.split_once(',').and_then(|(_, y)| y.parse().ok());
        let y: Vec<f64> = points.split(' ').map(|point| y(point).expect("a point")).collect();
        let (upper, lower) = y.split_at(y.len() / 2);
        upper.iter().zip(lower.iter().rev()).map(|(upper, lower)| lower - upper).collect()
    });
    heights.collect()
}

/// The graph has a labelled area for each field. Positions take the most bandwidth.
#[test]
fn the_example_graph_shows_the_bandwidth_of_each_field() {
    const TICKS: u32 = 20;
    let svg = bandwidth::bandwidth_graph(TICKS).expect("the simulation succeeds");
    let areas = areas(&svg);
    assert_eq!(areas.len(), bandwidth::PARTS.len());
    for (part, heights) in bandwidth::PARTS.into_iter().zip(&areas) {
        assert!(svg.contains(&format!(">{part}</text>")), "{part}");
        assert_eq!(heights.len(), TICKS as usize, "{part}");
        assert!(heights.iter().sum::<f64>() > 0.0, "{part}: {heights:?}");
    }
    let sum = |part: &str| {
        let place = bandwidth::PARTS.iter().position(|name| *name == part).expect("a part");
        areas[place].iter().sum::<f64>()
    };
    for part in ["pitch", "yaw", "up", "health", "flags", "hand", "score"] {
        assert!(sum("east") > sum(part) && sum("south") > sum(part), "{part}");
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
