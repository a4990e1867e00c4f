//! What the client of a player sees.

use core::num::NonZeroU16;

use rakwire::endpoint::{BySlot, ConnectionId};
use rakwire_plugins::replication::{EntityInfo, Scope};
use snowfight::message::Point;

use crate::class::{NEAR, POSITION_SCALE, along};

/// A player sees what is near it, and the nearer it is the more it matters.
#[derive(Debug)]
pub struct NearPlayers<const PEERS: usize> {
    positions: BySlot<[u32; 2], PEERS>,
    /// In the unit of the fields.
    distance: u32,
}

impl<const PEERS: usize> NearPlayers<PEERS> {
    pub(crate) const fn new() -> Self {
        Self { positions: BySlot::new(), distance: (NEAR * POSITION_SCALE) as u32 }
    }

    /// Lets all players see so far, in tiles, in place of [`NEAR`].
    pub const fn set_distance(&mut self, tiles: f32) {
        self.distance = (tiles * POSITION_SCALE) as u32;
    }

    /// The player of a connection is here.
    pub(crate) fn place(&mut self, connection: ConnectionId, at: Point) {
        // A connection beyond the last slot is one that the authority has no room for either.
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
        // What is nearer by more than a priority can say matters as much.
        let nearer = self.distance.checked_sub(distance)?.saturating_add(1);
        NonZeroU16::new(u16::try_from(nearer).unwrap_or(u16::MAX))
    }
}
