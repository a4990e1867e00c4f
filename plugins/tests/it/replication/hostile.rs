//! Peers that send false data, flood, disconnect unexpectedly, or send states of entities that they do not own.

use proptest::prelude::*;
use rakwire::Instant;
use rakwire::endpoint::{Plugin, Side};
use rakwire::raknet::{DisconnectReason, RakNet};

use super::world::{Fate, World, authority, client, connect, greet, receive, sent};
use crate::support::connections;

/// Encodes a state message as an owner would send it: entity 0 of class 1 has the value 9.
fn state(number: u32, generation: u16, class: u8, term: u16) -> Vec<u8> {
    let bits = (0b11_u64 << 62)
        | (u64::from(generation) << 46)
        | (u64::from(class) << 38)
        | (u64::from(term) << 22)
        | (9 << 15);
    [&[131, 1][..], &number.to_be_bytes(), &bits.to_be_bytes(), &[0; 8]].concat()
}

#[test]
fn states_are_applied_once_and_only_from_the_owner() {
    let mut world = World::new();
    (0..2).for_each(|number| world.join(number));
    let id = world.authority.spawn(1, 1, &[5]).expect("enough space");
    let [owner, other] = [world.ids[0], world.ids[1]];
    let value = |world: &World| world.authority.get(id).map(|entity| entity.values[0]);
    receive(&mut world.authority, owner, &state(1, 1, 1, 0));
    assert!(world.authority.set_owner(id, Some(owner)));
    let wrong = [(owner, 2, 1, 1), (owner, 1, 0, 1), (owner, 1, 1, 0), (other, 1, 1, 1)];
    for (from, generation, class, term) in wrong {
        receive(&mut world.authority, from, &state(1, generation, class, term));
    }
    assert_eq!((value(&world), world.authority.stats().unauthorised), (Some(5), 5));
    receive(&mut world.authority, owner, &state(7, 1, 1, 1));
    assert_eq!(value(&world), Some(9));
    // When the owner changes and changes back, the term differs, so states of the first term are rejected.
    assert!(world.authority.set_owner(id, Some(other)) && world.authority.set_owner(id, Some(owner)));
    receive(&mut world.authority, owner, &state(8, 1, 1, 1));
    assert_eq!(world.authority.stats().unauthorised, 6);
    world.settle();
    assert_eq!(world.actual(1), world.expected(1));
}

/// The first record is valid and the second one malformed.
#[test]
fn a_state_with_a_malformed_record_is_not_applied() {
    let mut world = World::new();
    world.join(0);
    let id = world.authority.spawn(1, 1, &[5]).expect("enough space");
    let owner = world.ids[0];
    assert!(world.authority.set_owner(id, Some(owner)));
    let one = state(7, 1, 1, 1);
    let mut two = one.clone();
    // The record count 1 takes one bit, the count 2 three bits, so the following bits move by two.
    let bits = u128::from_be_bytes(two[6..22].try_into().expect("sixteen bytes"));
    let moved = (0b010 << 125) | ((bits << 1) >> 3);
    two[6..22].copy_from_slice(&moved.to_be_bytes());
    receive(&mut world.authority, owner, &two);
    let value = |world: &World| world.authority.get(id).map(|entity| entity.values[0]);
    assert_eq!((value(&world), world.authority.stats().malformed), (Some(5), 1));
    receive(&mut world.authority, owner, &one);
    assert_eq!(value(&world), Some(9));
}

#[test]
fn older_state_does_not_overwrite_newer_state() {
    let mut world = World::new();
    world.join(0);
    let id = world.authority.spawn(1, 1, &[5]).expect("enough space");
    let owner = world.ids[0];
    assert!(world.authority.set_owner(id, Some(owner)));
    receive(&mut world.authority, owner, &state(7, 1, 1, 1));
    let mut older = state(6, 1, 1, 1);
    older[12] ^= 0x80;
    receive(&mut world.authority, owner, &older);
    assert_eq!(world.authority.get(id).map(|entity| entity.values[0]), Some(9));
    older[5] = 8;
    receive(&mut world.authority, owner, &older);
    assert_ne!(
        world.authority.get(id).map(|entity| entity.values[0]),
        Some(9),
        "only the message number decides which state is newer"
    );
}

/// A client that acknowledges updates that it did not receive affects only itself. It cannot acknowledge future
/// ticks.
#[test]
fn false_acknowledgements_affect_only_their_sender() {
    let mut world = World::new();
    (0..2).for_each(|number| world.join(number));
    let id = world.authority.spawn(0, 1, &[1; 4]).expect("enough space");
    let liar = world.ids[1];
    for number in 0..50_u32 {
        world.authority.set(id, 0, number * 10).expect("a field");
        world.tick(|| Fate::Arrives);
        for tick in [number + 1, number / 2] {
            let lie = [&[131, 0][..], &tick.to_be_bytes(), &[0xFF; 4]].concat();
            receive(&mut world.authority, liar, &lie);
        }
        assert_eq!(world.authority.stats().malformed, 0);
    }
    receive(&mut world.authority, liar, &[131, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0]);
    assert_eq!(world.authority.stats().malformed, 1);
    world.settle();
    assert_eq!(world.actual(0), world.expected(0));
}

