//! What a plugin keeps of each connection.

use crate::endpoint::types::ConnectionId;

/// A value for each connection, found by the slot of the connection: a look-up costs the same whatever their number. `N` is
/// the number of connections that the peer can have; what is for a slot beyond that is not kept.
///
/// ```
/// use rakwire::Instant;
/// use rakwire::endpoint::BySlot;
/// use rakwire::raknet::{Config, Peer, Resources};
///
/// let mut resources = Resources::<1, 32, 128>::new();
/// let mut peer = Peer::new(&mut resources, Config::new([7; 32]));
/// let id = peer.connect(Instant::ZERO, "127.0.0.1:19132".parse()?)?;
/// let mut names = BySlot::<&str, 1>::new();
/// assert!(names.insert(id, "a server"));
/// assert_eq!(names.get(id), Some(&"a server"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct BySlot<T, const N: usize> {
    values: [Option<(ConnectionId, T)>; N],
}

impl<T, const N: usize> BySlot<T, N> {
    /// An empty table.
    #[must_use]
    pub const fn new() -> Self {
        Self { values: [const { None }; N] }
    }

    /// Keeps the value of a connection, in the place of an older one of the same slot. False if the slot is beyond the table.
    pub fn insert(&mut self, id: ConnectionId, value: T) -> bool {
        let place = self.values.get_mut(usize::from(id.slot));
        place.map(|place| *place = Some((id, value))).is_some()
    }

    /// The value of a connection.
    #[must_use]
    pub fn get(&self, id: ConnectionId) -> Option<&T> {
        let (owner, value) = self.values.get(usize::from(id.slot))?.as_ref()?;
        (*owner == id).then_some(value)
    }

    /// The value of a connection, to be changed.
    pub fn get_mut(&mut self, id: ConnectionId) -> Option<&mut T> {
        let (owner, value) = self.values.get_mut(usize::from(id.slot))?.as_mut()?;
        (*owner == id).then_some(value)
    }

    /// Takes the value of a connection out of the table.
    pub fn remove(&mut self, id: ConnectionId) -> Option<T> {
        let place = self.values.get_mut(usize::from(id.slot))?;
        place.take_if(|(owner, _)| *owner == id).map(|(_, value)| value)
    }

    /// Whether no connection has a value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// The connections with their values, by slots.
    pub fn iter(&self) -> impl Iterator<Item = (ConnectionId, &T)> {
        self.values.iter().flatten().map(|(id, value)| (*id, value))
    }

    /// The connections with their values, which may be changed, by slots.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (ConnectionId, &mut T)> {
        self.values.iter_mut().flatten().map(|(id, value)| (*id, value))
    }

    /// Drops the values for which `keep` says no.
    pub fn retain(&mut self, mut keep: impl FnMut(ConnectionId, &mut T) -> bool) {
        for place in &mut self.values {
            place.take_if(|(id, value)| !keep(*id, value));
        }
    }
}

impl<T, const N: usize> Default for BySlot<T, N> {
    fn default() -> Self {
        Self::new()
    }
}
