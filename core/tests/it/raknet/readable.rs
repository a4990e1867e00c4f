//! Polling the events of single connections: a connection that is not read delays no other.

use core::net::SocketAddr;

use rakwire::Instant;
use rakwire::raknet::{ConnectionId, Delivery, DisconnectReason, Event, Peer, UnconnectedEvents};
use rakwire::wire::MAX_DATAGRAM;

use crate::support::raknet::{client_config, peer, server_config};

const SERVER: u8 = 9;

fn address(number: u8) -> SocketAddr {
    ([192, 0, 2, number], 1).into()
}

/// Delivers all datagrams for 600 ms.
fn exchange(now: &mut Instant, clients: &mut [Peer<'_>], server: &mut Peer<'_>) {
    let mut buffer = [0; MAX_DATAGRAM];
    for _ in 0..60 {
        *now = *now + core::time::Duration::from_millis(10);
        server.handle_timeout(*now);
        for (client, number) in clients.iter_mut().zip(1..) {
            client.handle_timeout(*now);
            while let Some(transmit) = client.poll_transmit(*now, &mut buffer) {
                server.handle_datagram(*now, address(number), transmit.payload);
            }
        }
        while let Some(transmit) = server.poll_transmit(*now, &mut buffer) {
            let client = (1..).zip(clients.iter_mut()).find(|(number, _)| address(*number) == transmit.to);
            client.expect("a client").1.handle_datagram(*now, address(SERVER), transmit.payload);
        }
    }
}

/// Returns the readable connections, each once.
fn readable(peer: &mut Peer<'_>) -> Vec<ConnectionId> {
    let mut readable: Vec<_> = core::iter::from_fn(|| peer.poll_readable()).collect();
    readable.sort();
    readable.dedup();
    readable
}

fn numbers(peer: &mut Peer<'_>, id: ConnectionId) -> Vec<u8> {
    let mut numbers = Vec::new();
    while let Some(event) = peer.poll_event_of(id) {
        if let Event::Message { message, .. } = event {
            numbers.push(message.to_vec()[1]);
        }
    }
    numbers
}

#[test]
fn events_of_each_connection_can_be_polled_separately() {
    let mut clients = [peer(client_config()), peer(client_config())];
    clients[1] = {
        let mut config = client_config();
        config.guid = rakwire::raknet::Guid(77);
        peer(config)
    };
    let (mut server, mut now) = (peer(server_config()), Instant::ZERO);
    let ids: Vec<_> =
        clients.iter_mut().map(|client| client.connect(now, address(SERVER)).unwrap()).collect();
    exchange(&mut now, &mut clients, &mut server);
    let there = readable(&mut server);
    assert_eq!(there.len(), 2);
    for id in &there {
        assert!(matches!(server.poll_event_of(*id), Some(Event::Connected { .. })));
    }
    for number in 0..5 {
        for (client, id) in clients.iter_mut().zip(&ids) {
            client.send(now, *id, &[0xFE, number], Delivery::RELIABLE_ORDERED).unwrap();
        }
        exchange(&mut now, &mut clients, &mut server);
        // `poll_readable` returns both connections, and the second can be read although the first is not.
        assert_eq!(readable(&mut server), there);
        assert_eq!(numbers(&mut server, there[1]), [number]);
    }
    assert_eq!(numbers(&mut server, there[0]), [0, 1, 2, 3, 4]);
    assert!(readable(&mut server).is_empty());
}

#[test]
fn a_borrowed_message_is_valid_until_it_is_released() {
    let mut clients = [peer(client_config())];
    let (mut server, mut now) = (peer(server_config()), Instant::ZERO);
    let id = clients[0].connect(now, address(SERVER)).unwrap();
    exchange(&mut now, &mut clients, &mut server);
    let there = readable(&mut server)[0];
    assert!(matches!(server.poll_event_of(there), Some(Event::Connected { .. })));
    assert!(server.event_data().is_empty());
    let long = [0xFE; 5_000];
    clients[0].send(now, id, &long, Delivery::RELIABLE_ORDERED).unwrap();
    exchange(&mut now, &mut clients, &mut server);
    assert!(matches!(server.poll_event_of(there), Some(Event::Message { .. })));
    // Everything else continues, including the close of the connection, and the borrowed message is unchanged.
    clients[0].disconnect(now, id);
    exchange(&mut now, &mut clients, &mut server);
    assert_eq!(server.event_data().to_vec(), long);
    let end = server.poll_event_of(there);
    assert!(matches!(end, Some(Event::Disconnected { reason: DisconnectReason::Remote, .. })));
    assert!(server.poll_event_of(there).is_none() && server.event_data().is_empty());
    for _ in 0..20 {
        exchange(&mut now, &mut clients, &mut server);
    }
    assert!(readable(&mut server).is_empty());
    assert_eq!(server.blocks_available(), server.blocks());
    assert_eq!(server.connections().count(), 0);
}

#[test]
fn unconnected_messages_are_polled_separately() {
    let mut clients = [peer(client_config())];
    let (mut server, mut now) = (peer(server_config()), Instant::ZERO);
    assert_eq!(server.set_advertisement(b"a game"), Ok(()));
    clients[0].ping(now, address(SERVER)).unwrap();
    clients[0].connect(now, address(SERVER)).unwrap();
    exchange(&mut now, &mut clients, &mut server);
    assert!(matches!(clients[0].poll_unconnected(UnconnectedEvents::All), Some(Event::Pong { .. })));
    assert_eq!(clients[0].event_data().to_vec(), b"a game");
    assert!(clients[0].poll_unconnected(UnconnectedEvents::All).is_none());
    assert_eq!(readable(&mut clients[0]).len(), 1);
}