#[test]
fn updates_from_other_peers_are_refused() {
    let ids = connections::<RakNet>(3);
    let mut here = client();
    connect(&mut here, ids[0], Side::Server);
    connect(&mut here, ids[1], Side::Client);
    connect(&mut here, ids[2], Side::Client);
    let mut server = authority();
    connect(&mut server, ids[1], Side::Server);
    greet(&mut server, &mut here, ids[1]);
    server.spawn(1, 1, &[5]).expect("enough space");
    server.tick();
    let update = sent(&mut server).remove(0).1;
    receive(&mut here, ids[0], &update);
    receive(&mut here, ids[2], &update);
    assert_eq!((here.stats().refused, here.iter().count()), (2, 0));
    receive(&mut here, ids[1], &update);
    assert_eq!((here.stats().updates, here.iter().count()), (1, 1));
    Plugin::<RakNet>::on_disconnected(&mut here, Instant::ZERO, ids[1], DisconnectReason::Lost);
    assert_eq!((here.iter().count(), sent(&mut here).len()), (0, 0));
}

/// An update with an entity beyond the capacity, or with trailing data, is not applied at all.
#[test]
fn an_update_with_an_invalid_part_is_not_applied() {
    let id = connections::<RakNet>(1)[0];
    let (mut server, mut here) = (authority(), client());
    connect(&mut server, id, Side::Server);
    connect(&mut here, id, Side::Client);
    greet(&mut server, &mut here, id);
    server.spawn(1, 1, &[5]).expect("enough space");
    server.tick();
    let update = sent(&mut server).remove(0).1;
    for end in 0..update.len() {
        receive(&mut here, id, &update[..end]);
    }
    receive(&mut here, id, &[&update[..], &[0]].concat());
    // A record for slot 0, and one for slot 8, which does not exist.
    receive(&mut here, id, &[130, 0, 0, 0, 1, 0b0101_1000, 0b0010_0011, 0]);
    assert_eq!((here.stats().malformed, here.iter().count()), (update.len() as u64 + 2, 0));
    assert!(sent(&mut here).is_empty(), "nothing is acknowledged");
    receive(&mut here, id, &update);
    assert_eq!(here.iter().count(), 1);
}

#[test]
fn the_state_of_a_client_is_removed_when_it_disconnects() {
    let mut world = World::new();
    world.join(0);
    let id = world.authority.spawn(0, 1, &[1; 4]).expect("enough space");
    assert!(world.authority.set_owner(id, Some(world.ids[0])));
    world.tick(|| Fate::Late(9));
    world.leave(0);
    receive(&mut world.authority, world.ids[0], &state(1, 1, 0, 1));
    assert!(world.authority.peer_stats(world.ids[0]).is_none());
    assert_eq!(world.authority.get(id).and_then(|entity| entity.owner), None);
    world.join(0);
    world.settle();
    assert_eq!(world.actual(0), world.expected(0));
}

proptest! {
    /// Arbitrary bytes from a client change only entities that the client owns, and cause neither memory use nor
    /// answers.
    #[test]
    fn arbitrary_bytes_do_not_change_an_authority(
        floods in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 1..40),
        kind in 0..3_u8,
    ) {
        let mut world = World::new();
        (0..2).for_each(|number| world.join(number));
        world.authority.spawn(0, 1, &[1; 4]).expect("enough space");
        let liar = world.ids[1];
        world.settle();
        let before = world.expected(0);
        for bytes in floods {
            receive(&mut world.authority, liar, &[&[131, kind][..], &bytes].concat());
            prop_assert!(sent(&mut world.authority).is_empty());
        }
        world.settle();
        prop_assert_eq!(&world.expected(0), &before);
        prop_assert_eq!(world.actual(0), before);
    }

    /// A client still works after arbitrary bytes from an authority.
    #[test]
    fn arbitrary_bytes_do_not_affect_a_client(
        floods in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 1..40),
    ) {
        let id = connections::<RakNet>(1)[0];
        let mut here = client();
        connect(&mut here, id, Side::Client);
        prop_assert_eq!(sent(&mut here).len(), 1, "the client sends its classes");
        for bytes in floods {
            receive(&mut here, id, &[&[130, 0, 0, 0][..], &bytes].concat());
            prop_assert!(sent(&mut here).len() <= 1);
            prop_assert!(here.iter().count() <= super::world::ENTITIES);
            while here.poll_event().is_some() {}
        }
    }
}
