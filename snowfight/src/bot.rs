//! An automatic player. Its input depends only on the entities that it sees.

use crate::client::Input;
use crate::message::{Direction, Entity, EntityId, Object, Player, PlayerId, Point};
use crate::world::REACH;

/// The distance at which a bot stops walking toward an object, slightly less than [`REACH`].
const NEAR: f32 = 0.9 * REACH;
/// The maximum distance to a player at which a bot throws, in tiles.
const RANGE: f32 = 12.0;
/// The distance to a target along one axis below which a bot does not move along that axis, in tiles.
const STRAIGHT: f32 = 0.1;
/// The point to aim at, relative to the feet of a player.
const CHEST: Point = Point::new(0.0, 0.0, 0.65);

/// Returns the input of a bot, which gathers objects and throws them at players.
///
/// ```
/// use snowfight::bot::decide;
/// use snowfight::world::World;
///
/// let mut world = World::new(7);
/// let player = world.join().expect("a free slot");
/// let input = decide(&world.entities(), player);
/// assert!(input.breaking.is_some() || input.movement.0 != 0);
/// ```
#[must_use]
pub fn decide(entities: &[Entity], owner: PlayerId) -> Input {
    let Some((id, me)) = entities.iter().find_map(|entity| entity.player_of(owner)) else {
        return Input::default();
    };
    if me.holding.is_some() { attack(entities, id, me) } else { gather(entities, me) }
}

fn attack(entities: &[Entity], id: EntityId, me: &Player) -> Input {
    let others = entities.iter().filter_map(Entity::player).filter(|(other, _)| *other != id);
    let Some(target) = nearest(others.map(|(_, player)| player.position), me.position) else {
        return Input::default();
    };
    if (target - me.position).length() <= RANGE {
        return Input { throw: Some(target + CHEST), ..Input::default() };
    }
    Input { movement: towards(target - me.position), ..Input::default() }
}

fn gather(entities: &[Entity], me: &Player) -> Input {
    let whole = entities.iter().filter_map(Entity::object).filter(|(_, object)| object.durability.is_some());
    let distance = |object: &Object| (object.position - me.position).length();
    let nearest = whole.min_by(|(_, a), (_, b)| distance(a).total_cmp(&distance(b)));
    let Some((id, object)) = nearest else { return Input::default() };
    if distance(object) <= NEAR {
        return Input { breaking: Some(id), ..Input::default() };
    }
    Input { movement: towards(object.position - me.position), ..Input::default() }
}

fn nearest(points: impl Iterator<Item = Point>, from: Point) -> Option<Point> {
    points.min_by(|a, b| (*a - from).length().total_cmp(&(*b - from).length()))
}

fn towards(way: Point) -> Direction {
    let along = |distance: f32, forward: Direction, back: Direction| {
        if distance > STRAIGHT {
            forward
        } else if distance < -STRAIGHT {
            back
        } else {
            Direction::NONE
        }
    };
    along(way.x, Direction::EAST, Direction::WEST) | along(way.y, Direction::NORTH, Direction::SOUTH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{ActionKind, Break, Move, Throw};
    use crate::world::World;

    /// Bots with the same world play the same game to its end.
    #[test]
    fn bots_finish_a_game_deterministically() {
        let play = |seed| {
            let mut world = World::new(seed);
            (0..4).for_each(|_| assert!(world.join().is_some()));
            let mut fallen = std::vec::Vec::new();
            while world.players().count() > 1 {
                let entities = world.entities();
                let players: std::vec::Vec<_> = world.players().collect();
                for player in players {
                    let input = decide(&entities, player);
                    world.act(player, ActionKind::Move(Move { direction: input.movement }));
                    world.act(player, ActionKind::Break(Break { entity: input.breaking }));
                    if let Some(target) = input.throw {
                        world.act(player, ActionKind::Throw(Throw { target }));
                    }
                }
                fallen.extend(world.tick());
                assert!(world.time() < 60 * 600, "ten minutes without an end: {fallen:?}");
            }
            (world.time(), fallen)
        };
        for seed in 0..5 {
            assert_eq!(play(seed), play(seed));
        }
    }

    #[test]
    fn bot_without_a_player_returns_no_input() {
        assert_eq!(decide(&World::new(1).entities(), PlayerId(1)), Input::default());
    }
}
