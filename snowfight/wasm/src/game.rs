//! The class `Game`: the game client, and the scene that a page draws.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use rakwire::Instant;
use rakwire::codec::rabbit::Text;
use rakwire::raknet::{Delivery as RakNetDelivery, RakNet};
use snowfight::client::{Client, Input, Prediction, Update, View};
use snowfight::message::{
    Delivery, Direction, Entity, EntityId, EntityKind, GameOver, ObjectKind, PlayerId, Point, Scope,
};
use snowfight::world::MAX_ENTITIES;
use snowfight_replication::WorldReplicas;
use wasm_bindgen::prelude::*;

/// The delay between the newest snapshot and the drawn state of other entities, in ticks.
const INTERPOLATION_DELAY: f64 = 4.0;
/// The error of the drawn time, in ticks, above which it is reset instead of adjusted gradually.
const MAX_DRIFT: f64 = 30.0;
/// The fraction of the error by which each frame adjusts the drawn time.
const DRIFT_RATE: f64 = 0.05;
/// The fraction of a correction that remains after each frame.
const CORRECTION_DECAY: f32 = 0.85;
/// The largest correction that is smoothed, in tiles; a larger one is applied immediately.
const MAX_SMOOTHED: f32 = 2.0;
/// The number of past positions stored per entity.
const TRACK: usize = 12;
/// The maximum size of a message from the client, in bytes, including the request for a scope.
const MAX_MESSAGE_SIZE: usize = 32;
/// The number of fields per entity in a scene.
const FIELDS: usize = 12;

/// The TypeScript types of the arguments and results.
#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
export interface GameInput {
  /** 1 north, 2 west, 4 south, 8 east. */
  movement: number;
  breaking?: number | undefined;
  throwAt?: { x: number; y: number; z: number } | undefined;
}
export type GameUpdate =
  | { kind: "none" }
  | { kind: "joined"; player: number }
  | { kind: "won" }
  | { kind: "lost" }
  | { kind: "rejected"; reason: string };
"#;

#[wasm_bindgen]
extern "C" {
    /// The effect of a message, as a plain object.
    #[wasm_bindgen(js_name = Object, typescript_type = "GameUpdate")]
    #[derive(Debug)]
    pub type GameUpdate;
    #[wasm_bindgen(constructor, js_class = "Object")]
    fn new() -> GameUpdate;
    #[wasm_bindgen(method, structural, setter)]
    fn set_kind(this: &GameUpdate, kind: &str);
    #[wasm_bindgen(method, structural, setter)]
    fn set_player(this: &GameUpdate, player: u32);
    #[wasm_bindgen(method, structural, setter)]
    fn set_reason(this: &GameUpdate, reason: &str);
}

/// The mechanism by which the client requests the world. A server that does not support the mechanism sends whole
/// snapshots.
#[wasm_bindgen]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorldUpdates {
    /// Whole snapshots, every tick.
    Whole,
    /// Deltas, every other tick.
    Changes,
    /// Replication, which needs a RakNet connection.
    Replication,
}

/// A message to send to the server.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Outgoing {
    bytes: Vec<u8>,
    reliable: bool,
}

#[wasm_bindgen]
impl Outgoing {
    /// Returns the bytes of the message.
    #[wasm_bindgen(getter)]
    pub fn bytes(&self) -> Vec<u8> {
        self.bytes.clone()
    }

    /// Returns true if the message must be sent reliably.
    #[wasm_bindgen(getter)]
    pub fn reliable(&self) -> bool {
        self.reliable
    }
}

/// The effect of a message from the server.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    Nothing,
    Joined(PlayerId),
    Over(GameOver),
    Rejected(String),
}

/// The client of one game. It turns input into messages for the server, and messages from the server into a scene.
///
/// Call `frame` 60 times per second. The scene contains the own player at its predicted position and other entities
/// interpolated between past snapshots.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Game {
    client: Client,
    /// The newest whole snapshot since the last frame, and its tick. Each frame applies at most one.
    waiting: Option<(u32, Vec<u8>)>,
    view: Box<View<MAX_ENTITIES>>,
    /// The replicas, if the client has requested replication.
    replicas: Option<Box<WorldReplicas<RakNet>>>,
    /// The tick of the view, if no frame has processed it yet.
    unshown: Option<u32>,
    prediction: Option<Box<Prediction>>,
    /// The part of past corrections that is still to be smoothed.
    correction: Point,
    largest_correction: f32,
    tracks: HashMap<EntityId, VecDeque<(u32, Point)>>,
    newest: u32,
    /// The tick that is drawn, with a fraction.
    drawn_time: f64,
    round_trip: Option<Duration>,
    snapshots: u32,
}

