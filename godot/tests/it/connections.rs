//! Tests of ids, refusals, closing, bans, pings and secure connections.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use rakwire_godot::{Error, Figure, Mode, Notice, Session, Status, Transfer, Value};
use rakwire_native::secure::StaticKey;
use rakwire_native::{Options, RakNet, polled};

use crate::support::{Game, client_settings, server_settings, text};

#[test]
fn each_client_gets_a_random_id_from_the_server() {
    let game = Game::new(3);
    let ids: BTreeSet<i32> = game.clients.iter().map(|client| client.id()).collect();
    assert_eq!(ids.len(), 3);
    assert!(ids.iter().all(|id| *id > 1), "{ids:?}");
    assert_eq!(game.server.joined().into_iter().collect::<BTreeSet<_>>(), ids);
    assert_eq!((game.server.id(), game.server.session.is_server()), (1, true));
    for client in &game.clients {
        assert_eq!(client.joined(), [1]);
        assert!(!client.session.is_server());
        assert_eq!(client.session.remote(1).expect("the server").port() as i64, game.port());
    }
}

#[test]
fn a_client_has_no_id_until_the_server_assigns_it() {
    let mut game = Game::with(1, &[]);
    game.join(&[]);
    let client = &mut game.clients[0].session;
    assert_eq!((client.status(), client.unique_id(), client.available()), (Status::Connecting, 0, 0));
    assert!(matches!(client.put(1, Transfer::default(), b"early"), Err(Error::NotConnected)));
}

#[test]
fn refusing_new_clients_keeps_existing_clients_connected() {
    let mut game = Game::new(1);
    game.server.session.set_refusing(true);
    game.join(&[]);
    let reason = game.end_of(1);
    assert!(reason.contains("full") || reason.contains("no free"), "{reason}");
    assert_eq!(game.clients[0].session.status(), Status::Connected);
    game.server.session.set_refusing(false);
    game.join(&[]);
    game.until("the third client is connected", |game| game.clients[2].session.status() == Status::Connected);
}

#[test]
fn a_full_server_refuses_another_client() {
    let mut game = Game::with(1, &[]);
    game.join(&[]);
    game.until("the first client is connected", |game| game.clients[0].session.status() == Status::Connected);
    game.join(&[]);
    game.end_of(1);
    assert_eq!(game.server.joined(), [game.clients[0].id()]);
}

#[test]
fn a_client_with_a_wrong_password_is_refused_and_may_join_with_the_right_password() {
    let mut game = Game::with(2, &[("password", text("snow"))]);
    game.join(&[("password", text("rain"))]);
    assert!(game.end_of(0).contains("password"));
    game.join(&[("password", text("snow"))]);
    game.until("the second client is connected", |game| {
        game.clients[1].session.status() == Status::Connected
    });
}

#[test]
fn the_server_is_notified_when_a_client_leaves() {
    let mut game = Game::new(2);
    let id = game.clients[0].id();
    drop(game.clients.remove(0));
    game.until("the server reports the disconnect", |game| !game.server.left().is_empty());
    assert_eq!(game.server.left(), [id]);
    assert!(
        matches!(game.server.session.put(id, Transfer::default(), b"late"), Err(Error::NoPeer(gone)) if gone == id)
    );
}

#[test]
fn clients_of_a_server_that_closes_are_disconnected() {
    let mut game = Game::new(1);
    let Game { server, mut clients } = game;
    drop(server);
    game = Game::with(1, &[]);
    game.clients.append(&mut clients);
    assert!(!game.end_of(0).is_empty());
    assert_eq!(game.clients[0].left(), [1]);
}

