//! Minimisation of a sequence of operations that violates a guarantee.

use super::operation::Sequence;
use super::world;

/// Removes operations that are not necessary for the failure: first all at once, then in ever smaller pieces.
pub fn shrink(mut sequence: Sequence) -> Sequence {
    let mut piece = sequence.operations.len();
    while piece > 0 {
        let mut start = 0;
        while start < sequence.operations.len() {
            let mut shorter = sequence.clone();
            let end = (start + piece).min(shorter.operations.len());
            shorter.operations.drain(start..end);
            if world::run(&shorter).is_err() {
                sequence = shorter;
            } else {
                start = end;
            }
        }
        piece /= 2;
    }
    sequence
}
