use heapless::Vec;
use rakwire::rabbit::List;

use crate::message::{Entity, EntityId, EntityKind, Player, PlayerId, Scope};

/// The world as the newest snapshot told it, with room for `N` entities; of more the rest is not kept.
///
/// ```
/// use rakwire::rabbit::List;
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
}

impl<const N: usize> View<N> {
    /// A view of nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { entities: Vec::new() }
    }

    /// Takes a snapshot.
    pub fn update(&mut self, entities: &List<'_, Entity>) {
        self.entities.clear();
        self.entities.extend(entities.iter().take(N));
    }

    /// Takes a snapshot of what has changed: it replaces what is known, and takes out what is dead.
    pub fn merge(&mut self, changes: &List<'_, Entity>) {
        for entity in changes.iter() {
            let known = self.entities.iter().position(|known| known.id == entity.id);
            match (known, entity.kind) {
                (Some(index), EntityKind::Dead) => {
                    self.entities.remove(index);
                }
                (Some(index), EntityKind::Object(_) | EntityKind::Player(_)) => {
                    if let Some(known) = self.entities.get_mut(index) {
                        *known = entity;
                    }
                }
                (None, EntityKind::Dead) => {}
                (None, EntityKind::Object(_) | EntityKind::Player(_)) => {
                    // A view that is full keeps no more.
                    let _ = self.entities.push(entity);
                }
            }
        }
    }

    /// Takes a snapshot of either kind.
    pub fn take(&mut self, entities: &List<'_, Entity>, scope: Scope) {
        match scope {
            Scope::Whole => self.update(entities),
            Scope::Changes => self.merge(entities),
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
