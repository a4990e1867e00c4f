//! Peers that lie, guess and flood.

use std::net::SocketAddr;
use std::time::Duration;

use heapless::Vec;
use rakwire::Instant;
use rakwire::endpoint::{ConnectionId, Plugin, Side};
use rakwire::raknet::{Delivery, DisconnectReason, Guid, RakNet};
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
fn facilitator(count: usize) -> (Facilitator<8, 8>, std::vec::Vec<ConnectionId>) {
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
    assert_eq!((plugin.poll_action(), plugin.stats().unexpected), (None, 13));
    assert!(!plugin.handle_out_of_band(NOW, attacker, b"something of the application"));
    // The peer itself knows the number, and may forge the address of somebody else: only the port may be another one.
    let ack = Punch { kind: PunchKind::Ack, number: 7 }.encode();
    plugin.handle_out_of_band(NOW, attacker, &ack);
    sent(&mut plugin);
    assert_eq!((plugin.poll_action(), plugin.stats().unexpected), (None, 14));
    let found = address("203.0.113.9:6001");
    plugin.handle_out_of_band(NOW, found, &ack);
    sent(&mut plugin);
    assert_eq!(plugin.poll_action(), Some(Action::Connect { address: found, peer: Guid(3) }));
}

/// Whoever accepts goes on punching where it heard the other one, and nowhere else.
#[test]
fn what_was_heard_ends_the_search() {
    let ids = connections::<RakNet>(1);
    let mut plugin = Traversal::<2>::new();
    connect(&mut plugin, ids[0], "198.51.100.1:1", 1);
    plugin.set_facilitator(ids[0], address("198.51.100.1:1"));
    let candidates = (1..=16).map(|last| SocketAddr::from(([203, 0, 113, last], 5_000))).collect();
    let begin = FromFacilitator::Begin { session: 7, peer: Guid(3), connects: false, candidates };
    tell(&mut plugin, ids[0], &facilitator_bytes(&begin));
    let heard = address("203.0.113.4:5000");
    plugin.handle_out_of_band(NOW, heard, &Punch { kind: PunchKind::ToAccepting, number: 7 }.encode());
    let (mut now, mut punches) = (NOW, 0);
    while let Some(due) = Plugin::<RakNet>::poll_timeout(&plugin).filter(|_| punches < 1_000) {
        now = now.max(due);
        Plugin::<RakNet>::update(&mut plugin, now, &mut Collector::new());
        for action in core::iter::from_fn(|| plugin.poll_action()) {
            assert!(matches!(action, Action::Send { to, .. } if to == heard), "{action:?}");
            punches += 1;
        }
    }
    // An answer, and one punch each 100 ms from now until the connection has to be open.
    assert_eq!(punches, 1 + 61);
}

/// Not even by the address of another one that it forges.
#[test]
fn a_forged_probe_points_nobody_at_a_third_party() {
    let ids = connections::<RakNet>(2);
    let mut plugin = Facilitator::<2, 2>::new(&[1, 2, 3], &[], [7; 32]);
    for (number, id) in ids.iter().enumerate() {
        connect(&mut plugin, *id, &format!("192.0.2.{}:5000", number + 1), 1 + number as u64);
        tell(&mut plugin, *id, &client_bytes(&FromClient::Hello { internal: Vec::new() }));
    }
    tell(&mut plugin, ids[0], &client_bytes(&FromClient::Open { target: Guid(2) }));
    let mut port = 53;
    for (id, bytes) in sent(&mut plugin) {
        let Ok(FromFacilitator::Probe { token, .. }) = FromFacilitator::decode(&bytes) else { continue };
        let forged = if id == ids[0] { "203.0.113.66" } else { "192.0.2.2" };
        let probe = Punch { kind: PunchKind::Probe, number: token }.encode();
        // The same probe again is answered no second time.
        for _ in 0..100 {
            plugin.handle_probe(address(&format!("{forged}:{port}")), &probe);
        }
        port += 1;
    }
    assert_eq!(plugin.stats().malformed, 200);
    let probed = |bytes: &[u8]| matches!(FromFacilitator::decode(bytes), Ok(FromFacilitator::Probed { .. }));
    let answers = sent(&mut plugin).into_iter().filter(|(id, bytes)| *id == ids[1] && probed(bytes));
    assert_eq!(answers.count(), 2);
    let mut collector = Collector::<RakNet>::new();
    plugin.update(NOW + Duration::from_secs(1), &mut collector);
    let begun = collector.messages.iter().filter_map(|(id, bytes, _)| match FromFacilitator::decode(bytes) {
        Ok(FromFacilitator::Begin { candidates, .. }) if *id == ids[1] => Some(candidates),
        _ => None,
    });
    assert_eq!(begun.collect::<std::vec::Vec<_>>(), [[address("192.0.2.1:5000")]]);
}

