//! Peers that send false data, guess session numbers, or flood.

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
    message.encode(&mut [0; MAX_MESSAGE]).expect("enough space").to_vec()
}

fn facilitator_bytes(message: &FromFacilitator) -> std::vec::Vec<u8> {
    message.encode(&mut [0; MAX_MESSAGE]).expect("enough space").to_vec()
}

fn connect(plugin: &mut dyn Plugin<RakNet>, id: ConnectionId, remote: &str, guid: u64) {
    plugin.on_connected(NOW, id, address(remote), Guid(guid), Side::Server);
}

fn deliver(plugin: &mut dyn Plugin<RakNet>, id: ConnectionId, bytes: &[u8]) {
    plugin.on_message(NOW, id, Delivery::RELIABLE_ORDERED, &bytes);
}

/// Returns the messages that a plugin sends, with their recipients.
fn sent(plugin: &mut dyn Plugin<RakNet>) -> std::vec::Vec<(ConnectionId, std::vec::Vec<u8>)> {
    let mut collector = Collector::<RakNet>::new();
    plugin.update(NOW, &mut collector);
    collector.messages.drain(..).map(|(id, bytes, _)| (id, bytes)).collect()
}

/// Creates a facilitator without probe ports, and clients that have the plugin.
fn facilitator(count: usize) -> (Facilitator<8, 8>, std::vec::Vec<ConnectionId>) {
    let ids = connections::<RakNet>(count);
    let mut plugin = Facilitator::new(&[], &[], [7; 32]);
    for (number, id) in ids.iter().enumerate() {
        connect(&mut plugin, *id, &format!("192.0.2.{}:5000", number + 1), 1 + number as u64);
        deliver(&mut plugin, *id, &client_bytes(&FromClient::Hello { internal: Vec::new() }));
    }
    (plugin, ids)
}

#[test]
fn client_accepts_messages_only_from_its_facilitator() {
    let ids = connections::<RakNet>(2);
    let mut plugin = Traversal::<2>::new();
    connect(&mut plugin, ids[0], "198.51.100.1:1", 1);
    plugin.set_facilitator(ids[0], address("198.51.100.1:1"));
    connect(&mut plugin, ids[1], "198.51.100.2:1", 2);
    let candidates = Vec::from_iter([address("203.0.113.9:53")]);
    let begin = FromFacilitator::Begin { session: 7, peer: Guid(3), connects: true, candidates };
    deliver(&mut plugin, ids[1], &facilitator_bytes(&begin));
    sent(&mut plugin);
    assert_eq!((plugin.poll_action(), plugin.stats().malformed), (None, 1));
    deliver(&mut plugin, ids[0], &facilitator_bytes(&begin));
    sent(&mut plugin);
    let punch = Punch { kind: PunchKind::ToAccepting, number: 7 }.encode();
    assert_eq!(plugin.poll_action(), Some(Action::Send { to: address("203.0.113.9:53"), payload: punch }));
}

/// A peer that does not know the session number cannot make a client connect to another address.
#[test]
fn punch_with_wrong_session_number_is_ignored() {
    let ids = connections::<RakNet>(1);
    let mut plugin = Traversal::<2>::new();
    connect(&mut plugin, ids[0], "198.51.100.1:1", 1);
    plugin.set_facilitator(ids[0], address("198.51.100.1:1"));
    let candidates = Vec::from_iter([address("203.0.113.9:5000")]);
    let begin = FromFacilitator::Begin { session: 7, peer: Guid(3), connects: true, candidates };
    deliver(&mut plugin, ids[0], &facilitator_bytes(&begin));
    sent(&mut plugin);
    while plugin.poll_action().is_some() {}
    let attacker = address("203.0.113.66:666");
    for number in [0, 6, 8] {
        for kind in [PunchKind::ToConnecting, PunchKind::Ack, PunchKind::FilterProbe, PunchKind::Probe] {
            assert!(plugin.handle_out_of_band(NOW, attacker, &Punch { kind, number }.encode()));
        }
    }
    // A punch of the client's own kind, sent back to it, is ignored too.
    plugin.handle_out_of_band(NOW, attacker, &Punch { kind: PunchKind::ToAccepting, number: 7 }.encode());
    sent(&mut plugin);
    assert_eq!((plugin.poll_action(), plugin.stats().unexpected), (None, 13));
    assert!(!plugin.handle_out_of_band(NOW, attacker, b"something of the application"));
    // The remote peer knows the session number and may forge the address of another host. Only the port may therefore
    // differ.
    let ack = Punch { kind: PunchKind::Ack, number: 7 }.encode();
    plugin.handle_out_of_band(NOW, attacker, &ack);
    sent(&mut plugin);
    assert_eq!((plugin.poll_action(), plugin.stats().unexpected), (None, 14));
    let found = address("203.0.113.9:6001");
    plugin.handle_out_of_band(NOW, found, &ack);
    sent(&mut plugin);
    assert_eq!(plugin.poll_action(), Some(Action::Connect { address: found, peer: Guid(3) }));
}

