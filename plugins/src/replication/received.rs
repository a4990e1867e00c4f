//! Which ticks a client has received.

/// So many ticks are acknowledged at once.
const WINDOW: u32 = 33;

/// The latest tick that was received or sent, and which of the 63 before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Received {
    latest: u32,
    /// Bit `n` stands for `n` ticks before the latest.
    bits: u64,
}

impl Received {
    pub(super) const NONE: Self = Self { latest: 0, bits: 0 };

    /// What an acknowledgement says.
    pub(super) const fn of(latest: u32, before: u32) -> Self {
        Self { latest, bits: ((before as u64) << 1) | 1 }
    }

    pub(super) const fn latest(self) -> u32 {
        self.latest
    }

    /// Which of the 32 ticks before the latest were received.
    pub(super) const fn before(self) -> u32 {
        (self.bits >> 1) as u32
    }

    /// Whether a tick is too old to be acknowledged.
    pub(super) const fn is_too_old(self, tick: u32) -> bool {
        self.latest.saturating_sub(tick) >= WINDOW
    }

    pub(super) fn merge(&mut self, other: Self) {
        let (newer, older) = if other.latest >= self.latest { (other, *self) } else { (*self, other) };
        let shifted = older.bits.checked_shl(newer.latest - older.latest).unwrap_or(0);
        *self = Self { latest: newer.latest, bits: newer.bits | shifted };
    }

    /// The latest tick that both have.
    pub(super) fn latest_of_both(self, other: Self) -> Option<u32> {
        let (newer, older) = if other.latest >= self.latest { (other, self) } else { (self, other) };
        let both = newer.bits.checked_shr(newer.latest - older.latest).unwrap_or(0) & older.bits;
        (both != 0).then(|| older.latest - both.trailing_zeros())
    }
}
