//! Recorded runs: inputs and results that other implementations of replicas reproduce.
//!
//! `wasm/tests/replication.test.mjs` is one of those implementations.

use std::fmt::Write as _;

use rakwire::Instant;
use rakwire::endpoint::{ConnectionId, Plugin, Side};
use rakwire::raknet::{DisconnectReason, RakNet};
use rakwire_plugins::replication::{NetworkId, ReplicaEvent, ReplicaInfo, ReplicasStats, SetError};
use serde_json::{Value, json};

use super::world::{CLASSES, Client, TestAuthority, authority, client, connect, greet, hex, receive, sent};
use crate::support::connections;

const FILE: &str = include_str!("../../vectors/replication_runs.json");
const TICKS: u32 = 120;

/// A linear congruential generator, with the constants of Knuth's MMIX.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as u32) % end
    }

    fn is_one_of(&mut self, count: u32) -> bool {
        self.below(count) == 0
    }

    fn any(&mut self) -> u32 {
        (self.below(1 << 16) << 16) | self.below(1 << 16)
    }
}

/// A message that arrives in a tick, at the authority or at the client.
struct UnderWay {
    due: u32,
    to_authority: bool,
    message: Vec<u8>,
}

/// An authority, a recorded client, and a second client that sometimes owns entities too.
struct Run {
    random: Random,
    /// True if updates are also corrupted in transit.
    is_hostile: bool,
    authority: TestAuthority,
    client: Client,
    ids: Vec<ConnectionId>,
    under_way: Vec<UnderWay>,
    steps: Vec<Value>,
}

impl Run {
    fn record(seed: u64, is_hostile: bool) -> Vec<Value> {
        let ids = connections::<RakNet>(2);
        let (mut authority, mut client) = (authority(), client());
        connect(&mut authority, ids[1], Side::Server);
        connect(&mut client, ids[0], Side::Client);
        let mut other = super::world::client();
        connect(&mut other, ids[1], Side::Client);
        greet(&mut authority, &mut other, ids[1]);
        connect(&mut authority, ids[0], Side::Server);
        greet(&mut authority, &mut client, ids[0]);
        let (random, under_way, steps) = (Random(seed), Vec::new(), Vec::new());
        let mut run = Self { random, is_hostile, authority, client, ids, under_way, steps };
        for tick in 1..=TICKS {
            if tick == TICKS * 3 / 4 {
                run.come_back();
            }
            run.change();
            run.own(tick);
            run.tick(tick);
        }
        if !is_hostile {
            (TICKS + 1..TICKS + 60).for_each(|tick| run.tick(tick));
            assert_eq!(state(&run.client), run.expected(), "the client must end with the authority's state");
        }
        run.steps
    }

    /// Returns the final state of a client that receives every update.
    fn expected(&self) -> String {
        let hidden = |handle| self.authority.scope.0.contains(&(self.ids[0].slot(), handle));
        let entities = self
            .authority
            .iter()
            .filter(|entity| entity.owner == Some(self.ids[0]) || !hidden(entity.handle));
        let lines = entities.map(|entity| {
            described(entity.id, entity.class, entity.owner == Some(self.ids[0]), entity.values)
        });
        lines.collect::<Vec<_>>().join("; ")
    }

    /// Makes a random change at the authority.
    fn change(&mut self) {
        let random = &mut self.random;
        if random.is_one_of(4) {
            let (class, value) = (random.below(2) as u8, random.any());
            let values = [value, value.rotate_left(8), value & 1, value >> 9];
            let fields = CLASSES[usize::from(class)].fields.len();
            let _ = self.authority.spawn(class, value % 4, &values[..fields]);
        }
        let ids: Vec<NetworkId> = self.authority.iter().map(|entity| entity.id).collect();
        for id in ids {
            let values = self
                .authority
                .get(id)
                .map_or([0; 4], |entity| *entity.values.first_chunk().expect("four values"));
            let field = random.below(4) as usize;
            match random.below(24) {
                0..8 => {
                    let by = random.below(16).wrapping_sub(8);
                    let _ = self.authority.set(id, field, values[field].wrapping_add(by));
                }
                8 => {
                    let _ = self.authority.set(id, field, random.any());
                }
                9 => {
                    let owner = self.ids.get(random.below(3) as usize).copied();
                    self.authority.set_owner(id, owner);
                }
                10 => {
                    self.authority.scope.0.insert((self.ids[0].slot(), random.below(4)));
                }
                11 => self.authority.scope.0.clear(),
                12 if random.is_one_of(3) => {
                    self.authority.despawn(id);
                }
                _ => {}
            }
        }
    }

