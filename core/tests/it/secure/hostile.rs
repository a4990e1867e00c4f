//! The model that the fuzz target shares, over generated inputs.

use crate::model::random::Random;
use crate::model::secure;

#[test]
fn every_promise_is_kept_whatever_bytes_come() {
    let mut random = Random::new(17);
    for run in 0..10_000 {
        let input = secure::input(&mut random);
        if let Err(broken) = secure::run(&input) {
            panic!("run {run}: {broken}; the input is {input:02x?}");
        }
    }
}
