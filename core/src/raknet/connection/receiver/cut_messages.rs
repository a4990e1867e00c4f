//! Messages that arrived whole, and that their sender cut into parts since it does not know that (docs/raknet.md#path-mtu).
//!
//! The first part has the number of the whole message, so it is a duplicate. Its split id is remembered, by which the other
//! parts are recognized: they have new numbers, and would wait for the first part for ever.

use crate::raknet::connection::block_header::IncomingMessage;
use crate::raknet::features::SPLITTING;
use crate::raknet::wire::capsule::Split;
use crate::raknet::wire::{MAX_MTU, MIN_MTU};
use crate::serial::U24;

/// Messages that are remembered. The parts of one are sent one after the other, so more are only needed where parts are lost again.
const MESSAGES: usize = if SPLITTING { 3 } else { 0 };
/// The most parts of a message that one datagram held. Others with more parts were cut from the beginning.
const MOST_PARTS: u32 = MAX_MTU.div_ceil(MIN_MTU) as u32;
/// How far behind the first part the numbers of other parts may be, in steps of [`STEP`]: 16,384, more than there are on their
/// way at once. Split ids come again after 65,536 messages here, and after fewer with some peers.
const MOST_STEPS: u16 = 64;
/// Numbers that count as one, as a power of two.
const STEP: u32 = 8;

/// A message of that kind.
#[derive(Clone, Copy, Debug, Default)]
struct CutMessage {
    id: u16,
    /// The number of the first part in steps.
    first: u16,
    /// The end of its place in the order.
    place: u8,
    /// How many parts are still to come; with none it is no message.
    left: u8,
}

/// The last messages of that kind, the newest first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CutMessages([CutMessage; MESSAGES]);

impl CutMessages {
    /// Whether a message may be of that kind if this part of it is a duplicate. An ordinary message of a few parts may be, too.
    pub(super) fn may_be(split: Split) -> bool {
        SPLITTING && split.index == 0 && (2..=MOST_PARTS).contains(&split.count)
    }

    /// Remembers a message whose first part had this number, and of which `arrived` other parts have come.
    pub(super) fn add(&mut self, number: U24, message: &IncomingMessage, split: Split, arrived: u32) {
        let left = split.count.saturating_sub(1).saturating_sub(arrived) as u8;
        let message = CutMessage { id: split.id, first: steps(number), place: place(message), left };
        let is_known =
            |known: &CutMessage| (known.id, known.first) == (message.id, message.first) && known.left > 0;
        if left == 0 || self.0.iter().any(is_known) {
            return;
        }
        self.0.rotate_right(1);
        if let Some(newest) = self.0.first_mut() {
            *newest = message;
        }
    }

    /// Whether a part that has not arrived before belongs to a message that is remembered, which has one less to come then.
    pub(super) fn take(&mut self, number: U24, message: &IncomingMessage, split: Split) -> bool {
        let is_remembered = |known: &&mut CutMessage| known.id == split.id && known.left > 0;
        let Some(known) = self.0.iter_mut().find(is_remembered) else { return false };
        if split.index == 0 {
            // That one has arrived, so this is another message with its id.
            known.left = 0;
            return false;
        }
        let is_near = steps(number).wrapping_sub(known.first) < MOST_STEPS;
        let is_part = split.count <= MOST_PARTS && is_near && known.place == place(message);
        known.left -= u8::from(is_part);
        is_part
    }
}

/// A number in steps.
const fn steps(number: U24) -> u16 {
    (number.get() >> STEP) as u16
}

/// The end of a message's place in the order.
const fn place(message: &IncomingMessage) -> u8 {
    message.order.get() as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raknet::Reliability;

    const MESSAGE: IncomingMessage = IncomingMessage {
        reliability: Reliability::ReliableOrdered,
        channel: 0,
        sequence: U24::new(0),
        order: U24::new(0),
        followers: 0,
        length: 0,
    };

    const fn part(id: u16, index: u32) -> Split {
        Split { count: 2, id, index }
    }

    /// Whether a second part with this number is one of a message whose first part had another number.
    fn belongs(first: u32, number: u32) -> bool {
        let mut messages = CutMessages::default();
        messages.add(U24::new(first), &MESSAGE, part(7, 0), 0);
        messages.take(U24::new(number), &MESSAGE, part(7, 1))
    }

    #[test]
    fn the_last_three_messages_are_kept() {
        let mut messages = CutMessages::default();
        assert!(!messages.take(U24::new(0), &MESSAGE, part(0, 1)), "none is the message with zeros");
        for id in 0..6 {
            messages.add(U24::new(100), &MESSAGE, part(id, 0), 0);
        }
        let kept = (0..8).filter(|id| messages.take(U24::new(140), &MESSAGE, part(*id, 1)));
        assert!(kept.eq([3, 4, 5]));
    }

    #[test]
    fn a_message_is_forgotten_with_its_last_part() {
        let mut messages = CutMessages::default();
        let three = |index| Split { count: 3, id: 7, index };
        messages.add(U24::new(100), &MESSAGE, three(0), 1);
        messages.add(U24::new(100), &MESSAGE, three(0), 0);
        assert!(messages.take(U24::new(101), &MESSAGE, three(2)));
        assert!(!messages.take(U24::new(102), &MESSAGE, three(1)));
        messages.add(U24::new(100), &MESSAGE, three(0), 2);
        assert!(!messages.take(U24::new(103), &MESSAGE, three(1)));
    }

    #[test]
    fn a_split_id_that_comes_again_is_that_of_another_message() {
        assert!(belongs(0xFF_FFFF, 0), "numbers wrap");
        assert!(belongs(0, 16_000));
        assert!(!belongs(0, 16_384));
        assert!(!belongs(0xFF_FFFF, 0xFF_F000), "an older part");
        let mut messages = CutMessages::default();
        messages.add(U24::new(100), &MESSAGE, part(7, 0), 0);
        let later = IncomingMessage { order: U24::new(1), ..MESSAGE };
        assert!(!messages.take(U24::new(103), &later, part(7, 1)), "a message at another place");
        assert!(!messages.take(U24::new(102), &MESSAGE, part(7, 0)), "a first part with a number of its own");
        assert!(!messages.take(U24::new(103), &MESSAGE, part(7, 1)), "and what follows it");
    }

    #[test]
    fn messages_with_one_part_or_many_were_not_cut_again() {
        for (count, may_be) in [(1, false), (2, true), (MOST_PARTS, true), (MOST_PARTS + 1, false)] {
            assert_eq!(CutMessages::may_be(Split { count, id: 7, index: 0 }), may_be);
        }
        assert!(!CutMessages::may_be(part(7, 1)));
    }
}
