//! Messages that arrived whole, and that their sender cut into parts since it does not know that (docs/raknet.md#path-mtu).
//!
//! The first part has the number of the whole message, so it is a duplicate. Its split id is remembered, by which the other
//! parts are recognized: they have new numbers, and would wait for the first part for ever.

use crate::raknet::features::SPLITTING;
use crate::raknet::wire::capsule::Split;
use crate::raknet::wire::{MAX_MTU, MIN_MTU};
use crate::serial::U24;

/// Messages that are remembered. The parts of one are sent one after the other, so more are only needed where parts are lost again.
const MESSAGES: usize = if SPLITTING { 4 } else { 0 };
/// The most parts of a message that one datagram held. Others with more parts were cut from the beginning.
const MOST_PARTS: u32 = MAX_MTU.div_ceil(MIN_MTU) as u32;
/// How far behind the first part the numbers of other parts may be, in steps of [`STEP`]. Split ids come again after 65,536
/// messages of two parts at least, and then belong to another message.
const MOST_STEPS: u16 = 256;
/// Numbers that count as one, as a power of two.
const STEP: u32 = 8;

/// The last messages of that kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CutMessages {
    /// Split ids, each with the number of the first part in steps; the newest first.
    entries: [(u16, u16); MESSAGES],
    count: u8,
}

impl CutMessages {
    /// Whether a message may be of that kind if this part of it is a duplicate.
    pub(super) const fn may_be(split: Split) -> bool {
        SPLITTING && split.index == 0 && split.count <= MOST_PARTS
    }

    /// Remembers a message whose first part had this number.
    pub(super) fn add(&mut self, number: U24, split: Split) {
        self.entries.rotate_right(1);
        if let Some(newest) = self.entries.first_mut() {
            *newest = (split.id, steps(number));
            self.count = self.count.saturating_add(1).min(MESSAGES as u8);
        }
    }

    /// Whether a part belongs to a message that is remembered.
    pub(super) fn contains(&self, number: U24, split: Split) -> bool {
        let is_near = |first: u16| steps(number).wrapping_sub(first) < MOST_STEPS;
        let mut entries = self.entries.iter().take(self.count.into());
        split.count <= MOST_PARTS && entries.any(|(id, first)| *id == split.id && is_near(*first))
    }
}

/// A number in steps.
const fn steps(number: U24) -> u16 {
    (number.get() >> STEP) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn part(id: u16, index: u32) -> Split {
        Split { count: 2, id, index }
    }

    #[test]
    fn the_last_four_messages_are_kept() {
        let mut messages = CutMessages::default();
        assert!(!messages.contains(U24::new(0), part(0, 1)), "none is the message with zeros");
        for id in 0..6 {
            messages.add(U24::new(100), part(id, 0));
        }
        let kept = (0..8).filter(|id| messages.contains(U24::new(140), part(*id, 1)));
        assert!(kept.eq([2, 3, 4, 5]));
    }

    #[test]
    fn a_split_id_that_comes_again_is_that_of_another_message() {
        let mut messages = CutMessages::default();
        messages.add(U24::new(0xFF_FFFF), part(7, 0));
        assert!(messages.contains(U24::new(0), part(7, 1)), "numbers wrap");
        assert!(messages.contains(U24::new(60_000), part(7, 1)));
        assert!(!messages.contains(U24::new(131_072), part(7, 1)));
        assert!(!messages.contains(U24::new(0xFF_F000), part(7, 1)), "an older part");
    }

    #[test]
    fn messages_with_many_parts_were_not_cut_again() {
        let split = Split { count: MOST_PARTS + 1, id: 7, index: 0 };
        assert!(!CutMessages::may_be(split));
        assert!(CutMessages::may_be(part(7, 0)) && !CutMessages::may_be(part(7, 1)));
    }
}
