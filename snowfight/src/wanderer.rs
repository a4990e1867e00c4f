//! A bot for a microcontroller board: it always moves, and throws when a button is pressed.

use crate::bot;
use crate::client::Input;
use crate::message::{Direction, Entity, Player, PlayerId, Point};

/// Frames per second.
pub const FRAMES_PER_SECOND: u32 = 30;
/// The number of frames for which the bot aims before a throw, so that human players can react.
const AIMING: u32 = 2 * FRAMES_PER_SECOND;
/// The number of frames for which an idle bot walks in one direction.
const STROLL: u32 = 2 * FRAMES_PER_SECOND;
/// The distance of a throw if no player is in range, in tiles.
const AHEAD: f32 = 8.0;

/// The state of the button.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Button {
    /// Not pressed.
    Up,
    /// Pressed.
    Down,
}

/// The trigger for throws: the bot or the button.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ThrowControl {
    /// The bot throws by itself, until the button is pressed for the first time.
    #[default]
    Automatic,
    /// The bot throws only while the button is pressed.
    Button,
}

/// A bot that gathers objects, throws them, and walks about when idle. Once the button has been pressed, the bot
/// throws only on a press.
///
/// ```
/// use snowfight::wanderer::{Button, Wanderer};
/// use snowfight::world::World;
///
/// let mut world = World::new(7);
/// let player = world.join().expect("a free slot");
/// let input = Wanderer::default().decide(&world.entities(), player, Button::Up);
/// assert!(input.breaking.is_some() || input.movement.0 != 0);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Wanderer {
    frame: u32,
    /// The number of frames for which the bot has held an object.
    held: u32,
    throw_control: ThrowControl,
}

impl Wanderer {
    /// Returns the input for the next frame.
    pub fn decide(&mut self, entities: &[Entity], own: PlayerId, button: Button) -> Input {
        self.frame = self.frame.wrapping_add(1);
        let Some(me) = body(entities, own) else { return Input::default() };
        self.held = if me.holding.is_some() { self.held.saturating_add(1) } else { 0 };
        if button == Button::Down {
            self.throw_control = ThrowControl::Button;
        }
        let input = bot::decide(entities, own);
        let throws = match self.throw_control {
            ThrowControl::Automatic => input.throw.is_some() && self.held >= AIMING,
            ThrowControl::Button => button == Button::Down && self.held > 0,
        };
        if throws {
            let ahead = me.position + towards(self.stroll_direction()) * AHEAD;
            return Input { throw: input.throw.or(Some(ahead)), ..Input::default() };
        }
        let is_idle = input.breaking.is_none() && input.movement == Direction::NONE;
        let movement = if is_idle { self.stroll_direction() } else { input.movement };
        Input { movement, throw: None, ..input }
    }

    /// Returns the direction of the idle walk, which changes every two seconds.
    const fn stroll_direction(&self) -> Direction {
        match self.frame / STROLL % 4 {
            0 => Direction::NORTH,
            1 => Direction::EAST,
            2 => Direction::SOUTH,
            _ => Direction::WEST,
        }
    }
}

fn body(entities: &[Entity], owner: PlayerId) -> Option<&Player> {
    entities.iter().find_map(|entity| entity.player_of(owner)).map(|(_, player)| player)
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

    /// A world in which the first player is a wanderer.
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

        /// Runs until the wanderer holds an object.
        fn gather(&mut self) {
            for _ in 0..100 * FRAMES_PER_SECOND {
                if self.holds() {
                    return;
                }
                assert_eq!(self.frame(Button::Up).throw, None);
            }
            panic!("the wanderer never held an object");
        }
    }

    #[test]
    fn wanderer_is_never_idle_and_walks_in_all_directions() {
        let mut game = Game::of(1);
        game.gather();
        let mut directions = std::vec::Vec::new();
        for _ in 0..4 * STROLL {
            // No other player is in range.
            let input = game.frame(Button::Up);
            assert_eq!(input.throw, None);
            assert_ne!(input.movement, Direction::NONE);
            if directions.last() != Some(&input.movement) {
                directions.push(input.movement);
            }
        }
        assert!(directions.len() >= 4, "{directions:?}");
    }

    #[test]
    fn wanderer_throws_only_on_a_press_once_the_button_is_used() {
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
    fn wanderer_throws_after_aiming_without_the_button() {
        let mut game = Game::of(2);
        game.gather();
        for _ in 0..100 * FRAMES_PER_SECOND {
            if game.frame(Button::Up).throw.is_some() {
                assert!(game.wanderer.held >= AIMING);
                return;
            }
        }
        panic!("the wanderer never threw an object");
    }
}
