//! Compares the bandwidth of full snapshots, the game's own deltas and replication.
//!
//! It simulates a world of 200 players and measures the traffic of one client. Every run has the same result.

use std::time::Duration;

use rakwire::codec::rabbit::to_vec;
use rakwire::endpoint::{Capacity, ConnectionId, Event, Hooked, Peer, PluginHost, PluginKey, Protocol};
use rakwire::game_protocol::{GameProtocol, Reliability};
use rakwire::raknet::{self, RakNet};
use rakwire::sim::{Conditions, Pair};
use rakwire::{Instant, Machine};
use snowfight::client::{Client, Input, Update, View};
use snowfight::message::{
    Action, ActionKind, Break, Channel, ClientMessage, Delivery, Direction, Entity, EntityKind, Move,
    PlayerId, Point, Request, RequestKind, Scope, Throw,
};
use snowfight::server::{MAX_MESSAGE, Output, Pacing, Server};
use snowfight::world::{MAX_ENTITIES, REACH, TICKS_PER_SECOND};
use snowfight_replication::{
    ReplicatedWorld, WorldAuthority, WorldReplicas, authority, entities, replicas, time,
};

/// The key of the measured client; the other players have the keys 1 to 199.
const CLIENT: usize = 0;
const PLAYERS: usize = 200;
/// The durations of a run. The players need the warm-up to spread over the land.
const DURATION: Seconds = Seconds { warm_up: 20, measured: 30 };
const TICK: Duration = Duration::from_nanos(1_000_000_000 / TICKS_PER_SECOND as u64);
/// The first byte of the game's messages in RakNet.
const MESSAGE_ID: u8 = 0x86;
/// A viewing distance that covers the whole land, in tiles.
const EVERYWHERE: f32 = 200.0;
const ALL: Way = Way::Replication { distance: EVERYWHERE };
const WAYS: [Direction; 4] = [Direction::NORTH, Direction::EAST, Direction::SOUTH, Direction::WEST];

/// The mechanism by which the server sends the world to the client.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// Full snapshots, one for every `every` ticks.
    Whole {
        every: u32,
    },
    Changes,
    Replication {
        distance: f32,
    },
}

impl Way {
    const fn scope(self) -> Scope {
        match self {
            Self::Whole { .. } => Scope::Whole,
            Self::Changes => Scope::Changes,
            Self::Replication { .. } => Scope::Replicated,
        }
    }
}

/// The deliveries and the message prefix that the game uses on a transport.
trait GameTransport: Protocol {
    const RELIABLE: Self::Delivery;
    const UNRELIABLE: Self::Delivery;
    /// The bytes before each message of the game.
    const PREFIX: &'static [u8];
}

impl GameTransport for RakNet {
    const RELIABLE: raknet::Delivery = raknet::Delivery::RELIABLE_ORDERED;
    const UNRELIABLE: raknet::Delivery = raknet::Delivery::UNRELIABLE_SEQUENCED;
    const PREFIX: &'static [u8] = &[MESSAGE_ID];
}

impl GameTransport for GameProtocol {
    const RELIABLE: Reliability = Reliability::Reliable;
    const UNRELIABLE: Reliability = Reliability::Unreliable;
    const PREFIX: &'static [u8] = &[];
}

/// A linear congruential generator, with the constants of Knuth's MMIX.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as u32) % end
    }

    fn way(&mut self) -> Direction {
        WAYS[self.below(4) as usize]
    }
}

/// A scripted player that walks, breaks objects within reach, throws them in random directions, or stands still.
#[derive(Clone, Copy, Default)]
struct Walker {
    input: Input,
    ticks_left: u32,
}

impl Walker {
    /// Returns the input of a tick.
    fn advance(&mut self, random: &mut Random, own: PlayerId, entities: &[Entity]) -> Input {
        self.input.throw = None;
        if self.ticks_left > 0 {
            self.ticks_left -= 1;
            return self.input;
        }
        self.ticks_left = 30 + random.below(60);
        let movement = match random.below(4) {
            0 => Direction::NONE,
            1 => random.way() | random.way(),
            _ => random.way(),
        };
        self.input = Input { movement, ..Input::default() };
        let me = entities.iter().find_map(|entity| match entity.kind {
            EntityKind::Player(player) if player.owner == own => Some(player),
            EntityKind::Player(_) | EntityKind::Object(_) | EntityKind::Dead => None,
        });
        let Some(me) = me.filter(|_| random.below(4) == 0) else { return self.input };
        if me.holding.is_some() {
            let mut along = || random.below(17) as f32 - 8.0;
            self.input.throw = Some(me.position + Point::new(along(), along(), 0.0));
        } else {
            let near = entities.iter().find(|entity| match entity.kind {
                EntityKind::Object(object) => {
                    object.durability.is_some() && (object.position - me.position).length() < REACH
                }
                EntityKind::Player(_) | EntityKind::Dead => false,
            });
            self.input.breaking = near.map(|object| object.id);
        }
        self.input
    }
}

