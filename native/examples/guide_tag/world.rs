//! The rules of the game, without a network and without a clock.

use std::collections::BTreeMap;

pub(crate) const WIDTH: u8 = 16;
pub(crate) const HEIGHT: u8 = 12;
/// Number of players at most.
const PLACES: u8 = 32;
/// A player moves in every third tick.
const TICKS_PER_STEP: u32 = 3;
/// A player that was tagged cannot tag for so many ticks.
const REST: u32 = 40;

/// Where a player wants to go: -1, 0 or 1 in x and y.
pub(crate) type Direction = [i8; 2];
pub(crate) type Cell = [u8; 2];

#[derive(Default)]
pub(crate) struct World {
    players: BTreeMap<u8, Player>,
    it: Option<u8>,
    tick: u32,
    /// The tick from which on the player that is "it" may tag.
    may_tag: u32,
}

struct Player {
    cell: Cell,
    direction: Direction,
}

impl World {
    /// Adds a player at the cell and returns its number, or `None` if there is no place. The first player is "it".
    pub(crate) fn join(&mut self, cell: Cell) -> Option<u8> {
        let number = (0..PLACES).find(|number| !self.players.contains_key(number))?;
        self.players.insert(number, Player { cell, direction: [0, 0] });
        self.it = self.it.or(Some(number));
        Some(number)
    }

    /// Removes a player. If it was "it", the player with the lowest number is.
    pub(crate) fn leave(&mut self, number: u8) {
        self.players.remove(&number);
        if self.it == Some(number) {
            self.it = self.players.keys().next().copied();
            self.may_tag = self.tick + REST;
        }
    }

    /// Sets the direction in which a player walks. Larger numbers do not make the player faster.
    pub(crate) fn steer(&mut self, number: u8, direction: Direction) {
        if let Some(player) = self.players.get_mut(&number) {
            player.direction = direction.map(i8::signum);
        }
    }

    /// Advances by one tick and returns the number of a player that was tagged.
    pub(crate) fn tick(&mut self) -> Option<u8> {
        self.tick += 1;
        if self.tick.is_multiple_of(TICKS_PER_STEP) {
            self.players.values_mut().for_each(Player::step);
        }
        let it = self.it.filter(|_| self.tick >= self.may_tag)?;
        let here = self.players.get(&it)?.cell;
        let is_caught = |(number, player): &(&u8, &Player)| **number != it && player.cell == here;
        let (caught, _) = self.players.iter().find(is_caught)?;
        self.it = Some(*caught);
        self.may_tag = self.tick + REST;
        self.it
    }

    /// Returns the number of the player that is "it", if there are players.
    pub(crate) const fn it(&self) -> Option<u8> {
        self.it
    }

    /// Returns the players with their cells.
    pub(crate) fn players(&self) -> impl Iterator<Item = (u8, Cell)> {
        self.players.iter().map(|(number, player)| (*number, player.cell))
    }
}

impl Player {
    fn step(&mut self) {
        let [x, y] = self.cell;
        let [dx, dy] = self.direction;
        let within = |at: u8, by: i8, size: u8| at.saturating_add_signed(by).min(size - 1);
        self.cell = [within(x, dx, WIDTH), within(y, dy, HEIGHT)];
    }
}
