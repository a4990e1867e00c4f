//! A client that predicts the movement of its own player, over a simulated network.

use std::time::Duration;

use rakwire::Instant;
use rakwire::sim::{Conditions, Link};
use snowfight::client::{Client, Input, Prediction, Update, View};
use snowfight::message::{Direction, Point, Scope};
use snowfight::server::{MAX_MESSAGE, Output, Server};
use snowfight::world::MAX_ENTITIES;

const TICK: Duration = Duration::from_micros(16_667);
const WAYS: [Direction; 5] =
    [Direction::NONE, Direction::NORTH, Direction::EAST, Direction::SOUTH, Direction::WEST];

/// A client and a server, connected by a simulated network.
struct Play {
    server: Server<u8>,
    client: Client,
    view: Box<View<MAX_ENTITIES>>,
    prediction: Option<Prediction>,
    forth: Link,
    back: Link,
    corrections: Vec<f32>,
}

impl Play {
    fn new(conditions: Conditions, scope: Scope, seed: u64) -> Self {
        let mut server = Server::new(seed);
        server.handle_connected(0).expect("a free slot");
        let mut client = Client::with_scope(scope);
        client.handle_connected();
        let view = Box::new(View::new());
        let (forth, back) = (Link::new(conditions, 2 * seed), Link::new(conditions, 2 * seed + 1));
        Self { server, client, view, prediction: None, forth, back, corrections: Vec::new() }
    }

    /// Delivers the messages that have arrived by now.
    fn deliver(&mut self, now: Instant) {
        while let Some(message) = self.forth.receive(now) {
            self.server.handle_message(0, &&*message);
        }
        while let Some(message) = self.back.receive(now) {
            match self.client.handle_message(now, &&*message).expect("a valid message from the server") {
                Update::Joined { player, entities } => {
                    self.view.update(&entities);
                    let mut prediction = Prediction::new(player);
                    prediction.handle_snapshot(0, self.view.entities().iter().copied());
                    self.prediction = Some(prediction);
                }
                Update::Snapshot { time, entities, scope } => {
                    self.view.take(time, &entities, scope);
                    let entities = self.view.entities().iter().copied();
                    if let Some(prediction) = &mut self.prediction {
                        self.corrections.push(prediction.handle_snapshot(time, entities));
                    }
                }
                Update::Over(_) | Update::Pong { .. } | Update::Rejected(_) | Update::Ignored => {}
            }
        }
    }

    fn tick(&mut self, now: Instant) {
        self.deliver(now);
        self.server.tick();
        self.send_back(now);
    }

    fn send_back(&mut self, now: Instant) {
        let mut buffer = vec![0; MAX_MESSAGE];
        while let Some(Output::Send { payload, .. }) = self.server.poll_output(&mut buffer) {
            self.back.send(now, payload);
        }
    }

    /// Runs a frame in which the client sends `movement` and predicts `believed`.
    fn frame(&mut self, now: Instant, movement: Direction, believed: Direction) {
        self.deliver(now);
        self.client.handle_frame(now, Input { movement, ..Input::default() });
        if let Some(prediction) = &mut self.prediction {
            prediction.handle_frame(believed);
        }
        let mut buffer = [0; 64];
        while let Some((_, message)) = self.client.poll_message(&mut buffer) {
            self.forth.send(now, message);
        }
    }

    fn reported(&self) -> Option<Point> {
        Some(self.view.player(self.client.player()?)?.1.position)
    }

    fn predicted(&self) -> Option<Point> {
        self.prediction.as_ref()?.position()
    }
}

/// A deterministic pseudorandom number generator.
struct Dice(u32);

impl Dice {
    fn roll(&mut self, sides: u32) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 8) % sides
    }
}

struct Walked {
    /// The largest correction, in tiles.
    worst: f32,
    /// The largest distance between predicted and reported position, in tiles.
    ahead: f32,
    far: f32,
}

/// Simulates a minute of random walks among the trees.
fn walk(conditions: Conditions, scope: Scope, seed: u64) -> Walked {
    let mut play = Play::new(conditions, scope, seed);
    let mut dice = Dice(seed as u32);
    let phase = Duration::from_micros(u64::from(dice.roll(16_667)));
    let (mut movement, mut left) = (Direction::NONE, 0);
    let mut walked = Walked { worst: 0.0, ahead: 0.0, far: 0.0 };
    for tick in 0..3_600 {
        let now = Instant::ZERO + TICK * tick;
        play.tick(now);
        if left == 0 {
            left = 5 + dice.roll(40);
            movement = WAYS[dice.roll(5) as usize] | WAYS[dice.roll(5) as usize];
        }
        left -= 1;
        play.frame(now + phase, movement, movement);
        if let (Some(reported), Some(predicted)) = (play.reported(), play.predicted()) {
            walked.ahead = walked.ahead.max((predicted - reported).length());
            walked.far = walked.far.max(predicted.length());
        }
    }
    assert!(play.corrections.len() > 1_000, "{} snapshots", play.corrections.len());
    walked.worst = play.corrections.iter().copied().fold(0.0, f32::max);
    walked
}

fn latency(millis: u64) -> Conditions {
    Conditions { latency: Duration::from_millis(millis), ..Conditions::default() }
}

/// The round-trip times are 100 ms and 200 ms.
#[test]
fn corrections_stay_under_a_tenth_of_a_tile_without_jitter() {
    for (millis, lead) in [(50, 0.4), (100, 0.9)] {
        for scope in [Scope::Whole, Scope::Changes] {
            for seed in 1..6 {
                let Walked { worst, ahead, far } = walk(latency(millis), scope, seed);
                assert!(worst < 0.1, "{worst} at {millis} ms, {scope:?}, seed {seed}");
                assert!(ahead > lead, "only {ahead} ahead of the server at {millis} ms");
                assert!(far > 2.0, "only {far} from the middle");
            }
        }
    }
}

/// Each change of the path delay moves the prediction, so the corrections grow with the jitter.
#[test]
fn corrections_on_a_lossy_path_are_limited_by_its_jitter() {
    let conditions = Conditions { loss: 0.05, jitter: Duration::from_millis(10), ..latency(50) };
    for seed in 1..6 {
        let Walked { worst, ahead, .. } = walk(conditions, Scope::Changes, seed);
        assert!(worst < 1.0, "{worst} with seed {seed}");
        assert!(ahead > 0.4, "only {ahead} ahead of the server");
    }
}

#[test]
fn wrong_prediction_is_corrected() {
    let mut play = Play::new(latency(50), Scope::Whole, 1);
    for tick in 0..240 {
        let now = Instant::ZERO + TICK * tick;
        play.tick(now);
        play.frame(now, Direction::NORTH, Direction::EAST);
    }
    assert!(play.corrections.iter().any(|correction| *correction > 0.1));
}
