//! The clock of the core: microseconds since an epoch chosen by the caller.

use core::num::NonZeroU64;
use core::ops::Add;
use core::time::Duration;

/// A point in time, in microseconds since a fixed epoch of the caller's choice. The core never reads a clock.
///
/// Convert it from your own clock: `embassy_time::Instant::as_micros`, `performance.now() * 1000`, or
/// `std::time::Instant` minus a start. Time in a [`Peer`](crate::raknet::Peer) is monotonic: if you pass an earlier
/// time than before, its clock stands still.
///
/// ```
/// use core::time::Duration;
/// use rakwire::Instant;
///
/// let start = Instant::from_micros(5_000);
/// let later = start + Duration::from_millis(2);
/// assert_eq!(later.as_micros(), 7_000);
/// assert_eq!(later.saturating_since(start), Duration::from_millis(2));
/// assert_eq!(start.saturating_since(later), Duration::ZERO);
/// assert_eq!(format!("{later:?}"), "Instant(7000)");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(
    /// The microseconds plus one. The niche at zero keeps `Option<Instant>` as small as `Instant`.
    NonZeroU64,
);

impl Instant {
    /// The epoch.
    pub const ZERO: Self = Self(NonZeroU64::MIN);

    /// Returns the instant `micros` microseconds after the epoch. `u64::MAX` is clamped to `u64::MAX - 1`.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(micros))
    }

    /// Returns the microseconds since the epoch.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0.get() - 1
    }

    /// Returns the whole milliseconds since the epoch, the unit of all RakNet times on the wire.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        divide(self.as_micros(), 1_000)
    }

    /// Returns the duration from `earlier` to `self`, or zero if `earlier` is later.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.get().saturating_sub(earlier.0.get()))
    }

    /// Returns the microseconds from `earlier` to `self`, saturated to 32 bits.
    ///
    /// `Duration` divides 64-bit numbers, which is slow on 32-bit targets.
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) fn micros_since(self, earlier: Self) -> u32 {
        u32::try_from(self.0.get().saturating_sub(earlier.0.get())).unwrap_or(u32::MAX)
    }

    /// Returns the instant `micros` microseconds later.
    pub(crate) fn plus_micros(self, micros: u32) -> Self {
        self.plus_long(micros.into())
    }

    /// Returns the instant `micros` microseconds later, for spans beyond 32 bits.
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) const fn plus_long(self, micros: u64) -> Self {
        Self(self.0.saturating_add(micros))
    }
}

impl core::fmt::Debug for Instant {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Instant").field(&self.as_micros()).finish()
    }
}

impl Default for Instant {
    fn default() -> Self {
        Self::ZERO
    }
}

/// Returns `dividend / divisor`; a divisor of 0 is treated as 1.
///
/// For targets without a 64-bit division instruction the compiler links a library routine, which takes more flash than
/// this function.
pub(crate) const fn divide(dividend: u64, divisor: u32) -> u64 {
    let divisor = if divisor == 0 { 1 } else { divisor };
    if cfg!(any(target_pointer_width = "64", target_family = "wasm")) {
        dividend / divisor as u64
    } else {
        divide_in_steps(dividend, divisor)
    }
}

/// Divides the upper 32 bits in one operation, and the lower 32 bits bit by bit.
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
const fn divide_in_steps(dividend: u64, divisor: u32) -> u64 {
    let upper = (dividend >> 32) as u32;
    let (mut quotient, mut remainder) = (upper / divisor, upper % divisor);
    let mut lower = dividend as u32;
    let upper_quotient = quotient;
    let mut bit = 0;
    while bit < 32 {
        let overflows = remainder >> 31 != 0;
        remainder = remainder << 1 | lower >> 31;
        lower <<= 1;
        quotient <<= 1;
        if overflows || remainder >= divisor {
            remainder = remainder.wrapping_sub(divisor);
            quotient |= 1;
        }
        bit += 1;
    }
    (upper_quotient as u64) << 32 | quotient as u64
}

/// Returns the microseconds of a duration, saturated to 32 bits.
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
pub(crate) fn micros(time: Duration) -> u32 {
    let seconds = u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
    seconds.saturating_mul(1_000_000).saturating_add(time.subsec_micros())
}

/// Returns the microseconds of a duration.
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
pub(crate) const fn long_micros(time: Duration) -> u64 {
    // `Duration::as_micros` returns 128 bits, which takes much more code on 32-bit targets.
    time.as_secs().saturating_mul(1_000_000).saturating_add(time.subsec_micros() as u64)
}

impl Add<Duration> for Instant {
    type Output = Self;

    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn add(self, duration: Duration) -> Self {
        self.plus_long(long_micros(duration))
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for Instant {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{=u64:us}", self.as_micros());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_in_steps_equals_division() {
        let dividends = [0, 1, 999, 1_000, u64::from(u32::MAX), 1 << 32, 0x1234_5678_9ABC_DEF0, u64::MAX];
        for dividend in dividends {
            for divisor in [1, 2, 3, 1_000, 1_000_000, 0x7FFF_FFFF, 0x8000_0000, 0x8000_0001, u32::MAX] {
                assert_eq!(divide_in_steps(dividend, divisor), dividend / u64::from(divisor));
                assert_eq!(divide(dividend, divisor), dividend / u64::from(divisor));
            }
        }
        assert_eq!(divide(7, 0), 7);
    }
}
