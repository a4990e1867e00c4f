//! The time at which a server frees the slot of a client for another client.

use core::net::SocketAddr;

use rakwire::Instant;
use rakwire::endpoint::ConnectionId;
use rakwire::game_protocol::{DisconnectReason, DropReason, Peer, Reliability};

use crate::support::game_protocol::*;

/// The address of the client that leaves.
const FIRST: ([u8; 4], u16) = ([192, 0, 2, 1], 100);
/// The address of the client that tries to take the slot.
const NEWCOMER: ([u8; 4], u16) = ([192, 0, 2, 2], 100);

/// Returns a server with a single slot, which the first client occupies.
fn full_server() -> (Peer<'static>, ConnectionId) {
    let mut config = server_config();
    config.max_incoming = 1;
    let mut server = peer(config);
    let first = enter(&mut server, START, FIRST.into(), 9);
    assert!(!lets_in(&mut server, START));
    (server, first)
}

/// Returns true if the new client gets a slot; otherwise it receives END.
fn lets_in(server: &mut Peer<'_>, now: Instant) -> bool {
    let (from, full) = (SocketAddr::from(NEWCOMER), dropped(server, DropReason::Full));
    let answer = seasoning(server, now, from, 9);
    server.handle_datagram(now, from, &answer);
    let said = output(server, now);
    let is_full = dropped(server, DropReason::Full) > full;
    assert_eq!(said.contains(&(from, vec![0x0C, 0, 0, 0])), is_full, "{said:?}");
    !is_full
}

#[test]
fn a_slot_is_free_once_its_player_disconnects() {
    let (mut server, first) = full_server();
    server.handle_datagram(START, FIRST.into(), &packet(8, 0, 0, &[]));
    assert_eq!(take_events(&mut server), [OwnedEvent::Disconnected(first, DisconnectReason::Remote)]);
    assert!(lets_in(&mut server, START));
}

#[test]
fn a_slot_is_free_once_the_server_disconnects_its_player() {
    let (mut server, first) = full_server();
    server.disconnect(START, first);
    assert_eq!(output(&mut server, START), [(FIRST.into(), vec![0x0C, 0, 0, 0])]);
    take_events(&mut server);
    assert!(lets_in(&mut server, START));
}

#[test]
fn a_disconnected_player_that_acknowledges_nothing_keeps_its_slot_for_a_second() {
    let (mut server, first) = full_server();
    server.send(START, first, b"game over", Reliability::Reliable).expect("an open connection");
    server.disconnect(START, first);
    for millis in [0, 500, 999] {
        server.handle_timeout(at(millis));
        output(&mut server, at(millis));
        assert!(!lets_in(&mut server, at(millis)), "{millis}");
    }
    server.handle_timeout(at(1_000));
    output(&mut server, at(1_000));
    take_events(&mut server);
    assert!(lets_in(&mut server, at(1_000)));
}

#[test]
fn a_vanished_client_keeps_its_slot_until_the_idle_timeout() {
    let (mut server, first) = full_server();
    server.handle_datagram(at(5_000), FIRST.into(), &packet(4, 0, 0, b"alive"));
    take_events(&mut server);
    server.handle_timeout(at(19_999));
    assert!(!lets_in(&mut server, at(19_999)));
    server.handle_timeout(at(20_000));
    output(&mut server, at(20_000));
    assert_eq!(take_events(&mut server), [OwnedEvent::Disconnected(first, DisconnectReason::Lost)]);
    assert!(lets_in(&mut server, at(20_000)));
}

/// After a crash, a restarted game may get its old port again.
#[test]
fn an_address_is_freed_with_its_slot() {
    let (mut server, _) = full_server();
    server.handle_timeout(at(15_000));
    output(&mut server, at(15_000));
    take_events(&mut server);
    // Salts of this crate's clients cannot be mistaken for a packet header.
    let again = enter(&mut server, at(15_000), FIRST.into(), 0x4000_000B);
    assert!(server.connection(again).is_some());
}