#[wasm_bindgen]
impl Game {
    /// Creates an unconnected game that requests the world by this mechanism.
    #[wasm_bindgen(constructor)]
    pub fn new(updates: WorldUpdates) -> Self {
        let scope = match updates {
            WorldUpdates::Whole => Scope::Whole,
            WorldUpdates::Changes => Scope::Changes,
            WorldUpdates::Replication => Scope::Replicated,
        };
        // This cannot fail: the entity classes are valid constants.
        let replicas = snowfight_replication::replicas(RakNetDelivery::UNRELIABLE).ok().map(Box::new);
        let replicas = replicas.filter(|_| scope == Scope::Replicated);
        Self {
            client: Client::with_scope(scope),
            waiting: None,
            view: Box::new(View::new()),
            replicas,
            unshown: None,
            prediction: None,
            correction: Point::default(),
            largest_correction: 0.0,
            tracks: HashMap::new(),
            newest: 0,
            drawn_time: 0.0,
            round_trip: None,
            snapshots: 0,
        }
    }

    /// Handles a new connection, and queues the request to join.
    pub fn connected(&mut self) {
        self.client.handle_connected();
    }

    /// Handles a message from the server. The scene changes with the next frame, to the newest snapshot received
    /// until then.
    pub fn handle(&mut self, message: &[u8], #[wasm_bindgen(js_name = nowMs)] now_ms: f64) -> GameUpdate {
        let update = GameUpdate::new();
        match self.receive(message, instant(now_ms)) {
            Change::Nothing => update.set_kind("none"),
            Change::Joined(player) => {
                update.set_kind("joined");
                update.set_player(player.0);
            }
            Change::Over(GameOver::Winner) => update.set_kind("won"),
            Change::Over(GameOver::Loser) => update.set_kind("lost"),
            Change::Rejected(reason) => {
                update.set_kind("rejected");
                update.set_reason(&reason);
            }
        }
        update
    }

    /// Handles a replication message; its first byte is 130. The scene changes with the next frame.
    #[wasm_bindgen(js_name = handleReplication)]
    pub fn handle_replication(&mut self, message: &[u8]) {
        if let Some(replicas) = &mut self.replicas {
            replicas.handle_update(message);
        }
    }

    /// Returns the reply to replication messages, if one is due. Send it unreliably and without a prefix.
    #[wasm_bindgen(js_name = pollReplication)]
    pub fn poll_replication(&mut self) -> Option<Vec<u8>> {
        self.replicas.as_mut()?.poll_acknowledgement().map(|message| message.to_vec())
    }

    /// Returns true if the server has agreed to use replication.
    #[wasm_bindgen(getter, js_name = isReplicated)]
    pub fn is_replicated(&self) -> bool {
        self.client.is_replicated()
    }

    /// Advances by one frame (1/60 s) with the player's input.
    pub fn frame(
        &mut self,
        #[wasm_bindgen(js_name = nowMs)] now_ms: f64,
        movement: u8,
        breaking: Option<u32>,
        #[wasm_bindgen(js_name = throwX)] throw_x: Option<f32>,
        #[wasm_bindgen(js_name = throwY)] throw_y: Option<f32>,
        #[wasm_bindgen(js_name = throwZ)] throw_z: Option<f32>,
    ) {
        let throw = match (throw_x, throw_y, throw_z) {
            (Some(x), Some(y), Some(z)) => Some(Point::new(x, y, z)),
            _ => None,
        };
        let input = Input { movement: Direction(movement), breaking: breaking.map(EntityId), throw };
        self.pass(instant(now_ms), input);
    }

