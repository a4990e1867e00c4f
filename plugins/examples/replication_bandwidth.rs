//! Compares full snapshots with replication for 200 players in the simulator. Every run has the same result. With a
//! file name as an argument, it writes an SVG graph of the bandwidth of each field instead.

#[path = "replication_bandwidth/graph.rs"]
mod graph;

use std::num::NonZeroU16;
use std::time::Duration;

use rakwire::codec::bits::{BitReader, BitWriter, Msb};
use rakwire::endpoint::{ConnectionId, Hooked, PluginHost, PluginKey};
use rakwire::raknet::{Capacity, Config, Delivery, Event, Peer, RakNet};
use rakwire::sim::{Conditions, Pair};
use rakwire::wire::WireError;
use rakwire::{Instant, Machine};
use rakwire_plugins::replication::{
    AuthorityConfig, Class, EntityInfo, EverythingInScope, Field, HeapAuthority, HeapReplicas, NetworkId,
    ReplicasConfig, Scope, SentBits,
};

const PLAYERS: usize = 200;
const TICK: Duration = Duration::from_millis(50);
const WARM_UP: u32 = 60;
/// The maximum length of a message, which fits into a datagram.
const BYTES: usize = 1_200;
/// The length and width of the field, in centimetres.
const FIELD: u32 = 40_000;
/// The distance up to which a player sees others, which is about a tenth of them.
const NEAR: u32 = 7_500;
const WIDTHS: [u8; 9] = [16, 16, 8, 10, 12, 7, 6, 4, 12];
const SNAPSHOT: u8 = 0x86;

/// East and south in centimetres; pitch and yaw; up; health, flags, item in hand, and score.
static CLASSES: [Class; 1] = [Class {
    fields: &[
        Field::new(16).or_short(7),
        Field::new(16).or_short(7),
        Field::new(8).or_short(5),
        Field::new(10).or_short(6),
        Field::new(12).or_short(6),
        Field::new(7),
        Field::new(6),
        Field::new(4),
        Field::new(12).or_short(3),
    ],
}];

type Values = [u32; WIDTHS.len()];
type Server<S> = HeapAuthority<RakNet, S>;
type Client = HeapReplicas<RakNet>;

const AUTHORITY: AuthorityConfig =
    AuthorityConfig { connections: 1, entities: PLAYERS, history: 16, max_message: BYTES };
const REPLICAS: ReplicasConfig = ReplicasConfig { entities: PLAYERS, max_message: BYTES };
type Peered<T> = Hooked<'static, RakNet, PluginHost<T, 1>>;

/// A linear congruential generator, with the constants of Knuth's MMIX.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as u32) % end
    }
}

/// A player that walks for a while, turns or stands still, and sometimes throws and is hit.
#[derive(Clone, Copy, Default)]
struct Player {
    values: Values,
    step: [i32; 2],
    ticks_left: u32,
}

impl Player {
    fn new(random: &mut Random) -> Self {
        let values = [random.below(FIELD), random.below(FIELD), 128, 0, 100, 100, 0, 3, 0];
        Self { values, ..Self::default() }
    }

    fn advance(&mut self, random: &mut Random) {
        if self.ticks_left == 0 {
            self.ticks_left = 20 + random.below(60);
            let yaw = random.below(1_024);
            let angle = f64::from(yaw) * core::f64::consts::TAU / 1_024.0;
            // Three of four walk, at five metres per second.
            let speed = if random.below(4) == 0 { 0.0 } else { 25.0 };
            self.step = [(angle.sin() * speed) as i32, (angle.cos() * speed) as i32];
            self.values[3] = yaw;
        }
        self.ticks_left -= 1;
        for (value, step) in self.values.iter_mut().zip(self.step) {
            *value = value.saturating_add_signed(step).min(FIELD);
        }
        if random.below(10) == 0 {
            self.values[2] = (self.values[2] + random.below(9)).saturating_sub(4) & 0xFF;
        }
        if random.below(60) == 0 {
            self.values[7] = (self.values[7] + 1) % 16;
            self.values[6] ^= 1;
        }
        if random.below(200) == 0 {
            self.values[5] = 100 - random.below(100);
            self.values[8] = (self.values[8] + 1) & 0xFFF;
        }
    }
}

