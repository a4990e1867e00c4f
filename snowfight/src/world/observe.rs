//! Loads the world from a server's snapshots, so that a client can predict movement.

use super::World;
use super::body::{ObjectBody, Place, PlayerBody};
use super::rules::{STEP, TICK};
use crate::message::{Direction, Entity, EntityKind, PlayerId, Point};

impl World {
    /// Replaces all obstacles with the entities of a snapshot. Objects that cannot be broken are held or flying, so
    /// they are no obstacles.
    pub fn observe(&mut self, entities: impl IntoIterator<Item = Entity>) {
        self.players.clear();
        self.objects.clear();
        for Entity { id, kind } in entities {
            match kind {
                EntityKind::Player(player) => {
                    let mut body = PlayerBody::new(id, player.owner, player.position);
                    body.movement = player.movement;
                    // Players beyond the limit are ignored.
                    let _ = self.players.push(body);
                }
                EntityKind::Object(object) if object.durability.is_some() => {
                    let mut object = ObjectBody::new(id, object.kind, object.position);
                    object.place = Place::Standing;
                    let _ = self.objects.push(object);
                }
                EntityKind::Object(_) | EntityKind::Dead => {}
            }
        }
    }

    /// Moves one player from `from` for a tick, while everything else stands still. Returns the new position; `None`
    /// for an unknown player.
    pub fn walk_alone(&mut self, player: PlayerId, from: Point, movement: Direction) -> Option<Point> {
        let index = self.players.iter().position(|body| body.owner == player)?;
        let mut body = *self.players.get(index)?;
        (body.position, body.movement) = (from, movement);
        let mut left = TICK;
        while left > 0.0 {
            body.position = self.path(&body, body.velocity() * left.min(STEP));
            self.push_out(&mut body);
            left -= STEP;
        }
        *self.players.get_mut(index)? = body;
        Some(body.position)
    }
}
