//! Simulated worlds keep their guarantees, and their checks find planted faults.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::time::Duration;

use rakwire_worlds::batch::{Batch, Progress, run_all};
use rakwire_worlds::plan::{KINDS, Omitted, Plan, Route};
use rakwire_worlds::plant::Plant;
use rakwire_worlds::shrink::{run, shrink};
use rakwire_worlds::soak::{QUARTERS, Quarter, check_flat, soak};
use rakwire_worlds::world::Outcome;

/// The number of seeds; `cargo run --release -p rakwire-worlds -- --worlds N` runs more.
const WORLDS: u64 = 100;
/// The number of worlds after which a planted fault counts as not found.
const MAX_FOR_PLANT: u64 = 100;

#[test]
fn the_first_worlds_keep_their_guarantees() {
    let (mut messages, mut faults) = (0, 0);
    for seed in 0..WORLDS {
        let outcome = run(seed, &Omitted::default(), None);
        let outcome = outcome.unwrap_or_else(|broken| {
            panic!("{broken}; reproduce it: cargo run --release -p rakwire-worlds -- --seed {seed}")
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

/// Returns the seed of the first world that finds a planted fault, and the violated guarantee.
fn find(plant: Plant) -> (u64, String) {
    let found =
        (0..MAX_FOR_PLANT).find_map(|seed| Some((seed, run(seed, &Omitted::default(), Some(plant)).err()?)));
    found.unwrap_or_else(|| panic!("{MAX_FOR_PLANT} worlds did not find the planted fault {}", plant.name()))
}

#[test]
fn every_planted_fault_is_found() {
    for plant in Plant::all() {
        find(*plant);
    }
}

#[test]
fn a_shrunk_plan_still_fails() {
    let (seed, broken) = find(Plant::ForgetsFlow);
    let (omitted, broken) = shrink(seed, Some(Plant::ForgetsFlow), broken);
    assert_eq!(run(seed, &omitted, Some(Plant::ForgetsFlow)).err(), Some(broken));
    let plan = Plan::without(seed, &omitted);
    assert_eq!(plan.clients.iter().flatten().count(), 1, "one client must be enough");
    assert_eq!(plan.faults.len(), 1, "one fault must be enough: {:?}", plan.faults);
}

#[test]
fn a_plan_depends_only_on_its_seed() {
    assert_eq!(format!("{:?}", Plan::new(7)), format!("{:?}", Plan::new(7)));
    assert_ne!(format!("{:?}", Plan::new(7)), format!("{:?}", Plan::new(8)));
}

#[test]
fn omitting_a_fault_does_not_change_the_others() {
    let seed = (0..).find(|seed| Plan::new(*seed).faults.len() > 2).expect("a seed with faults");
    let (whole, omitted) = (Plan::new(seed), Omitted { faults: [1].into(), clients: [0].into() });
    let part = Plan::without(seed, &omitted);
    assert!(part.clients[0].is_none());
    assert_eq!(format!("{:?}", part.clients.get(1..)), format!("{:?}", whole.clients.get(1..)));
    assert_eq!(format!("{:?}", part.faults[1]), format!("{:?}", whole.faults[2]));
}

#[test]
fn each_kind_of_fault_and_route_occurs() {
    let plans: Vec<_> = (0..400).map(Plan::new).collect();
    let kinds: BTreeSet<_> = plans
        .iter()
        .flat_map(|plan| &plan.faults)
        .map(|fault| format!("{:?}", fault.kind).split([' ', '{']).next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(kinds.len() as u64, KINDS, "{kinds:?}");
    for route in [Route::Direct, Route::Front, Route::RelayDatagrams, Route::RelayStream] {
        assert!(
            plans.iter().flat_map(|plan| plan.clients.iter().flatten()).any(|client| client.route == route)
        );
    }
}

#[test]
fn a_batch_on_several_threads_equals_one_on_a_single_thread() {
    let batch = |jobs| {
        run_all(10..22, NonZeroUsize::new(jobs).expect("not zero"), &Omitted::default(), None, &|_| {})
    };
    let (one, three) = (batch(1), batch(3));
    assert_eq!((one.worlds, one.from, &one.failure), (12, 22, &None));
    assert_eq!(one, three);
}

#[test]
fn a_batch_reports_its_first_failing_world() {
    let plant = Plant::LosesMessage;
    let (first, broken) = find(plant);
    let reported = Mutex::new(0);
    let report = |_: &Progress| *reported.lock().expect("an unpoisoned lock") += 1;
    let jobs = NonZeroUsize::new(2).expect("not zero");
    let batch = run_all(0..first + 10, jobs, &Omitted::default(), Some(plant), &report);
    assert_eq!(batch.failure, Some((first, broken)));
    assert_eq!(reported.into_inner().expect("an unpoisoned lock"), batch.worlds);
}

#[test]
fn a_batch_continues_from_the_first_unfinished_world() {
    let mut batch = Batch::new(0..9);
    assert_eq!([batch.begin(), batch.begin()], [Some(0), Some(1)]);
    assert_eq!(batch.end(1, Ok(Outcome::default())).from, 0);
    assert_eq!(batch.end(0, Ok(Outcome::default())).from, 2);
}

#[test]
fn a_short_soak_keeps_its_guarantees_and_its_memory_constant() {
    // Other tests of this process allocate at the same time, so the heap is not compared.
    let mut reported = 0;
    let quarters = soak(0, Duration::from_secs(486), None, &|| 0, &mut |_| reported += 1);
    let quarters = quarters.unwrap_or_else(|broken| {
        panic!("{broken}; reproduce it: cargo run --release -p rakwire-worlds -- --soak 0.135")
    });
    assert_eq!((quarters.len(), reported), (QUARTERS, QUARTERS));
    for Quarter { outcome, connections, .. } in quarters {
        let Outcome { messages, connections: opened, faults, seconds } = outcome;
        assert!(messages > 10_000 && opened > 8 && faults > 10 && seconds >= 120, "{outcome:?}");
        assert!(connections > 0, "clients must be connected in every quarter");
    }
}

#[test]
fn a_soak_reports_flows_that_are_never_freed() {
    // A client of this seed loses its connection to the relay in the first quarter.
    let broken = soak(1, Duration::from_secs(240), Some(Plant::KeepsFlow), &|| 0, &mut |_| {});
    let broken = broken.expect_err("a failure because of remaining flows");
    assert!(broken.starts_with("quarter 1, ") && broken.contains("flows of the relay are left"), "{broken}");
}

#[test]
fn memory_that_grows_over_a_soak_is_an_error() {
    let of = |heap, blocks, flows| Quarter { heap, blocks, flows, ..Quarter::default() };
    let first = of(1_000_000, 50, 4);
    assert_eq!(check_flat(&[first, of(1_100_000, 120, 12), of(900_000, 10, 0)]), Ok(()));
    for grown in [of(1_400_000, 50, 4), of(1_000_000, 200, 4), of(1_000_000, 50, 20)] {
        assert!(check_flat(&[first, first, grown]).is_err(), "{grown:?}");
    }
}
