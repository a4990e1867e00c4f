//! Properties: after any losses and delays of messages, every client converges to the authority's state.

use std::collections::VecDeque;

use proptest::prelude::*;
use rakwire::endpoint::Side;
use rakwire::raknet::RakNet;
use rakwire_plugins::replication::{RemoveReason, ReplicaEvent, SetError};

use super::world::{
    CLASSES, CLIENTS, Client, ENTITIES, Fate, TestAuthority, World, authority, client, connect, greet,
    receive, sent,
};
use crate::support::connections;

/// A step at the authority or at a client.
#[derive(Clone, Debug)]
enum Step {
    Spawn(u8, u32),
    Despawn(u16),
    Set {
        index: u16,
        field: usize,
        value: u32,
    },
    /// A small change, which has a short form.
    Move {
        index: u16,
        field: usize,
        by: u32,
    },
    Own(u16, Option<usize>),
    SetByOwner {
        client: usize,
        index: u16,
        field: usize,
        value: u32,
    },
    Hide(u16, u32),
    Show(u16, u32),
    Join(usize),
    Leave(usize),
    Tick,
}

fn step() -> impl Strategy<Value = Step> {
    let (index, client, field) = (0..ENTITIES as u16, 0..CLIENTS, 0..4_usize);
    prop_oneof![
        3 => (0..2_u8, any::<u32>()).prop_map(|(class, value)| Step::Spawn(class, value)),
        1 => index.clone().prop_map(Step::Despawn),
        3 => (index.clone(), field.clone(), any::<u32>())
            .prop_map(|(index, field, value)| Step::Set { index, field, value }),
        8 => (index.clone(), field.clone(), 0..16_u32)
            .prop_map(|(index, field, by)| Step::Move { index, field, by: by.wrapping_sub(8) }),
        1 => (index.clone(), prop::option::of(client.clone())).prop_map(|(index, owner)| Step::Own(index, owner)),
        3 => (client.clone(), index.clone(), field, any::<u32>())
            .prop_map(|(client, index, field, value)| Step::SetByOwner { client, index, field, value }),
        1 => (0..CLIENTS as u16, 0..4_u32).prop_map(|(slot, handle)| Step::Hide(slot, handle)),
        1 => (0..CLIENTS as u16, 0..4_u32).prop_map(|(slot, handle)| Step::Show(slot, handle)),
        1 => client.clone().prop_map(Step::Join),
        1 => client.prop_map(Step::Leave),
        8 => Just(Step::Tick),
    ]
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        4 => Just(Fate::Arrives),
        2 => Just(Fate::Lost),
        1 => Just(Fate::Doubled),
        3 => (0..30_u8).prop_map(Fate::Late),
    ]
}