/// The accepting side sends punches to all candidates, until a punch arrives from one of them.
#[test]
fn punches_stop_at_the_first_address_that_answers() {
    let ids = connections::<RakNet>(1);
    let mut plugin = Traversal::<2>::new();
    connect(&mut plugin, ids[0], "198.51.100.1:1", 1);
    plugin.set_facilitator(ids[0], address("198.51.100.1:1"));
    let candidates = (1..=16).map(|last| SocketAddr::from(([203, 0, 113, last], 5_000))).collect();
    let begin = FromFacilitator::Begin { session: 7, peer: Guid(3), connects: false, candidates };
    deliver(&mut plugin, ids[0], &facilitator_bytes(&begin));
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
    // One acknowledgement, and one punch every 100 ms until the connection timeout.
    assert_eq!(punches, 1 + 61);
}

/// A probe with a forged source address, even that of another client, makes no client send to that address.
#[test]
fn forged_probe_cannot_redirect_clients_to_a_third_party() {
    let ids = connections::<RakNet>(2);
    let mut plugin = Facilitator::<2, 2>::new(&[1, 2, 3], &[], [7; 32]);
    for (number, id) in ids.iter().enumerate() {
        connect(&mut plugin, *id, &format!("192.0.2.{}:5000", number + 1), 1 + number as u64);
        deliver(&mut plugin, *id, &client_bytes(&FromClient::Hello { internal: Vec::new() }));
    }
    deliver(&mut plugin, ids[0], &client_bytes(&FromClient::Open { target: Guid(2) }));
    let mut port = 53;
    for (id, bytes) in sent(&mut plugin) {
        let Ok(FromFacilitator::Probe { token, .. }) = FromFacilitator::decode(&bytes) else { continue };
        let forged = if id == ids[0] { "203.0.113.66" } else { "192.0.2.2" };
        let probe = Punch { kind: PunchKind::Probe, number: token }.encode();
        // Repetitions of a probe are not answered.
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

/// A mapped address is offered only if its IP address is that of the client's connection to the facilitator.
#[test]
fn client_offers_only_ports_of_its_own_address() {
    let ids = connections::<RakNet>(2);
    let mut plugin = Facilitator::<2, 2>::new(&[], &[], [7; 32]);
    let said = ["203.0.113.66:53", "192.0.2.1:7000", "192.0.2.2:53", "10.0.0.1:53"].map(address);
    for (number, id) in ids.iter().enumerate() {
        connect(&mut plugin, *id, &format!("192.0.2.{}:5000", number + 1), 1 + number as u64);
        let internal = if number == 0 { Vec::from_iter(said) } else { Vec::new() };
        deliver(&mut plugin, *id, &client_bytes(&FromClient::Hello { internal }));
    }
    deliver(&mut plugin, ids[1], &client_bytes(&FromClient::Open { target: Guid(1) }));
    let begun =
        sent(&mut plugin).into_iter().filter_map(|(id, bytes)| match FromFacilitator::decode(&bytes) {
            Ok(FromFacilitator::Begin { candidates, .. }) if id == ids[1] => Some(candidates),
            _ => None,
        });
    let offered = [address("192.0.2.1:5000"), address("192.0.2.1:7000")];
    assert_eq!(begun.collect::<std::vec::Vec<_>>(), [offered]);
}

/// A client that reads no messages fills only its own queue, and receives its messages in order once it reads.
#[test]
fn client_that_reads_nothing_does_not_block_other_clients() {
    let (mut plugin, ids) = facilitator(4);
    sent(&mut plugin);
    let mut collector = Collector::<RakNet>::new();
    collector.blocked = Some(ids[0]);
    for target in 0..100 {
        deliver(&mut plugin, ids[0], &client_bytes(&FromClient::Open { target: Guid(1_000 + target) }));
    }
    plugin.update(NOW, &mut collector);
    assert_eq!((collector.messages.len(), plugin.stats().over_capacity), (0, 84));
    deliver(&mut plugin, ids[1], &client_bytes(&FromClient::Open { target: Guid(3) }));
    plugin.update(NOW, &mut collector);
    let begun = collector.messages.iter().map(|(id, ..)| *id).collect::<std::vec::Vec<_>>();
    assert_eq!(begun, [ids[1], ids[2]]);
    let late = sent(&mut plugin).into_iter().map(|(_, bytes)| FromFacilitator::decode(&bytes));
    let refused = |target| FromFacilitator::Refused { peer: Guid(target), reason: Refusal::NotConnected };
    assert!(late.eq((1_000..1_016).map(|target| Ok(refused(target)))));
}

/// A finished attempt frees its slot.
#[test]
fn a_client_can_connect_to_any_number_of_peers_successively() {
    let (mut plugin, ids) = facilitator(7);
    sent(&mut plugin);
    for target in 2..=7 {
        deliver(&mut plugin, ids[0], &client_bytes(&FromClient::Open { target: Guid(target) }));
        let session =
            sent(&mut plugin).into_iter().find_map(|(id, bytes)| match FromFacilitator::decode(&bytes) {
                Ok(FromFacilitator::Begin { session, .. }) if id == ids[0] => Some(session),
                _ => None,
            });
        let session = session.expect("a session begins");
        // The same message from a third client is ignored.
        deliver(
            &mut plugin,
            ids[target as usize % 6 + 1],
            &client_bytes(&FromClient::Connected { session: 1 }),
        );
        deliver(&mut plugin, ids[0], &client_bytes(&FromClient::Connected { session }));
    }
    assert_eq!((plugin.stats().attempts, plugin.stats().refused), (6, 0));
}

/// A pair that requests again keeps its port, and one client has at most four ports.
#[test]
fn one_client_gets_at_most_four_forwarding_ports() {
    let ids = connections::<RakNet>(8);
    let mut plugin = Facilitator::<8, 8>::new(&[], &[1, 2, 3, 4, 5, 6, 7, 8], [7; 32]);
    for (number, id) in ids.iter().enumerate() {
        connect(&mut plugin, *id, &format!("192.0.2.{}:5000", number + 1), 1 + number as u64);
        deliver(&mut plugin, *id, &client_bytes(&FromClient::Hello { internal: Vec::new() }));
    }
    sent(&mut plugin);
    let mut forward = |target: usize| {
        deliver(&mut plugin, ids[0], &client_bytes(&FromClient::Open { target: Guid(1 + target as u64) }));
        let begun =
            sent(&mut plugin).into_iter().find_map(|(_, bytes)| match FromFacilitator::decode(&bytes) {
                Ok(FromFacilitator::Begin { session, .. }) => Some(session),
                _ => None,
            });
        let session = begun?;
        for id in [ids[0], ids[target]] {
            deliver(&mut plugin, id, &client_bytes(&FromClient::Failed { session }));
        }
        let port =
            sent(&mut plugin).into_iter().find_map(|(_, bytes)| match FromFacilitator::decode(&bytes) {
                Ok(FromFacilitator::Forwarded { port, .. }) => Some(port),
                _ => None,
            });
        for id in [ids[0], ids[target]] {
            deliver(&mut plugin, id, &client_bytes(&FromClient::Connected { session }));
        }
        port
    };
    assert_eq!([1, 1, 2, 3, 4, 5].map(&mut forward), [Some(1), Some(1), Some(2), Some(3), Some(4), None]);
    assert_eq!(forward(2), Some(2), "the pair gets its previous port");
}

/// Of 1,000 punches from the remote peer, only the four in the queue are answered.
#[test]
fn punch_flood_is_not_amplified() {
    let ids = connections::<RakNet>(1);
    let mut plugin = Traversal::<2>::new();
    connect(&mut plugin, ids[0], "198.51.100.1:1", 1);
    plugin.set_facilitator(ids[0], address("198.51.100.1:1"));
    let candidates = Vec::from_iter([address("203.0.113.1:1")]);
    let begin = FromFacilitator::Begin { session: 7, peer: Guid(3), connects: false, candidates };
    deliver(&mut plugin, ids[0], &facilitator_bytes(&begin));
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
fn attempts_time_out_without_a_facilitator_answer() {
    let ids = connections::<RakNet>(1);
    let mut plugin = Traversal::<1>::new();
    connect(&mut plugin, ids[0], "198.51.100.1:1", 1);
    plugin.set_facilitator(ids[0], address("198.51.100.1:1"));
    plugin.open(Guid(9)).expect("enough space");
    assert!(plugin.open(Guid(8)).is_err());
    sent(&mut plugin);
    let due = Plugin::<RakNet>::poll_timeout(&plugin).expect("a deadline");
    assert_eq!(plugin.poll_outcome(), None);
    Plugin::<RakNet>::update(&mut plugin, due, &mut Collector::new());
    assert_eq!(plugin.poll_outcome(), Some(Outcome::Failed { peer: Guid(9), reason: None }));
}

#[test]
fn one_client_gets_at_most_four_concurrent_attempts() {
    let (mut plugin, ids) = facilitator(7);
    for target in 2..=7 {
        deliver(&mut plugin, ids[0], &client_bytes(&FromClient::Open { target: Guid(target) }));
    }
    assert_eq!((plugin.stats().attempts, plugin.stats().refused), (4, 2));
    let refused = sent(&mut plugin).into_iter().filter(|(id, bytes)| {
        let busy = FromFacilitator::Refused { peer: Guid(7), reason: Refusal::Busy };
        *id == ids[0] && FromFacilitator::decode(bytes) == Ok(busy)
    });
    assert_eq!(refused.count(), 1);
}

/// Clients at one IP address get at most half of all slots, whatever their GUIDs and ports.
#[test]
fn attempts_and_ports_of_one_network_do_not_block_other_networks() {
    for (ours, other) in [
        (["192.0.2.1", "192.0.2.1", "::ffff:192.0.2.1"], "192.0.2.2"),
        (["2001:db8::1", "2001:db8::2", "2001:db8::ffff:0:0:3"], "2001:db8:0:1::1"),
    ] {
        let ids = connections::<RakNet>(8);
        let mut plugin = Facilitator::<8, 8>::new(&[], &[1, 2, 3, 4], [7; 32]);
        for (number, id) in ids.iter().enumerate() {
            // The last four clients are the targets of the others.
            let ip = match number {
                0..3 => ours[number].to_owned(),
                3 => other.to_owned(),
                _ => format!("198.51.100.{number}"),
            };
            let remote = SocketAddr::new(ip.parse().expect("an address"), 5_000 + number as u16);
            connect(&mut plugin, *id, &remote.to_string(), 1 + number as u64);
            deliver(&mut plugin, *id, &client_bytes(&FromClient::Hello { internal: Vec::new() }));
        }
        sent(&mut plugin);
        let mut refused = [0; 4];
        for (asks, target) in (0..4).flat_map(|asks| (4..8).map(move |target| (asks, target))) {
            let before = plugin.stats().refused;
            deliver(&mut plugin, ids[asks], &client_bytes(&FromClient::Open { target: Guid(1 + target) }));
            refused[asks] += plugin.stats().refused - before;
        }
        assert_eq!(refused, [0, 4, 4, 0], "one network may have four of the eight attempts");
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
                deliver(&mut plugin, *id, &client_bytes(&FromClient::Failed { session }));
            }
        }
        let mut ports = [0; 4];
        for (id, bytes) in sent(&mut plugin) {
            let at = ids.iter().position(|own| *own == id).expect("a client");
            let is_port = matches!(FromFacilitator::decode(&bytes), Ok(FromFacilitator::Forwarded { .. }));
            ports.get_mut(at).into_iter().for_each(|count| *count += usize::from(is_port));
        }
        assert_eq!(ports, [2, 0, 0, 2], "one network may have two of the four ports");
    }
}

/// Clients at one IP address get no additional slots by reconnecting while their attempts continue.
#[test]
fn attempts_of_one_network_count_after_it_has_disconnected() {
    let ids = connections::<RakNet>(5);
    let mut plugin = Facilitator::<8, 8>::new(&[], &[], [7; 32]);
    let join = |plugin: &mut Facilitator<8, 8>, id: ConnectionId, remote: &str, guid: u64| {
        connect(plugin, id, remote, guid);
        deliver(plugin, id, &client_bytes(&FromClient::Hello { internal: Vec::new() }));
    };
    for (number, id) in ids.iter().enumerate().skip(1) {
        join(&mut plugin, *id, &format!("198.51.100.{number}:5000"), 100 + number as u64);
    }
    for time in 0..3 {
        join(&mut plugin, ids[0], &format!("192.0.2.1:{}", 5_000 + time), 1 + time);
        for target in 1..5 {
            deliver(&mut plugin, ids[0], &client_bytes(&FromClient::Open { target: Guid(100 + target) }));
        }
        // After this, both sides send punches without the facilitator.
        sent(&mut plugin);
        plugin.on_disconnected(NOW, ids[0], DisconnectReason::Remote);
    }
    assert_eq!((plugin.stats().attempts, plugin.stats().refused), (4, 8));
}

#[test]
fn requests_for_the_requester_or_a_peer_without_the_plugin_are_refused() {
    let (mut plugin, ids) = facilitator(2);
    let more = connections::<RakNet>(3)[2];
    connect(&mut plugin, more, "192.0.2.9:5000", 9);
    for target in [1, 9, 77] {
        deliver(&mut plugin, ids[0], &client_bytes(&FromClient::Open { target: Guid(target) }));
    }
    assert_eq!((plugin.stats().attempts, plugin.stats().refused), (0, 3));
}

/// A third client can neither end an attempt of other clients nor make the facilitator forward it.
#[test]
fn third_client_cannot_affect_an_attempt() {
    let (mut plugin, ids) = facilitator(3);
    deliver(&mut plugin, ids[0], &client_bytes(&FromClient::Open { target: Guid(2) }));
    let begun = sent(&mut plugin).into_iter().find_map(|(_, bytes)| match FromFacilitator::decode(&bytes) {
        Ok(FromFacilitator::Begin { session, .. }) => Some(session),
        _ => None,
    });
    let failed = client_bytes(&FromClient::Failed { session: begun.expect("a session begins") });
    deliver(&mut plugin, ids[2], &failed);
    assert_eq!((plugin.stats().malformed, plugin.stats().refused), (1, 0));
    deliver(&mut plugin, ids[0], &failed);
    deliver(&mut plugin, ids[0], &failed);
    assert_eq!(plugin.stats().refused, 0, "the other side has not failed");
    deliver(&mut plugin, ids[1], &failed);
    assert_eq!(plugin.stats().refused, 2);
}

/// Private addresses are not offered to clients in other networks. Otherwise a client could make others send
/// datagrams to arbitrary hosts on the internet.
#[test]
fn client_cannot_offer_addresses_of_other_hosts() {
    let ids = connections::<RakNet>(2);
    let mut plugin = Facilitator::<2, 2>::new(&[], &[], [7; 32]);
    let internal = ["192.168.0.5:1", "8.8.8.8:53", "127.0.0.1:1", "[fd00::1]:1"].map(address);
    for (number, id) in ids.iter().enumerate() {
        connect(&mut plugin, *id, &format!("192.0.2.1:{}", 5_000 + number), 1 + number as u64);
        deliver(&mut plugin, *id, &client_bytes(&FromClient::Hello { internal: Vec::from_iter(internal) }));
    }
    deliver(&mut plugin, ids[0], &client_bytes(&FromClient::Open { target: Guid(2) }));
    for (id, bytes) in sent(&mut plugin) {
        let Ok(FromFacilitator::Begin { candidates, .. }) = FromFacilitator::decode(&bytes) else { continue };
        let outside = if id == ids[0] { "192.0.2.1:5001" } else { "192.0.2.1:5000" };
        assert_eq!(candidates, [outside, "192.168.0.5:1", "[fd00::1]:1"].map(address));
    }
}

#[test]
fn probes_from_unknown_clients_are_counted() {
    let (mut plugin, _) = facilitator(2);
    for number in [0, 1, u64::MAX] {
        plugin.handle_probe(address("192.0.2.1:5000"), &Punch { kind: PunchKind::Probe, number }.encode());
    }
    plugin.handle_probe(address("192.0.2.1:5000"), b"");
    assert_eq!(plugin.stats().malformed, 4);
    assert_eq!(plugin.handle_forwarded(NOW, 1, address("192.0.2.1:5000"), b"\x84 unknown"), None);
    assert_eq!(plugin.stats().dropped, 1);
}