type Peered<P, T> = Hooked<'static, P, PluginHost<Box<T>, 1>>;
type Failure = Box<dyn std::error::Error>;

struct Game<P: GameTransport> {
    pair: Pair<Peered<P, WorldReplicas<P>>, Peered<P, WorldAuthority<P, 1>>>,
    /// The keys of the authority plugin at the server and of the replicas plugin at the client.
    plugins: Option<(PluginKey, PluginKey)>,
    way: Way,
    replicated: ReplicatedWorld,
    here: Option<ConnectionId>,
    there: Option<ConnectionId>,
    server: Box<Server<usize>>,
    client: Client,
    view: Box<View<MAX_ENTITIES>>,
    shown_at: u32,
    walkers: Vec<Walker>,
    random: Random,
}

impl<P: GameTransport> Game<P> {
    fn new(way: Way, conditions: Conditions) -> Result<Self, Failure> {
        let (mut hook_here, mut hook_there) = (PluginHost::new(), PluginHost::new());
        let mut plugins = None;
        if let Way::Replication { distance } = way {
            let mut authority = Box::new(authority::<P, 1>(P::UNRELIABLE)?);
            authority.scope.set_distance(distance);
            let replicas = Box::new(replicas::<P>(P::UNRELIABLE)?);
            plugins = Some((hook_there.attach::<P>(authority)?, hook_here.attach::<P>(replicas)?));
        }
        let capacity = Capacity { connections: 1, blocks: 8_192, block_size: 512 };
        let mut config = P::config([1; 32]);
        *P::max_incoming(&mut config) = 1;
        let b = Hooked::new(Peer::with_capacity(capacity, config), hook_there);
        let a = Hooked::new(Peer::with_capacity(capacity, P::config([2; 32])), hook_here);
        let mut pair = Pair::new(a, b, conditions, 7);
        pair.a.peer.connect(pair.now, pair.b_address)?;
        let mut game = Self {
            pair,
            plugins,
            way,
            replicated: ReplicatedWorld::new(),
            here: None,
            there: None,
            server: Box::new(Server::new(7)),
            client: Client::with_scope(way.scope()),
            view: Box::new(View::new()),
            shown_at: 0,
            walkers: vec![Walker::default(); PLAYERS],
            random: Random(7),
        };
        while game.here.is_none() || game.there.is_none() {
            game.run(TICK)?;
        }
        // This example does not measure pacing.
        game.server.set_pacing(Pacing::Unpaced);
        game.server.handle_connected(CLIENT)?;
        game.server.offer_replication(CLIENT);
        game.client.handle_connected();
        (1..PLAYERS).try_for_each(|key| game.join(key))?;
        Ok(game)
    }

    /// Adds a player that calls the server directly, without a network.
    fn join(&mut self, key: usize) -> Result<(), Failure> {
        self.server.handle_connected(key)?;
        let init = ClientMessage::Request(Request { channel: Channel(0), kind: RequestKind::Init });
        self.server.handle_message(key, &to_vec(&init)?.as_slice());
        Ok(())
    }

    fn next(&mut self) -> Option<Instant> {
        self.pair.transmit();
        let links = [self.pair.forth().next_arrival(), self.pair.back().next_arrival()];
        links.into_iter().chain([self.pair.a.poll_timeout(), self.pair.b.poll_timeout()]).flatten().min()
    }

    /// Runs the simulated client, server and network for `duration`.
    fn run(&mut self, duration: Duration) -> Result<(), Failure> {
        let end = self.pair.now + duration;
        while self.next().is_some_and(|next| next <= end) {
            self.pair.step();
            while let Some(event) = self.pair.b.poll_event() {
                if let Event::Connected { id, .. } = event {
                    self.there = Some(id);
                } else if let Event::Message { message, .. } = event {
                    let message = message.to_vec();
                    self.server.handle_message(CLIENT, &message.get(P::PREFIX.len()..).unwrap_or_default());
                }
            }
            while let Some(event) = self.pair.a.poll_event() {
                if let Event::Connected { id, .. } = event {
                    self.here = Some(id);
                } else if let Event::Message { message, .. } = event {
                    let message = message.to_vec();
                    let message = message.get(P::PREFIX.len()..).unwrap_or_default();
                    take(&mut self.client, &mut self.view, self.pair.now, message)?;
                }
            }
        }
        self.pair.now = end;
        Ok(())
    }

