//! Connections that close during the handshake.
//!
//! The client reports the failed attempt with its reason. The server reports nothing, even if it has already received
//! messages from the client.

use core::net::SocketAddr;
use core::time::Duration;

use rakwire::Instant;
use rakwire::raknet::{ConnectFailure, ConnectionId, Event, Guid, Peer, Reliability};
use rakwire::wire::address::AddressList;
use rakwire::wire::control::Control;
use rakwire::wire::datagram::{CapsuleHeader, Split};
use rakwire::wire::offline::{ClientSecurity, Offline, ServerSecurity};
use rakwire::wire::{Reader, Wire};

use crate::support::forged::{answers, capsule, data, request_2, written};
use crate::support::raknet::{client_config, peer, server_config};

const NOW: Instant = Instant::from_micros(1_000_000);
const OTHER: ([u8; 4], u16) = ([203, 0, 113, 5], 4_000);
const GUID: Guid = Guid(5);
const EARLY: &[u8] = b"\x86early";

/// Delivers a reliable message; its message number equals its datagram number.
fn deliver(peer: &mut Peer<'_>, number: u32, payload: &[u8]) {
    peer.handle_datagram(
        NOW,
        OTHER.into(),
        &data(number, capsule(Reliability::Reliable, number, 0), payload),
    );
}

/// Delivers the first part of a message of nine parts.
fn deliver_part(peer: &mut Peer<'_>, number: u32) {
    let split = Some(Split { count: 9, id: 0, index: 0 });
    let header = CapsuleHeader { split, ..capsule(Reliability::Reliable, number, 0) };
    peer.handle_datagram(NOW, OTHER.into(), &data(number, header, EARLY));
}

/// Returns a server that received a connection request (datagram 0) but not the client's confirmation.
fn awaiting_server() -> Peer<'static> {
    let mut config = server_config();
    config.progress_interval = 1;
    let mut server = peer(config);
    server.handle_datagram(NOW, OTHER.into(), &written(&Offline::Request1 { protocol: 6, mtu: 1_492 }));
    let (_, reply) = answers(&mut server, NOW).pop().expect("reply 1");
    let cookie = match Offline::read(&mut Reader::new(&reply)) {
        Ok(Offline::Reply1 { security: ServerSecurity::Cookie(cookie), .. }) => cookie,
        other => panic!("{other:?}"),
    };
    server.handle_datagram(NOW, OTHER.into(), &request_2(ClientSecurity::Cookie(cookie), GUID.0));
    let request = Control::Request { guid: GUID, time: 0, proof: None, password: b"" };
    deliver(&mut server, 0, &written(&request));
    assert!(server.connection_of(GUID).is_some());
    answers(&mut server, NOW);
    server
}

/// Returns a client with an unanswered connection request.
fn requesting_client() -> (Peer<'static>, ConnectionId) {
    let mut config = client_config();
    config.progress_interval = 1;
    let mut client = peer(config);
    let id = client.connect(NOW, OTHER.into()).expect("a free slot");
    let reply_1 = Offline::Reply1 { guid: GUID, security: ServerSecurity::None, mtu: 1_492 };
    let own = SocketAddr::from(([192, 0, 2, 1], 1));
    let reply_2 = Offline::Reply2 { guid: GUID, client: own, mtu: 1_492, answer: None };
    for reply in [reply_1, reply_2] {
        assert!(!answers(&mut client, NOW).is_empty());
        client.handle_datagram(NOW, OTHER.into(), &written(&reply));
    }
    (client, id)
}

/// Runs a peer until its connection no longer exists.
fn close_all(peer: &mut Peer<'_>) {
    let mut now = NOW;
    while peer.connections().next().is_some() {
        now = now + Duration::from_secs(1);
        assert!(now < NOW + Duration::from_secs(60), "the connection must close within 60 s");
        peer.handle_timeout(now);
        answers(peer, now);
        assert!(peer.poll_event().is_none());
    }
    assert_eq!(peer.blocks_available(), peer.blocks());
}

#[test]
fn a_server_is_not_notified_of_a_connection_that_never_opened() {
    let mut server = awaiting_server();
    deliver(&mut server, 1, EARLY);
    deliver_part(&mut server, 2);
    assert!(server.poll_event().is_none(), "nothing may be reported before the connection is open");
    deliver(&mut server, 3, &written(&Control::Disconnect));
    assert!(server.poll_event().is_none(), "a connection that never opened must not be reported");
    close_all(&mut server);
}

#[test]
fn a_server_is_not_notified_of_a_client_that_vanishes_during_the_handshake() {
    let mut server = awaiting_server();
    deliver(&mut server, 1, EARLY);
    deliver_part(&mut server, 2);
    close_all(&mut server);
}

#[test]
fn a_client_is_notified_only_of_the_connect_failure() {
    let (mut client, id) = requesting_client();
    deliver(&mut client, 0, EARLY);
    deliver_part(&mut client, 1);
    assert!(client.poll_event().is_none(), "nothing may be reported before the connection is open");
    deliver(&mut client, 2, &written(&Control::Disconnect));
    match client.poll_event() {
        Some(Event::ConnectFailed { id: failed, reason, .. }) => {
            assert_eq!((failed, reason), (id, ConnectFailure::Closed));
        }
        other => panic!("{other:?}"),
    }
    close_all(&mut client);
}

#[test]
fn messages_received_early_are_reported_after_the_connection_opens() {
    let mut server = awaiting_server();
    deliver(&mut server, 1, EARLY);
    deliver_part(&mut server, 2);
    assert!(server.poll_event().is_none());
    let addresses = AddressList::unassigned(10);
    let open = Control::NewIncoming { server: OTHER.into(), addresses, accepted_time: 0, time: 0 };
    deliver(&mut server, 3, &written(&open));
    assert!(matches!(server.poll_event(), Some(Event::Connected { .. })));
    assert!(matches!(server.poll_event(), Some(Event::Progress { .. })));
    match server.poll_event() {
        Some(Event::Message { message, .. }) => assert_eq!(message.to_vec(), EARLY),
        other => panic!("{other:?}"),
    }
}
