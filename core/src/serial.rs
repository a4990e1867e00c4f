//! 24-bit sequence numbers that wrap, compared by serial number arithmetic.

/// A 24-bit sequence number of a datagram or message, which wraps to zero after 16,777,215.
///
/// Two numbers compare by the shorter distance modulo 2^24 (docs/raknet.md#serial-numbers). The order is not total,
/// so `U24` does not implement `Ord`.
///
/// ```
/// use rakwire::U24;
///
/// let last = U24::new(0xFF_FFFF);
/// assert_eq!(last.next(), U24::new(0));
/// assert!(last.next().is_newer_than(last));
/// assert_eq!(U24::new(3).since(last), 4);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct U24(u32);

const MASK: u32 = 0xFF_FFFF;
const HALF: u32 = 0x7F_FFFF;

impl U24 {
    /// Creates a number from the low 24 bits of `value`; the upper 8 bits are ignored.
    #[must_use]
    pub const fn new(value: u32) -> Self {
        Self(value & MASK)
    }

    /// Returns the number as an integer below 2^24.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Returns `self + count` modulo 2^24.
    #[must_use]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub const fn plus(self, count: u32) -> Self {
        Self(self.0.wrapping_add(count) & MASK)
    }

    /// Returns `self - count` modulo 2^24.
    #[must_use]
    pub const fn minus(self, count: u32) -> Self {
        Self(self.0.wrapping_sub(count) & MASK)
    }

    /// Returns the next number; 0 follows 16,777,215.
    #[must_use]
    pub const fn next(self) -> Self {
        self.plus(1)
    }

    /// Returns `self - other` modulo 2^24: the steps forward from `other` to `self`.
    #[must_use]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub const fn since(self, other: Self) -> u32 {
        self.0.wrapping_sub(other.0) & MASK
    }

    /// Returns true if `self` is less than 2^23 steps after `other`, and not equal to it.
    #[must_use]
    pub const fn is_newer_than(self, other: Self) -> bool {
        let ahead = self.since(other);
        ahead != 0 && ahead <= HALF
    }

    /// Returns true if `self` is less than 2^23 steps before `other`, and not equal to it.
    #[must_use]
    pub const fn is_older_than(self, other: Self) -> bool {
        other.is_newer_than(self)
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for U24 {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{=u32}", self.get());
    }
}

#[cfg(test)]
mod tests {
    use bolero::{one_of, produce};

    use super::*;

    /// Exactly one of four statements holds: `a` is newer, `b` is newer, they are equal, or they are 2^23 apart.
    #[test]
    #[cfg_attr(kani, kani::proof)]
    fn any_two_numbers_compare_by_the_shorter_distance() {
        let distance = one_of((0..=MASK, 0..=1_u32, HALF - 1..=HALF + 2));
        bolero::check!().with_iterations(10_000).with_generator((produce::<u32>(), distance)).for_each(
            |(start, ahead)| {
                let b = U24::new(*start);
                let a = U24::new(start.wrapping_add(*ahead));
                let (newer, older, distance) = (a.is_newer_than(b), a.is_older_than(b), a.since(b));
                assert_eq!(distance, *ahead);
                assert_eq!(newer, (1..=HALF).contains(&distance));
                assert_eq!(older, distance > HALF + 1);
                assert_eq!(a.is_newer_than(b), b.is_older_than(a));
            },
        );
    }

    /// `plus` and `minus` of the same count cancel out, and `since` returns the count.
    #[test]
    #[cfg_attr(kani, kani::proof)]
    fn adding_and_subtracting_a_count_are_inverse() {
        bolero::check!().with_iterations(10_000).with_type::<(u32, u32)>().for_each(|(start, count)| {
            let start = U24::new(*start);
            assert_eq!(start.plus(*count).since(start), count & MASK);
            assert_eq!(start.plus(*count).minus(*count), start);
        });
    }

    #[test]
    fn order_holds_across_wraparound() {
        for start in [0, 1, 1_000, 0x7F_FFFE, 0xFF_FF00, 0xFF_FFFF] {
            let number = U24::new(start);
            for ahead in [1, 2, 255, 50_000, HALF] {
                assert!(number.plus(ahead).is_newer_than(number));
                assert!(number.is_older_than(number.plus(ahead)));
                assert!(!number.is_newer_than(number.plus(ahead)));
                assert_eq!(number.plus(ahead).since(number), ahead);
                assert_eq!(number.plus(ahead).minus(ahead), number);
            }
        }
        assert!(!U24::new(5).is_newer_than(U24::new(5)));
    }
}
