//! Shrinks a failure: omits as many faults and clients as possible while the world still fails.

use std::any::Any;
use std::panic;

use crate::Broken;
use crate::plan::{Omitted, Plan};
use crate::plant::Plant;
use crate::world::{Outcome, World};

/// Runs the world of a seed without some of its faults and clients.
///
/// # Errors
/// The guarantee that was broken, or the message of a panic.
pub fn run(seed: u64, omitted: &Omitted, plant: Option<Plant>) -> Result<Outcome, Broken> {
    let world = || World::new(Plan::without(seed, omitted), plant).run();
    panic::catch_unwind(world).unwrap_or_else(|panic| Err(format!("panic: {}", message(&*panic))))
}

/// Returns the message of a panic.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

/// Returns clients and faults that a failing world does not need to fail, and the failure without them.
///
/// The result is a local optimum: leaving out any further client or fault makes the world pass.
#[must_use]
pub fn shrink(seed: u64, plant: Option<Plant>, broken: Broken) -> (Omitted, Broken) {
    let plan = Plan::new(seed);
    let (mut omitted, mut broken) = (Omitted::default(), broken);
    loop {
        let before = omitted.clone();
        for client in 0..plan.clients.len() {
            let mut smaller = omitted.clone();
            if smaller.clients.insert(client) && smaller.clients.len() < plan.clients.len() {
                keep_if_it_fails(seed, plant, smaller, (&mut omitted, &mut broken));
            }
        }
        for fault in 0..plan.faults.len() {
            let mut smaller = omitted.clone();
            if smaller.faults.insert(fault) {
                keep_if_it_fails(seed, plant, smaller, (&mut omitted, &mut broken));
            }
        }
        if omitted == before {
            return (omitted, broken);
        }
    }
}

fn keep_if_it_fails(
    seed: u64,
    plant: Option<Plant>,
    smaller: Omitted,
    (omitted, broken): (&mut Omitted, &mut Broken),
) {
    if let Err(now) = run(seed, &smaller, plant) {
        (*omitted, *broken) = (smaller, now);
    }
}
