//! Copies a server's world to its replication authority.

use heapless::Vec;
use rakwire::endpoint::{ConnectionId, Protocol};
use rakwire_plugins::replication::NetworkId;
use snowfight::message::{Entity, EntityId, Point};

use crate::{BYTES, ENTITIES, UPDATE_TICKS, WorldAuthority, class};

/// An entity of the world, with its id at the authority.
#[derive(Clone, Copy, Debug)]
struct Recorded {
    id: EntityId,
    network_id: NetworkId,
    /// True if the entity exists in the world that is being recorded.
    is_present: bool,
}

/// Copies a world to an authority, from tick 0 on.
#[derive(Debug, Default)]
pub struct ReplicatedWorld {
    /// The entities, sorted by id.
    entities: Vec<Recorded, ENTITIES>,
    /// The tick of the world in the last recorded update.
    time: u32,
}

impl ReplicatedWorld {
    /// Creates a copy of the empty world at tick 0.
    #[must_use]
    pub const fn new() -> Self {
        Self { entities: Vec::new(), time: 0 }
    }

    /// Returns true if an update is due at tick `time`.
    #[must_use]
    pub const fn is_due(&self, time: u32) -> bool {
        time.wrapping_sub(self.time) >= UPDATE_TICKS
    }

    /// Records the world at tick `time` if an update is due. `players` lists the connections that receive the update
    /// and the positions of their players. Returns true if the authority has updates to send.
    pub fn record<P: Protocol, const PEERS: usize>(
        &mut self,
        authority: &mut WorldAuthority<P, PEERS>,
        time: u32,
        entities: &[Entity],
        players: impl IntoIterator<Item = (ConnectionId, Point)>,
    ) -> bool {
        let updates = time.wrapping_sub(self.time) / UPDATE_TICKS;
        if updates == 0 {
            return false;
        }
        self.time = self.time.wrapping_add(updates * UPDATE_TICKS);
        for (connection, position) in players {
            authority.scope.place(connection, position);
            authority.set_budget(connection, BYTES);
        }
        self.entities.iter_mut().for_each(|recorded| recorded.is_present = false);
        entities.iter().for_each(|entity| self.change(authority, entity));
        self.remove(authority);
        entities.iter().for_each(|entity| self.add(authority, entity));
        // Clients derive the time from the number of updates, so updates that a late server skipped count too.
        for _ in 0..updates {
            authority.tick();
        }
        true
    }

    /// Sends no updates on a connection until its player is passed to [`record`](Self::record) again.
    pub fn pause<P: Protocol, const PEERS: usize>(
        authority: &mut WorldAuthority<P, PEERS>,
        connection: ConnectionId,
    ) {
        authority.scope.remove(connection);
        authority.set_budget(connection, 0);
    }

    fn change<P: Protocol, const PEERS: usize>(
        &mut self,
        authority: &mut WorldAuthority<P, PEERS>,
        entity: &Entity,
    ) {
        let Some((_, values, count)) = class::fields(entity) else { return };
        let Ok(index) = self.find(entity.id) else { return };
        let Some(recorded) = self.entities.get_mut(index) else { return };
        recorded.is_present = true;
        for (field, value) in values.into_iter().take(count).enumerate() {
            // This cannot fail: the authority owns every entity and has assigned this id.
            let _ = authority.set(recorded.network_id, field, value);
        }
    }

    fn remove<P: Protocol, const PEERS: usize>(&mut self, authority: &mut WorldAuthority<P, PEERS>) {
        self.entities.retain(|recorded| recorded.is_present || !authority.despawn(recorded.network_id));
    }

    fn add<P: Protocol, const PEERS: usize>(
        &mut self,
        authority: &mut WorldAuthority<P, PEERS>,
        entity: &Entity,
    ) {
        let (Some((class, values, count)), Err(index)) = (class::fields(entity), self.find(entity.id)) else {
            return;
        };
        let values = values.get(..count).unwrap_or_default();
        // This cannot fail: the authority has capacity for every entity of a world.
        if let Ok(network_id) = authority.spawn(class, entity.id.0, values) {
            let recorded = Recorded { id: entity.id, network_id, is_present: true };
            let _ = self.entities.insert(index, recorded);
        }
    }

    fn find(&self, id: EntityId) -> Result<usize, usize> {
        self.entities.binary_search_by_key(&id, |recorded| recorded.id)
    }
}
