use heapless::Vec;
use rakwire::codec::rabbit::List;

use crate::message::{Entity, EntityId, EntityKind, Player, PlayerId, Scope};

/// The world as the newest snapshot told it, with room for `N` entities; of more the rest is not kept.
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
    /// When each was told last, in ticks, while only changes are.
    told: Vec<u32, N>,
}

impl<const N: usize> View<N> {
    /// A view of nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { entities: Vec::new(), told: Vec::new() }
    }

    /// Takes a snapshot.
    pub fn update(&mut self, entities: &List<'_, Entity>) {
        self.entities.clear();
        self.told.clear();
        for entity in entities.iter().take(N) {
            // There is room for N.
            let _ = self.entities.push(entity);
        }
    }

    /// Takes the snapshot of changes of a tick: it replaces what is known, and takes out what is dead or was not told for
    /// so long that its end must have been lost.
    pub fn merge(&mut self, time: u32, changes: &List<'_, Entity>) {
        // There is room for as many as there are entities.
        let _ = self.told.resize(self.entities.len(), time);
        for entity in changes.iter() {
            let known = self.entities.iter().position(|known| known.id == entity.id);
            match (known, entity.kind) {
                (Some(index), EntityKind::Dead) => self.remove(index),
                (Some(index), EntityKind::Object(_) | EntityKind::Player(_)) => {
                    if let (Some(known), Some(told)) =
                        (self.entities.get_mut(index), self.told.get_mut(index))
                    {
                        (*known, *told) = (entity, time);
                    }
                }
                (None, EntityKind::Dead) => {}
                (None, EntityKind::Object(_) | EntityKind::Player(_)) => {
                    if self.entities.push(entity).is_ok() {
                        let _ = self.told.push(time);
                    }
                }
            }
        }
        let forgotten = |told: &u32| {
            let age = time.wrapping_sub(*told);
            age > Scope::FORGOTTEN && age < u32::MAX / 2
        };
        while let Some(index) = self.told.iter().position(forgotten) {
            self.remove(index);
        }
    }

    fn remove(&mut self, index: usize) {
        if index < self.entities.len() {
            self.entities.remove(index);
        }
        if index < self.told.len() {
            self.told.remove(index);
        }
    }

    /// Takes the snapshot of a tick, of either kind.
    pub fn take(&mut self, time: u32, entities: &List<'_, Entity>, scope: Scope) {
        match scope {
            Scope::Whole => self.update(entities),
            Scope::Changes => self.merge(time, entities),
        }
    }

    /// All entities, in the order of the snapshot.
    #[must_use]
    pub fn entities(&self) -> &[Entity] {
        &self.entities
    }

    /// An entity by its name.
    #[must_use]
    pub fn entity(&self, id: EntityId) -> Option<&EntityKind> {
        self.entities.iter().find(|entity| entity.id == id).map(|entity| &entity.kind)
    }

    /// A player, and what its entity is called.
    #[must_use]
    pub fn player(&self, owner: PlayerId) -> Option<(EntityId, &Player)> {
        self.entities.iter().find_map(|entity| match &entity.kind {
            EntityKind::Player(player) if player.owner == owner => Some((entity.id, player)),
            EntityKind::Player(_) | EntityKind::Object(_) | EntityKind::Dead => None,
        })
    }
}
