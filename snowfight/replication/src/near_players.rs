//! Selects the entities that a player's client receives.

use core::num::NonZeroU16;

use rakwire::endpoint::{BySlot, ConnectionId};
use rakwire_plugins::replication::{EntityInfo, Scope};
use snowfight::message::Point;

use crate::class::{NEAR, POSITION_SCALE, along};

/// A replication scope of the entities near a player; nearer entities have a higher priority.
#[derive(Debug)]
pub struct NearPlayers<const PEERS: usize> {
    positions: BySlot<[u32; 2], PEERS>,
    /// The viewing distance in steps of [`POSITION_SCALE`](crate::POSITION_SCALE) per tile.
    distance: u32,
}

impl<const PEERS: usize> NearPlayers<PEERS> {
    pub(crate) const fn new() -> Self {
        Self { positions: BySlot::new(), distance: (NEAR * POSITION_SCALE) as u32 }
    }

    /// Sets the viewing distance of all players, in tiles; the default is [`NEAR`].
    pub const fn set_distance(&mut self, tiles: f32) {
        self.distance = (tiles * POSITION_SCALE) as u32;
    }

    /// Sets the position of a connection's player.
    pub(crate) fn place(&mut self, connection: ConnectionId, at: Point) {
        // The insertion fails only for slots beyond `PEERS`, and the authority has no such connection.
        let _ = self.positions.insert(connection, along(at));
    }

    pub(crate) fn remove(&mut self, connection: ConnectionId) {
        self.positions.remove(connection);
    }
}

impl<const PEERS: usize> Scope for NearPlayers<PEERS> {
    fn priority(&mut self, to: ConnectionId, entity: &EntityInfo<'_>) -> Option<NonZeroU16> {
        let &[x, y] = self.positions.get(to)?;
        let &[east, north, ..] = entity.values else { return None };
        let (dx, dy) = (u64::from(x.abs_diff(east)), u64::from(y.abs_diff(north)));
        let distance = u32::try_from((dx * dx + dy * dy).isqrt()).ok()?;
        // A priority saturates, so all distant entities beyond its range have the same priority.
        let nearer = self.distance.checked_sub(distance)?.saturating_add(1);
        NonZeroU16::new(u16::try_from(nearer).unwrap_or(u16::MAX))
    }
}
