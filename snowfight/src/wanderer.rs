//! A bot that is never idle, and whose hand somebody may guide: the player of a board with a button.

use crate::bot;
use crate::client::Input;
use crate::message::{Direction, Entity, EntityKind, Player, PlayerId, Point};

/// Frames a second: it thinks so often.
pub const FRAMES_PER_SECOND: u32 = 30;
/// Frames for which it holds what it will throw, so that people see it coming.
const AIMING: u32 = 2 * FRAMES_PER_SECOND;
/// Frames for which it walks one way when there is nothing else to do.
const STROLL: u32 = 2 * FRAMES_PER_SECOND;
/// How far it throws when there is nobody, in tiles.
const AHEAD: f32 = 8.0;

/// A button that somebody may press.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Button {
    /// Nobody presses it.
    Up,
    /// Somebody does.
    Down,
}

/// Who decides when to throw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Hand {
    /// The bot, until somebody presses the button.
    #[default]
    Own,
    /// Whoever presses it.
    Guided,
}

/// Somebody who gathers, throws and, when there is nothing to do, wanders about. Once the button was pressed, it throws
/// whenever it is pressed, and no more by itself.
///
/// ```
/// use snowfight::wanderer::{Button, Wanderer};
/// use snowfight::world::World;
///
/// let mut world = World::new(7);
/// let player = world.join().expect("there is room");
/// let input = Wanderer::default().decide(&world.entities(), player, Button::Up);
/// assert!(input.breaking.is_some() || input.movement.0 != 0);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Wanderer {
    frame: u32,
    /// Frames since it holds something.
    held: u32,
    hand: Hand,
}

impl Wanderer {
    /// What it wants in the next frame.
    pub fn decide(&mut self, entities: &[Entity], own: PlayerId, button: Button) -> Input {
        self.frame = self.frame.wrapping_add(1);
        let Some(me) = body(entities, own) else { return Input::default() };
        self.held = if me.holding.is_some() { self.held.saturating_add(1) } else { 0 };
        if button == Button::Down {
            self.hand = Hand::Guided;
        }
        let wanted = bot::decide(entities, own);
        let throws = match self.hand {
            Hand::Own => wanted.throw.is_some() && self.held >= AIMING,
            Hand::Guided => button == Button::Down && self.held > 0,
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
        match self.frame / STROLL % 4 {
            0 => Direction::NORTH,
            1 => Direction::EAST,
            2 => Direction::SOUTH,
            _ => Direction::WEST,
        }
    }
}

fn body(entities: &[Entity], owner: PlayerId) -> Option<&Player> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{ActionKind, Break, Move, Throw};
    use crate::world::{TICKS_PER_SECOND, World};

    const TICKS: u32 = TICKS_PER_SECOND / FRAMES_PER_SECOND;

    /// A world in which the only player, or the first of two, is a wanderer.
    struct Game {
        world: World,
        player: PlayerId,
        wanderer: Wanderer,
    }

    impl Game {
        fn of(players: usize) -> Self {
            let mut world = World::new(3);
            let player = world.join().unwrap();
            (1..players).for_each(|_| assert!(world.join().is_some()));
            Self { world, player, wanderer: Wanderer::default() }
        }

        fn frame(&mut self, button: Button) -> Input {
            let Self { world, player, wanderer } = self;
            let input = wanderer.decide(&world.entities(), *player, button);
            world.act(*player, ActionKind::Move(Move { direction: input.movement }));
            world.act(*player, ActionKind::Break(Break { entity: input.breaking }));
            if let Some(target) = input.throw {
                world.act(*player, ActionKind::Throw(Throw { target }));
            }
            (0..TICKS).for_each(|_| assert!(world.tick().is_empty()));
            input
        }

        fn holds(&self) -> bool {
            body(&self.world.entities(), self.player).unwrap().holding.is_some()
        }

        /// Plays until it holds something.
        fn gather(&mut self) {
            for _ in 0..100 * FRAMES_PER_SECOND {
                if self.holds() {
                    return;
                }
                assert_eq!(self.frame(Button::Up).throw, None);
            }
            panic!("it never holds anything");
        }
    }

    #[test]
    fn it_is_never_idle_and_goes_all_ways() {
        let mut game = Game::of(1);
        game.gather();
        let mut ways = std::vec::Vec::new();
        for _ in 0..4 * STROLL {
            // There is nobody to throw at.
            let input = game.frame(Button::Up);
            assert_eq!(input.throw, None);
            assert_ne!(input.movement, Direction::NONE);
            if ways.last() != Some(&input.movement) {
                ways.push(input.movement);
            }
        }
        assert!(ways.len() >= 4, "{ways:?}");
    }

    #[test]
    fn the_button_throws_and_from_then_on_nothing_else_does() {
        let mut game = Game::of(1);
        assert_eq!(game.frame(Button::Down).throw, None);
        game.gather();
        for _ in 0..2 * AIMING {
            assert_eq!(game.frame(Button::Up).throw, None);
        }
        assert!(game.frame(Button::Down).throw.is_some());
        assert!(!game.holds());
    }

    #[test]
    fn without_a_button_it_throws_when_it_has_aimed() {
        let mut game = Game::of(2);
        game.gather();
        for _ in 0..100 * FRAMES_PER_SECOND {
            if game.frame(Button::Up).throw.is_some() {
                assert!(game.wanderer.held >= AIMING);
                return;
            }
        }
        panic!("it never throws");
    }
}