    fn tick(&mut self) -> Result<(), Failure> {
        let entities = self.server.world().entities();
        let mut input = Input::default();
        for (key, walker) in self.walkers.iter_mut().enumerate() {
            // The other players joined in the order of their keys, and a player that rejoins gets its previous id.
            let own = PlayerId(key as u32);
            let own = if key == CLIENT { self.client.player().unwrap_or(own) } else { own };
            let decided = walker.advance(&mut self.random, own, &entities);
            if key == CLIENT {
                input = decided;
            } else {
                act(&mut self.server, key, decided)?;
            }
        }
        self.frame(input)?;
        self.server.tick();
        self.send()?;
        self.replicate()?;
        self.run(TICK)
    }

    /// Runs a frame of the client.
    fn frame(&mut self, input: Input) -> Result<(), Failure> {
        self.client.handle_frame(self.pair.now, input);
        let (mut buffer, here) = ([0; 64], self.here.ok_or("not connected")?);
        while let Some((delivery, message)) = self.client.poll_message(&mut buffer) {
            let message = [P::PREFIX, message].concat();
            self.pair.a.peer.send(self.pair.now, here, &message, delivered::<P>(delivery))?;
        }
        Ok(())
    }

    /// Sends the server's output to the client, and lets fallen players rejoin.
    fn send(&mut self) -> Result<(), Failure> {
        let (mut buffer, mut closed) = (vec![0; MAX_MESSAGE], Vec::new());
        let there = self.there.ok_or("not connected")?;
        let time = self.server.world().time();
        while let Some(output) = self.server.poll_output(&mut buffer) {
            match output {
                Output::Send { to: CLIENT, delivery, payload } => {
                    let is_left_out = match self.way {
                        Way::Whole { every } => {
                            delivery == Delivery::Unreliable && !time.is_multiple_of(every)
                        }
                        Way::Changes | Way::Replication { .. } => false,
                    };
                    if !is_left_out {
                        let message = [P::PREFIX, payload].concat();
                        self.pair.b.peer.send(self.pair.now, there, &message, delivered::<P>(delivery))?;
                    }
                }
                Output::Send { .. } => {}
                Output::Close { connection: CLIENT } => {
                    return Err("the player of the client has fallen; choose another seed".into());
                }
                Output::Close { connection } => closed.push(connection),
            }
        }
        closed.into_iter().try_for_each(|key| self.join(key))
    }

    fn replicate(&mut self) -> Result<(), Failure> {
        let (Some((plugin, _)), Some(there)) = (self.plugins, self.there) else { return Ok(()) };
        let authority = self.pair.b.hook.get_mut(plugin).ok_or("the plugin is not attached")?;
        let world = self.server.world();
        let place = |(_, player)| Some((there, world.position_of(player)?));
        let players = self.server.replicated().filter_map(place);
        self.replicated.record(authority, world.time(), &world.entities(), players);
        Ok(())
    }

    /// Returns the distance between the true and the shown position of every player that the client shows, in tiles.
    fn errors(&mut self) -> Result<Vec<f64>, Failure> {
        if let Some((_, plugin)) = self.plugins {
            let replicas = self.pair.a.hook.get(plugin).ok_or("the plugin is not attached")?;
            if time(replicas) != self.shown_at {
                self.shown_at = time(replicas);
                self.view.replace(entities(replicas));
            }
        }
        let world = self.server.world();
        let shown = self.view.entities().iter().filter_map(|entity| match entity.kind {
            EntityKind::Player(player) => {
                Some(f64::from((world.position_of(player.owner)? - player.position).length()))
            }
            EntityKind::Object(_) | EntityKind::Dead => None,
        });
        Ok(shown.collect())
    }
}

const fn delivered<P: GameTransport>(delivery: Delivery) -> P::Delivery {
    match delivery {
        Delivery::Reliable => P::RELIABLE,
        Delivery::Unreliable => P::UNRELIABLE,
    }
}

