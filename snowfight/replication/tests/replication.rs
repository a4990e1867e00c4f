//! A game client with a replicated world, over a simulated network.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use rakwire::endpoint::{ConnectionId, Hooked, Plugin, PluginHost, PluginKey};
use rakwire::raknet::{Capacity, Config, Delivery, Event, Peer, RakNet};
use rakwire::sim::{Conditions, Pair};
use rakwire::{Instant, Machine};
use snowfight::bot;
use snowfight::message::{ActionKind, Break, Entity, EntityId, EntityKind, Move, PlayerId, Point, Throw};
use snowfight::world::{TICKS_PER_SECOND, World};
use snowfight_replication::{
    NEAR, POSITION_SCALE, ReplicatedWorld, UPDATE_TICKS, WorldAuthority, WorldReplicas, authority, entities,
    replicas, time,
};

const TICK: Duration = Duration::from_micros(16_667);
const PLAYERS: usize = 12;

type Peered<T> = Hooked<'static, RakNet, PluginHost<Box<T>, 1>>;

fn hooked<T: Plugin<RakNet>>(seed: u8, plugin: T) -> (Peered<T>, PluginKey) {
    let mut config = Config::new([seed; 32]);
    config.max_incoming = 1;
    let mut host = PluginHost::new();
    let key = host.attach::<RakNet>(Box::new(plugin)).expect("a free slot");
    (Hooked::new(Peer::with_capacity(Capacity::default(), config), host), key)
}

/// A simulated game: a server with bots, and the network client of one more player.
struct Game {
    pair: Pair<Peered<WorldReplicas<RakNet>>, Peered<WorldAuthority<RakNet, 1>>>,
    client: PluginKey,
    server: PluginKey,
    accepted: Option<ConnectionId>,
    world: World,
    replicated: ReplicatedWorld,
    players: Vec<PlayerId>,
    /// The position of the client's player, or its last position before it fell.
    place: Point,
}

impl Game {
    fn new(conditions: Conditions, seed: u64) -> Self {
        let mut world = World::new(seed);
        let players = (0..PLAYERS).map(|_| world.join().expect("a free slot")).collect();
        let (a, client) = hooked(1, replicas::<RakNet>(Delivery::UNRELIABLE).expect("valid classes"));
        let (b, server) = hooked(2, authority::<RakNet, 1>(Delivery::UNRELIABLE).expect("valid classes"));
        let mut pair = Pair::new(a, b, conditions, seed);
        pair.a.peer.connect(pair.now, pair.b_address).expect("a free slot");
        let replicated = ReplicatedWorld::new();
        Self { pair, client, server, accepted: None, world, replicated, players, place: Point::default() }
    }

    /// Runs the bots, the server and the client for one tick.
    fn tick(&mut self, is_playing: bool) {
        let entities = self.world.entities();
        for player in &self.players {
            let input = if is_playing { bot::decide(&entities, *player) } else { Default::default() };
            self.world.act(*player, ActionKind::Move(Move { direction: input.movement }));
            self.world.act(*player, ActionKind::Break(Break { entity: input.breaking }));
            if let Some(target) = input.throw {
                self.world.act(*player, ActionKind::Throw(Throw { target }));
            }
        }
        self.world.tick();
        self.place = self.world.position_of(self.players[0]).unwrap_or(self.place);
        let authority = self.pair.b.hook.get_mut(self.server).expect("the plugin is attached");
        let players = self.accepted.map(|id| (id, self.place));
        self.replicated.record(authority, self.world.time(), &self.world.entities(), players);
        let end = self.pair.now + TICK;
        while self.next().is_some_and(|next| next <= end) {
            self.pair.step();
            while let Some(event) = self.pair.b.poll_event() {
                if let Event::Connected { id, .. } = event {
                    self.accepted = Some(id);
                }
            }
            while self.pair.a.poll_event().is_some() {}
        }
        self.pair.now = end;
    }

    fn next(&mut self) -> Option<Instant> {
        self.pair.transmit();
        let links = [self.pair.forth().next_arrival(), self.pair.back().next_arrival()];
        links.into_iter().chain([self.pair.a.poll_timeout(), self.pair.b.poll_timeout()]).flatten().min()
    }

