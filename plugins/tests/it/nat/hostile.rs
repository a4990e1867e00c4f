//! Peers that lie, guess and flood.

use std::net::SocketAddr;

use heapless::Vec;
use rakwire::Instant;
use rakwire::endpoint::{ConnectionId, Plugin, Side};
use rakwire::raknet::{Delivery, Guid, RakNet};
use rakwire_plugins::nat::{
    Action, Facilitator, FromClient, FromFacilitator, MAX_MESSAGE, Outcome, Punch, PunchKind, Refusal,
    Traversal,
};

use crate::support::{Collector, connections};

const NOW: Instant = Instant::ZERO;

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn client_bytes(message: &FromClient) -> std::vec::Vec<u8> {
    message.encode(&mut [0; MAX_MESSAGE]).expect("room").to_vec()
}

fn facilitator_bytes(message: &FromFacilitator) -> std::vec::Vec<u8> {
    message.encode(&mut [0; MAX_MESSAGE]).expect("room").to_vec()
}

fn connect(plugin: &mut dyn Plugin<RakNet>, id: ConnectionId, remote: &str, guid: u64) {
    plugin.on_connected(NOW, id, address(remote), Guid(guid), Side::Server);
}

fn tell(plugin: &mut dyn Plugin<RakNet>, id: ConnectionId, bytes: &[u8]) {
    plugin.on_message(NOW, id, Delivery::RELIABLE_ORDERED, &bytes);
}

/// What a plugin sends, to whom.
fn sent(plugin: &mut dyn Plugin<RakNet>) -> std::vec::Vec<(ConnectionId, std::vec::Vec<u8>)> {
    let mut collector = Collector::<RakNet>::new();
    plugin.update(NOW, &mut collector);
    collector.messages.drain(..).map(|(id, bytes, _)| (id, bytes)).collect()
}

/// A facilitator without probes, and clients that have the plugin.
fn facilitator(count: usize) -> (Facilitator<8, 4>, std::vec::Vec<ConnectionId>) {
    let ids = connections::<RakNet>(count);
    let mut plugin = Facilitator::new(&[], &[], [7; 32]);
    for (number, id) in ids.iter().enumerate() {
        connect(&mut plugin, *id, &format!("192.0.2.{}:5000", number + 1), 1 + number as u64);
        tell(&mut plugin, *id, &client_bytes(&FromClient::Hello { internal: Vec::new() }));
    }
    (plugin, ids)
}

#[test]
fn a_client_believes_nobody_but_its_facilitator() {
    let ids = connections::<RakNet>(2);
    let mut plugin = Traversal::<2>::new();
    connect(&mut plugin, ids[0], "198.51.100.1:1", 1);
    plugin.set_facilitator(ids[0], address("198.51.100.1:1"));
    connect(&mut plugin, ids[1], "198.51.100.2:1", 2);
    let candidates = Vec::from_iter([address("203.0.113.9:53")]);
    let begin = FromFacilitator::Begin { session: 7, peer: Guid(3), connects: true, candidates };
    tell(&mut plugin, ids[1], &facilitator_bytes(&begin));
    sent(&mut plugin);
    assert_eq!((plugin.poll_action(), plugin.stats().malformed), (None, 1));
    tell(&mut plugin, ids[0], &facilitator_bytes(&begin));
    sent(&mut plugin);
    let punch = Punch { kind: PunchKind::ToAccepting, number: 7 }.encode();
    assert_eq!(plugin.poll_action(), Some(Action::Send { to: address("203.0.113.9:53"), payload: punch }));
}

/// Who does not know the number of a session cannot have a client connect to where it likes.
#[test]
fn a_punch_with_another_number_does_nothing() {
    let ids = connections::<RakNet>(1);
    let mut plugin = Traversal::<2>::new();
    connect(&mut plugin, ids[0], "198.51.100.1:1", 1);
    plugin.set_facilitator(ids[0], address("198.51.100.1:1"));
    let candidates = Vec::from_iter([address("203.0.113.9:5000")]);
    let begin = FromFacilitator::Begin { session: 7, peer: Guid(3), connects: true, candidates };
    tell(&mut plugin, ids[0], &facilitator_bytes(&begin));
    sent(&mut plugin);
    while plugin.poll_action().is_some() {}
    let attacker = address("203.0.113.66:666");
    for number in [0, 6, 8] {
        for kind in [PunchKind::ToConnecting, PunchKind::Ack, PunchKind::Knock, PunchKind::Probe] {
            assert!(plugin.handle_out_of_band(NOW, attacker, &Punch { kind, number }.encode()));
        }
    }
    // Its own kind of punch, sent back to it, is none either.
    plugin.handle_out_of_band(NOW, attacker, &Punch { kind: PunchKind::ToAccepting, number: 7 }.encode());
    sent(&mut plugin);
    assert_eq!((plugin.poll_action(), plugin.stats().unexpected), (None, 12));
    assert!(!plugin.handle_out_of_band(NOW, attacker, b"something of the application"));
    plugin.handle_out_of_band(NOW, attacker, &Punch { kind: PunchKind::Ack, number: 7 }.encode());
    sent(&mut plugin);
    assert_eq!(plugin.poll_action(), Some(Action::Connect { address: attacker, peer: Guid(3) }));
}

