//! Snapshots for a client that does not keep up, over the real transports (docs/game.md#pacing): a bottleneck stands for the
//! queue of a relay and the page behind it.

use std::time::Duration;

use rakwire::sim::{Bottleneck, Conditions, LinkStats};
use snowfight::message::{EntityId, EntityKind, Scope};
use snowfight::server::{Pacing, Stats};

use crate::transports::{End, Game, Play, RakNet, TICK, WAYS};

const ONE_WAY: Duration = Duration::from_millis(5);
/// About 256 datagrams of the Game Protocol.
const QUEUE: u64 = 130_000;
/// The limit of the age of what a client shows, in ticks: half a second, of which a fifth is the snapshot itself in the
/// bottleneck.
const MAX_AGE: u32 = 30;

/// What happened in one phase.
#[derive(Debug)]
struct Phase {
    /// The age of the oldest snapshot that was the newest one of the client, in ticks.
    worst_age: u32,
    shown: usize,
    sent: u64,
    thinned: u64,
    path: LinkStats,
}

/// A game whose time goes on from phase to phase.
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
        // It joins.
        slow.run(1, None);
        slow
    }

    /// Runs some seconds with a path to the client of so many bits per second.
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
    // A snapshot is about 7,000 bytes with headers: the path carries fourteen a second.
    assert!((140..300).contains(&during.shown), "{during:?}");
    assert!(during.thinned > 800 && during.path.overflowed == 0, "{during:?}");
    assert!(during.worst_age <= MAX_AGE, "{during:?}");
    slow.run(12, None);
    let after = slow.run(10, None);
    assert_eq!((after.sent, after.thinned), (600, 0), "{after:?}");
    assert!(after.worst_age <= before.worst_age + 1, "{after:?}, {before:?} before");
}

#[test]
fn a_slow_client_gets_fewer_snapshots_in_time_by_the_game_protocol() {
    paced(Game::new(0), Game::new(1));
}

#[test]
fn a_slow_client_gets_fewer_snapshots_in_time_by_raknet() {
    paced(RakNet::new(0), RakNet::new(1));
}

/// Without pacing most snapshots of the Game Protocol lose a datagram to the full queue, and the others are old.
#[test]
fn without_pacing_the_queue_before_a_slow_client_is_always_full() {
    let mut slow = Slow::new(Game::new(0), Game::new(1), Scope::Whole, Pacing::Unpaced);
    slow.run(10, None);
    let during = slow.run(20, Some(800_000));
    assert!(during.worst_age > 2 * MAX_AGE && during.path.overflowed > 10_000, "{during:?}");
    assert_eq!(during.thinned, 0);
}

/// The path is cut for three seconds: one snapshot a second is tried, and afterwards everything is as before.
fn cut<E: End>(client: E, server: E, scope: Scope) {
    let mut slow = Slow::new(client, server, scope, Pacing::Acknowledged);
    let all = slow.run(10, None).sent;
    let during = slow.run(3, Some(0));
    assert!(during.sent < all / 10, "{during:?}");
    slow.run(5, None);
    let after = slow.run(10, None);
    assert_eq!((after.sent, after.thinned), (all, 0), "{after:?}");
}

#[test]
fn a_client_recovers_from_a_path_that_was_cut() {
    for scope in [Scope::Whole, Scope::Changes] {
        cut(Game::new(0), Game::new(1), scope);
        cut(RakNet::new(0), RakNet::new(1), scope);
    }
}

/// A client that gets few snapshots of changes still has every entity, where it is.
fn changes<E: End>(client: E, server: E) {
    let mut slow = Slow::new(client, server, Scope::Changes, Pacing::Acknowledged);
    slow.run(2, None);
    let during = slow.run(40, Some(30_000));
    assert!(during.thinned > 100 && during.shown > 100, "{during:?}");
    slow.run(2, None);
    let shown = |id: EntityId| slow.play.view.entity(id).copied();
    let world = slow.play.server.world().entities();
    let objects = world.iter().filter(|entity| matches!(entity.kind, EntityKind::Object(_)));
    assert!(objects.clone().count() > 250);
    for object in objects {
        assert_eq!(shown(object.id), Some(object.kind));
    }
}

#[test]
fn few_snapshots_of_changes_add_up_to_the_world() {
    changes(Game::new(0), Game::new(1));
    changes(RakNet::new(0), RakNet::new(1));
}
