//! Arbitrary bytes, unpacked as every type of Rabbit. A fuzz target covers more inputs.

use proptest::prelude::*;
use rakwire::codec::rabbit::to_vec;

use crate::model;

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn values_unpacked_from_arbitrary_bytes_round_trip(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        prop_assert_eq!(model::rabbit::values(&bytes), Ok(()));
    }

    #[test]
    fn values_unpacked_from_truncated_lists_round_trip(lists: Vec<(Option<u32>, String, Vec<bool>)>, cut: prop::sample::Index) {
        let bytes = to_vec(&lists).unwrap();
        let length = cut.index(bytes.len() + 1);
        prop_assert_eq!(model::rabbit::values(&bytes), Ok(()));
        prop_assert_eq!(model::rabbit::values(&bytes[..length]), Ok(()));
    }
}