impl World {
    fn apply(&mut self, step: Step, fates: &mut impl FnMut() -> Fate) {
        match step {
            Step::Spawn(class, value) => {
                let values = [value, value.rotate_left(8), value & 1, value >> 9];
                let fields = CLASSES[usize::from(class)].fields.len();
                let _ = self.authority.spawn(class, value % 4, &values[..fields]);
            }
            Step::Despawn(index) => {
                self.id(index).map(|id| self.authority.despawn(id));
            }
            Step::Set { index, field, value } => {
                self.id(index).map(|id| self.authority.set(id, field, value));
            }
            Step::Move { index, field, by } => {
                let Some(id) = self.id(index) else { return };
                let value = self.authority.get(id).map_or(0, |entity| entity.values[field]);
                let _ = self.authority.set(id, field, value.wrapping_add(by));
            }
            Step::Own(index, owner) => {
                let owner = owner.map(|number| self.ids[number]);
                self.id(index).map(|id| self.authority.set_owner(id, owner));
            }
            Step::SetByOwner { client, index, field, value } => {
                let Some(client) = &mut self.clients[client] else { return };
                let id = client.iter().map(|entity| entity.id).find(|id| id.index() == index);
                id.map(|id| client.set(id, field, value));
            }
            Step::Hide(slot, handle) => {
                self.authority.scope.0.insert((slot, handle));
            }
            Step::Show(slot, handle) => {
                self.authority.scope.0.remove(&(slot, handle));
            }
            Step::Join(number) => self.join(number),
            Step::Leave(number) => self.leave(number),
            Step::Tick => self.tick(fates),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// After any steps, every client converges to exactly the entities in its scope.
    ///
    /// Messages are lost, delayed and duplicated; entities, owners and scopes change; clients join late and
    /// leave.
    #[test]
    fn every_client_converges_to_the_authority(
        steps in prop::collection::vec(step(), 0..150),
        fates in prop::collection::vec(fate(), 1..40),
    ) {
        let mut world = World::new();
        let mut fates = fates.into_iter().cycle();
        let mut fate = || fates.next().expect("an endless iterator");
        world.join(0);
        for step in steps {
            world.apply(step, &mut fate);
        }
        world.settle();
        for number in 0..CLIENTS {
            if world.clients[number].is_some() {
                prop_assert_eq!(world.actual(number), world.expected(number), "client {}", number);
            }
        }
    }
}

#[test]
fn despawned_entities_are_removed_and_hidden_entities_can_return() {
    let mut world = World::new();
    world.join(0);
    let (stays, ends) = (world.authority.spawn(0, 1, &[1, 2, 1, 3]), world.authority.spawn(1, 2, &[9]));
    let (stays, ends) = (stays.expect("enough space"), ends.expect("enough space"));
    let events = |world: &mut World| {
        world.settle();
        let client = world.clients[0].as_mut().expect("a connected client");
        std::iter::from_fn(|| client.poll_event()).collect::<Vec<_>>()
    };
    assert_eq!(events(&mut world), [(stays, ReplicaEvent::Created), (ends, ReplicaEvent::Created)]);
    assert!(world.authority.despawn(ends) && !world.authority.despawn(ends));
    world.authority.scope.0.insert((0, 1));
    assert_eq!(
        events(&mut world),
        [
            (stays, ReplicaEvent::Removed(RemoveReason::OutOfScope)),
            (ends, ReplicaEvent::Removed(RemoveReason::Destroyed)),
        ]
    );
    world.authority.set(stays, 1, 77).expect("a field");
    world.authority.scope.0.clear();
    let again = world.authority.spawn(1, 2, &[5]).expect("enough space");
    assert!(again.index() == ends.index() && again != ends);
    assert_eq!(events(&mut world), [(stays, ReplicaEvent::Created), (again, ReplicaEvent::Created)]);
    world.authority.set(stays, 1, 78).expect("a field");
    assert_eq!(events(&mut world), [(stays, ReplicaEvent::Changed)]);
    assert_eq!(world.actual(0), world.expected(0));
}

#[test]
fn entities_are_found_by_id_and_by_handle() {
    let mut world = World::new();
    world.join(0);
    let id = world.authority.spawn(1, 40, &[5]).expect("enough space");
    world.settle();
    assert_eq!(world.authority.find(40), world.authority.get(id));
    assert_eq!(world.authority.get(id).map(|entity| (entity.handle, entity.values[0])), Some((40, 5)));
    let client = world.clients[0].as_mut().expect("a connected client");
    assert!(client.find(3).is_none() && client.set_handle(id, 3));
    assert_eq!((client.find(3), client.find(3).map(|entity| entity.id)), (client.get(id), Some(id)));
}

#[test]
fn only_the_owner_controls_an_entity() {
    let mut world = World::new();
    world.join(0);
    world.join(1);
    let id = world.authority.spawn(1, 1, &[5]).expect("enough space");
    let owner = world.ids[0];
    assert!(world.authority.set_owner(id, Some(owner)) && !world.authority.set_owner(id, Some(world.ids[2])));
    assert_eq!(world.authority.set(id, 0, 6), Err(SetError::NotOwner));
    world.settle();
    let set = |world: &mut World, number: usize, value| {
        world.clients[number].as_mut().expect("a connected client").set(id, 0, value)
    };
    assert_eq!(set(&mut world, 1, 7), Err(SetError::NotOwner));
    assert_eq!(set(&mut world, 0, 7), Ok(()));
    world.settle();
    assert_eq!(world.actual(1)[&id], (1, false, vec![7, 0, 0, 0]));
    // An entity is always in the scope of its owner.
    world.authority.scope.0.insert((0, 1));
    world.settle();
    assert_eq!(world.actual(0)[&id], (1, true, vec![7, 0, 0, 0]));
    world.leave(0);
    assert_eq!(world.authority.get(id).and_then(|entity| entity.owner), None);
    assert_eq!(world.authority.set(id, 0, 8), Ok(()));
    world.settle();
    assert_eq!(world.actual(1)[&id].2[0], 8);
}

/// However long the game lasts, nothing is sent without changes.
#[test]
fn nothing_is_sent_without_changes() {
    let mut world = World::new();
    world.join(0);
    let id = world.authority.spawn(0, 1, &[1, 2, 1, 3]).expect("enough space");
    world.settle();
    let before = world.authority.peer_stats(world.ids[0]).expect("a connected client");
    world.settle();
    assert_eq!(world.authority.peer_stats(world.ids[0]), Some(before));
    assert_eq!((before.in_scope, before.waiting, before.removed_bits), (1, 0, 0));
    world.authority.set(id, 0, 2).expect("a field");
    world.settle();
    let after = world.authority.peer_stats(world.ids[0]).expect("a connected client");
    assert_eq!((after.messages - before.messages, after.full_bits), (1, before.full_bits));
    assert_eq!(after.delta_bits - before.delta_bits, 1 + 1 + 1 + 5, "the short form of one field");
}

/// Entities with a higher priority are sent more often. Entities with the lowest priority are sent too.
#[test]
fn small_budget_favours_high_priorities() {
    let mut world = World::new();
    world.join(0);
    let ids: Vec<_> = (0..ENTITIES as u32)
        .map(|number| world.authority.spawn(0, number, &[0; 4]).expect("enough space"))
        .collect();
    world.settle();
    assert!(world.authority.set_budget(world.ids[0], 12));
    let (mut changes, mut most) = (vec![0; ENTITIES], 0);
    for value in 1..200 {
        ids.iter().for_each(|id| world.authority.set(*id, 0, value * 100).expect("a field"));
        let before = world.actual(0);
        world.tick(|| Fate::Arrives);
        let after = world.actual(0);
        ids.iter().zip(&mut changes).for_each(|(id, count)| *count += u32::from(before[id] != after[id]));
        let stats = world.authority.peer_stats(world.ids[0]).expect("a connected client");
        most = most.max(stats.waiting);
    }
    assert!(most > 0, "the budget is too small for all entities");
    assert!(changes.is_sorted() && changes[0] > 0 && changes[0] < changes[ENTITIES - 1], "{changes:?}");
    let stats = world.authority.peer_stats(world.ids[0]).expect("a connected client");
    world.settle();
    assert!(stats.bytes > 0 && world.actual(0) == world.expected(0));
}

/// Removes and returns the first message of a queue if it is due.
fn due(queue: &mut VecDeque<(u32, Vec<u8>)>, now: u32) -> Option<Vec<u8>> {
    let is_due = queue.front().is_some_and(|(at, _)| *at <= now);
    if is_due { queue.pop_front().map(|(_, message)| message) } else { None }
}

/// An acknowledgement may take many ticks.
///
/// Until it arrives, the first update is resent in full. Later updates are deltas, and unchanged entities take no
/// bandwidth.
#[test]
fn long_round_trips_still_use_deltas() {
    for delay in [10, 36, 60, 100, 300] {
        let (mut authority, mut client) = (authority(), client());
        let id = connections::<RakNet>(1)[0];
        connect(&mut authority, id, Side::Server);
        connect(&mut client, id, Side::Client);
        greet(&mut authority, &mut client, id);
        let entity = authority.spawn(0, 1, &[1, 2, 1, 3]).expect("enough space");
        let (mut updates, mut replies) = (VecDeque::new(), VecDeque::new());
        let mut run = |authority: &mut TestAuthority, client: &mut Client, ticks: u32, is_moving: bool| {
            for _ in 0..ticks {
                if is_moving {
                    let value = authority.get(entity).map_or(0, |entity| entity.values[0]);
                    authority.set(entity, 0, value.wrapping_add(1)).expect("an entity");
                }
                let now = authority.tick();
                updates.extend(sent(authority).into_iter().map(|(_, message)| (now + delay / 2, message)));
                while let Some(message) = due(&mut updates, now) {
                    receive(client, id, &message);
                }
                replies
                    .extend(sent(client).into_iter().map(|(_, message)| (now + delay - delay / 2, message)));
                while let Some(message) = due(&mut replies, now) {
                    receive(authority, id, &message);
                }
            }
        };
        run(&mut authority, &mut client, 5 * delay, false);
        let before = authority.peer_stats(id).expect("a connected peer");
        run(&mut authority, &mut client, 5 * delay, false);
        let still = authority.peer_stats(id).expect("a connected peer");
        assert_eq!(still.messages, before.messages, "{delay} ticks: nothing changed");
        run(&mut authority, &mut client, 5 * delay, true);
        run(&mut authority, &mut client, 5 * delay, false);
        let moved = authority.peer_stats(id).expect("a connected peer");
        assert_eq!(moved.full_bits, still.full_bits, "{delay} ticks: only deltas");
        let here = client.iter().next().map(|replica| replica.values.to_vec());
        assert_eq!(here, authority.get(entity).map(|entity| entity.values.to_vec()), "{delay} ticks");
        run(&mut authority, &mut client, 5 * delay, false);
        assert_eq!(
            authority.peer_stats(id).map(|stats| stats.messages),
            Some(moved.messages),
            "{delay} ticks"
        );
    }
}

/// A program without a rakwire peer can pass messages from another connection.
#[test]
fn updates_can_arrive_over_another_connection() {
    let id = connections::<RakNet>(1)[0];
    let (mut server, mut here) = (authority(), client());
    connect(&mut server, id, Side::Server);
    for (_, classes) in sent(&mut server) {
        here.handle_update(&classes);
    }
    receive(&mut server, id, &here.poll_acknowledgement().expect("the classes of the client"));
    let entity = server.spawn(1, 1, &[5]).expect("enough space");
    for value in 6..20 {
        server.tick();
        for (_, update) in sent(&mut server) {
            here.handle_update(&update);
        }
        let acknowledgement = here.poll_acknowledgement().expect("an update has arrived");
        assert_eq!(here.poll_acknowledgement(), None, "an acknowledgement is returned once");
        receive(&mut server, id, &acknowledgement);
        assert_eq!(here.get(entity).map(|replica| replica.values[0]), Some(value - 1));
        server.set(entity, 0, value).expect("a field");
    }
    assert!(
        server.peer_stats(id).is_some_and(|stats| stats.delta_bits > 0),
        "updates after the acknowledgement must be deltas"
    );
    here.handle_update(b"");
    assert_eq!((here.stats().updates, here.stats().malformed), (14, 1));
}