#[test]
fn a_disconnect_is_reported_after_all_packets_of_the_peer_were_read() {
    let mut game = Game::new(1);
    let id = game.clients[0].id();
    game.clients[0].session.put(1, Transfer::default(), b"goodbye").expect("sent");
    game.clients[0].session.disconnect(1, false).expect("the server");
    let begin = Instant::now();
    game.until("the client is disconnected and 300 ms have passed", |game| {
        game.clients[0].session.status() == Status::Disconnected
            && begin.elapsed() > Duration::from_millis(300)
    });
    assert!(game.server.left().is_empty());
    assert_eq!(game.server.take_all(), [(id, b"goodbye".to_vec())]);
    game.until("the server reports the disconnect", |game| !game.server.left().is_empty());
    assert_eq!((game.server.left(), game.clients[0].left()), (vec![id], vec![1]));
}

#[test]
fn packets_of_a_peer_that_is_being_disconnected_are_dropped_and_counted() {
    let mut game = Game::new(1);
    let id = game.clients[0].id();
    // These packets exceed the send memory. While they are queued, the connection stays open.
    for _ in 0..40 {
        game.server.session.put(id, Transfer::default(), &[5; 300_000]).expect("sent, or waiting");
    }
    game.clients[0].session.put(1, Transfer::default(), b"before").expect("sent");
    game.until("the server has received the packet", |game| game.server.session.available() == 1);
    game.server.session.disconnect(id, false).expect("a peer");
    game.clients[0].session.put(1, Transfer::default(), b"after").expect("sent");
    game.until("the server has dropped the second packet", |game| {
        game.clients[0].take_all();
        game.server.session.dropped().leaving == 1
    });
    assert_eq!(game.server.take_all(), [(id, b"before".to_vec())]);
    let figures = game.server.session.figures(0).expect("the socket");
    assert!(figures.contains(&("packets_from_leaving_peers", Figure::Count(1))));
    game.until("the peer has left", |game| {
        game.clients[0].take_all();
        game.server.left() == [id]
    });
}

#[test]
fn a_peer_disconnected_with_force_is_removed_without_a_notice() {
    let mut game = Game::new(2);
    let (first, second) = (game.clients[0].id(), game.clients[1].id());
    game.clients[0].session.put(1, Transfer::default(), b"unread").expect("sent");
    game.until("the server has received the packet", |game| game.server.session.available() == 1);
    game.server.session.disconnect(first, true).expect("a peer");
    assert_eq!(game.server.session.available(), 0);
    assert!(matches!(game.server.session.disconnect(first, true), Err(Error::NoPeer(_))));
    game.end_of(0);
    game.server.session.disconnect(second, false).expect("a peer");
    game.end_of(1);
    game.until("the server reports the disconnect of the second client", |game| {
        !game.server.left().is_empty()
    });
    assert_eq!(game.server.left(), [second]);
}

#[test]
fn a_client_that_disconnects_with_force_is_closed_immediately() {
    let mut game = Game::new(1);
    game.clients[0].session.disconnect(1, true).expect("the server");
    assert_eq!(game.clients[0].session.status(), Status::Disconnected);
    game.until("the server reports the disconnect", |game| !game.server.left().is_empty());
    assert!(game.clients[0].left().is_empty());
}

#[test]
fn a_client_disconnects_from_a_server_that_is_not_a_rakwire_peer() {
    let other = polled::Endpoint::<RakNet>::bind("127.0.0.1:0", Options::server(1).expect("entropy"));
    let mut other = other.expect("a port");
    let mut game = Game::with(1, &[]);
    let session = Session::client("127.0.0.1", other.local_addr().port().into(), client_settings(&[]));
    let mut session = session.expect("an attempt");
    game.until("the client disconnects", |_| {
        other.update();
        while other.poll_event().is_some() {}
        assert!(session.poll().is_empty());
        session.status() == Status::Disconnected
    });
    // The connection then closes with another reason, which must not replace the first.
    let mut polls = 0;
    game.until("the connection is closed", |_| {
        other.update();
        while other.poll_event().is_some() {}
        assert!(session.poll().is_empty());
        polls += 1;
        polls >= 10 && other.connections() == 0
    });
    assert!(session.end_reason().expect("a reason").contains("not a RakwirePeer"));
}