/// Passes a message from the server to the client.
fn take(
    client: &mut Client,
    view: &mut View<MAX_ENTITIES>,
    now: Instant,
    message: &[u8],
) -> Result<(), Failure> {
    match client.handle_message(now, &message)? {
        Update::Joined { entities, .. } => view.update(&entities),
        Update::Snapshot { time, entities, scope } => view.take(time, &entities, scope),
        Update::Over(_) | Update::Pong { .. } | Update::Rejected(_) | Update::Ignored => {}
    }
    Ok(())
}

/// Passes the actions of a player without a network to the server.
fn act(server: &mut Server<usize>, key: usize, input: Input) -> Result<(), Failure> {
    let throw = input.throw.map(|target| ActionKind::Throw(Throw { target }));
    let actions = [
        ActionKind::Move(Move { direction: input.movement }),
        ActionKind::Break(Break { entity: input.breaking }),
    ];
    for kind in actions.into_iter().chain(throw) {
        server.handle_message(key, &to_vec(&ClientMessage::Action(Action { kind }))?.as_slice());
    }
    Ok(())
}

/// The warm-up and the measured time of a run, in seconds.
#[derive(Clone, Copy)]
pub(crate) struct Seconds {
    pub(crate) warm_up: u32,
    pub(crate) measured: u32,
}

/// The measured bandwidth and position errors of one mechanism.
#[derive(Debug)]
pub(crate) struct Measured {
    /// Payload bytes per second to the client (`down`) and from the client (`up`).
    pub(crate) down: f64,
    up: f64,
    /// The mean number of players that the client shows.
    pub(crate) players: f64,
    /// The mean and the maximum position error, in tiles.
    pub(crate) mean: f64,
    most: f64,
}

fn measure<P: GameTransport>(way: Way, loss: f64, duration: Seconds) -> Result<Measured, Failure> {
    let conditions = Conditions { loss, latency: Duration::from_millis(40), ..Conditions::default() };
    let mut game = Game::<P>::new(way, conditions)?;
    (0..duration.warm_up * TICKS_PER_SECOND).try_for_each(|_| game.tick())?;
    game.pair.forth().take_stats();
    game.pair.back().take_stats();
    let (mut sum, mut count, mut most) = (0.0, 0, 0.0_f64);
    let ticks = duration.measured * TICKS_PER_SECOND;
    for _ in 0..ticks {
        game.tick()?;
        let errors = game.errors()?;
        count += errors.len();
        sum += errors.iter().sum::<f64>();
        most = errors.into_iter().fold(most, f64::max);
    }
    let seconds = f64::from(duration.measured);
    let [down, up] = [game.pair.back().stats().bytes, game.pair.forth().stats().bytes];
    Ok(Measured {
        down: down as f64 / seconds,
        up: up as f64 / seconds,
        players: count as f64 / f64::from(ticks),
        mean: sum / count.max(1) as f64,
        most,
    })
}

/// Measures full snapshots at 30 per second, the game's deltas, and replication of the whole world.
pub(crate) fn compare(loss: f64, duration: Seconds) -> Result<[Measured; 3], Failure> {
    Ok([
        measure::<GameProtocol>(Way::Whole { every: 2 }, loss, duration)?,
        measure::<RakNet>(Way::Changes, loss, duration)?,
        measure::<RakNet>(ALL, loss, duration)?,
    ])
}

fn main() -> Result<(), Failure> {
    println!(
        "| loss | protocol | world | players shown | bytes/s to the client | of full | bytes/s from it | off by, tiles | at most |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for loss in [0.0, 0.01, 0.05] {
        let whole = Way::Whole { every: 1 };
        let near = Way::Replication { distance: snowfight_replication::NEAR };
        let [full, changes, all] = compare(loss, DURATION)?;
        let whole_down = full.down;
        let rows = [
            ("Game Protocol", "full snapshots, 30/s", full),
            ("Game Protocol", "full snapshots, 60/s", measure::<GameProtocol>(whole, loss, DURATION)?),
            ("Game Protocol", "changes, 30/s", measure::<GameProtocol>(Way::Changes, loss, DURATION)?),
            ("RakNet", "changes, 30/s", changes),
            ("RakNet", "replication, all", all),
            ("RakNet", "replication, near", measure::<RakNet>(near, loss, DURATION)?),
        ];
        for (protocol, world, Measured { down, up, players, mean, most }) in rows {
            let (loss, part) = (loss * 100.0, down / whole_down * 100.0);
            println!(
                "| {loss:.0} % | {protocol} | {world} | {players:.0} | {down:.0} | {part:.0} % | {up:.0} | {mean:.3} | {most:.2} |"
            );
        }
    }
    Ok(())
}
