//! Polling the events of the Game Protocol per connection: a connection that is not read delays no other.

use core::time::Duration;

use rakwire::game_protocol::wire::CHUNK;
use rakwire::game_protocol::{ConnectionId, DisconnectReason, Event, Peer, Reliability};

use crate::support::game_protocol::{CLIENT, START, UNKNOWN_SOURCE, enter, packet, peer, server_config};

/// The flags REL and FIN.
const LAST: u8 = 0x05;
/// The flag REL.
const INNER: u8 = 0x01;
/// The flag END.
const END: u8 = 0x08;

/// Returns the readable connections, each once.
fn readable(peer: &mut Peer<'_>) -> Vec<ConnectionId> {
    let mut readable: Vec<_> = core::iter::from_fn(|| peer.poll_readable()).collect();
    readable.sort();
    readable.dedup();
    readable
}

fn messages(peer: &mut Peer<'_>, id: ConnectionId) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    while let Some(event) = peer.poll_event_of(id) {
        if let Event::Message { message, .. } = event {
            messages.push(message.to_vec());
        }
    }
    messages
}

#[test]
fn events_of_each_connection_can_be_polled_separately() {
    let mut server = peer(server_config());
    let there = [(CLIENT.into(), 7), (UNKNOWN_SOURCE.into(), 8)].map(|(from, salt)| {
        // Also polls the `Connected` event of this connection.
        enter(&mut server, START, from, salt)
    });
    for number in 0..5 {
        for from in [CLIENT, UNKNOWN_SOURCE] {
            server.handle_datagram(START, from.into(), &packet(LAST, 0, number, &[number as u8]));
        }
        // `poll_readable` returns both connections, and the second can be read although the first is not.
        assert_eq!(readable(&mut server), there);
        assert_eq!(messages(&mut server, there[1]), [[number as u8]]);
    }
    assert_eq!(messages(&mut server, there[0]), [[0], [1], [2], [3], [4]]);
    assert!(readable(&mut server).is_empty());
    assert_eq!(server.blocks_available(), server.blocks());
}

#[test]
fn a_borrowed_message_is_valid_until_it_is_released() {
    let mut server = peer(server_config());
    let there = enter(&mut server, START, CLIENT.into(), 7);
    assert!(server.event_data().is_empty());
    assert_eq!(
        (server.event_data().as_slice(), server.event_data().copy_to(&mut [])),
        (Some(&[][..]), Some(&[][..]))
    );
    let long: Vec<u8> = (0..CHUNK + 9).map(|at| at as u8).collect();
    server.handle_datagram(START, CLIENT.into(), &packet(INNER, 0, 0, &long[..CHUNK]));
    server.handle_datagram(START, CLIENT.into(), &packet(LAST, 1, 0, &long[CHUNK..]));
    assert_eq!(readable(&mut server), [there]);
    let event = server.poll_event_of(there);
    assert!(matches!(event, Some(Event::Message { delivery: Reliability::Reliable, .. })));
    // The borrowed message stays unchanged while the connection is closed and timers expire.
    server.handle_datagram(START, CLIENT.into(), &packet(END, 0, 0, &[]));
    server.handle_timeout(START + Duration::from_secs(1));
    assert_eq!(server.event_data().to_vec(), long);
    assert_eq!(server.event_data().chunks().count(), 2);
    assert_eq!(server.blocks() - server.blocks_available(), 2);
    server.release_event_data();
    assert!(server.event_data().is_empty());
    assert_eq!(server.blocks_available(), server.blocks());
    let end = server.poll_event_of(there);
    assert!(matches!(end, Some(Event::Disconnected { reason: DisconnectReason::Remote, .. })));
    assert!(server.poll_event_of(there).is_none() && server.event_data().is_empty());
    assert_eq!(server.blocks_available(), server.blocks());
}

#[test]
fn a_closed_connection_is_removed_after_its_last_event() {
    let mut server = peer(server_config());
    let there = enter(&mut server, START, CLIENT.into(), 7);
    server.handle_datagram(START, CLIENT.into(), &packet(END, 0, 0, &[]));
    assert_eq!(readable(&mut server), [there]);
    assert!(matches!(server.poll_event_of(there), Some(Event::Disconnected { .. })));
    let late = START + Duration::from_secs(10);
    server.handle_timeout(late);
    while server.poll_transmit(late, &mut [0; 600]).is_some() {}
    assert!(server.poll_event_of(there).is_none() && server.poll_readable().is_none());
    assert_eq!(server.connection(there), None);
}