/// A scope around the position of player 0.
struct NearFirst([u32; 2]);

impl Scope for NearFirst {
    fn priority(&mut self, _: ConnectionId, entity: &EntityInfo<'_>) -> Option<NonZeroU16> {
        (distance(entity.values, &self.0) < f64::from(NEAR)).then_some(NonZeroU16::MIN)
    }
}

fn distance(a: &[u32], b: &[u32]) -> f64 {
    a.iter().zip(b).take(2).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum::<f64>().sqrt()
}

/// The parts of an update that take bandwidth: the fields of [`CLASSES`], and the headers.
pub(crate) const PARTS: [&str; WIDTHS.len() + 1] =
    ["east", "south", "pitch", "yaw", "up", "health", "flags", "hand", "score", "headers"];

/// A scope with all players, which counts the bits of each part in each tick.
#[derive(Default)]
struct Watching {
    ticks: Vec<[u32; PARTS.len()]>,
}

impl Scope for Watching {
    fn priority(&mut self, _: ConnectionId, _: &EntityInfo<'_>) -> Option<NonZeroU16> {
        Some(NonZeroU16::MIN)
    }

    fn watches_bandwidth(&self) -> bool {
        true
    }

    fn on_sent(&mut self, _: ConnectionId, _: &EntityInfo<'_>, sent: SentBits<'_>) {
        let Some(tick) = self.ticks.last_mut() else { return };
        for (sum, bits) in tick.iter_mut().zip(sent.fields.iter().chain([&sent.header])) {
            *sum += u32::from(*bits);
        }
    }
}

/// A method of sending the players to a client.
trait Way {
    type Scope: Scope;
    fn scope() -> Self::Scope;
    /// Moves the scope to the position of the client's player.
    fn look(_: &mut Self::Scope, _: [u32; 2]) {}
    const IS_SNAPSHOT: bool = false;
}

struct Snapshots;
struct Everything;
struct Near;
struct Watched;

impl Way for Snapshots {
    type Scope = EverythingInScope;
    fn scope() -> Self::Scope {
        EverythingInScope
    }
    const IS_SNAPSHOT: bool = true;
}

impl Way for Everything {
    type Scope = EverythingInScope;
    fn scope() -> Self::Scope {
        EverythingInScope
    }
}

impl Way for Near {
    type Scope = NearFirst;
    fn scope() -> Self::Scope {
        NearFirst([0; 2])
    }
    fn look(scope: &mut NearFirst, at: [u32; 2]) {
        scope.0 = at;
    }
}

impl Way for Watched {
    type Scope = Watching;
    fn scope() -> Self::Scope {
        Watching::default()
    }
    fn look(scope: &mut Watching, _: [u32; 2]) {
        scope.ticks.push([0; PARTS.len()]);
    }
}

/// Encodes a snapshot as messages that fit into datagrams.
fn snapshot(tick: u32, players: &[Player]) -> Result<Vec<Vec<u8>>, WireError> {
    // Each player takes 91 bits of fields and an index of 8 bits.
    let in_message = (BYTES - 5) * 8 / 99;
    let mut messages = Vec::new();
    for (chunk, first) in players.chunks(in_message).zip((0..).step_by(in_message)) {
        let mut buffer = [0; BYTES];
        let mut writer = BitWriter::<Msb>::new(&mut buffer);
        writer.bits(SNAPSHOT.into(), 8)?;
        writer.bits(tick.into(), 32)?;
        for (player, index) in chunk.iter().zip(first..) {
            writer.bits(index as u64, 8)?;
            for (value, width) in player.values.iter().zip(WIDTHS) {
                writer.bits((*value).into(), width.into())?;
            }
        }
        messages.push(writer.finish().to_vec());
    }
    Ok(messages)
}

/// The players that a client shows, each with its tick and values.
type Shown = Vec<Option<(u32, Values)>>;

