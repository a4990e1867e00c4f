//! Snapshots for a slow client over the real transports (docs/game.md#pacing). A simulated bottleneck represents the
//! queues of a relay and of the page.

use std::collections::VecDeque;
use std::time::Duration;

use rakwire::Instant;
use rakwire::sim::{Bottleneck, Conditions, LinkStats};
use snowfight::bot;
use snowfight::client::{Client, Update, View};
use snowfight::message::{Entity, EntityKind, Scope};
use snowfight::server::{MAX_MESSAGE, Output, Pacing, Server, Stats};
use snowfight::world::MAX_ENTITIES;

use crate::transports::{End, Game, Play, RakNet, TICK, WAYS};

const ONE_WAY: Duration = Duration::from_millis(5);
/// The capacity of the bottleneck's queue in bytes: about 256 datagrams of the Game Protocol.
const QUEUE: u64 = 130_000;
/// The maximum age of the shown state, in ticks: half a second. The transmission of one snapshot through the
/// bottleneck takes a fifth of that time.
const MAX_AGE: u32 = 30;

/// The results of one phase.
#[derive(Debug)]
struct Phase {
    /// The maximum age of the client's newest snapshot, in ticks.
    worst_age: u32,
    shown: usize,
    sent: u64,
    thinned: u64,
    path: LinkStats,
}

/// A game over a path that changes from phase to phase.
struct Slow<E: End> {
    play: Play<E>,
    ticks: u32,
}

impl<E: End> Slow<E> {
    fn new(client: E, server: E, scope: Scope, pacing: Pacing) -> Self {
        let mut play = Play::new(client, server, ONE_WAY, scope, 7);
        play.server.set_pacing(pacing);
        play.is_slow = true;
        let mut slow = Self { play, ticks: 0 };
        // The first tick lets the client join.
        slow.run(1, None);
        slow
    }

    /// Runs the game for some seconds. The path to the client carries `bits_per_second`, or any rate if `None`.
    fn run(&mut self, seconds: u32, bits_per_second: Option<u64>) -> Phase {
        let bottleneck = bits_per_second.map(|bits_per_second| Bottleneck { bits_per_second, queue: QUEUE });
        let conditions = Conditions { latency: ONE_WAY, bottleneck, ..Conditions::default() };
        self.play.pair.back().set_conditions(conditions);
        self.play.pair.back().take_stats();
        let (shown, before) = (self.play.shown.len(), self.play.server.stats());
        let start = self.play.pair.now;
        let mut worst_age = 0;
        for tick in 0..60 * seconds {
            self.play.run_to(start + TICK * tick);
            self.play.tick();
            self.play.frame(WAYS[(self.ticks / 40) as usize % WAYS.len()]);
            self.ticks += 1;
            if let Some(newest) = self.play.shown.last() {
                worst_age = worst_age.max(self.play.server.world().time() - newest);
            }
        }
        let Stats { snapshots, thinned, .. } = self.play.server.stats();
        Phase {
            worst_age,
            shown: self.play.shown.len() - shown,
            sent: snapshots - before.snapshots,
            thinned: thinned - before.thinned,
            path: self.play.pair.back().take_stats(),
        }
    }
}

fn paced<E: End>(client: E, server: E) {
    let mut slow = Slow::new(client, server, Scope::Whole, Pacing::Acknowledged);
    let before = slow.run(10, None);
    assert_eq!((before.sent, before.thinned), (600, 0), "{before:?}");
    slow.run(5, Some(800_000));
    let during = slow.run(20, Some(800_000));
    // A snapshot has about 7,000 bytes with headers, so the path carries 14 per second.
    assert!((140..300).contains(&during.shown), "{during:?}");
    assert!(during.thinned > 800 && during.path.overflowed == 0, "{during:?}");
    assert!(during.worst_age <= MAX_AGE, "{during:?}");
    slow.run(12, None);
    let after = slow.run(10, None);
    assert_eq!((after.sent, after.thinned), (600, 0), "{after:?}");
    assert!(after.worst_age <= before.worst_age + 1, "{after:?}, {before:?} before");
}

#[test]
fn slow_client_gets_fewer_but_timely_snapshots_over_the_game_protocol() {
    paced(Game::new(0), Game::new(1));
}

#[test]
fn slow_client_gets_fewer_but_timely_snapshots_over_raknet() {
    paced(RakNet::new(0), RakNet::new(1));
}

