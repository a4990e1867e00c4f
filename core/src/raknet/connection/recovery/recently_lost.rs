//! Lost datagrams whose messages were sent again already.

use crate::raknet::wire::datagram::Record;
use crate::serial::U24;

/// How many are kept.
const CAPACITY: usize = 16;

/// The numbers of the datagrams that were lost last, and the ordinals of their losses. An acknowledgement of one of them
/// shows that the loss was spurious.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecentlyLost {
    numbers: [U24; CAPACITY],
    /// The low 16 bits of the ordinals. An ordinal that is 65,536 losses old looks new, which may undo a reduction of the
    /// `NewReno` window too early.
    ordinals: [u16; CAPACITY],
    /// One bit for each place that is taken.
    taken: u16,
    /// The place that is written next.
    next: u8,
}

impl RecentlyLost {
    /// Adds a datagram, in place of the oldest one if all places are taken; returns how many that replaced.
    pub(super) fn push(&mut self, number: U24, ordinal: u32) -> u8 {
        let at = usize::from(self.next);
        if let (Some(place), Some(beside)) = (self.numbers.get_mut(at), self.ordinals.get_mut(at)) {
            (*place, *beside) = (number, ordinal as u16);
        } else {
            debug_assert!(false, "no place {at}");
        }
        let bit = 1 << self.next;
        let replaced = u8::from(self.taken & bit != 0);
        self.taken |= bit;
        self.next = (self.next + 1) % CAPACITY as u8;
        replaced
    }

    /// Takes out a datagram that `record` names and returns the low bits of its ordinal.
    #[inline]
    pub(super) fn take(&mut self, record: Record) -> Option<u16> {
        if self.taken == 0 {
            return None;
        }
        let length = record.last.since(record.first);
        let mut places = self.numbers.iter().zip(self.ordinals).zip(0..);
        let ((_, ordinal), at) = places
            .find(|((number, _), at)| self.taken & 1 << at != 0 && number.since(record.first) <= length)?;
        self.taken &= !(1 << at);
        Some(ordinal)
    }
}