fn read_snapshot(message: &[u8], shown: &mut Shown) -> Result<(), WireError> {
    let mut reader = BitReader::<Msb>::new(message);
    reader.skip(8)?;
    let tick = reader.bits(32)? as u32;
    while reader.remaining() >= 99 {
        let index = reader.bits(8)? as usize;
        let mut values = Values::default();
        for (value, width) in values.iter_mut().zip(WIDTHS) {
            *value = reader.bits(width.into())? as u32;
        }
        if shown[index].is_none_or(|(before, _)| before < tick) {
            shown[index] = Some((tick, values));
        }
    }
    Ok(())
}

struct Game<W: Way> {
    pair: Pair<Peered<Client>, Peered<Server<W::Scope>>>,
    server: PluginKey,
    client: PluginKey,
    ids: Vec<NetworkId>,
    players: Vec<Player>,
    shown: Shown,
    accepted: Option<ConnectionId>,
}

pub(crate) type Failure = Box<dyn std::error::Error>;

impl<W: Way> Game<W> {
    fn new(conditions: Conditions) -> Result<Self, Failure> {
        let mut random = Random(7);
        let players: Vec<Player> = (0..PLAYERS).map(|_| Player::new(&mut random)).collect();
        let mut authority = Server::<W::Scope>::new(&CLASSES, W::scope(), Delivery::UNRELIABLE, &AUTHORITY)?;
        let mut ids = Vec::new();
        for (player, number) in players.iter().zip(0..) {
            ids.push(authority.spawn(0, number, &player.values)?);
        }
        let (mut there, mut here) = (PluginHost::new(), PluginHost::new());
        let server = there.attach::<RakNet>(authority)?;
        let client = here.attach::<RakNet>(Client::new(&CLASSES, Delivery::UNRELIABLE, &REPLICAS)?)?;
        let mut config = Config::new([1; 32]);
        config.max_incoming = 1;
        let b = Hooked::new(Peer::with_capacity(Capacity::default(), config), there);
        let a = Hooked::new(Peer::with_capacity(Capacity::default(), Config::new([2; 32])), here);
        let mut pair = Pair::new(a, b, conditions, 7);
        pair.a.peer.connect(pair.now, pair.b_address)?;
        Ok(Self { pair, server, client, ids, players, shown: vec![None; PLAYERS], accepted: None })
    }

    fn next(&mut self) -> Option<Instant> {
        self.pair.transmit();
        let links = [self.pair.forth().next_arrival(), self.pair.back().next_arrival()];
        links.into_iter().chain([self.pair.a.poll_timeout(), self.pair.b.poll_timeout()]).flatten().min()
    }

    /// Runs both peers until the next tick.
    fn run(&mut self) -> Result<(), Failure> {
        let end = self.pair.now + TICK;
        while self.next().is_some_and(|next| next <= end) {
            self.pair.step();
            while let Some(event) = self.pair.b.poll_event() {
                if let Event::Connected { id, .. } = event {
                    self.accepted = Some(id);
                }
            }
            while let Some(event) = self.pair.a.poll_event() {
                if let Event::Message { message, .. } = event {
                    read_snapshot(&message.to_vec(), &mut self.shown)?;
                }
            }
        }
        self.pair.now = end;
        Ok(())
    }

    fn tick(&mut self, tick: u32, random: &mut Random) -> Result<(), Failure> {
        self.players.iter_mut().for_each(|player| player.advance(random));
        if W::IS_SNAPSHOT {
            for message in snapshot(tick, &self.players)? {
                let Some(id) = self.accepted else { break };
                self.pair.b.peer.send(self.pair.now, id, &message, Delivery::UNRELIABLE)?;
            }
        } else {
            let authority = self.pair.b.hook.get_mut(self.server).ok_or("the plugin is not attached")?;
            W::look(&mut authority.scope, [self.players[0].values[0], self.players[0].values[1]]);
            for (player, id) in self.players.iter().zip(&self.ids) {
                for (value, field) in player.values.iter().zip(0..) {
                    authority.set(*id, field, *value)?;
                }
            }
            authority.tick();
        }
        self.run()
    }