#[test]
fn connecting_to_a_closed_port_fails() {
    let mut game = Game::with(1, &[]);
    let free = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let mut session = Session::client("127.0.0.1", port.into(), client_settings(&[])).expect("an attempt");
    game.until("the attempt fails", |_| {
        session.poll();
        session.status() == Status::Disconnected
    });
    assert!(session.end_reason().is_some());
}

#[test]
fn the_addresses_of_a_name_are_tried_until_one_answers() {
    let mut game = Game::with(1, &[]);
    // With IPv6 the name also has the address ::1, on which no server listens.
    let session = Session::client("localhost", game.port(), client_settings(&[])).expect("an attempt");
    let mut session = session;
    game.until("the client is connected", |_| {
        session.poll();
        session.status() == Status::Connected
    });
}

#[test]
fn banned_addresses_are_refused_until_the_ban_is_removed() {
    let mut game = Game::with(2, &[]);
    game.server.session.ban("127.0.0.*", 0.0).expect("a ban");
    assert!(game.server.session.is_banned("127.0.0.1").expect("an address"));
    game.join(&[]);
    assert!(game.end_of(0).contains("ban"));
    assert!(game.server.session.unban("127.0.0.*").expect("a pattern"));
    assert!(!game.server.session.unban("127.0.0.*").expect("a pattern"));
    game.join(&[]);
    game.until("the client is connected", |game| game.clients[1].session.status() == Status::Connected);
    assert!(matches!(game.server.session.ban("nonsense", 0.0), Err(Error::Addresses(_))));
    assert!(matches!(game.clients[1].session.ban("192.0.2.1", 0.0), Err(Error::NotServer)));
}

#[test]
fn invalid_ban_durations_are_refused_and_bans_expire() {
    let mut game = Game::with(1, &[]);
    let server = &mut game.server.session;
    for seconds in [-1.0, -0.001, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let ban = server.ban("192.0.2.7", seconds);
        assert!(matches!(ban, Err(Error::BanTime(_))), "{seconds}: {ban:?}");
    }
    assert!(!server.is_banned("192.0.2.7").expect("an address"));
    server.ban("192.0.2.7", 0.000_001).expect("a ban that expires immediately");
    server.ban("192.0.2.8", 3_600.0).expect("a ban");
    game.until("the first ban has expired", |game| {
        !game.server.session.is_banned("192.0.2.7").expect("an address")
    });
    assert!(game.server.session.is_banned("192.0.2.8").expect("an address"));
}

#[test]
fn an_unconnected_ping_returns_the_advertisement() {
    let mut game = Game::with(1, &[("advertisement", text("first"))]);
    game.server.session.set_advertisement(b"snowfight;3;8").expect("a server");
    assert!(game.server.session.set_advertisement(&[0; 400]).is_err());
    let mut pinger = Session::pinger().expect("a socket");
    let mut pong = None;
    pinger.ping("127.0.0.1", game.port()).expect("a ping");
    game.until("the server answers", |_| {
        pong = pong.take().or_else(|| pinger.poll().pop());
        pong.is_some()
    });
    let Some(Notice::Pong { from, advertisement, .. }) = pong else { panic!("{pong:?}") };
    assert_eq!((i64::from(from.port()), &advertisement[..]), (game.port(), &b"snowfight;3;8"[..]));
    assert_eq!(pinger.status(), Status::Disconnected);
    assert!(matches!(pinger.put(0, Transfer::default(), b"x"), Err(Error::NotConnected)));
}

#[test]
fn servers_of_the_local_network_are_discovered() {
    let settings = {
        let mut settings = server_settings(&[("advertisement", text("here"))]);
        settings.set("bind_address", &text("0.0.0.0")).expect("an address");
        settings
    };
    let mut server = Session::server(0, 1, settings).expect("a server");
    let mut game = Game::with(1, &[]);
    let mut pinger = Session::pinger().expect("a socket");
    let to = SocketAddr::from((Ipv4Addr::new(127, 255, 255, 255), server.local_addr().port()));
    pinger.discover_at(to).expect("a ping");
    let mut found = Vec::new();
    game.until("the server is discovered", |_| {
        server.poll();
        found.extend(pinger.poll());
        !found.is_empty()
    });
    let Some(Notice::Pong { advertisement, .. }) = found.pop() else { panic!("no pong") };
    assert_eq!(advertisement, b"here");
}

