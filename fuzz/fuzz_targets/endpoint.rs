//! Everything that can be done to two peers and to the path between them, against what they promise.
#![no_main]

use rakwire_fuzz::hold;
use rakwire_fuzz::model::operation::Sequence;
use rakwire_fuzz::model::world;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some(sequence) = Sequence::decode(bytes) {
        hold(world::run(&sequence).map(drop));
    }
});