    /// Returns the next message to send; `undefined` if there is none.
    #[wasm_bindgen(js_name = pollMessage)]
    pub fn poll_message(&mut self) -> Option<Outgoing> {
        let mut buffer = [0; MAX_MESSAGE_SIZE];
        let (delivery, bytes) = self.client.poll_message(&mut buffer)?;
        Some(Outgoing { bytes: bytes.to_vec(), reliable: delivery == Delivery::Reliable })
    }

    /// Returns the entities to draw, as twelve numbers each.
    ///
    /// The numbers are: id, kind (0 tree, 1 mushroom, 2 player), x, y, z, durability (-1 for a player and for a held
    /// or flying object), health, maximum health, owner, held entity, entity being broken (both -1 for none),
    /// direction.
    pub fn scene(&self) -> Vec<f64> {
        let mut scene = Vec::with_capacity(self.view.entities().len() * FIELDS);
        for entity in self.view.entities() {
            self.describe(entity, &mut scene);
        }
        scene
    }

    /// Returns the id of the client's player once it has joined.
    #[wasm_bindgen(getter)]
    pub fn player(&self) -> Option<u32> {
        self.client.player().map(|player| player.0)
    }

    /// Returns the tick of the newest snapshot.
    #[wasm_bindgen(getter)]
    pub fn time(&self) -> u32 {
        self.newest
    }

    /// Returns the number of snapshots shown so far.
    #[wasm_bindgen(getter)]
    pub fn snapshots(&self) -> u32 {
        self.snapshots
    }

    /// Returns the round-trip time to the server in milliseconds once it is known.
    #[wasm_bindgen(getter, js_name = roundTripMs)]
    pub fn round_trip_ms(&self) -> Option<f64> {
        self.round_trip.map(|time| time.as_secs_f64() * 1_000.0)
    }

    /// Returns the largest correction of the own player so far, in tiles.
    #[wasm_bindgen(getter, js_name = largestCorrection)]
    pub fn largest_correction(&self) -> f32 {
        self.largest_correction
    }
}

impl Game {
    /// Handles a message. A whole snapshot is kept for the next frame.
    fn receive(&mut self, message: &[u8], now: Instant) -> Change {
        let Some(time) = self.client.whole_snapshot_time(&message) else { return self.take(message, now) };
        let is_older = |waiting: u32| time.wrapping_sub(waiting) > u32::MAX / 2;
        if self.waiting.as_ref().is_none_or(|(waiting, _)| !is_older(*waiting)) {
            self.waiting = Some((time, message.to_vec()));
        }
        Change::Nothing
    }

    fn take(&mut self, message: &[u8], now: Instant) -> Change {
        match self.client.handle_message(now, &message) {
            Ok(Update::Joined { player, entities }) => {
                self.view.update(&entities);
                let mut prediction = Box::new(Prediction::new(player));
                prediction.handle_snapshot(0, self.view.entities().iter().copied());
                self.prediction = Some(prediction);
                Change::Joined(player)
            }
            Ok(Update::Snapshot { time, entities, scope }) => {
                self.view.take(time, &entities, scope);
                self.unshown = Some(time);
                Change::Nothing
            }
            Ok(Update::Over(result)) => Change::Over(result),
            Ok(Update::Rejected(why)) => Change::Rejected(text(why)),
            Ok(Update::Pong { round_trip }) => {
                self.round_trip = round_trip.or(self.round_trip);
                Change::Nothing
            }
            Ok(Update::Ignored) | Err(_) => Change::Nothing,
        }
    }

    fn show_replicas(&mut self) {
        let Some(replicas) = self.replicas.as_ref().filter(|_| self.client.is_replicated()) else { return };
        let time = snowfight_replication::time(replicas);
        if time != 0 && (self.snapshots == 0 || time != self.newest) {
            self.view.replace(snowfight_replication::entities(replicas));
            self.unshown = Some(time);
        }
    }

