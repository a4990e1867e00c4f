//! Counters of datagrams: from their low bits to the whole, and which ones were there before.

/// Counters behind the newest that are remembered: twice the datagram numbers that a connection remembers for reordering.
pub(super) const WINDOW: u64 = 2048;
/// The bits of a counter that travel.
pub(super) const COUNTER_BITS: u32 = 21;
/// These bits of a counter.
pub(super) const COUNTER_MASK: u64 = (1 << COUNTER_BITS) - 1;
/// No datagram has this counter or a higher one.
pub(super) const COUNTER_END: u64 = 1 << 62;

const WORDS: usize = (WINDOW / 32) as usize;

/// The counter with these low bits that is closest to `expected` (RFC 9000, appendix A.3). `expected` is at most
/// [`COUNTER_END`].
pub(super) const fn reconstruct(expected: u64, low: u64) -> u64 {
    const SPAN: u64 = 1 << COUNTER_BITS;
    const HALF: u64 = SPAN / 2;
    let candidate = (expected & !COUNTER_MASK) | (low & COUNTER_MASK);
    if candidate + HALF <= expected && candidate < COUNTER_END - SPAN {
        candidate + SPAN
    } else if candidate > expected + HALF && candidate >= SPAN {
        candidate - SPAN
    } else {
        candidate
    }
}

/// Which counters of the last 2,048 were there.
#[derive(Clone, Debug)]
pub(super) struct ReplayWindow {
    /// One more than the highest counter that was marked.
    next: u64,
    bits: [u32; WORDS],
}

impl ReplayWindow {
    pub(super) const fn new() -> Self {
        Self { next: 0, bits: [0; WORDS] }
    }

    /// One more than the highest counter that was marked; zero if none was.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    const fn place(counter: u64) -> (usize, u32) {
        let bit = counter % WINDOW;
        ((bit / 32) as usize, 1 << (bit % 32))
    }

    /// Whether the counter was not marked and is not so old that nobody knows.
    pub(super) fn is_new(&self, counter: u64) -> bool {
        let (word, mask) = Self::place(counter);
        match self.next.checked_sub(counter) {
            None | Some(0) => true,
            Some(age) => age <= WINDOW && self.bits.get(word).is_some_and(|word| word & mask == 0),
        }
    }

    /// Marks a counter that is new.
    pub(super) fn mark(&mut self, counter: u64) {
        if counter >= self.next {
            if counter - self.next >= WINDOW {
                self.bits = [0; WORDS];
            } else {
                (self.next..counter).for_each(|skipped| self.set(skipped, false));
            }
            self.next = counter + 1;
        }
        self.set(counter, true);
    }

    fn set(&mut self, counter: u64, value: bool) {
        let (word, mask) = Self::place(counter);
        if let Some(word) = self.bits.get_mut(word) {
            *word = if value { *word | mask } else { *word & !mask };
        }
    }
}

#[cfg(test)]
#[path = "replay_window_tests.rs"]
mod tests;