    /// Returns the average position error of the players that the client shows, and their number.
    fn error(&mut self) -> (f64, usize) {
        let client = self.pair.a.hook.get_mut(self.client);
        for replica in client.iter().flat_map(|client| client.iter()) {
            let mut values = Values::default();
            values.copy_from_slice(replica.values);
            self.shown[usize::from(replica.id.index())] = Some((0, values));
        }
        let shown: Vec<f64> = (self.players.iter().zip(&mut self.shown))
            .filter_map(|(player, shown)| {
                let (tick, values) = (*shown)?;
                // A player that has left the scope is not shown the next time.
                *shown = Some((tick, values)).filter(|_| W::IS_SNAPSHOT);
                Some(distance(&player.values, &values))
            })
            .collect();
        (shown.iter().sum::<f64>() / shown.len().max(1) as f64, shown.len())
    }
}

/// Returns the bytes per second to and from each client, the position error in centimetres, and the players shown.
fn measure<W: Way>(loss: f64, ticks: u32) -> Result<[f64; 4], Failure> {
    let conditions = Conditions { loss, latency: Duration::from_millis(40), ..Conditions::default() };
    let mut game = Game::<W>::new(conditions)?;
    let mut random = Random(9);
    for tick in 1..=WARM_UP {
        game.tick(tick, &mut random)?;
    }
    game.pair.forth().take_stats();
    game.pair.back().take_stats();
    let (mut off, mut count) = (0.0, 0);
    for tick in WARM_UP + 1..=WARM_UP + ticks {
        game.tick(tick, &mut random)?;
        let (error, shown) = game.error();
        (off, count) = (off + error, count + shown);
    }
    let ticks = f64::from(ticks);
    let seconds = ticks * TICK.as_secs_f64();
    let bytes = |bytes: u64| bytes as f64 / seconds;
    let (down, up) = (game.pair.back().stats().bytes, game.pair.forth().stats().bytes);
    Ok([bytes(down), bytes(up), off / ticks, count as f64 / ticks])
}

/// Returns the [costs](measure) of full snapshots, of replication of all players, and of replication of near ones.
pub(crate) fn compare(loss: f64, ticks: u32) -> Result<[[f64; 4]; 3], Failure> {
    Ok([
        measure::<Snapshots>(loss, ticks)?,
        measure::<Everything>(loss, ticks)?,
        measure::<Near>(loss, ticks)?,
    ])
}

/// Draws a graph of the bytes per second of each part, without loss.
pub(crate) fn bandwidth_graph(ticks: u32) -> Result<String, Failure> {
    let conditions = Conditions { latency: Duration::from_millis(40), ..Conditions::default() };
    let mut game = Game::<Watched>::new(conditions)?;
    let mut random = Random(9);
    for tick in 1..=WARM_UP + ticks {
        game.tick(tick, &mut random)?;
    }
    let authority = game.pair.b.hook.get_mut(game.server).ok_or("the plugin is not attached")?;
    let watched = authority.scope.ticks.iter().skip(WARM_UP as usize);
    let bytes_per_second = |bits: u32| f64::from(bits) / 8.0 / TICK.as_secs_f64();
    let ticks: Vec<_> = watched.map(|tick| tick.map(bytes_per_second)).collect();
    Ok(graph::draw(&ticks, TICK))
}

fn main() -> Result<(), Failure> {
    if let Some(file) = std::env::args_os().nth(1) {
        std::fs::write(file, bandwidth_graph(200)?)?;
        return Ok(());
    }
    const TICKS: u32 = 600;
    println!(
        "| loss | way | players shown | bytes/s to a client | of full snapshots | bytes/s from it | off by, cm |"
    );
    println!("|---|---|---|---|---|---|---|");
    for loss in [0.0, 0.01, 0.05] {
        let ways = compare(loss, TICKS)?;
        let full = ways[0];
        let names = ["full snapshots", "replication, all", "replication, near"];
        for (name, [down, up, off, shown]) in names.into_iter().zip(ways) {
            let (percent, part) = (loss * 100.0, down / full[0] * 100.0);
            println!(
                "| {percent:.0} % | {name} | {shown:.0} | {down:.0} | {part:.0} % | {up:.0} | {off:.1} |"
            );
        }
    }
    Ok(())
}
