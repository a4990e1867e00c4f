//! The model that the fuzz target shares, over generated inputs.

use crate::model::random::Random;
use crate::model::secure;

#[test]
fn every_promise_is_kept_whatever_bytes_come() {
    let mut random = Random::new(17);
    for kind in 0..=7_u8 {
        // Fields of handshakes are mostly left as they are, so that their end is reached.
        let (runs, odds) = if kind < 4 { (300, 500) } else { (3_000, 1) };
        for run in 0..runs {
            let mut input = vec![kind];
            let length = random.below(600);
            input.extend(
                (0..length).map(|_| if random.below(odds) == 0 { random.below(256) as u8 } else { 0 }),
            );
            if let Err(broken) = secure::run(&input) {
                panic!("run {run} of kind {kind}: {broken}; the input is {input:02x?}");
            }
        }
    }
}