/// However often the other one punches, each punch is answered at most once.
#[test]
fn a_flood_of_punches_is_not_amplified() {
    let ids = connections::<RakNet>(1);
    let mut plugin = Traversal::<2>::new();
    connect(&mut plugin, ids[0], "198.51.100.1:1", 1);
    plugin.set_facilitator(ids[0], address("198.51.100.1:1"));
    let begin = FromFacilitator::Begin { session: 7, peer: Guid(3), connects: false, candidates: Vec::new() };
    tell(&mut plugin, ids[0], &facilitator_bytes(&begin));
    for number in 0..1_000_u16 {
        let from = SocketAddr::from(([203, 0, 113, 1], number + 1));
        plugin.handle_out_of_band(NOW, from, &Punch { kind: PunchKind::ToAccepting, number: 7 }.encode());
    }
    sent(&mut plugin);
    assert_eq!(core::iter::from_fn(|| plugin.poll_action()).count(), 4);
}

#[test]
fn a_facilitator_that_says_nothing_is_not_waited_for() {
    let ids = connections::<RakNet>(1);
    let mut plugin = Traversal::<1>::new();
    connect(&mut plugin, ids[0], "198.51.100.1:1", 1);
    plugin.set_facilitator(ids[0], address("198.51.100.1:1"));
    plugin.open(Guid(9)).expect("room");
    assert!(plugin.open(Guid(8)).is_err());
    sent(&mut plugin);
    let due = Plugin::<RakNet>::poll_timeout(&plugin).expect("it waits");
    assert_eq!(plugin.poll_outcome(), None);
    Plugin::<RakNet>::update(&mut plugin, due, &mut Collector::new());
    assert_eq!(plugin.poll_outcome(), Some(Outcome::Failed { peer: Guid(9), reason: None }));
}

#[test]
fn attempts_of_one_client_leave_room_for_others() {
    let (mut plugin, ids) = facilitator(7);
    for target in 2..=7 {
        tell(&mut plugin, ids[0], &client_bytes(&FromClient::Open { target: Guid(target) }));
    }
    assert_eq!((plugin.stats().attempts, plugin.stats().refused), (4, 2));
    let refused = sent(&mut plugin).into_iter().filter(|(id, bytes)| {
        let busy = FromFacilitator::Refused { peer: Guid(7), reason: Refusal::Busy };
        *id == ids[0] && FromFacilitator::decode(bytes) == Ok(busy)
    });
    assert_eq!(refused.count(), 1);
}

#[test]
fn nobody_is_brought_to_itself_or_to_who_has_not_the_plugin() {
    let (mut plugin, ids) = facilitator(2);
    let more = connections::<RakNet>(3)[2];
    connect(&mut plugin, more, "192.0.2.9:5000", 9);
    for target in [1, 9, 77] {
        tell(&mut plugin, ids[0], &client_bytes(&FromClient::Open { target: Guid(target) }));
    }
    assert_eq!((plugin.stats().attempts, plugin.stats().refused), (0, 3));
}

/// A third client can neither end an attempt of others nor have it forwarded.
#[test]
fn attempts_belong_to_both_that_make_them() {
    let (mut plugin, ids) = facilitator(3);
    tell(&mut plugin, ids[0], &client_bytes(&FromClient::Open { target: Guid(2) }));
    let begun = sent(&mut plugin).into_iter().find_map(|(_, bytes)| match FromFacilitator::decode(&bytes) {
        Ok(FromFacilitator::Begin { session, .. }) => Some(session),
        _ => None,
    });
    let failed = client_bytes(&FromClient::Failed { session: begun.expect("it begins") });
    tell(&mut plugin, ids[2], &failed);
    assert_eq!((plugin.stats().malformed, plugin.stats().refused), (1, 0));
    tell(&mut plugin, ids[0], &failed);
    tell(&mut plugin, ids[0], &failed);
    assert_eq!(plugin.stats().refused, 0, "the other one has not failed");
    tell(&mut plugin, ids[1], &failed);
    assert_eq!(plugin.stats().refused, 2);
}

/// Addresses inside are for those who share the address outside, and nobody has others send across the internet.
#[test]
fn a_client_names_no_address_of_others() {
    let ids = connections::<RakNet>(2);
    let mut plugin = Facilitator::<2, 2>::new(&[], &[], [7; 32]);
    let internal = ["192.168.0.5:1", "8.8.8.8:53", "127.0.0.1:1", "[fd00::1]:1"].map(address);
    for (number, id) in ids.iter().enumerate() {
        connect(&mut plugin, *id, &format!("192.0.2.1:{}", 5_000 + number), 1 + number as u64);
        tell(&mut plugin, *id, &client_bytes(&FromClient::Hello { internal: Vec::from_iter(internal) }));
    }
    tell(&mut plugin, ids[0], &client_bytes(&FromClient::Open { target: Guid(2) }));
    for (id, bytes) in sent(&mut plugin) {
        let Ok(FromFacilitator::Begin { candidates, .. }) = FromFacilitator::decode(&bytes) else { continue };
        let outside = if id == ids[0] { "192.0.2.1:5001" } else { "192.0.2.1:5000" };
        assert_eq!(candidates, [outside, "192.168.0.5:1", "[fd00::1]:1"].map(address));
    }
}

#[test]
fn probes_of_nobody_are_counted() {
    let (mut plugin, _) = facilitator(2);
    for number in [0, 1, u64::MAX] {
        plugin.handle_probe(address("192.0.2.1:5000"), &Punch { kind: PunchKind::Probe, number }.encode());
    }
    plugin.handle_probe(address("192.0.2.1:5000"), b"");
    assert_eq!(plugin.stats().malformed, 4);
    assert_eq!(plugin.handle_forwarded(NOW, 1, address("192.0.2.1:5000"), b"\x84 to nobody"), None);
    assert_eq!(plugin.stats().dropped, 1);
}
