//! Network-wide IDs for the objects of a game (docs/raknet.md#network-ids).
//!
//! They are for games that replicate objects. The transport itself does not use them.

/// The ID of an object that several peers share: 64 bits, big endian on the wire.
///
/// The peer that creates an object generates its ID with a [`NetworkIdGenerator`], without coordination. Older
/// versions of RakNet used a GUID and a 16-bit number instead; that form is not supported.
///
/// ```
/// use rakwire::raknet::NetworkId;
///
/// assert_eq!(NetworkId(0xA1).to_string(), "00000000000000a1");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NetworkId(pub u64);

impl NetworkId {
    /// The ID that refers to no object.
    pub const UNASSIGNED: Self = Self(u64::MAX);

    /// Returns true unless the value is [`UNASSIGNED`](Self::UNASSIGNED).
    #[must_use]
    pub const fn is_assigned(self) -> bool {
        self.0 != Self::UNASSIGNED.0
    }
}

/// Returns [`NetworkId::UNASSIGNED`].
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

/// Generates sequential IDs from a random start; the IDs of independent peers almost never collide.
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
    /// The maximum number of used IDs that one call skips.
    pub const MAX_STEPS: u32 = 65_536;

    /// Creates a generator that starts after the ID `start`, which should be 64 random bits.
    #[must_use]
    pub const fn new(start: u64) -> Self {
        Self { last: start }
    }

    /// Returns the next ID for which `in_use` returns false; never [`NetworkId::UNASSIGNED`].
    ///
    /// Returns `None` after [`MAX_STEPS`](Self::MAX_STEPS) consecutive IDs in use; the next call continues from
    /// there.
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
    fn network_ids_skip_the_unassigned_value_when_they_wrap() {
        let mut generator = NetworkIdGenerator::new(u64::MAX - 2);
        let mut next = || generator.generate(|_| false);
        assert_eq!(next(), Some(NetworkId(u64::MAX - 1)));
        assert_eq!(next(), Some(NetworkId(0)));
        assert_eq!(next(), Some(NetworkId(1)));
    }

    #[test]
    fn generate_skips_at_most_max_steps_ids_in_use() {
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