    fn snapshot(&mut self, time: u32) {
        if self.snapshots == 0 {
            self.drawn_time = f64::from(time) - INTERPOLATION_DELAY;
        }
        (self.newest, self.snapshots) = (time, self.snapshots.wrapping_add(1));
        if let Some(prediction) = &mut self.prediction {
            let before = prediction.position();
            let length = prediction.handle_snapshot(time, self.view.entities().iter().copied());
            self.largest_correction = self.largest_correction.max(length);
            if let (Some(before), Some(after)) = (before, prediction.position()) {
                self.correction = self.correction + (before - after);
            }
            if self.correction.length() > MAX_SMOOTHED {
                self.correction = Point::default();
            }
        }
        self.track(time);
    }

    /// Records the position of every entity at tick `time`.
    fn track(&mut self, time: u32) {
        let mut present = HashSet::new();
        for entity in self.view.entities() {
            let Some(position) = position(entity) else { continue };
            present.insert(entity.id);
            let track = self.tracks.entry(entity.id).or_default();
            let alone = track.len() == 1;
            match track.back_mut() {
                // For an entity that stands still, the last position and time are enough.
                Some((at, place)) if *place == position && alone => *at = time,
                _ => track.push_back((time, position)),
            }
            if track.len() > TRACK {
                track.pop_front();
            }
        }
        self.tracks.retain(|id, _| present.contains(id));
    }

    fn pass(&mut self, now: Instant, input: Input) {
        if let Some((_, snapshot)) = self.waiting.take() {
            self.take(&snapshot, now);
        }
        self.show_replicas();
        if let Some(time) = self.unshown.take() {
            self.snapshot(time);
        }
        self.client.handle_frame(now, input);
        self.correction = self.correction * CORRECTION_DECAY;
        if let Some(prediction) = &mut self.prediction {
            prediction.handle_frame(input.movement);
        }
        self.drawn_time += 1.0;
        let off = f64::from(self.newest) - INTERPOLATION_DELAY - self.drawn_time;
        self.drawn_time += if off.abs() > MAX_DRIFT { off } else { off * DRIFT_RATE };
    }

    /// Returns the position of an entity at the drawn time, interpolated.
    fn place(&self, id: EntityId, latest: Point) -> Point {
        let Some(track) = self.tracks.get(&id) else { return latest };
        let after = track.iter().position(|(time, _)| f64::from(*time) >= self.drawn_time);
        match after {
            None => track.back().map_or(latest, |(_, place)| *place),
            Some(0) => track.front().map_or(latest, |(_, place)| *place),
            Some(index) => {
                let (Some((from, start)), Some((to, end))) = (track.get(index - 1), track.get(index)) else {
                    return latest;
                };
                let share =
                    (self.drawn_time - f64::from(*from)) / (f64::from(*to) - f64::from(*from)).max(1.0);
                *start + (*end - *start) * share as f32
            }
        }
    }

    fn describe(&self, entity: &Entity, scene: &mut Vec<f64>) {
        let id = f64::from(entity.id.0);
        let optional = |id: Option<EntityId>| id.map_or(-1.0, |id| f64::from(id.0));
        match &entity.kind {
            EntityKind::Dead => {}
            EntityKind::Object(object) => {
                let place = self.place(entity.id, object.position);
                let kind = if object.kind == ObjectKind::Tree { 0.0 } else { 1.0 };
                let durability = object.durability.map_or(-1.0, f64::from);
                let (health, max_health) = (f64::from(object.health), f64::from(object.max_health));
                let [x, y, z] = [place.x, place.y, place.z].map(f64::from);
                scene.extend([id, kind, x, y, z, durability, health, max_health, 0.0, -1.0, -1.0, 0.0]);
            }
            EntityKind::Player(player) => {
                let own = self.client.player() == Some(player.owner);
                let predicted = self.prediction.as_ref().and_then(|prediction| prediction.position());
                let place = match predicted {
                    Some(predicted) if own => predicted + self.correction,
                    _ => self.place(entity.id, player.position),
                };
                let (health, max_health) = (f64::from(player.health), f64::from(player.max_health));
                let [x, y, z] = [place.x, place.y, place.z].map(f64::from);
                let (holding, breaking) = (optional(player.holding), optional(player.breaking));
                let owner = f64::from(player.owner.0);
                let movement = f64::from(player.movement.0);
                scene
                    .extend([id, 2.0, x, y, z, -1.0, health, max_health, owner, holding, breaking, movement]);
            }
        }
    }
}

