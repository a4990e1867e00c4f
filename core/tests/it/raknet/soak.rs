//! 500 of the runs of `cargo xtask soak`, which executes tens of thousands.

use crate::model::soak;

const RUNS: u64 = 500;

/// The invariants are the guarantees that the model [`soak`] checks.
#[test]
fn invariants_hold_over_bad_networks() {
    let mut arrived = 0;
    for seed in 0..RUNS {
        match soak::run(seed) {
            Ok(messages) => arrived += messages,
            Err(broken) => panic!("seed {seed}: {broken}"),
        }
    }
    assert!(arrived > 50 * RUNS as usize, "only {arrived} messages arrived, too few for a meaningful test");
}
