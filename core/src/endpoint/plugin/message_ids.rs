//! A set of message ids.

/// A set of the ids, that is the first bytes, of messages.
///
/// ```
/// use rakwire::endpoint::MessageIds;
///
/// let ids = MessageIds::of(&[68, 69]);
/// assert!(ids.contains(68) && !ids.contains(70));
/// assert_eq!(ids.first_of_both(MessageIds::of(&[90, 69])), Some(69));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageIds([u64; 4]);

impl MessageIds {
    /// No id.
    pub const NONE: Self = Self([0; 4]);
    /// Every id.
    pub const ALL: Self = Self([u64::MAX; 4]);

    /// The set of these ids.
    #[must_use]
    pub fn of(ids: &[u8]) -> Self {
        let mut set = Self::NONE;
        ids.iter().for_each(|id| set.insert(*id));
        set
    }

    /// Whether an id is in the set.
    #[must_use]
    pub fn contains(self, id: u8) -> bool {
        self.0.get(usize::from(id / 64)).is_some_and(|word| word & (1 << (id % 64)) != 0)
    }

    /// Puts an id into the set.
    pub fn insert(&mut self, id: u8) {
        if let Some(word) = self.0.get_mut(usize::from(id / 64)) {
            *word |= 1 << (id % 64);
        }
    }

    /// Takes an id out of the set.
    pub fn remove(&mut self, id: u8) {
        if let Some(word) = self.0.get_mut(usize::from(id / 64)) {
            *word &= !(1 << (id % 64));
        }
    }

    /// The lowest id that is in both sets.
    #[must_use]
    pub fn first_of_both(self, other: Self) -> Option<u8> {
        (0..=u8::MAX).find(|id| self.contains(*id) && other.contains(*id))
    }
}