/// The ports of its own address outside alone, whatever it says that its router has opened.
#[test]
fn a_client_offers_ports_of_its_own_address_alone() {
    let ids = connections::<RakNet>(2);
    let mut plugin = Facilitator::<2, 2>::new(&[], &[], [7; 32]);
    let said = ["203.0.113.66:53", "192.0.2.1:7000", "192.0.2.2:53", "10.0.0.1:53"].map(address);
    for (number, id) in ids.iter().enumerate() {
        connect(&mut plugin, *id, &format!("192.0.2.{}:5000", number + 1), 1 + number as u64);
        let internal = if number == 0 { Vec::from_iter(said) } else { Vec::new() };
        tell(&mut plugin, *id, &client_bytes(&FromClient::Hello { internal }));
    }
    tell(&mut plugin, ids[1], &client_bytes(&FromClient::Open { target: Guid(1) }));
    let begun =
        sent(&mut plugin).into_iter().filter_map(|(id, bytes)| match FromFacilitator::decode(&bytes) {
            Ok(FromFacilitator::Begin { candidates, .. }) if id == ids[1] => Some(candidates),
            _ => None,
        });
    let offered = [address("192.0.2.1:5000"), address("192.0.2.1:7000")];
    assert_eq!(begun.collect::<std::vec::Vec<_>>(), [offered]);
}

/// A client that takes nothing fills up its own place, and its messages come in order once it does.
#[test]
fn a_client_that_takes_nothing_silences_nobody_else() {
    let (mut plugin, ids) = facilitator(4);
    sent(&mut plugin);
    let mut collector = Collector::<RakNet>::new();
    collector.blocked = Some(ids[0]);
    for target in 0..100 {
        tell(&mut plugin, ids[0], &client_bytes(&FromClient::Open { target: Guid(1_000 + target) }));
    }
    plugin.update(NOW, &mut collector);
    assert_eq!((collector.messages.len(), plugin.stats().without_room), (0, 84));
    tell(&mut plugin, ids[1], &client_bytes(&FromClient::Open { target: Guid(3) }));
    plugin.update(NOW, &mut collector);
    let begun = collector.messages.iter().map(|(id, ..)| *id).collect::<std::vec::Vec<_>>();
    assert_eq!(begun, [ids[1], ids[2]]);
    let late = sent(&mut plugin).into_iter().map(|(_, bytes)| FromFacilitator::decode(&bytes));
    let refused = |target| FromFacilitator::Refused { peer: Guid(target), reason: Refusal::NotConnected };
    assert!(late.eq((1_000..1_016).map(|target| Ok(refused(target)))));
}

/// An attempt that has succeeded takes no room.
#[test]
fn a_client_meets_as_many_as_it_likes_one_after_another() {
    let (mut plugin, ids) = facilitator(7);
    sent(&mut plugin);
    for target in 2..=7 {
        tell(&mut plugin, ids[0], &client_bytes(&FromClient::Open { target: Guid(target) }));
        let session =
            sent(&mut plugin).into_iter().find_map(|(id, bytes)| match FromFacilitator::decode(&bytes) {
                Ok(FromFacilitator::Begin { session, .. }) if id == ids[0] => Some(session),
                _ => None,
            });
        let session = session.expect("it begins");
        // Of somebody else it is no news.
        tell(&mut plugin, ids[target as usize % 6 + 1], &client_bytes(&FromClient::Connected { session: 1 }));
        tell(&mut plugin, ids[0], &client_bytes(&FromClient::Connected { session }));
    }
    assert_eq!((plugin.stats().attempts, plugin.stats().refused), (6, 0));
}

/// A pair that asks again has its own port again, and one client has no more than four.
#[test]
fn forwarding_ports_are_shared_fairly() {
    let ids = connections::<RakNet>(8);
    let mut plugin = Facilitator::<8, 8>::new(&[], &[1, 2, 3, 4, 5, 6, 7, 8], [7; 32]);
    for (number, id) in ids.iter().enumerate() {
        connect(&mut plugin, *id, &format!("192.0.2.{}:5000", number + 1), 1 + number as u64);
        tell(&mut plugin, *id, &client_bytes(&FromClient::Hello { internal: Vec::new() }));
    }
    sent(&mut plugin);
    let mut forward = |target: usize| {
        tell(&mut plugin, ids[0], &client_bytes(&FromClient::Open { target: Guid(1 + target as u64) }));
        let begun =
            sent(&mut plugin).into_iter().find_map(|(_, bytes)| match FromFacilitator::decode(&bytes) {
                Ok(FromFacilitator::Begin { session, .. }) => Some(session),
                _ => None,
            });
        let session = begun?;
        for id in [ids[0], ids[target]] {
            tell(&mut plugin, id, &client_bytes(&FromClient::Failed { session }));
        }
        let port =
            sent(&mut plugin).into_iter().find_map(|(_, bytes)| match FromFacilitator::decode(&bytes) {
                Ok(FromFacilitator::Forwarded { port, .. }) => Some(port),
                _ => None,
            });
        for id in [ids[0], ids[target]] {
            tell(&mut plugin, id, &client_bytes(&FromClient::Connected { session }));
        }
        port
    };
    assert_eq!([1, 1, 2, 3, 4, 5].map(&mut forward), [Some(1), Some(1), Some(2), Some(3), Some(4), None]);
    assert_eq!(forward(2), Some(2), "its own again");
}

