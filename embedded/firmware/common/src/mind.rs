//! What the player of a board wants.

use snowfight::bot;
use snowfight::client::Input;
use snowfight::message::{Direction, Entity, EntityKind, Player, PlayerId, Point};

use crate::panel::Button;

/// Frames a second.
pub const FRAMES: u32 = 30;
/// Frames for which it holds what it will throw, so that people see it coming.
const AIMING: u32 = 2 * FRAMES;
/// Frames for which it walks one way when there is nothing else to do.
const STROLL: u32 = 2 * FRAMES;
/// How far it throws when there is nobody, in tiles.
const AHEAD: f32 = 8.0;

/// Who decides when to throw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Hands {
    /// The player, until somebody presses the button.
    #[default]
    Own,
    /// Whoever presses it.
    Somebodys,
}

/// Somebody who gathers, throws and, when there is nothing to do, wanders about.
#[derive(Debug, Default)]
pub struct Mind {
    frame: u32,
    /// Frames since it holds something.
    held: u32,
    hands: Hands,
}

impl Mind {
    /// What it wants in the next frame.
    pub fn decide(&mut self, entities: &[Entity], own: PlayerId, button: Button) -> Input {
        self.frame = self.frame.wrapping_add(1);
        let Some(me) = body(entities, own) else { return Input::default() };
        self.held = if me.holding.is_some() { self.held.saturating_add(1) } else { 0 };
        let wanted = bot::decide(entities, own);
        let throws = match (self.hands, button) {
            (_, Button::Down) => {
                self.hands = Hands::Somebodys;
                self.held > 0
            }
            (Hands::Own, Button::Up) => wanted.throw.is_some() && self.held >= AIMING,
            (Hands::Somebodys, Button::Up) => false,
        };
        if throws {
            let ahead = me.position + towards(self.way()) * AHEAD;
            return Input { throw: wanted.throw.or(Some(ahead)), ..Input::default() };
        }
        let is_idle = wanted.breaking.is_none() && wanted.movement == Direction::NONE;
        let movement = if is_idle { self.way() } else { wanted.movement };
        Input { movement, throw: None, ..wanted }
    }

    /// Where it strolls.
    const fn way(&self) -> Direction {
        const WAYS: [Direction; 4] = [Direction::NORTH, Direction::EAST, Direction::SOUTH, Direction::WEST];
        WAYS[(self.frame / STROLL % 4) as usize]
    }
}

/// The body of a player.
pub fn body(entities: &[Entity], owner: PlayerId) -> Option<&Player> {
    entities.iter().find_map(|entity| match &entity.kind {
        EntityKind::Player(player) if player.owner == owner => Some(player),
        EntityKind::Player(_) | EntityKind::Object(_) | EntityKind::Dead => None,
    })
}

fn towards(way: Direction) -> Point {
    let along = |forward, back| {
        if way.has(forward) {
            1.0
        } else if way.has(back) {
            -1.0
        } else {
            0.0
        }
    };
    Point::new(along(Direction::EAST, Direction::WEST), along(Direction::NORTH, Direction::SOUTH), 0.0)
}
