//! Predicts the movement of the client's own player.

use heapless::Deque;

use crate::message::{Direction, Entity, Player, PlayerId, Point};
use crate::world::World;

/// The maximum number of stored frames, about two seconds' worth.
const MAX_FRAMES: usize = 128;
/// The number of frames by which a snapshot may show a change earlier than expected, because the path delay
/// decreased.
const MAX_EARLY: u32 = 3;
/// The minimum number of ticks by which a change may be shown late because snapshots were lost. If more ticks have
/// passed since the last snapshot, that number applies: a server sends fewer snapshots to a slow client.
const MIN_LATE: u32 = 2;

/// A predicted frame.
#[derive(Clone, Copy, Debug)]
struct Frame {
    number: u32,
    movement: Direction,
    /// The position at the end of the frame.
    position: Point,
}

/// Predicts the position of the client's own player, one round-trip time ahead of the server.
///
/// Client and server apply the same rules, so only other players make the prediction wrong. Messages have no input
/// sequence numbers, so a snapshot does not state which input it includes. It does contain the player's direction. A
/// change of that direction shows which frame the server has reached.
///
/// ```
/// use snowfight::client::Prediction;
/// use snowfight::message::Direction;
/// use snowfight::world::World;
///
/// let mut world = World::new(2);
/// let player = world.join().expect("a free slot");
/// let mut prediction = Prediction::new(player);
/// prediction.handle_snapshot(world.time(), world.entities());
/// let start = prediction.position().expect("the player is in the snapshot");
/// let ahead = prediction.handle_frame(Direction::NORTH).expect("a known position");
/// assert!(ahead.y > start.y);
/// ```
#[derive(Clone, Debug)]
pub struct Prediction {
    world: World,
    player: PlayerId,
    /// The last frame that the server has processed, followed by the frames that it has not processed.
    frames: Deque<Frame, MAX_FRAMES>,
    /// The number of the frame of the last direction change that a snapshot has shown.
    shown: u32,
    /// The tick of the last snapshot.
    snapshot: u32,
    /// The difference between server ticks and client frame numbers; known once a snapshot has shown a direction
    /// change.
    ahead: Option<u32>,
    next: u32,
}

impl Prediction {
    /// Creates a prediction without a known position.
    #[must_use]
    pub fn new(player: PlayerId) -> Self {
        let (world, frames) = (World::new(0), Deque::new());
        Self { world, player, frames, shown: 0, snapshot: 0, ahead: None, next: 0 }
    }

    /// Returns the predicted position; `None` before the first snapshot or after the player has fallen.
    #[must_use]
    pub fn position(&self) -> Option<Point> {
        Some(self.frames.back()?.position)
    }

    /// Predicts one frame (1/60 s) with this direction, and returns the new position.
    pub fn handle_frame(&mut self, movement: Direction) -> Option<Point> {
        let from = self.position()?;
        let position = self.world.walk_alone(self.player, from, movement).unwrap_or(from);
        if self.frames.is_full() {
            self.frames.pop_front();
        }
        // This cannot fail: a full queue has dropped its oldest frame.
        let _ = self.frames.push_back(Frame { number: self.next, movement, position });
        self.next = self.next.wrapping_add(1);
        Some(position)
    }

    /// Applies a newer whole snapshot: adopts the server's position and replays the frames that the server has not
    /// processed. Returns the distance in tiles by which the predicted position changed.
    pub fn handle_snapshot(&mut self, time: u32, entities: impl IntoIterator<Item = Entity>) -> f32 {
        self.world.observe(entities);
        let passed = time.wrapping_sub(core::mem::replace(&mut self.snapshot, time));
        let bodies = self.world.entities();
        let Some((_, own)) = bodies.iter().find_map(|entity| entity.player_of(self.player)) else {
            self.frames.clear();
            return 0.0;
        };
        let Some(before) = self.position() else {
            self.begin(own);
            return 0.0;
        };
        let reached = self.reached(time, passed, own);
        self.replay(reached, own.position);
        self.position().map_or(0.0, |now| (now - before).length())
    }

    fn begin(&mut self, own: &Player) {
        let frame = Frame { number: self.next, movement: own.movement, position: own.position };
        self.shown = self.next;
        self.next = self.next.wrapping_add(1);
        // This cannot fail: the queue is empty.
        let _ = self.frames.push_back(frame);
    }

    /// Returns the number of the last frame that the server has processed. The snapshot is `passed` ticks newer than
    /// the previous one.
    fn reached(&mut self, time: u32, passed: u32, own: &Player) -> u32 {
        let oldest = self.frames.front().map_or(self.next, |frame| frame.number);
        let newest = self.next.wrapping_sub(1);
        let expected = self.ahead.map(|ahead| time.wrapping_sub(ahead));
        if let Some(change) = self.change_shown(own.movement, expected) {
            let first = self.nearest(change, passed.max(MIN_LATE), own.position);
            self.shown = change;
            self.ahead = Some(time.wrapping_sub(first));
            return first;
        }
        let pending = self.changes().map(|frame| frame.number).next();
        let limit = pending.map_or(newest, |change| change.wrapping_sub(1));
        let span = limit.wrapping_sub(oldest);
        let into = expected.map_or(span, |expected| {
            let into = expected.wrapping_sub(oldest);
            // The expected frame is older than the oldest stored one, so the subtraction wrapped.
            if into > u32::MAX / 2 { 0 } else { into }
        });
        oldest.wrapping_add(into.min(span))
    }

    /// Returns the latest direction change that this snapshot shows and no earlier snapshot did.
    fn change_shown(&self, movement: Direction, expected: Option<u32>) -> Option<u32> {
        let in_time = |frame: &&Frame| {
            expected.is_none_or(|expected| {
                let early = frame.number.wrapping_sub(expected);
                early <= MAX_EARLY || early > u32::MAX / 2
            })
        };
        let shown = || self.changes().filter(|frame| frame.movement == movement);
        // If the direction differs from that of the last processed frame, the server must have processed at least the
        // first such change.
        let other = self.frames.front().is_some_and(|before| before.movement != movement);
        let only = || if other { shown().next() } else { None };
        shown().filter(in_time).last().or_else(only).map(|frame| frame.number)
    }

    /// Returns the frames with a direction change that no snapshot has shown.
    fn changes(&self) -> impl Iterator<Item = &Frame> {
        let pairs = self.frames.iter().zip(self.frames.iter().skip(1));
        let changed =
            pairs.filter(|(before, after)| before.movement != after.movement).map(|(_, after)| after);
        let shown = self.shown;
        changed.filter(move |frame| (1..u32::MAX / 2).contains(&frame.number.wrapping_sub(shown)))
    }

    /// Returns the frame with the position nearest to `position`, among frame `change` and the `late` frames after
    /// it.
    fn nearest(&self, change: u32, late: u32, position: Point) -> u32 {
        let following = self.frames.iter().filter(|frame| frame.number.wrapping_sub(change) <= late);
        let off = |frame: &Frame| (frame.position - position).length();
        let nearest = following.min_by(|a, b| off(a).total_cmp(&off(b)));
        nearest.map_or(change, |frame| frame.number)
    }

    /// Drops the frames before `reached`, sets its position, and predicts the later frames again.
    fn replay(&mut self, reached: u32, position: Point) {
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
