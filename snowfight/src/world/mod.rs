//! The rules of the game (docs/game.md#rules): a world that is the same on every machine for the same seed and the same
//! actions.
//!
//! ```
//! use snowfight::message::{ActionKind, Direction, Move};
//! use snowfight::world::{TICKS_PER_SECOND, World};
//!
//! let mut world = World::new(7);
//! let player = world.join().expect("there is room");
//! let before = world.position_of(player).expect("it is there");
//! world.act(player, ActionKind::Move(Move { direction: Direction::NORTH }));
//! for _ in 0..TICKS_PER_SECOND {
//!     world.tick();
//! }
//! assert_eq!(world.time(), 60);
//! assert!(world.position_of(player) != Some(before));
//! ```

mod body;
mod carry;
mod cuboid;
mod flight;
mod generate;
mod grow;
mod observe;
mod rules;
mod terrain;
mod walk;

use heapless::{Deque, Vec};
use rand_pcg::Pcg32;
use rand_pcg::rand_core::SeedableRng;

use crate::message::{ActionKind, Entity, EntityId, EntityKind, PlayerId, Point};
use body::{Place, Thing, Walker};
pub use rules::{
    DURABILITY, GRAVITY, HEALTH, HOLD_HEIGHT, LONGEST_THROW, MAX_DEAD, MAX_ENTITIES, MAX_OBJECTS,
    MAX_PLAYERS, OBJECTS_OF_A_KIND, REACH, SPEED, THROW_SPEED, TICKS_PER_SECOND,
};
use rules::{LONGEST_BACKLOG, SPRING, STEP, TICK};
pub use terrain::Tile;

/// The first id of a player's entity.
const FIRST_PLAYER_ENTITY: u32 = MAX_OBJECTS as u32 + 1;

/// Those that fell in a tick.
pub type Fallen = Vec<PlayerId, MAX_PLAYERS>;

/// Everything in a snapshot: players, objects, the dead.
pub type Entities = Vec<Entity, MAX_ENTITIES>;

/// The world.
///
/// ```
/// use snowfight::message::PlayerId;
/// use snowfight::world::World;
///
/// let mut world = World::new(1);
/// assert_eq!((world.join(), world.join()), (Some(PlayerId(1)), Some(PlayerId(2))));
/// assert_eq!(world.entities().len(), 302);
/// world.leave(PlayerId(1));
/// assert_eq!(world.players().collect::<Vec<_>>(), [PlayerId(2)]);
/// ```
#[derive(Clone, Debug)]
pub struct World {
    walkers: Vec<Walker, MAX_PLAYERS>,
    things: Vec<Thing, MAX_OBJECTS>,
    dead: Deque<EntityId, MAX_DEAD>,
    /// Those that fell and were not told yet.
    fallen: Fallen,
    /// How many objects have ended since the last spring.
    ended: usize,
    next_entity: u32,
    time: u32,
    random: Pcg32,
}