/// However often the other one punches, each punch is answered at most once.
#[test]
fn a_flood_of_punches_is_not_amplified() {
    let ids = connections::<RakNet>(1);
    let mut plugin = Traversal::<2>::new();
    connect(&mut plugin, ids[0], "198.51.100.1:1", 1);
    plugin.set_facilitator(ids[0], address("198.51.100.1:1"));
    let candidates = Vec::from_iter([address("203.0.113.1:1")]);
    let begin = FromFacilitator::Begin { session: 7, peer: Guid(3), connects: false, candidates };
    tell(&mut plugin, ids[0], &facilitator_bytes(&begin));
    sent(&mut plugin);
    while plugin.poll_action().is_some() {}
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

/// Clients of one address have half of all, whatever GUIDs and ports they choose.
#[test]
fn attempts_and_ports_of_one_network_leave_room_for_others() {
    for (ours, other) in [
        (["192.0.2.1", "192.0.2.1", "::ffff:192.0.2.1"], "192.0.2.2"),
        (["2001:db8::1", "2001:db8::2", "2001:db8::ffff:0:0:3"], "2001:db8:0:1::1"),
    ] {
        let ids = connections::<RakNet>(8);
        let mut plugin = Facilitator::<8, 8>::new(&[], &[1, 2, 3, 4], [7; 32]);
        for (number, id) in ids.iter().enumerate() {
            // The last four are those whom the others ask for.
            let ip = match number {
                0..3 => ours[number].to_owned(),
                3 => other.to_owned(),
                _ => format!("198.51.100.{number}"),
            };
            let remote = SocketAddr::new(ip.parse().expect("an address"), 5_000 + number as u16);
            connect(&mut plugin, *id, &remote.to_string(), 1 + number as u64);
            tell(&mut plugin, *id, &client_bytes(&FromClient::Hello { internal: Vec::new() }));
        }
        sent(&mut plugin);
        let mut refused = [0; 4];
        for (asks, target) in (0..4).flat_map(|asks| (4..8).map(move |target| (asks, target))) {
            let before = plugin.stats().refused;
            tell(&mut plugin, ids[asks], &client_bytes(&FromClient::Open { target: Guid(1 + target) }));
            refused[asks] += plugin.stats().refused - before;
        }
        assert_eq!(refused, [0, 4, 4, 0], "eight attempts, of which four are for one network");
        let begun = sent(&mut plugin);
        let mut sessions: std::vec::Vec<u64> = begun
            .iter()
            .filter_map(|(_, bytes)| match FromFacilitator::decode(bytes) {
                Ok(FromFacilitator::Begin { session, .. }) => Some(session),
                _ => None,
            })
            .collect();
        sessions.sort_unstable();
        sessions.dedup();
        for session in sessions {
            for id in &ids {
                tell(&mut plugin, *id, &client_bytes(&FromClient::Failed { session }));
            }
        }
        let mut ports = [0; 4];
        for (id, bytes) in sent(&mut plugin) {
            let at = ids.iter().position(|own| *own == id).expect("a client");
            let is_port = matches!(FromFacilitator::decode(&bytes), Ok(FromFacilitator::Forwarded { .. }));
            ports.get_mut(at).into_iter().for_each(|count| *count += usize::from(is_port));
        }
        assert_eq!(ports, [2, 0, 0, 2], "four ports");
    }
}

/// Nor do they get more by coming again while their attempts go on without them.
#[test]
fn attempts_of_one_network_count_after_it_has_disconnected() {
    let ids = connections::<RakNet>(5);
    let mut plugin = Facilitator::<8, 8>::new(&[], &[], [7; 32]);
    let join = |plugin: &mut Facilitator<8, 8>, id: ConnectionId, remote: &str, guid: u64| {
        connect(plugin, id, remote, guid);
        tell(plugin, id, &client_bytes(&FromClient::Hello { internal: Vec::new() }));
    };
    for (number, id) in ids.iter().enumerate().skip(1) {
        join(&mut plugin, *id, &format!("198.51.100.{number}:5000"), 100 + number as u64);
    }
    for time in 0..3 {
        join(&mut plugin, ids[0], &format!("192.0.2.1:{}", 5_000 + time), 1 + time);
        for target in 1..5 {
            tell(&mut plugin, ids[0], &client_bytes(&FromClient::Open { target: Guid(100 + target) }));
        }
        // The sides punch from here on, without the facilitator.
        sent(&mut plugin);
        plugin.on_disconnected(NOW, ids[0], DisconnectReason::Remote);
    }
    assert_eq!((plugin.stats().attempts, plugin.stats().refused), (4, 8));
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
