//! Names for the objects of a game (docs/raknet.md#network-ids). The protocol does not use them; games that replicate objects
//! do, and peers of one game must form them alike.

/// The name of an object that several peers know: 64 bits, big endian on the wire.
///
/// An object is named by the peer that makes it, with a [`NetworkIdGenerator`]; no peer hands out ranges. In older
/// versions of RakNet a name was a GUID with a 16-bit number; that form is not spoken here.
///
/// ```
/// use rakwire::raknet::NetworkId;
///
/// assert_eq!(NetworkId(0xA1).to_string(), "00000000000000a1");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NetworkId(pub u64);

impl NetworkId {
    /// The value that stands for no object.
    pub const UNASSIGNED: Self = Self(u64::MAX);

    /// Whether the value names an object.
    #[must_use]
    pub const fn is_assigned(self) -> bool {
        self.0 != Self::UNASSIGNED.0
    }
}

/// No object.
impl Default for NetworkId {
    fn default() -> Self {
        Self::UNASSIGNED
    }
}

impl core::fmt::Display for NetworkId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Hands out names in sequence from a random start, so that peers that do not know of each other do not collide.
///
/// ```
/// use rakwire::raknet::{NetworkId, NetworkIdGenerator};
///
/// let mut generator = NetworkIdGenerator::new(41); // 64 random bits in a real program
/// assert_eq!(generator.generate(|_| false), Some(NetworkId(42)));
/// assert_eq!(generator.generate(|id| id == NetworkId(43)), Some(NetworkId(44)));
/// ```
#[derive(Clone, Debug)]
pub struct NetworkIdGenerator {
    last: u64,
}

impl NetworkIdGenerator {
    /// How many names in use one call passes over at most.
    pub const MAX_STEPS: u32 = 65_536;

    /// A generator whose first name is the one after `start`, which should be 64 random bits of this process.
    #[must_use]
    pub const fn new(start: u64) -> Self {
        Self { last: start }
    }

    /// The next name that `in_use` does not know; never [`NetworkId::UNASSIGNED`].
    ///
    /// None after [`MAX_STEPS`](Self::MAX_STEPS) names in use, one after the other; another call goes on from there.
    pub fn generate(&mut self, mut in_use: impl FnMut(NetworkId) -> bool) -> Option<NetworkId> {
        for _ in 0..Self::MAX_STEPS {
            self.last = self.last.wrapping_add(1);
            let id = NetworkId(self.last);
            if id.is_assigned() && !in_use(id) {
                return Some(id);
            }
        }
        None
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for NetworkId {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{=u64:016x}", self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_wrap_past_the_unassigned_one() {
        let mut generator = NetworkIdGenerator::new(u64::MAX - 2);
        let mut next = || generator.generate(|_| false);
        assert_eq!(next(), Some(NetworkId(u64::MAX - 1)));
        assert_eq!(next(), Some(NetworkId(0)));
        assert_eq!(next(), Some(NetworkId(1)));
    }

    #[test]
    fn names_in_use_are_passed_over_within_a_bound() {
        let mut generator = NetworkIdGenerator::new(0);
        let end = u64::from(NetworkIdGenerator::MAX_STEPS) + 10;
        let in_use = |id: NetworkId| id.0 <= end;
        assert_eq!(generator.generate(in_use), None);
        assert_eq!(generator.generate(in_use), Some(NetworkId(end + 1)));
        let mut asked = 0;
        let none = generator.generate(|_| {
            asked += 1;
            true
        });
        assert_eq!((none, asked), (None, NetworkIdGenerator::MAX_STEPS));
    }
}
