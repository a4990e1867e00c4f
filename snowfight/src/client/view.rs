use heapless::Vec;
use rakwire::codec::rabbit::List;

use crate::message::{Entity, EntityId, EntityKind, Player, PlayerId, Scope};

/// The world as of the newest snapshot, with a capacity of `N` entities; entities beyond the capacity are dropped.
///
/// ```
/// use rakwire::codec::rabbit::List;
/// use snowfight::client::View;
/// use snowfight::message::{Entity, EntityId, EntityKind};
///
/// let mut view = View::<4>::new();
/// view.update(&List::new(&[Entity { id: EntityId(1), kind: EntityKind::Dead }]));
/// assert_eq!(view.entity(EntityId(1)), Some(&EntityKind::Dead));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View<const N: usize> {
    entities: Vec<Entity, N>,
    /// The tick of the last update of each entity; used only with delta snapshots ([`Scope::Changes`]).
    updated_at: Vec<u32, N>,
}

impl<const N: usize> View<N> {
    /// Creates an empty view.
    #[must_use]
    pub const fn new() -> Self {
        Self { entities: Vec::new(), updated_at: Vec::new() }
    }

    /// Applies a whole snapshot.
    pub fn update(&mut self, entities: &List<'_, Entity>) {
        self.replace(entities.iter());
    }

    /// Replaces all entities of the view with these entities.
    pub fn replace(&mut self, entities: impl IntoIterator<Item = Entity>) {
        self.entities.clear();
        self.updated_at.clear();
        for entity in entities.into_iter().take(N) {
            // This cannot fail: `take` limits the number to the capacity.
            let _ = self.entities.push(entity);
        }
    }

    /// Applies a snapshot of changes. It removes dead entities, and entities without an update for so long that the
    /// message about their death must have been lost.
    pub fn merge(&mut self, time: u32, changes: &List<'_, Entity>) {
        // This cannot fail: both vectors have the same capacity.
        let _ = self.updated_at.resize(self.entities.len(), time);
        for entity in changes.iter() {
            let known = self.entities.iter().position(|known| known.id == entity.id);
            match (known, entity.kind) {
                (Some(index), EntityKind::Dead) => self.remove(index),
                (Some(index), EntityKind::Object(_) | EntityKind::Player(_)) => {
                    if let (Some(known), Some(updated_at)) =
                        (self.entities.get_mut(index), self.updated_at.get_mut(index))
                    {
                        (*known, *updated_at) = (entity, time);
                    }
                }
                (None, EntityKind::Dead) => {}
                (None, EntityKind::Object(_) | EntityKind::Player(_)) => {
                    if self.entities.push(entity).is_ok() {
                        let _ = self.updated_at.push(time);
                    }
                }
            }
        }
        let expired = |updated_at: &u32| {
            let age = time.wrapping_sub(*updated_at);
            age > Scope::EXPIRY_TICKS && age < u32::MAX / 2
        };
        while let Some(index) = self.updated_at.iter().position(expired) {
            self.remove(index);
        }
    }

    fn remove(&mut self, index: usize) {
        if index < self.entities.len() {
            self.entities.remove(index);
        }
        if index < self.updated_at.len() {
            self.updated_at.remove(index);
        }
    }

    /// Applies a snapshot of the given scope.
    pub fn take(&mut self, time: u32, entities: &List<'_, Entity>, scope: Scope) {
        match scope {
            Scope::Whole | Scope::Replicated => self.update(entities),
            Scope::Changes => self.merge(time, entities),
        }
    }

    /// Returns all entities, in the order of the snapshot.
    #[must_use]
    pub fn entities(&self) -> &[Entity] {
        &self.entities
    }

    /// Returns an entity by its id.
    #[must_use]
    pub fn entity(&self, id: EntityId) -> Option<&EntityKind> {
        self.entities.iter().find(|entity| entity.id == id).map(|entity| &entity.kind)
    }

    /// Returns the entity of a player and its id; `None` if the player is not in the view.
    #[must_use]
    pub fn player(&self, owner: PlayerId) -> Option<(EntityId, &Player)> {
        self.entities.iter().find_map(|entity| entity.player_of(owner))
    }
}
