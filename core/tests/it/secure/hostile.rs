//! The models of the fuzz targets, run with pseudorandom inputs.

use crate::model::random::Random;
use crate::model::{secure, secure_crossing, secure_peers};

/// The invariants are the properties that the model [`secure`] checks.
#[test]
fn invariants_hold_for_arbitrary_bytes() {
    let mut random = Random::new(17);
    for run in 0..10_000 {
        let input = secure::input(&mut random);
        if let Err(broken) = secure::run(&input) {
            panic!("run {run}: {broken}; the input is {input:02x?}");
        }
    }
}

#[test]
fn secure_messages_are_delivered_once_despite_rerouted_and_changed_datagrams() {
    let mut random = Random::new(23);
    for run in 0..100 {
        let length = random.below(400) as usize;
        let input = random.bytes(length);
        if let Err(broken) = secure_peers::run(&input) {
            panic!("run {run}: {broken}; the input is {input:02x?}");
        }
    }
}

#[test]
fn simultaneous_attempts_in_any_order_never_downgrade_a_secure_attempt() {
    let mut random = Random::new(29);
    for run in 0..300 {
        let length = random.below(40) as usize;
        let input = random.bytes(length);
        if let Err(broken) = secure_crossing::run(&input) {
            panic!("run {run}: {broken}; the input is {input:02x?}");
        }
    }
}