#[test]
fn a_secure_server_accepts_only_clients_that_have_its_key() {
    let key = [7; 32];
    let public = StaticKey::from_bytes(key).public().0.to_vec();
    let mut game = Game::with(3, &[("key", Value::Bytes(key.to_vec()))]);
    let identity = StaticKey::from_bytes([9; 32]);
    game.join(&[("server_key", Value::Bytes(public.clone())), ("identity_key", Value::Bytes(vec![9; 32]))]);
    game.until("the first client is connected", |game| {
        game.clients[0].session.status() == Status::Connected && !game.server.joined().is_empty()
    });
    let seen =
        game.server.session.identity(game.clients[0].id()).expect("a peer").expect("a secure connection");
    assert_eq!((seen.key, seen.user_id), (Some(identity.public().0), None));
    let server = game.clients[0].session.identity(1).expect("the server").expect("a secure connection");
    assert_eq!(server.key.map(Vec::from), Some(public));
    game.join(&[("server_key", Value::Bytes(vec![1; 32]))]);
    game.end_of(1);
    game.join(&[]);
    game.end_of(2);
    assert_eq!(game.server.joined().len(), 1);
}

#[test]
fn conflicting_security_options_prevent_opening_a_session() {
    let key = || Value::Bytes(vec![1; 32]);
    let trusts = client_settings(&[("server_key", key()), ("trust_any_key", Value::Flag(true))]);
    assert!(matches!(Session::client("127.0.0.1", 1, trusts), Err(Error::Option { .. })));
    let tokens = server_settings(&[("key", key()), ("token_key", key()), ("password", text("snow"))]);
    assert!(matches!(Session::server(0, 1, tokens), Err(Error::Option { .. })));
    let requires = server_settings(&[("require_security", Value::Flag(true))]);
    assert!(matches!(Session::server(0, 1, requires), Err(Error::Option { .. })));
}

#[test]
fn an_unencrypted_connection_has_no_identity() {
    let game = Game::new(1);
    assert_eq!(game.server.session.identity(game.clients[0].id()).expect("a peer"), None);
    assert!(matches!(game.server.session.identity(77), Err(Error::NoPeer(77))));
}

#[test]
fn invalid_ports_and_numbers_of_clients_are_refused() {
    for port in [-1, 65_536, i64::MAX] {
        assert!(
            matches!(Session::server(port, 1, server_settings(&[])), Err(Error::Port(wrong)) if wrong == port)
        );
        assert!(matches!(Session::client("127.0.0.1", port, client_settings(&[])), Err(Error::Port(_))));
    }
    for clients in [0, -1, 65_535] {
        assert!(matches!(Session::server(0, clients, server_settings(&[])), Err(Error::MaxClients(_))));
    }
    assert!(matches!(Session::client("not a name", 1, client_settings(&[])), Err(Error::Resolve { .. })));
    let game = Game::with(1, &[]);
    assert!(matches!(Session::server(game.port(), 1, server_settings(&[])), Err(Error::Bind(_))));
}

#[test]
fn statistics_count_the_messages_of_a_connection() {
    let mut game = Game::new(1);
    let id = game.clients[0].id();
    let reliable = Transfer::new(Mode::Reliable, 0).expect("a channel");
    game.clients[0].session.put(1, reliable, b"counted").expect("sent");
    game.packets_of_server(1);
    let count =
        |figures: Vec<(&str, Figure)>, name: &str| match figures.iter().find(|(found, _)| *found == name) {
            Some((_, Figure::Count(count))) => *count,
            other => panic!("{other:?}"),
        };
    let session = &game.server.session;
    assert!(count(session.figures(id).expect("a peer"), "messages_received") >= 1);
    assert_eq!(count(session.figures(0).expect("the socket"), "connections"), 1);
    assert!(matches!(session.figures(5), Err(Error::NoPeer(5))));
}
