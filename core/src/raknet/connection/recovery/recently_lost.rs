//! Lost datagrams whose messages were sent again already.

use crate::raknet::loss_history::LOST_WORDS;
use crate::raknet::wire::datagram::Record;
use crate::serial::U24;

/// How many are kept: one and a half words for each.
const CAPACITY: usize = LOST_WORDS * 2 / 3;

/// Which of the words that [`LossHistory`](crate::raknet::loss_history::LossHistory) has for a connection hold a datagram: the
/// numbers of those that were lost last, and the ordinals of their losses. An acknowledgement of one of them shows that the
/// loss was spurious.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecentlyLost {
    /// One bit for each place that is taken.
    taken: u16,
    /// The place that is written next.
    next: u8,
}

impl RecentlyLost {
    /// Adds a datagram, in place of the oldest one if all places are taken; returns how many that replaced.
    pub(super) fn push(&mut self, words: Option<&mut [u32; LOST_WORDS]>, number: U24, ordinal: u32) -> u8 {
        let at = usize::from(self.next);
        if let Some((numbers, ordinals)) = words.map(|words| words.split_at_mut(CAPACITY))
            && let (Some(place), Some(pair)) = (numbers.get_mut(at), ordinals.get_mut(at / 2))
        {
            *place = number.get();
            let shift = shift(at);
            *pair = *pair & !(0xFFFF << shift) | (ordinal & 0xFFFF) << shift;
        }
        let bit = 1 << self.next;
        let replaced = u8::from(self.taken & bit != 0);
        self.taken |= bit;
        self.next = (self.next + 1) % CAPACITY as u8;
        replaced
    }

    /// Whether a datagram is kept.
    #[inline]
    pub(super) const fn is_empty(self) -> bool {
        self.taken == 0
    }

    /// Takes out a datagram that `record` names and returns the low 16 bits of its ordinal. An ordinal that is 65,536 losses
    /// old looks new, which may undo a reduction of the `NewReno` window too early.
    pub(super) fn take(&mut self, words: &[u32; LOST_WORDS], record: Record) -> Option<u16> {
        let length = record.last.since(record.first);
        let (numbers, ordinals) = words.split_at(CAPACITY);
        let is_named = |number: u32, at: usize| {
            self.taken & 1 << at != 0 && U24::new(number).since(record.first) <= length
        };
        let at = numbers.iter().zip(0..).position(|(number, at)| is_named(*number, at))?;
        self.taken &= !(1 << at);
        ordinals.get(at / 2).map(|pair| (pair >> shift(at)) as u16)
    }
}

/// Where in its word an ordinal stands.
const fn shift(at: usize) -> u32 {
    if at.is_multiple_of(2) { 0 } else { 16 }
}