    /// Lets the client change entities that it owns, and try to change others.
    fn own(&mut self, tick: u32) {
        let replicas: Vec<_> =
            self.client.iter().map(|replica| (replica.id, replica.class, replica.is_owner)).collect();
        for (id, class, is_owner) in replicas {
            if self.random.is_one_of(if is_owner { 3 } else { 30 }) {
                let field = self.random.below(CLASSES[usize::from(class)].fields.len() as u32) as usize;
                let value = self.random.any();
                let set = self.client.set(id, field, value);
                assert_eq!(set, if is_owner { Ok(()) } else { Err(SetError::NotOwner) });
                let states = self.step(json!({ "set": [id.to_string(), field, value] }));
                states.iter().for_each(|state| self.carry(tick, true, state));
            }
        }
    }

    /// Closes the connection, loses the messages in flight, and opens another connection.
    fn come_back(&mut self) {
        Plugin::<RakNet>::on_disconnected(
            &mut self.client,
            Instant::ZERO,
            self.ids[0],
            DisconnectReason::Lost,
        );
        Plugin::<RakNet>::on_disconnected(
            &mut self.authority,
            Instant::ZERO,
            self.ids[0],
            DisconnectReason::Lost,
        );
        self.under_way.clear();
        self.step(json!({ "leave": true }));
        connect(&mut self.authority, self.ids[0], Side::Server);
        connect(&mut self.client, self.ids[0], Side::Client);
        greet(&mut self.authority, &mut self.client, self.ids[0]);
    }

    fn tick(&mut self, tick: u32) {
        self.authority.tick();
        for (id, message) in sent(&mut self.authority) {
            if id == self.ids[0] {
                self.carry(tick, false, &message);
            }
        }
        let due: Vec<UnderWay> = self.under_way.extract_if(.., |way| way.due <= tick).collect();
        for UnderWay { to_authority, message, .. } in due {
            if to_authority {
                receive(&mut self.authority, self.ids[0], &message);
            } else {
                let replies = self.arrive(&message);
                replies.iter().for_each(|reply| self.carry(tick, true, reply));
            }
        }
    }

    /// Loses, duplicates or delays a message.
    fn carry(&mut self, tick: u32, to_authority: bool, message: &[u8]) {
        let is_state = to_authority && message[1] == 1;
        let delays: &[u32] = match self.random.below(20) {
            0..3 if !is_state => &[],
            0..8 => &[0],
            8..12 => &[1],
            12..15 => &[0, 3],
            15..18 => &[4],
            18 => &[2, 40],
            _ => &[9],
        };
        let ways = delays.iter().map(|delay| UnderWay {
            due: tick + delay,
            to_authority,
            message: message.to_vec(),
        });
        self.under_way.extend(ways);
        if self.is_hostile && !to_authority && self.random.is_one_of(2) {
            let message = self.mutant(message);
            self.under_way.push(UnderWay { due: tick + 1, to_authority, message });
        }
    }

