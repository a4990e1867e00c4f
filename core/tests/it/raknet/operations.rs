//! Thousands of short seeded sequences of arbitrary operations on two peers.

use crate::model::operation::Sequence;
use crate::model::random::Random;
use crate::model::shrink::shrink;
use crate::model::{wire, world};

const SEQUENCES: u64 = 3_000;

/// The invariants are the guarantees that the model [`world`] checks.
#[test]
fn invariants_hold_under_random_operations() {
    let mut delivered = 0;
    for seed in 0..SEQUENCES {
        let sequence = Sequence::decode(&Sequence::random(seed)).expect("bytes that decode to a sequence");
        match world::run(&sequence) {
            Ok(count) => delivered += count,
            Err(broken) => panic!("seed {seed}: {broken}\n{:#?}", shrink(sequence)),
        }
    }
    assert!(
        delivered > 20 * SEQUENCES as usize,
        "only {delivered} messages arrived, too few for a meaningful test"
    );
}

#[test]
fn parsed_packets_round_trip() {
    let mut random = Random::new(7);
    for number in 0..200_000_u32 {
        let bytes = sparse(&mut random);
        for check in [wire::datagram, wire::offline, wire::control] {
            let kept = check(&bytes);
            assert!(kept.is_ok(), "{number}: {kept:?}");
        }
    }
}

/// Returns random bytes; after the first one, about half of them are zero.
fn sparse(random: &mut Random) -> Vec<u8> {
    let length = 4 + random.below(80) as usize;
    let mut bytes = random.bytes(length);
    bytes.iter_mut().skip(1).for_each(|byte| *byte *= (random.draw() & 1) as u8);
    bytes
}