    fn shown(&self) -> BTreeMap<EntityId, Entity> {
        let client = self.pair.a.hook.get(self.client).expect("the plugin is attached");
        entities(client).map(|entity| (entity.id, entity)).collect()
    }

    fn time(&self) -> u32 {
        time(self.pair.a.hook.get(self.client).expect("the plugin is attached"))
    }
}

fn position(entity: &Entity) -> Option<Point> {
    match entity.kind {
        EntityKind::Player(player) => Some(player.position),
        EntityKind::Object(object) => Some(object.position),
        EntityKind::Dead => None,
    }
}

/// Returns true if the client's copy of an entity equals the entity within the precision of the fields.
fn is_alike(entity: &Entity, shown: &Entity) -> bool {
    let exact = |entity: &Entity| {
        let mut entity = *entity;
        match &mut entity.kind {
            EntityKind::Player(player) => player.position = Point::default(),
            EntityKind::Object(object) => {
                object.position = Point::default();
                object.durability = object.durability.map(|_| 0.0);
            }
            EntityKind::Dead => {}
        }
        entity
    };
    let way = position(entity).zip(position(shown)).map(|(here, there)| (here - there).length());
    exact(entity) == exact(shown) && way.is_some_and(|way| way <= 1.0 / POSITION_SCALE)
}

fn check(conditions: Conditions, seed: u64) {
    let mut game = Game::new(conditions, seed);
    (0..20 * TICKS_PER_SECOND).for_each(|_| game.tick(true));
    (0..3 * TICKS_PER_SECOND).for_each(|_| game.tick(false));
    let (all, shown) = (game.world.entities(), game.shown());
    let me = game.place;
    let near = |entity: &&Entity, distance: f32| {
        position(entity).is_some_and(|there| Point { z: 0.0, ..there - me }.length() < distance)
    };
    let margin = 2.0 / POSITION_SCALE;
    for entity in all.iter().filter(|entity| near(entity, NEAR - margin)) {
        let there = shown.get(&entity.id);
        assert!(there.is_some_and(|there| is_alike(entity, there)), "{entity:?} is shown as {there:?}");
    }
    let visible = all.iter().filter(|entity| near(entity, NEAR + margin)).map(|entity| entity.id);
    let visible: Vec<EntityId> = visible.collect();
    assert!(shown.keys().all(|id| visible.contains(id)), "no distant or removed entity may be shown");
    assert!(shown.len() > 50);
}

#[test]
fn nearby_entities_on_the_client_match_the_server() {
    let latency = Duration::from_millis(40);
    check(Conditions { latency, ..Conditions::default() }, 1);
}

#[test]
fn nearby_entities_on_the_client_match_the_server_over_a_lossy_path() {
    for seed in 1..5 {
        let conditions = Conditions {
            loss: 0.1,
            duplication: 0.05,
            reordering: 0.1,
            latency: Duration::from_millis(50),
            jitter: Duration::from_millis(20),
            ..Conditions::default()
        };
        check(conditions, seed);
    }
}

/// A server that skips updates does not shift the clients' time.
#[test]
fn client_time_follows_the_world_time() {
    let mut game = Game::new(Conditions::default(), 1);
    (0..TICKS_PER_SECOND).for_each(|_| game.tick(true));
    for late in [1, 5, 60, 2] {
        (0..late).for_each(|_| drop(game.world.tick()));
        (0..10).for_each(|_| game.tick(true));
        assert!(
            game.world.time() - game.time() <= UPDATE_TICKS,
            "{} is shown as {}",
            game.world.time(),
            game.time()
        );
    }
}

proptest! {
    /// A client handles arbitrary messages from a server, and every position stays finite.
    #[test]
    fn arbitrary_updates_give_finite_positions(
        updates in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..20),
    ) {
        let mut replicas = Box::new(replicas::<RakNet>(Delivery::UNRELIABLE).expect("valid classes"));
        for (update, tick) in updates.iter().zip(1_u32..) {
            // Most of the messages have the type byte and a tick, like an update.
            replicas.handle_update(&[&[130][..], &tick.to_be_bytes(), update].concat());
            replicas.handle_update(update);
        }
        for entity in entities(&replicas) {
            prop_assert!(position(&entity).is_some_and(|position| position.length() < 1_000.0));
        }
    }
}
