//! Which sequences were delivered, and which are not acknowledged: two windows over numbers of 16 bits that wrap.

/// Sequences that both windows span, as the original's (docs/game-protocol.md#window).
pub(super) const WINDOW: u16 = 1_024;
const WORDS: usize = WINDOW as usize / 64;
/// From here on a number counts as older.
const HALF: u16 = 0x8000;

/// One bit for each sequence of a window.
#[derive(Clone, Copy, Debug, Default)]
struct Bits([u64; WORDS]);

impl Bits {
    const fn place(sequence: u16) -> (usize, u64) {
        let bit = sequence % WINDOW;
        (bit as usize / 64, 1 << (bit % 64))
    }

    fn get(&self, sequence: u16) -> bool {
        let (word, mask) = Self::place(sequence);
        self.0.get(word).is_some_and(|word| word & mask != 0)
    }

    fn set(&mut self, sequence: u16) {
        let (word, mask) = Self::place(sequence);
        if let Some(word) = self.0.get_mut(word) {
            *word |= mask;
        }
    }

    fn clear(&mut self, sequence: u16) {
        let (word, mask) = Self::place(sequence);
        if let Some(word) = self.0.get_mut(word) {
            *word &= !mask;
        }
    }
}

/// What is known of a sequence that something arrived of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SequenceStatus {
    New,
    /// Its message was delivered.
    Duplicate,
    /// Too far behind the newest to tell.
    OutsideWindow,
}

/// The sequences that were delivered, among the newest.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReceiveWindow {
    /// The newest sequence of which anything arrived, once anything did.
    newest: Option<u16>,
    delivered: Bits,
}

impl ReceiveWindow {
    pub(super) fn check(&self, sequence: u16) -> SequenceStatus {
        match self.behind(sequence) {
            None => SequenceStatus::New,
            Some(behind) if behind >= WINDOW => SequenceStatus::OutsideWindow,
            Some(_) if self.delivered.get(sequence) => SequenceStatus::Duplicate,
            Some(_) => SequenceStatus::New,
        }
    }

    /// How far a sequence is behind the newest; nothing if it is newer.
    fn behind(&self, sequence: u16) -> Option<u16> {
        let newest = self.newest?;
        let behind = newest.wrapping_sub(sequence);
        // Half round the circle is as far behind as ahead. It counts as behind.
        (behind <= HALF).then_some(behind)
    }

    /// Whether the window has passed a sequence.
    pub(super) fn has_passed(&self, sequence: u16) -> bool {
        self.check(sequence) == SequenceStatus::OutsideWindow
    }

    /// Moves the window on so that it contains `sequence`.
    pub(super) fn advance(&mut self, sequence: u16) {
        if self.behind(sequence).is_some() {
            return;
        }
        if let Some(newest) = self.newest {
            let ahead = sequence.wrapping_sub(newest);
            if ahead >= WINDOW {
                self.delivered = Bits::default();
            }
            for step in 1..=ahead.min(WINDOW) {
                self.delivered.clear(newest.wrapping_add(step));
            }
        }
        self.newest = Some(sequence);
    }

    pub(super) fn mark(&mut self, sequence: u16) {
        self.delivered.set(sequence);
    }
}

/// The reliable sequences that are under way. A sender stays within one window of the oldest, or the receiver could not
/// tell a late chunk of it from an old one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SendWindow {
    oldest: u16,
    count: u16,
    open: Bits,
}

impl SendWindow {
    /// Whether `sequence`, the next to be sent, is within the window.
    pub(super) const fn admits(&self, sequence: u16) -> bool {
        self.count == 0 || sequence.wrapping_sub(self.oldest) < WINDOW
    }

    /// A reliable sequence, which was admitted, leaves.
    pub(super) fn open(&mut self, sequence: u16) {
        if self.count == 0 {
            self.oldest = sequence;
        }
        if !self.open.get(sequence) {
            self.open.set(sequence);
            self.count += 1;
        }
    }

    /// Every chunk of a sequence was acknowledged.
    pub(super) fn close(&mut self, sequence: u16) {
        if !self.open.get(sequence) {
            return;
        }
        self.open.clear(sequence);
        self.count = self.count.saturating_sub(1);
        // Bits outside of the window are clear, so each step leaves a sequence behind for good.
        for _ in 0..WINDOW {
            if self.count == 0 || self.open.get(self.oldest) {
                return;
            }
            self.oldest = self.oldest.wrapping_add(1);
        }
        debug_assert!(false, "{} sequences are open and none has a bit", self.count);
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_is_delivered_once_wherever_the_numbers_start() {
        for start in [0, 1, 1_023, 32_767, 32_768, 65_000, 65_535] {
            let mut window = ReceiveWindow::default();
            for step in (0..4_000_u16).map(|step| step ^ 3) {
                let sequence = step.wrapping_add(start);
                assert_eq!(window.check(sequence), SequenceStatus::New, "{start} {step}");
                window.advance(sequence);
                window.mark(sequence);
                assert_eq!(window.check(sequence), SequenceStatus::Duplicate);
            }
        }
    }

    #[test]
    fn the_window_reaches_1_023_back() {
        let mut window = ReceiveWindow::default();
        window.advance(65_000);
        window.mark(65_000);
        window.advance(65_000_u16.wrapping_add(1_023));
        assert_eq!(window.check(65_000), SequenceStatus::Duplicate);
        assert_eq!(window.check(64_999), SequenceStatus::OutsideWindow);
        window.advance(65_000_u16.wrapping_add(1_024));
        assert_eq!(window.check(65_000), SequenceStatus::OutsideWindow);
        assert_eq!(window.check(65_001), SequenceStatus::New);
    }

    #[test]
    fn a_jump_leaves_nothing_of_the_old_window() {
        let mut window = ReceiveWindow::default();
        for sequence in 0..1_024 {
            window.advance(sequence);
            window.mark(sequence);
        }
        window.advance(20_000);
        assert_eq!(window.check(20_000), SequenceStatus::New);
        assert_eq!(window.check(20_000 - 1_023), SequenceStatus::New);
        assert_eq!(window.check(20_000 - 1_024), SequenceStatus::OutsideWindow);
        assert_eq!(window.check(20_000_u16.wrapping_add(HALF - 1)), SequenceStatus::New);
        assert_eq!(window.check(20_000_u16.wrapping_add(HALF)), SequenceStatus::OutsideWindow);
    }

    #[test]
    fn a_sender_stays_within_a_window_of_the_oldest() {
        let mut window = SendWindow::default();
        assert!(window.admits(7));
        window.open(65_500);
        window.open(65_502);
        let last = 65_500_u16.wrapping_add(1_023);
        assert!(window.admits(last) && !window.admits(last.wrapping_add(1)));
        window.close(65_502);
        assert!(!window.admits(last.wrapping_add(1)));
        window.open(3);
        window.close(65_500);
        assert!(window.admits(1_026) && !window.admits(1_027));
        window.close(3);
        assert!(window.admits(30_000));
    }
}
