//! The rules of the game as a deterministic world (docs/game.md#rules).
//!
//! Worlds with the same seed and the same actions are equal on every machine.
//!
//! ```
//! use snowfight::message::{ActionKind, Direction, Move};
//! use snowfight::world::{TICKS_PER_SECOND, World};
//!
//! let mut world = World::new(7);
//! let player = world.join().expect("a free slot");
//! let before = world.position_of(player).expect("the player has joined");
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
use body::{ObjectBody, Place, PlayerBody};
pub use rules::{
    DURABILITY, GRAVITY, HEALTH, HOLD_HEIGHT, LONGEST_THROW, MAX_DEAD, MAX_ENTITIES, MAX_OBJECTS,
    MAX_PLAYERS, OBJECTS_PER_KIND, REACH, SPEED, THROW_SPEED, TICKS_PER_SECOND,
};
use rules::{MAX_BACKLOG, REGROWTH_TICKS, STEP, TICK};
pub use terrain::Tile;

/// The first id of a player's entity.
const FIRST_PLAYER_ENTITY: u32 = MAX_OBJECTS as u32 + 1;

/// The players that fell in a tick.
pub type Fallen = Vec<PlayerId, MAX_PLAYERS>;

/// All entities of a snapshot: players, then objects, then dead entities.
pub type Entities = Vec<Entity, MAX_ENTITIES>;

/// The state of the game world.
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
    players: Vec<PlayerBody, MAX_PLAYERS>,
    objects: Vec<ObjectBody, MAX_OBJECTS>,
    dead: Deque<EntityId, MAX_DEAD>,
    /// The players that have fallen since the end of the last tick.
    fallen: Fallen,
    /// The number of objects that were removed since the last regrowth.
    ended: usize,
    next_entity: u32,
    time: u32,
    random: Pcg32,
}

impl World {
    /// Creates a new world from a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut random = Pcg32::seed_from_u64(seed);
        let objects = generate::objects(&mut random);
        let (players, dead, fallen) = (Vec::new(), Deque::new(), Vec::new());
        Self { players, objects, dead, fallen, ended: 0, next_entity: FIRST_PLAYER_ENTITY, time: 0, random }
    }

    /// Returns the number of ticks so far, with wrap-around.
    #[must_use]
    pub const fn time(&self) -> u32 {
        self.time
    }

    /// Adds a player near the middle, with the lowest free id; returns `None` if there are [`MAX_PLAYERS`].
    pub fn join(&mut self) -> Option<PlayerId> {
        let is_free = |owner: &PlayerId| self.players.iter().all(|body| body.owner != *owner);
        let owner = (1..).map(PlayerId).find(is_free)?;
        let id = EntityId(self.next_entity);
        let next = self.next_entity.checked_add(1)?;
        let x = generate::offset(&mut self.random);
        let y = generate::offset(&mut self.random);
        self.players.push(PlayerBody::new(id, owner, Point::new(x, y, 0.0))).ok()?;
        self.next_entity = next;
        Some(owner)
    }

    /// Removes a player. An object that it held falls to the ground.
    pub fn leave(&mut self, player: PlayerId) {
        if let Some(index) = self.players.iter().position(|body| body.owner == player) {
            let body = self.players.remove(index);
            self.put_down(body.holding);
        }
    }

    /// Applies an action of a player. Actions of unknown players are ignored.
    pub fn act(&mut self, player: PlayerId, action: ActionKind) {
        let Some(body) = self.players.iter_mut().find(|body| body.owner == player) else { return };
        match action {
            ActionKind::Move(movement) => body.movement = movement.direction,
            ActionKind::Break(target) => body.breaking = target.entity,
            ActionKind::Throw(throw) => {
                let id = body.id;
                self.throw(id, throw.target);
            }
        }
    }

    /// Runs a tick of 1/60 s, and returns the players that fell in it.
    pub fn tick(&mut self) -> Fallen {
        self.advance(TICK);
        self.time = self.time.wrapping_add(1);
        if self.time.is_multiple_of(REGROWTH_TICKS) {
            self.grow();
        }
        core::mem::take(&mut self.fallen)
    }

    /// Advances the world in whole physics steps and a remainder; time beyond one second is skipped.
    fn advance(&mut self, seconds: f32) {
        let mut left = seconds.min(MAX_BACKLOG);
        while left > 0.0 {
            self.step(left.min(STEP));
            left -= STEP;
        }
    }

    fn step(&mut self, seconds: f32) {
        self.accelerate(seconds);
        self.advance_breaking(seconds);
        self.walk(seconds);
        let hits = self.fly(seconds);
        self.separate();
        self.carry();
        self.attack(&hits);
    }

    /// Returns the players in the game, in the order in which they joined.
    pub fn players(&self) -> impl Iterator<Item = PlayerId> {
        self.players.iter().map(|body| body.owner)
    }

    /// Returns the position of a player.
    #[must_use]
    pub fn position_of(&self, player: PlayerId) -> Option<Point> {
        let body = self.players.iter().find(|body| body.owner == player);
        body.map(|body| body.position)
    }

    /// Returns all entities, in the order of a snapshot.
    #[must_use]
    pub fn entities(&self) -> Entities {
        let dead = self.dead.iter().map(|id| Entity { id: *id, kind: EntityKind::Dead });
        let bodies =
            self.players.iter().map(PlayerBody::entity).chain(self.objects.iter().map(ObjectBody::entity));
        bodies.chain(dead).take(MAX_ENTITIES).collect()
    }

    fn put_down(&mut self, held: Option<EntityId>) {
        if let Some(object) = self.objects.iter_mut().find(|object| Some(object.id) == held) {
            object.put_down();
        }
    }

    /// Removes an object, even if a player holds it.
    fn remove_object(&mut self, id: EntityId) {
        let Some(index) = self.objects.iter().position(|object| object.id == id) else { return };
        let object = self.objects.remove(index);
        self.ended += 1;
        if let Place::Held { by } = object.place
            && let Some(holder) = self.players.iter_mut().find(|body| body.id == by)
        {
            holder.holding = None;
        }
        self.record_death(id);
    }

    /// Removes a player that has fallen. An object that it held falls to the ground.
    fn remove_player(&mut self, id: EntityId) {
        let Some(index) = self.players.iter().position(|body| body.id == id) else { return };
        let body = self.players.remove(index);
        self.put_down(body.holding);
        self.record_death(id);
    }

    fn record_death(&mut self, id: EntityId) {
        if self.dead.is_full() {
            self.dead.pop_front();
        }
        // This cannot fail: a full queue has dropped its oldest entry.
        let _ = self.dead.push_back(id);
    }
}

#[cfg(test)]
mod tests;
