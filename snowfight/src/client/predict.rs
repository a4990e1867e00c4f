//! Where a client's own player is before the server has said so.

use heapless::Deque;

use crate::message::{Direction, Entity, EntityKind, Player, PlayerId, Point};
use crate::world::World;

/// Frames that wait for the server; more than two seconds are not caught up with.
const MAX_FRAMES: usize = 128;
/// How many frames early a change may show, by what is known of the way: it was sent again, or the way has become
/// shorter.
const EARLY: u32 = 3;
/// How many ticks later than it began a change may be seen: some snapshots are lost or never sent.
const LATE: u32 = 2;

/// What a frame did.
#[derive(Clone, Copy, Debug)]
struct Frame {
    number: u32,
    movement: Direction,
    /// Afterwards.
    position: Point,
}

/// The own player, ahead of the server by the time that a message takes there and back.
///
/// The rules are those of the server, so both agree but for what others do. The messages have no numbers that would tell
/// which input a snapshot has seen; but it tells which way the player walks, and that is enough: a change of direction
/// that shows says which frame the server has come to.
///
/// ```
/// use snowfight::client::Prediction;
/// use snowfight::message::Direction;
/// use snowfight::world::World;
///
/// let mut world = World::new(2);
/// let player = world.join().expect("there is room");
/// let mut prediction = Prediction::new(player);
/// prediction.handle_snapshot(world.time(), world.entities());
/// let start = prediction.position().expect("it is in the snapshot");
/// let ahead = prediction.handle_frame(Direction::NORTH).expect("it walks");
/// assert!(ahead.y > start.y);
/// ```
#[derive(Clone, Debug)]
pub struct Prediction {
    world: World,
    player: PlayerId,
    /// What the server has not come to yet, behind the last frame that it has.
    frames: Deque<Frame, MAX_FRAMES>,
    /// The last change of direction that the server has shown.
    shown: u32,
    /// Ticks of the server less frames of this client, since a change of direction told.
    ahead: Option<u32>,
    next: u32,
}

impl Prediction {
    /// A prediction for a player that nothing is known of yet.
    #[must_use]
    pub fn new(player: PlayerId) -> Self {
        let (world, frames) = (World::new(0), Deque::new());
        Self { world, player, frames, shown: 0, ahead: None, next: 0 }
    }

    /// Where the player is.
    #[must_use]
    pub fn position(&self) -> Option<Point> {
        Some(self.frames.back()?.position)
    }

    /// A frame passes, a sixtieth of a second, in which the player wants to walk this way. Returns where it is then.
    pub fn handle_frame(&mut self, movement: Direction) -> Option<Point> {
        let from = self.position()?;
        let position = self.world.walk_alone(self.player, from, movement).unwrap_or(from);
        if self.frames.is_full() {
            self.frames.pop_front();
        }
        // There is room now.
        let _ = self.frames.push_back(Frame { number: self.next, movement, position });
        self.next = self.next.wrapping_add(1);
        Some(position)
    }

    /// A newer snapshot of everything: the server's word counts, and what it has not heard of yet is walked again from
    /// there. Returns how far that moves the player, in tiles.
    pub fn handle_snapshot(&mut self, time: u32, entities: impl IntoIterator<Item = Entity>) -> f32 {
        self.world.observe(entities);
        let bodies = self.world.entities();
        let own = bodies.iter().find_map(|entity| match entity.kind {
            EntityKind::Player(player) if player.owner == self.player => Some(player),
            EntityKind::Player(_) | EntityKind::Object(_) | EntityKind::Dead => None,
        });
        let Some(own) = own else {
            self.frames.clear();
            return 0.0;
        };
        let Some(before) = self.position() else {
            self.begin(&own);
            return 0.0;
        };
        let reached = self.reached(time, &own);
        self.walk_again(reached, own.position);
        self.position().map_or(0.0, |now| (now - before).length())
    }

    fn begin(&mut self, own: &Player) {
        let frame = Frame { number: self.next, movement: own.movement, position: own.position };
        self.shown = self.next;
        self.next = self.next.wrapping_add(1);
        // It is empty.
        let _ = self.frames.push_back(frame);
    }

    /// The number of the frame that the server has come to.
    fn reached(&mut self, time: u32, own: &Player) -> u32 {
        let oldest = self.frames.front().map_or(self.next, |frame| frame.number);
        let newest = self.next.wrapping_sub(1);
        let expected = self.ahead.map(|ahead| time.wrapping_sub(ahead));
        if let Some(change) = self.change_shown(own.movement, expected) {
            let first = self.nearest(change, own.position);
            self.shown = change;
            self.ahead = Some(time.wrapping_sub(first));
            return first;
        }
        let waits = self.changes().map(|frame| frame.number).next();
        let limit = waits.map_or(newest, |change| change.wrapping_sub(1));
        let span = limit.wrapping_sub(oldest);
        let into = expected.map_or(span, |expected| {
            let into = expected.wrapping_sub(oldest);
            // What lies before the oldest has wrapped.
            if into > u32::MAX / 2 { 0 } else { into }
        });
        oldest.wrapping_add(into.min(span))
    }

    /// The last change of direction which the server has not shown before and shows now.
    fn change_shown(&self, movement: Direction, expected: Option<u32>) -> Option<u32> {
        let in_time = |frame: &&Frame| {
            expected.is_none_or(|expected| {
                let early = frame.number.wrapping_sub(expected);
                early <= EARLY || early > u32::MAX / 2
            })
        };
        let shown = || self.changes().filter(|frame| frame.movement == movement);
        // The first one is the only explanation when the direction is not that from before.
        let other = self.frames.front().is_some_and(|before| before.movement != movement);
        let only = || if other { shown().next() } else { None };
        shown().filter(in_time).last().or_else(only).map(|frame| frame.number)
    }

    /// Frames that changed the direction after the last one that was shown.
    fn changes(&self) -> impl Iterator<Item = &Frame> {
        let pairs = self.frames.iter().zip(self.frames.iter().skip(1));
        let turned =
            pairs.filter(|(before, after)| before.movement != after.movement).map(|(_, after)| after);
        let shown = self.shown;
        turned.filter(move |frame| (1..u32::MAX / 2).contains(&frame.number.wrapping_sub(shown)))
    }

    /// Of a change and the frames behind it, which may be what the snapshot is about, the one that ends nearest to it.
    fn nearest(&self, change: u32, position: Point) -> u32 {
        let behind = self.frames.iter().filter(|frame| frame.number.wrapping_sub(change) <= LATE);
        let off = |frame: &Frame| (frame.position - position).length();
        let nearest = behind.min_by(|a, b| off(a).total_cmp(&off(b)));
        nearest.map_or(change, |frame| frame.number)
    }

    /// Forgets what is older than a frame, and walks everything behind it again.
    fn walk_again(&mut self, reached: u32, position: Point) {
        while self.frames.front().is_some_and(|frame| frame.number != reached) && self.frames.len() > 1 {
            self.frames.pop_front();
        }
        let Self { world, frames, player, .. } = self;
        let mut from = position;
        for (index, frame) in frames.iter_mut().enumerate() {
            if index > 0 {
                from = world.walk_alone(*player, from, frame.movement).unwrap_or(from);
            }
            frame.position = from;
        }
    }
}