    /// Corrupts a few bits of a message, or truncates it.
    fn mutant(&mut self, message: &[u8]) -> Vec<u8> {
        let mut message = message.to_vec();
        if self.random.is_one_of(6) {
            // Without its first byte, the message would not be one of the plugin.
            message.truncate(1 + self.random.below(message.len() as u32) as usize);
        }
        for _ in 0..=self.random.below(2) {
            let at = 4 + self.random.below(message.len().max(5) as u32 - 4) as usize;
            // Only low bits of the tick change: after a tick far in the future, all later updates would be late.
            let bit = self.random.below(if at == 4 { 3 } else { 8 });
            if let Some(byte) = message.get_mut(at) {
                *byte ^= 1 << bit;
            }
        }
        message
    }

    /// Delivers a message to the client, and returns its replies.
    fn arrive(&mut self, message: &[u8]) -> Vec<Vec<u8>> {
        let before = self.client.stats();
        receive(&mut self.client, self.ids[0], message);
        let counted = counted(before, self.client.stats());
        self.step(json!({ "update": hex(message), "counted": counted }))
    }

    /// Records the client's state after a step, and returns its replies.
    fn step(&mut self, mut step: Value) -> Vec<Vec<u8>> {
        let replies: Vec<_> = sent(&mut self.client).into_iter().map(|(_, message)| message).collect();
        let mut events: Vec<_> = std::iter::from_fn(|| self.client.poll_event()).map(event).collect();
        events.sort();
        step["sent"] = replies.iter().map(|reply| hex(reply)).collect();
        step["events"] = events.into();
        step["entities"] = state(&self.client).into();
        self.steps.push(step);
        replies
    }
}

/// Returns the name of the counter that an update has changed.
fn counted(before: ReplicasStats, after: ReplicasStats) -> &'static str {
    let all = [
        ("updates", after.updates - before.updates),
        ("late", after.late - before.late),
        ("malformed", after.malformed - before.malformed),
    ];
    all.into_iter().find(|(_, count)| *count == 1).map_or("nothing", |(name, _)| name)
}

fn event((id, event): (NetworkId, ReplicaEvent)) -> String {
    match event {
        ReplicaEvent::Created => format!("{id} created"),
        ReplicaEvent::Changed => format!("{id} changed"),
        ReplicaEvent::OwnerChanged(is_owner) => format!("{id} owner {is_owner}"),
        ReplicaEvent::Removed(reason) => format!("{id} removed {reason:?}"),
    }
}

fn described(id: NetworkId, class: u8, is_owner: bool, values: &[u32]) -> String {
    let mut text = format!("{id} {class} {is_owner}");
    for value in values.iter().take(CLASSES[usize::from(class)].fields.len()) {
        let _ = write!(text, " {value}");
    }
    text
}

/// Returns all entities of a client, with their complete state.
fn state(client: &Client) -> String {
    let lines = client
        .iter()
        .map(|ReplicaInfo { id, class, is_owner, values, .. }| described(id, class, is_owner, values));
    lines.collect::<Vec<_>>().join("; ")
}

/// Formats one step per line, for readable diffs.
fn text(runs: &[(&str, Vec<Value>)]) -> String {
    let lines =
        |steps: &[Value]| steps.iter().map(|step| format!("    {step}")).collect::<Vec<_>>().join(",\n");
    let runs = runs.iter().map(|(name, steps)| format!("  \"{name}\": [\n{}\n  ]", lines(steps)));
    format!("{{\n{}\n}}\n", runs.collect::<Vec<_>>().join(",\n"))
}

/// After a change of the messages, run this test with `REPLICATION_RUNS=FILE` to record the runs again in FILE.
#[test]
fn recorded_runs_are_reproduced() {
    let runs = [("honest", Run::record(3, false)), ("hostile", Run::record(7, true))];
    assert!(runs.iter().all(|(_, steps)| steps.len() > 100));
    let text = text(&runs);
    if let Ok(file) = std::env::var("REPLICATION_RUNS") {
        std::fs::write(file, &text).expect("a writable file");
    }
    let parsed = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    assert!(parsed(&text) == parsed(FILE), "a run differs from its record");
    assert!(text.contains("late") && text.contains("malformed") && text.contains("Destroyed"));
}