impl World {
    /// A new world: the same for the same seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut random = Pcg32::seed_from_u64(seed);
        let things = generate::objects(&mut random);
        let (walkers, dead, fallen) = (Vec::new(), Deque::new(), Vec::new());
        Self { walkers, things, dead, fallen, ended: 0, next_entity: FIRST_PLAYER_ENTITY, time: 0, random }
    }

    /// How many ticks there were; it wraps.
    #[must_use]
    pub const fn time(&self) -> u32 {
        self.time
    }

    /// A player comes, near the middle; nobody when [`MAX_PLAYERS`] are there. It has the lowest number that is free.
    pub fn join(&mut self) -> Option<PlayerId> {
        let is_free = |owner: &PlayerId| self.walkers.iter().all(|walker| walker.owner != *owner);
        let owner = (1..).map(PlayerId).find(is_free)?;
        let id = EntityId(self.next_entity);
        let next = self.next_entity.checked_add(1)?;
        let x = generate::offset(&mut self.random);
        let y = generate::offset(&mut self.random);
        self.walkers.push(Walker::new(id, owner, Point::new(x, y, 0.0))).ok()?;
        self.next_entity = next;
        Some(owner)
    }

    /// A player goes; what it held falls to the ground.
    pub fn leave(&mut self, player: PlayerId) {
        if let Some(index) = self.walkers.iter().position(|walker| walker.owner == player) {
            let walker = self.walkers.remove(index);
            self.put_down(walker.holding);
        }
    }

    /// A player does something. Of somebody that is not there it is ignored.
    pub fn act(&mut self, player: PlayerId, action: ActionKind) {
        let Some(walker) = self.walkers.iter_mut().find(|walker| walker.owner == player) else { return };
        match action {
            ActionKind::Move(movement) => walker.movement = movement.direction,
            ActionKind::Break(target) => walker.breaking = target.entity,
            ActionKind::Throw(throw) => {
                let id = walker.id;
                self.throw(id, throw.target);
            }
        }
    }

    /// A tick passes: 1/60 of a second. Returns who fell.
    pub fn tick(&mut self) -> Fallen {
        self.advance(TICK);
        self.time = self.time.wrapping_add(1);
        if self.time.is_multiple_of(SPRING) {
            self.grow();
        }
        core::mem::take(&mut self.fallen)
    }

    /// Time passes, in whole steps and what is left of them; of more than a second the rest is skipped.
    fn advance(&mut self, seconds: f32) {
        let mut left = seconds.min(LONGEST_BACKLOG);
        while left > 0.0 {
            self.step(left.min(STEP));
            left -= STEP;
        }
    }

    fn step(&mut self, seconds: f32) {
        self.accelerate(seconds);
        self.break_loose(seconds);
        self.walk(seconds);
        let hits = self.fly(seconds);
        self.separate();
        self.carry();
        self.attack(&hits);
    }

    /// Who is in the game, in the order in which they came.
    pub fn players(&self) -> impl Iterator<Item = PlayerId> {
        self.walkers.iter().map(|walker| walker.owner)
    }

    /// Where a player is.
    #[must_use]
    pub fn position_of(&self, player: PlayerId) -> Option<Point> {
        let walker = self.walkers.iter().find(|walker| walker.owner == player);
        walker.map(|walker| walker.position)
    }

    /// Everything there is, as a snapshot tells it.
    #[must_use]
    pub fn entities(&self) -> Entities {
        let dead = self.dead.iter().map(|id| Entity { id: *id, kind: EntityKind::Dead });
        let bodies = self.walkers.iter().map(Walker::entity).chain(self.things.iter().map(Thing::entity));
        bodies.chain(dead).take(MAX_ENTITIES).collect()
    }

    fn put_down(&mut self, held: Option<EntityId>) {
        if let Some(thing) = self.things.iter_mut().find(|thing| Some(thing.id) == held) {
            thing.put_down();
        }
    }

    /// An object is no more; who held it has empty hands.
    fn end_thing(&mut self, id: EntityId) {
        let Some(index) = self.things.iter().position(|thing| thing.id == id) else { return };
        let thing = self.things.remove(index);
        self.ended += 1;
        if let Place::Held { by } = thing.place
            && let Some(holder) = self.walkers.iter_mut().find(|walker| walker.id == by)
        {
            holder.holding = None;
        }
        self.bury(id);
    }

    /// A player is no more; what it held falls to the ground.
    fn end_player(&mut self, id: EntityId) {
        let Some(index) = self.walkers.iter().position(|walker| walker.id == id) else { return };
        let walker = self.walkers.remove(index);
        self.put_down(walker.holding);
        self.bury(id);
    }

    fn bury(&mut self, id: EntityId) {
        if self.dead.is_full() {
            self.dead.pop_front();
        }
        // There is room now.
        let _ = self.dead.push_back(id);
    }
}

#[cfg(test)]
mod tests;