const fn position(entity: &Entity) -> Option<Point> {
    match &entity.kind {
        EntityKind::Object(object) => Some(object.position),
        EntityKind::Player(player) => Some(player.position),
        EntityKind::Dead => None,
    }
}

fn text(text: Text<'_>) -> String {
    text.chars().collect()
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a page is not open for 2^53 microseconds"
)]
fn instant(now_ms: f64) -> Instant {
    Instant::from_micros((now_ms * 1_000.0) as u64)
}

#[cfg(test)]
mod tests {
    use rakwire::endpoint::{ConnectionId, MessageSender, Plugin, Receipt, SendError, Side};
    use rakwire::raknet::{Capacity, Config, Guid, Peer};
    use snowfight::message::{ActionKind, Move};
    use snowfight::server::{MAX_MESSAGE, Output, Server};
    use snowfight_replication::{ReplicatedWorld, WorldAuthority};

    use super::*;

    /// Collects the updates that an authority sends.
    struct Updates(Vec<Vec<u8>>);

    impl MessageSender<RakNet> for Updates {
        fn send(
            &mut self,
            _id: ConnectionId,
            message: &[u8],
            _delivery: RakNetDelivery,
        ) -> Result<Option<Receipt>, SendError> {
            self.0.push(message.to_vec());
            Ok(None)
        }
    }

    /// The replicated world for the client with the key 0, the only client that uses replication.
    struct Replication {
        authority: Box<WorldAuthority<RakNet, 1>>,
        world: ReplicatedWorld,
        id: ConnectionId,
    }

    impl Replication {
        fn new() -> Self {
            let address = ([10, 0, 0, 1], 1).into();
            let mut peer = Peer::with_capacity(Capacity::default(), Config::new([1; 32]));
            let id = peer.connect(Instant::ZERO, address).unwrap();
            let mut authority =
                Box::new(snowfight_replication::authority(RakNetDelivery::UNRELIABLE).unwrap());
            authority.on_connected(Instant::ZERO, id, address, Guid(1), Side::Server);
            Self { authority, world: ReplicatedWorld::new(), id }
        }

        /// Passes the updates of a tick to the client, and the replies to the authority.
        fn pass(&mut self, server: &Server<u8>, game: &mut Game) {
            let Self { authority, world, id } = self;
            let now = Instant::ZERO;
            let place = |(_, player)| Some((*id, server.world().position_of(player)?));
            let (time, entities) = (server.world().time(), server.world().entities());
            world.record(authority, time, &entities, server.replicated().filter_map(place));
            let mut updates = Updates(Vec::new());
            authority.update(now, &mut updates);
            updates.0.iter().for_each(|update| game.handle_replication(update));
            if let Some(answer) = game.poll_replication() {
                authority.on_message(now, *id, RakNetDelivery::UNRELIABLE, &answer.as_slice());
            }
        }
    }

    const ALL: [WorldUpdates; 3] = [WorldUpdates::Whole, WorldUpdates::Changes, WorldUpdates::Replication];

    /// Plays a game against a server in which another player walks east.
    fn play(updates: WorldUpdates, frames: u32, mut inspect: impl FnMut(&Game, &Server<u8>)) -> Game {
        let mut server = Box::new(Server::new(5));
        let mut game = Game::new(updates);
        game.connected();
        let mut other = Client::new();
        other.handle_connected();
        [0, 1].into_iter().for_each(|key| server.handle_connected(key).unwrap());
        server.offer_replication(0);
        let mut replication = Replication::new();
        let mut buffer = vec![0; MAX_MESSAGE];
        for frame in 0..frames {
            let now = Instant::from_micros(u64::from(frame) * 16_667);
            while let Some(message) = game.poll_message() {
                server.handle_message(0, &&*message.bytes);
            }
            let mut packed = [0; MAX_MESSAGE_SIZE];
            while let Some((_, message)) = other.poll_message(&mut packed) {
                server.handle_message(1, &message);
            }
            server.tick();
            while let Some(output) = server.poll_output(&mut buffer) {
                let Output::Send { to, payload, .. } = output else {
                    panic!("no connection should be closed")
                };
                if to == 0 {
                    game.receive(payload, now);
                } else {
                    other.handle_message(now, &payload).unwrap();
                }
            }
            replication.pass(&server, &mut game);
            game.pass(now, Input { movement: Direction::NORTH, ..Input::default() });
            other.handle_frame(now, Input { movement: Direction::EAST, ..Input::default() });
            inspect(&game, &server);
        }
        game
    }

