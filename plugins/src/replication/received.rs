//! The set of ticks that a client has received.

/// The number of ticks that one acknowledgement covers.
const WINDOW: u32 = 33;

/// The latest tick that was received or sent, and a bit for each of the 63 ticks before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Received {
    latest: u32,
    /// Bit `n` is set for the tick `n` before the latest.
    bits: u64,
}

impl Received {
    pub(super) const NONE: Self = Self { latest: 0, bits: 0 };

    /// Creates the set from an acknowledgement.
    pub(super) const fn of(latest: u32, before: u32) -> Self {
        Self { latest, bits: ((before as u64) << 1) | 1 }
    }

    pub(super) const fn latest(self) -> u32 {
        self.latest
    }

    /// Returns a bit for each of the 32 ticks before the latest; bit 0 is the tick immediately before it.
    pub(super) const fn before(self) -> u32 {
        (self.bits >> 1) as u32
    }

    /// Returns true if a tick is too old to be acknowledged.
    pub(super) const fn is_too_old(self, tick: u32) -> bool {
        self.latest.saturating_sub(tick) >= WINDOW
    }

    pub(super) fn merge(&mut self, other: Self) {
        let (newer, older) = if other.latest >= self.latest { (other, *self) } else { (*self, other) };
        let shifted = older.bits.checked_shl(newer.latest - older.latest).unwrap_or(0);
        *self = Self { latest: newer.latest, bits: newer.bits | shifted };
    }

    /// Returns the latest tick that is in both sets.
    pub(super) fn latest_of_both(self, other: Self) -> Option<u32> {
        let (newer, older) = if other.latest >= self.latest { (other, self) } else { (self, other) };
        let both = newer.bits.checked_shr(newer.latest - older.latest).unwrap_or(0) & older.bits;
        (both != 0).then(|| older.latest - both.trailing_zeros())
    }
}
