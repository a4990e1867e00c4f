//! Worlds keep their promises, and planted faults are found.

use rakwire_worlds::plan::{Omitted, Plan};
use rakwire_worlds::plant::Plant;
use rakwire_worlds::shrink::{run, shrink};

/// The first seeds; `cargo run --release -p rakwire-worlds -- --worlds N` runs more.
const WORLDS: u64 = 100;
/// The number of worlds in which a planted fault must be found.
const MOST_FOR_PLANT: u64 = 100;

#[test]
fn the_first_worlds_keep_their_promises() {
    let (mut messages, mut faults) = (0, 0);
    for seed in 0..WORLDS {
        let outcome = run(seed, &Omitted::default(), None);
        let outcome = outcome.unwrap_or_else(|broken| {
            panic!("{broken}; repeat it by cargo run --release -p rakwire-worlds -- --seed {seed}")
        });
        messages += outcome.messages;
        faults += outcome.faults;
    }
    assert!(messages > 100_000 && faults > 100, "{messages} messages, {faults} faults");
}

#[test]
fn equal_seeds_have_equal_outcomes() {
    let seed = (0..).find(|seed| Plan::new(*seed).faults.len() > 5).expect("a seed with many faults");
    let outcome = run(seed, &Omitted::default(), None);
    assert_eq!(outcome, run(seed, &Omitted::default(), None));
}

/// Returns the first world in which a planted fault is found, and the promise that it breaks.
fn find(plant: Plant) -> (u64, String) {
    let found =
        (0..MOST_FOR_PLANT).find_map(|seed| Some((seed, run(seed, &Omitted::default(), Some(plant)).err()?)));
    found.unwrap_or_else(|| panic!("no world finds the planted fault {}", plant.name()))
}

#[test]
fn each_planted_fault_is_found() {
    for plant in Plant::all() {
        find(*plant);
    }
}

#[test]
fn a_failure_is_shrunk_and_still_fails() {
    let (seed, broken) = find(Plant::ForgetsFlow);
    let (omitted, broken) = shrink(seed, Some(Plant::ForgetsFlow), broken);
    assert_eq!(run(seed, &omitted, Some(Plant::ForgetsFlow)).err(), Some(broken));
    let plan = Plan::without(seed, &omitted);
    assert_eq!(plan.clients.iter().flatten().count(), 1, "one client is enough");
    assert_eq!(plan.faults.len(), 1, "one fault is enough: {:?}", plan.faults);
}
