//! Arbitrary and corrupted bytes as messages of both sides. Fuzz targets run the same checks for longer.

use proptest::prelude::*;
use serde_json::Value;

use crate::model;

const FILE: &str = include_str!("../vectors/game-protocol.json");

/// Returns the bytes of all recorded messages.
fn recorded() -> Vec<Vec<u8>> {
    let entries: Vec<Value> = serde_json::from_str(FILE).expect("valid JSON");
    let messages = entries.iter().filter(|entry| entry["category"] == "message");
    let hex = messages.filter_map(|entry| entry["hex"].as_str());
    hex.map(|hex| (0..hex.len()).step_by(2).map(|at| byte(&hex[at..at + 2])).collect()).collect()
}

fn byte(hex: &str) -> u8 {
    u8::from_str_radix(hex, 16).expect("hexadecimal digits")
}

#[test]
fn truncated_recorded_messages_break_no_invariant() {
    for bytes in recorded() {
        let step = bytes.len().div_ceil(200);
        for length in (0..=bytes.len()).step_by(step) {
            assert_eq!(model::messages(&bytes[..length]), Ok(()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_are_accepted_or_rejected(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(model::messages(&bytes), Ok(()));
    }

    #[test]
    fn corrupted_recorded_messages_break_no_invariant(which: prop::sample::Index, bits: Vec<prop::sample::Index>) {
        let mut bytes = recorded().swap_remove(which.index(30));
        for bit in bits {
            let bit = bit.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        prop_assert_eq!(model::messages(&bytes), Ok(()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn hostile_client_does_not_affect_other_players(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert_eq!(model::hostile_client(&bytes), Ok(()));
    }
}
