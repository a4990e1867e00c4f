//! The encoding of the messages.

use rakwire::endpoint::{ConnectionId, Side};
use rakwire::raknet::{Delivery, RakNet};
use rakwire_plugins::replication::{Class, ClassError, Field, FixedReplicas, MAX_FIELDS};
use serde_json::Value;

use super::world::{Client, TestAuthority, authority, client, connect, greet, hex, receive, sent};
use crate::support::connections;

/// Both sides, and the messages that they have exchanged.
struct Exchange {
    id: ConnectionId,
    server: TestAuthority,
    client: Client,
    messages: Vec<String>,
}

impl Exchange {
    fn new() -> Self {
        let id = connections::<RakNet>(1)[0];
        let (mut server, mut client) = (authority(), client());
        connect(&mut server, id, Side::Server);
        connect(&mut client, id, Side::Client);
        greet(&mut server, &mut client, id);
        Self { id, server, client, messages: Vec::new() }
    }

    /// Delivers the client's replies.
    fn reply(&mut self) {
        for (_, message) in sent(&mut self.client) {
            receive(&mut self.server, self.id, &message);
            self.messages.push(hex(&message));
        }
    }

    fn tick(&mut self) {
        self.server.tick();
        for (_, message) in sent(&mut self.server) {
            receive(&mut self.client, self.id, &message);
            self.messages.push(hex(&message));
        }
        self.reply();
    }
}

/// Runs a short session with two entities.
///
/// Two entities are spawned, and one of them moves. The other one is given to the client, which changes it. Then one
/// leaves the scope, and the other is despawned.
#[test]
fn message_encoding_matches_the_test_vectors() {
    let mut at = Exchange::new();
    let own = at.server.spawn(1, 0, &[5]).expect("enough space");
    let entity = at.server.spawn(0, 1, &[1_000, u32::MAX, 1, 513]).expect("enough space");
    at.tick();
    for (field, value) in [(0, 995), (1, 0), (3, 0)] {
        at.server.set(entity, field, value).expect("a field");
    }
    at.tick();
    assert_eq!(at.client.get(entity).map(|entity| entity.values.to_vec()), Some(vec![995, 0, 1, 0]));
    assert!(at.server.set_owner(own, Some(at.id)));
    at.server.set(entity, 0, 40_000).expect("a field");
    at.tick();
    at.client.set(own, 0, 6).expect("an owned entity");
    at.reply();
    assert_eq!(at.server.get(own).map(|entity| entity.values[0]), Some(6));
    at.server.scope.0.insert((0, 1));
    assert!(at.server.despawn(own));
    at.tick();
    assert_eq!(at.client.iter().count(), 0);
    assert_eq!((at.server.stats().malformed, at.client.stats().malformed), (0, 0));

    let vectors: Vec<Value> =
        serde_json::from_str(include_str!("../../vectors/replication.json")).expect("valid JSON");
    let vectors: Vec<&str> =
        vectors.iter().map(|vector| vector["hex"].as_str().unwrap_or_default()).collect();
    assert_eq!(at.messages, vectors);
}

static NONE: [Class; 0] = [];
static WIDE: [Class; 1] = [Class { fields: &[Field::new(33)] }];
static ZERO: [Class; 1] = [Class { fields: &[Field::new(0)] }];
static NOT_SHORT: [Class; 1] = [Class { fields: &[Field::new(8).or_short(8)] }];
static MANY: [Class; 1] = [Class { fields: &[Field::new(1); MAX_FIELDS + 1] }];
static LONG: [Class; 1] = [Class { fields: &[Field::new(32); 8] }];
static MOST: [Class; 1] = [Class { fields: &[Field::new(32).or_short(31); MAX_FIELDS] }];

#[test]
fn unsupported_classes_are_refused() {
    fn error<const FIELDS: usize, const BYTES: usize>(classes: &'static [Class]) -> Option<ClassError> {
        FixedReplicas::<RakNet, 1, FIELDS, BYTES>::new(classes, Delivery::UNRELIABLE).err()
    }
    assert_eq!(error::<1, 100>(&NONE), Some(ClassError::BadCount));
    for classes in [&WIDE, &ZERO, &NOT_SHORT] {
        assert_eq!(error::<1, 100>(classes), Some(ClassError::BadField));
    }
    assert_eq!(error::<40, 500>(&MANY), Some(ClassError::BadField));
    assert_eq!(error::<7, 100>(&LONG), Some(ClassError::BadField));
    assert_eq!((error::<8, 40>(&LONG), error::<8, 60>(&LONG)), (Some(ClassError::TooLong), None));
    assert_eq!(error::<MAX_FIELDS, 200>(&MOST), None);
}
