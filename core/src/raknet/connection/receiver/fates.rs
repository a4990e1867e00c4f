//! What is known of each datagram number of the receive window.

use crate::raknet::loss_history::WINDOW_WORDS;
use crate::serial::U24;

/// Bits of a word.
const WORD: u32 = 32;
/// Words of each table.
const TABLE: usize = WINDOW_WORDS / 2;
/// Datagrams behind the newest that are remembered.
pub(super) const WINDOW: u32 = TABLE as u32 * WORD;

/// What is known of a number of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Nothing, or that a negative acknowledgement has named it.
    Unknown,
    /// It arrived, and its messages were all taken.
    Received,
    /// It arrived, and there was no memory for some of its messages.
    Deferred,
    /// A negative acknowledgement is to name it.
    Missing,
}

/// The fate of each number of the window, as one bit in each of two tables: first that of those that are received or missing,
/// then that of those that are deferred or missing.
pub(in super::super) struct Fates<'h>(Option<&'h mut [u32; WINDOW_WORDS]>);

impl<'h> Fates<'h> {
    /// The fates in the words that [`LossHistory`](crate::raknet::loss_history::LossHistory) has for a connection.
    #[inline]
    pub(in super::super) const fn new(words: Option<&'h mut [u32; WINDOW_WORDS]>) -> Self {
        Self(words)
    }

    /// Which word of a table, and which bit of it.
    const fn place(number: U24) -> (usize, u32) {
        let bit = number.get() % WINDOW;
        ((bit / WORD) as usize, bit % WORD)
    }

    pub(super) fn get(&self, number: U24) -> Fate {
        self.word(number).0.first()
    }

    pub(super) fn set(&mut self, number: U24, fate: Fate) {
        let (word, bit) = Self::place(number);
        let values = [
            (word, matches!(fate, Fate::Received | Fate::Missing)),
            (TABLE + word, matches!(fate, Fate::Deferred | Fate::Missing)),
        ];
        let Some(words) = &mut self.0 else { return };
        for (word, value) in values {
            if let Some(word) = words.get_mut(word) {
                *word = *word & !(1 << bit) | u32::from(value) << bit;
            }
        }
    }

    /// Every number of the window was received.
    pub(super) fn fill(&mut self) {
        let Some(words) = &mut self.0 else { return };
        let (low, high) = words.split_at_mut(TABLE);
        low.fill(u32::MAX);
        high.fill(0);
    }

    /// A word of bits for those that are received, deferred or missing, the lowest for `number`, and how many bits it has.
    pub(super) fn word(&self, number: U24) -> (Word, u32) {
        let (word, bit) = Self::place(number);
        let at =
            |word: usize| self.0.as_ref().and_then(|words| words.get(word)).map_or(0, |word| word >> bit);
        (Word { low: at(word), high: at(TABLE + word) }, WORD - bit)
    }
}

/// Some of the fates, the first in the lowest bit.
#[derive(Clone, Copy)]
pub(super) struct Word {
    pub(super) low: u32,
    pub(super) high: u32,
}

impl Word {
    /// All were received.
    pub(super) const RECEIVED: (Self, u32) = (Self { low: u32::MAX, high: 0 }, WORD);

    pub(super) const fn first(self) -> Fate {
        match (self.high & 1 != 0, self.low & 1 != 0) {
            (false, false) => Fate::Unknown,
            (false, true) => Fate::Received,
            (true, false) => Fate::Deferred,
            (true, true) => Fate::Missing,
        }
    }
}