/// Without pacing, the full queue drops a datagram of most snapshots, and the others arrive late.
#[test]
fn queue_of_a_slow_client_stays_full_without_pacing() {
    let mut slow = Slow::new(Game::new(0), Game::new(1), Scope::Whole, Pacing::Unpaced);
    slow.run(10, None);
    let during = slow.run(20, Some(800_000));
    assert!(during.worst_age > 2 * MAX_AGE && during.path.overflowed > 10_000, "{during:?}");
    assert_eq!(during.thinned, 0);
}

/// Cuts the path for eight seconds. The server then sends a few snapshots and later one probe per second. After the
/// cut, the client gets every snapshot again.
fn cut<E: End>(client: E, server: E, scope: Scope) {
    let mut slow = Slow::new(client, server, scope, Pacing::Acknowledged);
    let all = slow.run(10, None).sent;
    let during = slow.run(8, Some(0));
    assert!(during.sent < all / 5, "{during:?}");
    slow.run(5, None);
    let after = slow.run(10, None);
    assert_eq!((after.sent, after.thinned), (all, 0), "{after:?}");
}

#[test]
fn client_recovers_after_the_path_was_cut() {
    for scope in [Scope::Whole, Scope::Changes] {
        cut(Game::new(0), Game::new(1), scope);
        cut(RakNet::new(0), RakNet::new(1), scope);
    }
}

/// A client without a network that handles one message in 12 ticks, while a snapshot is due every 2 ticks.
struct Sluggish {
    server: Server<u8>,
    client: Client,
    view: Box<View<MAX_ENTITIES>>,
    queue: VecDeque<Vec<u8>>,
    longest_queue: usize,
}

impl Sluggish {
    fn tick(&mut self, number: u32) {
        let now = Instant::from_micros(u64::from(number) * 16_667);
        let mut buffer = vec![0; MAX_MESSAGE];
        while let Some((_, message)) = self.client.poll_message(&mut buffer) {
            self.server.handle_message(0, &message);
        }
        self.server.tick();
        while let Some(Output::Send { payload, .. }) = self.server.poll_output(&mut buffer) {
            self.queue.push_back(payload.to_vec());
        }
        self.longest_queue = self.longest_queue.max(self.queue.len());
        if number.is_multiple_of(12)
            && let Some(message) = self.queue.pop_front()
        {
            match self.client.handle_message(now, &message.as_slice()) {
                Ok(Update::Joined { entities, .. }) => self.view.update(&entities),
                Ok(Update::Snapshot { time, entities, scope }) => self.view.take(time, &entities, scope),
                other => assert!(matches!(other, Ok(Update::Pong { .. }))),
            }
        }
        let entities = self.view.entities();
        let input = self.client.player().map(|player| bot::decide(entities, player)).unwrap_or_default();
        self.client.handle_frame(now, input);
    }
}

#[test]
fn client_with_few_delta_snapshots_shows_the_whole_world() {
    let (mut server, mut client) = (Server::new(7), Client::with_scope(Scope::Changes));
    server.handle_connected(0).unwrap();
    client.handle_connected();
    let (view, queue) = (Box::new(View::new()), VecDeque::new());
    let mut slow = Sluggish { server, client, view, queue, longest_queue: 0 };
    (0..1_200).for_each(|number| slow.tick(number));
    slow.longest_queue = 0;
    (1_200..6_000).for_each(|number| slow.tick(number));
    let Stats { snapshots, thinned, .. } = slow.server.stats();
    assert!((300..700).contains(&snapshots) && thinned > 2_000, "{snapshots} snapshots, {thinned} skipped");
    assert!(slow.longest_queue < 12, "{} in the queue", slow.longest_queue);
    let world = slow.server.world().entities();
    let is_object = |entity: &&Entity| matches!(entity.kind, EntityKind::Object(_));
    let objects = world.iter().filter(is_object);
    assert!(objects.clone().count() > 250);
    // Changes within the last second may still be in flight.
    let wrong = objects.filter(|object| slow.view.entity(object.id) != Some(&object.kind)).count();
    assert!(wrong <= 2, "{wrong} objects are shown wrongly");
    let dead = slow.view.entities().iter().filter(is_object);
    let dead = dead.filter(|shown| !world.iter().any(|entity| entity.id == shown.id)).count();
    assert!(dead <= 2, "{dead} destroyed objects are still shown");
}
