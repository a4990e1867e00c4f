//! Authorities and clients with different classes.

use rakwire::endpoint::Side;
use rakwire::raknet::{Delivery, RakNet};
use rakwire_plugins::replication::{
    AuthorityConfig, Class, EverythingInScope, Field, FixedReplicas, HeapAuthority, HeapReplicas,
    ReplicasConfig,
};

use super::world::{CLASSES, ENTITIES, authority, client, connect, greet, hex, receive, sent};
use crate::support::connections;

/// The classes of the authority, except that one field is a bit wider.
static NEWER: [Class; 2] = [
    Class {
        fields: &[
            Field::new(17).or_short(5),
            Field::new(32).or_short(1),
            Field::new(1),
            Field::new(10).or_short(9),
        ],
    },
    Class { fields: &[Field::new(7).or_short(3)] },
];

type Newer = FixedReplicas<RakNet, ENTITIES, 4, 48>;

#[test]
fn mismatched_classes_are_reported_on_both_sides_and_nothing_is_sent() {
    let id = connections::<RakNet>(1)[0];
    let mut authority = authority();
    let mut newer = Newer::new(&NEWER, Delivery::UNRELIABLE).expect("valid classes");
    connect(&mut authority, id, Side::Server);
    connect(&mut newer, id, Side::Client);
    greet(&mut authority, &mut newer, id);
    assert_eq!((authority.poll_mismatch(), authority.poll_mismatch()), (Some(id), None));
    assert_eq!((newer.poll_mismatch(), newer.poll_mismatch()), (true, false));
    assert_eq!((authority.stats().mismatched, newer.stats().mismatched), (1, 1));

    authority.spawn(0, 1, &[1, 2, 1, 3]).expect("enough space");
    authority.tick();
    assert_eq!(sent(&mut authority), []);
    // A client that sends changing classes is counted once.
    let right = [0x83, 0x02, 0x67, 0xef, 0xf0, 0x5c, 0x68, 0x7e, 0xc6, 0xc4];
    for said in [right, [0x83, 0x02, 9, 9, 9, 9, 9, 9, 9, 9], right] {
        receive(&mut authority, id, &said);
    }
    assert_eq!((authority.stats().mismatched, authority.poll_mismatch()), (1, None));
    assert_eq!(sent(&mut authority), []);
    // Updates from an authority that sends nevertheless are not applied.
    receive(&mut newer, id, &[130, 0, 0, 0, 1, 0b1000_0000]);
    assert_eq!((newer.iter().count(), newer.stats().mismatched, newer.stats().malformed), (0, 2, 0));
}

#[test]
fn nothing_is_sent_before_the_client_sends_its_classes() {
    let id = connections::<RakNet>(1)[0];
    let (mut authority, mut client) = (authority(), client());
    connect(&mut authority, id, Side::Server);
    authority.spawn(1, 1, &[5]).expect("enough space");
    authority.tick();
    let greeting: Vec<_> = sent(&mut authority).into_iter().map(|(_, message)| hex(&message)).collect();
    assert_eq!(greeting, ["820000000067eff05c687ec6c4"]);
    // The client's plugin may be attached to a connection that is already open. It answers the authority's classes.
    connect(&mut client, id, Side::Client);
    assert_eq!(
        sent(&mut client).iter().map(|(_, message)| hex(message)).collect::<Vec<_>>(),
        ["830267eff05c687ec6c4"]
    );
    // The answer is lost. The authority sends its classes again, and the client answers again.
    (0..32).for_each(|_| _ = authority.tick());
    greet(&mut authority, &mut client, id);
    authority.tick();
    for (_, message) in sent(&mut authority) {
        receive(&mut client, id, &message);
    }
    assert_eq!(client.iter().map(|replica| replica.values[0]).collect::<Vec<_>>(), [5]);
}

/// The values of 200 players and 4,000 entities take 60 MB, but the stack of a test has 2 MB.
#[test]
fn large_server_sizes_are_chosen_at_run_time() {
    let ids = connections::<RakNet>(1);
    let config = AuthorityConfig { connections: 200, entities: 4_000, ..AuthorityConfig::default() };
    let delivery = Delivery::UNRELIABLE;
    let mut authority = HeapAuthority::<RakNet, _>::new(&CLASSES, EverythingInScope, delivery, &config)
        .expect("valid classes");
    let config = ReplicasConfig { entities: 4_000, ..ReplicasConfig::default() };
    let mut client = HeapReplicas::<RakNet>::new(&CLASSES, delivery, &config).expect("valid classes");
    connect(&mut authority, ids[0], Side::Server);
    connect(&mut client, ids[0], Side::Client);
    for (_, message) in sent(&mut client) {
        receive(&mut authority, ids[0], &message);
    }
    for number in 0..4_000 {
        authority.spawn(0, number, &[number, 0, 0, 0]).expect("enough space");
    }
    assert!(authority.spawn(0, 0, &[0; 4]).is_err());
    for _ in 0..200 {
        authority.tick();
        for (_, message) in sent(&mut authority) {
            receive(&mut client, ids[0], &message);
        }
        for (_, message) in sent(&mut client) {
            receive(&mut authority, ids[0], &message);
        }
    }
    assert_eq!(
        client.iter().map(|replica| replica.values[0]).collect::<Vec<_>>(),
        (0..4_000).collect::<Vec<_>>()
    );
}