    fn drawn(game: &Game, owner: u32) -> Option<(f64, f64)> {
        let scene = game.scene();
        let mut players = scene.chunks(FIELDS).filter(|row| row[1] == 2.0 && row[8] == f64::from(owner));
        players.next().map(|row| (row[2], row[3]))
    }

    #[test]
    fn other_players_are_interpolated() {
        for updates in ALL {
            let (mut last, mut steps) = (None, Vec::new());
            let game = play(updates, 120, |game, server| {
                let (Some((x, _)), Some(there)) = (drawn(game, 2), server.world().position_of(PlayerId(2)))
                else {
                    return;
                };
                if let Some(last) = last.replace(x) {
                    steps.push(x - last);
                }
                assert!(x <= f64::from(there.x) + 0.01, "the drawn player must not be ahead of the server");
                assert!(x >= f64::from(there.x) - 1.0, "the drawn player must be less than a tile behind");
            });
            assert!(steps.iter().all(|step| (-0.001..0.2).contains(step)), "{steps:?}");
            assert!(steps.iter().filter(|step| **step > 0.05).count() > 30, "{steps:?}");
            assert!(game.snapshots() > 40, "{}", game.snapshots());
        }
    }

    #[test]
    fn own_player_is_drawn_at_its_predicted_position() {
        for updates in ALL {
            let game = play(updates, 120, |_, _| {});
            assert!(game.largest_correction() < 0.1, "{}", game.largest_correction());
            assert_eq!(game.player(), Some(1));
            assert_eq!(game.is_replicated(), updates == WorldUpdates::Replication);
        }
    }

    /// If several snapshots arrive between two frames, in any order, the next frame shows and acknowledges only the
    /// newest.
    #[test]
    fn frame_shows_only_the_newest_snapshot() {
        for updates in [WorldUpdates::Changes, WorldUpdates::Whole] {
            let mut server = Box::new(Server::new(5));
            let mut game = Game::new(updates);
            game.connected();
            server.handle_connected(0_u8).unwrap();
            while let Some(message) = game.poll_message() {
                server.handle_message(0, &&*message.bytes);
            }
            let mut buffer = vec![0; MAX_MESSAGE];
            let mut snapshots = Vec::new();
            for _ in 0..10 {
                while let Some(Output::Send { payload, .. }) = server.poll_output(&mut buffer) {
                    snapshots.push(payload.to_vec());
                }
                server.tick();
            }
            // The first message is the Connect, not a snapshot.
            let now = Instant::ZERO;
            assert_eq!(game.receive(&snapshots.remove(0), now), Change::Joined(PlayerId(1)));
            let newest = snapshots.len() - 1;
            snapshots.swap(newest, newest / 2);
            for snapshot in &snapshots {
                assert_eq!(game.receive(snapshot, now), Change::Nothing);
            }
            assert_eq!((game.snapshots(), game.time()), (0, 0), "nothing changes between frames");
            game.pass(now, Input::default());
            assert_eq!((game.snapshots(), game.time()), (1, 9));
            while game.poll_message().is_some() {}
            game.pass(now, Input::default());
            assert_eq!(game.snapshots(), 1);
        }
    }

    #[test]
    fn scene_has_twelve_numbers_per_entity() {
        let mut world = snowfight::world::World::new(1);
        let player = world.join().unwrap();
        world.act(player, ActionKind::Move(Move { direction: Direction::WEST }));
        let mut game = Game::new(WorldUpdates::Whole);
        let entities = world.entities();
        game.view.update(&rakwire::codec::rabbit::List::new(&entities));
        let scene = game.scene();
        assert_eq!(scene.len(), entities.len() * FIELDS);
        assert_eq!(&scene[..2], &[301.0, 2.0]);
        assert_eq!(&scene[5..12], &[-1.0, 3.0, 3.0, 1.0, -1.0, -1.0, 2.0]);
    }
}
