//! The connection graph.

use std::net::SocketAddr;

use proptest::prelude::*;
use rakwire::Instant;
use rakwire::endpoint::{ConnectionId, Plugin, Side, Verdict};
use rakwire::raknet::{Delivery, DisconnectReason, Guid, RakNet};
use rakwire_plugins::mesh::ConnectionGraph;

use crate::support::{Collector, connections};

type Graph = ConnectionGraph<3>;

const ADDRESS: [u8; 7] = [4, 0xF5, 0xFF, 0xFF, 0xFE, 0x03, 0xE8];

fn address(port: u16) -> SocketAddr {
    ([10, 0, 0, 1], port).into()
}

fn plugin(graph: &mut Graph) -> &mut dyn Plugin<RakNet> {
    graph
}

fn join(graph: &mut Graph, id: ConnectionId, number: u16) {
    plugin(graph).on_connected(Instant::ZERO, id, address(number), Guid(number.into()), Side::Server);
}

fn receive(graph: &mut Graph, id: ConnectionId, bytes: &[u8]) {
    let verdict = plugin(graph).on_message(Instant::ZERO, id, Delivery::RELIABLE_ORDERED, &bytes);
    assert_eq!(verdict, Verdict::Drop);
}

fn transmit(graph: &mut Graph, sender: &mut Collector<RakNet>) -> Vec<(ConnectionId, Vec<u8>)> {
    plugin(graph).update(Instant::ZERO, sender);
    sender.messages.drain(..).map(|(id, bytes, _)| (id, bytes)).collect()
}

fn new_connection(guid: u8) -> Vec<u8> {
    [&[0x21, 0, 0, 0, 1][..], &ADDRESS, &[0, 0, 0, 0, 0, 0, 0, guid, 0xFF, 0xFF]].concat()
}

fn ended(guid: u8) -> Vec<u8> {
    [&[0x1F][..], &ADDRESS, &[0, 0, 0, 0, 0, 0, 0, guid]].concat()
}

/// The bytes equal those of C++ RakNet.
#[test]
fn peers_are_notified_of_each_other() {
    let ids = connections::<RakNet>(2);
    let mut graph = Graph::new();
    join(&mut graph, ids[0], 1_000);
    assert_eq!(transmit(&mut graph, &mut Collector::new()), [], "there is no other peer");
    join(&mut graph, ids[1], 1_001);
    join(&mut graph, ids[1], 1_001);
    let messages = transmit(&mut graph, &mut Collector::new());
    let guid = [0, 0, 0, 0, 0, 0, 3, 0xE8];
    let expected = [&[0x21, 0, 0, 0, 1][..], &ADDRESS, &guid, &[0xFF, 0xFF]].concat();
    assert_eq!((messages.len(), &messages[1]), (2, &(ids[1], expected)));
}

#[test]
fn other_peers_are_notified_of_closed_and_lost_connections() {
    let ids = connections::<RakNet>(2);
    let reasons =
        [(DisconnectReason::Local, 0x1F), (DisconnectReason::Remote, 0x1F), (DisconnectReason::Lost, 0x20)];
    for (reason, message) in reasons {
        let mut graph = Graph::new();
        (0..2).for_each(|at| join(&mut graph, ids[at], 1_000));
        transmit(&mut graph, &mut Collector::new());
        plugin(&mut graph).on_disconnected(Instant::ZERO, ids[0], reason);
        let gone = [&[message][..], &ADDRESS, &[0, 0, 0, 0, 0, 0, 3, 0xE8]].concat();
        assert_eq!(transmit(&mut graph, &mut Collector::new()), [(ids[1], gone)]);
        assert_eq!(plugin(&mut graph).poll_timeout(), None);
    }
}

#[test]
fn blocked_notifications_are_sent_later() {
    let ids = connections::<RakNet>(2);
    let mut graph = Graph::new();
    (0..2).for_each(|at| join(&mut graph, ids[at], 1_000 + at as u16));
    let mut blocked = Collector { blocked: Some(ids[0]), ..Collector::new() };
    assert_eq!(transmit(&mut graph, &mut blocked).len(), 1);
    assert!(plugin(&mut graph).poll_timeout().is_some());
    assert_eq!(
        transmit(&mut graph, &mut Collector::new()).len(),
        1,
        "only the blocked notification must be sent"
    );
    assert_eq!(plugin(&mut graph).poll_timeout(), None);
}

#[test]
fn remote_connections_are_listed_until_they_close() {
    let ids = connections::<RakNet>(2);
    let mut graph = Graph::new();
    (0..2).for_each(|at| join(&mut graph, ids[at], 1_000 + at as u16));
    receive(&mut graph, ids[0], &new_connection(9));
    receive(&mut graph, ids[0], &new_connection(9));
    let remotes = graph.connections_of(Guid(1_000));
    assert_eq!(
        remotes.iter().map(|remote| (remote.guid, remote.address)).collect::<Vec<_>>(),
        [(Guid(9), address(1_000))]
    );
    assert!(graph.are_connected(Guid(9), Guid(1_000)) && !graph.are_connected(Guid(9), Guid(1_001)));
    receive(&mut graph, ids[1], &ended(9));
    assert!(graph.are_connected(Guid(9), Guid(1_000)), "a peer reports only its own connections");
    let mut lost = ended(9);
    lost[0] = 0x20;
    receive(&mut graph, ids[0], &lost);
    assert_eq!(graph.remotes().count(), 0);
    receive(&mut graph, ids[0], &new_connection(9));
    plugin(&mut graph).on_disconnected(Instant::ZERO, ids[0], DisconnectReason::Lost);
    assert_eq!(graph.remotes().count(), 0);
}

#[test]
fn peer_that_invents_connections_fills_only_its_own_slots() {
    let ids = connections::<RakNet>(2);
    let mut graph = Graph::new();
    (0..2).for_each(|at| join(&mut graph, ids[at], 1_000 + at as u16));
    (0..=255).for_each(|guid| receive(&mut graph, ids[0], &new_connection(guid)));
    assert_eq!((graph.remotes().count(), graph.stats().dropped), (3, 253));
    receive(&mut graph, ids[1], &new_connection(7));
    assert_eq!(graph.connections_of(Guid(1_001)).len(), 1);
    receive(&mut graph, ids[1], &[0x21, 0xFF, 0xFF, 0xFF, 0xFF]);
    receive(&mut graph, ids[1], &[0x21; 10_000]);
    assert_eq!(graph.stats().malformed, 2);
}

proptest! {
    #[test]
    fn arbitrary_bytes_create_a_bounded_number_of_remotes(messages in prop::collection::vec((0x1F..=0x21_u8, prop::collection::vec(any::<u8>(), 0..60)), 0..50)) {
        let ids = connections::<RakNet>(1);
        let mut graph = Graph::new();
        join(&mut graph, ids[0], 1_000);
        for (id, bytes) in messages {
            receive(&mut graph, ids[0], &[&[id][..], &bytes].concat());
        }
        prop_assert!(graph.remotes().count() <= 3);
    }
}
