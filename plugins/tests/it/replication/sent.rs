//! The sizes of the sent fields, as reported to the scope.

use core::num::NonZeroU16;

use rakwire::Instant;
use rakwire::endpoint::{ConnectionId, Plugin, Side};
use rakwire::raknet::{Delivery, Guid, RakNet};
use rakwire_plugins::replication::{Class, EntityInfo, Field, FixedAuthority, Scope, SentBits};

use crate::support::{Collector, connections};

static CLASSES: [Class; 1] = [Class { fields: &[Field::new(16).or_short(6), Field::new(10), Field::new(7)] }];

/// A scope that records each sent entity with the bits of its fields and the other bits.
#[derive(Default)]
struct Graph {
    is_watching: bool,
    sent: Vec<(ConnectionId, u32, Vec<u16>, u16)>,
}

impl Scope for Graph {
    fn priority(&mut self, _: ConnectionId, _: &EntityInfo<'_>) -> Option<NonZeroU16> {
        Some(NonZeroU16::MIN)
    }

    fn watches_bandwidth(&self) -> bool {
        self.is_watching
    }

    fn on_sent(&mut self, to: ConnectionId, entity: &EntityInfo<'_>, bits: SentBits<'_>) {
        self.sent.push((to, entity.handle, bits.fields.to_vec(), bits.header));
    }
}

type Server = FixedAuthority<RakNet, Graph, 1, 4, 3, 8, 64>;

/// Runs a tick and returns the bytes of its update.
fn tick(authority: &mut Server) -> usize {
    authority.tick();
    let mut sender = Collector::<RakNet>::new();
    authority.update(Instant::ZERO, &mut sender);
    sender.bytes().iter().map(Vec::len).sum()
}

#[test]
fn a_watching_scope_receives_the_sent_bits_of_each_field() {
    let id = connections::<RakNet>(1)[0];
    let mut authority = Server::new(&CLASSES, Graph::default(), Delivery::UNRELIABLE).expect("a class");
    authority.on_connected(Instant::ZERO, id, ([10, 0, 0, 1], 1).into(), Guid(1), Side::Server);
    // The client has the same classes: one class with fields of 16, 10 and 7 bits.
    let fingerprint = [3, 16, 6, 10, 0, 7, 0]
        .iter()
        .fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| (hash ^ byte).wrapping_mul(0x0100_0000_01B3));
    let classes: &[u8] = &[&[131, 2][..], &fingerprint.to_be_bytes()].concat();
    authority.on_message(Instant::ZERO, id, Delivery::UNRELIABLE, &classes);
    authority.update(Instant::ZERO, &mut Collector::<RakNet>::new());
    authority.scope.is_watching = true;
    let (near, far) = (authority.spawn(0, 7, &[0; 3]).expect("enough space"), authority.spawn(0, 8, &[0; 3]));
    let bytes = tick(&mut authority);
    let whole = |handle| (id, handle, vec![16, 10, 7], 43);
    assert_eq!(core::mem::take(&mut authority.scope.sent), [whole(7), whole(8)]);
    // The header, the number of records, and the distances between their indices.
    assert_eq!(bytes, 5 + (3_usize + 2 * (1 + 43 + 33)).div_ceil(8));

    // After the acknowledgement: a field in its short form, and a field in its short form after an unchanged field.
    let acknowledgement: &[u8] = &[131, 0, 0, 0, 0, 1, 0, 0, 0, 0];
    authority.on_message(Instant::ZERO, id, Delivery::UNRELIABLE, &acknowledgement);
    authority.set(near, 0, 3).expect("a field");
    authority.set(far.expect("enough space"), 1, 3).expect("a field");
    let bytes = tick(&mut authority);
    let sent = core::mem::take(&mut authority.scope.sent);
    assert_eq!(sent, [(id, 7, vec![7, 0, 0], 2), (id, 8, vec![1, 10, 0], 4)]);
    assert_eq!(bytes, 5 + (3_usize + 1 + 9 + 1 + 15).div_ceil(8));

    authority.scope.is_watching = false;
    authority.set(near, 2, 1).expect("a field");
    assert!(
        tick(&mut authority) > 0 && authority.scope.sent.is_empty(),
        "a scope that does not watch must receive no sizes"
    );
}
