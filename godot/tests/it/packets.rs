//! Tests of packets: targets, modes, channels, order, sizes, and messages that are not packets.

use rakwire_godot::{Error, Figure, Mode, Status, Transfer, Value};
use rakwire_native::rakwire::endpoint::Event;
use rakwire_native::{Delivery, Options, RakNet, polled};

use crate::support::{Game, text};

fn reliable(channel: i32) -> Transfer {
    Transfer::new(Mode::Reliable, channel).expect("a channel")
}

#[test]
fn a_packet_for_one_peer_reaches_only_that_peer() {
    let mut game = Game::new(2);
    let ids = [game.clients[0].id(), game.clients[1].id()];
    game.server.session.put(ids[0], reliable(0), b"first").expect("sent");
    game.server.session.put(ids[1], reliable(0), b"second").expect("sent");
    assert_eq!(game.packets_of(0, 1), [(1, b"first".to_vec())]);
    assert_eq!(game.packets_of(1, 1), [(1, b"second".to_vec())]);
}

#[test]
fn target_0_reaches_all_peers_and_a_negative_target_excludes_a_peer() {
    let mut game = Game::new(3);
    let excluded = game.clients[1].id();
    game.server.session.put(0, reliable(0), b"all").expect("sent");
    game.server.session.put(-excluded, reliable(0), b"others").expect("sent");
    game.server.session.put(0, reliable(0), b"end").expect("sent");
    let get = |words: &[&str]| words.iter().map(|word| (1, word.as_bytes().to_vec())).collect::<Vec<_>>();
    assert_eq!(game.packets_of(0, 3), get(&["all", "others", "end"]));
    assert_eq!(game.packets_of(1, 2), get(&["all", "end"]));
    assert_eq!(game.packets_of(2, 3), get(&["all", "others", "end"]));
}

#[test]
fn a_client_reaches_only_the_server() {
    let mut game = Game::new(2);
    let (id, other) = (game.clients[0].id(), game.clients[1].id());
    let client = &mut game.clients[0].session;
    client.put(1, reliable(0), b"to the server").expect("sent");
    client.put(0, reliable(0), b"to all").expect("sent");
    client.put(-other, reliable(0), b"to all but one").expect("sent");
    client.put(-1, reliable(0), b"to none").expect("a packet without a receiver is no error");
    assert!(matches!(client.put(other, reliable(0), b"to a client"), Err(Error::NoPeer(_))));
    client.put(1, reliable(0), b"end").expect("sent");
    let packets = game.packets_of_server(4);
    assert!(packets.iter().all(|packet| packet.from() == id));
    let payloads: Vec<&[u8]> = packets.iter().map(|packet| packet.payload()).collect();
    assert_eq!(payloads, [&b"to the server"[..], b"to all", b"to all but one", b"end"]);
    assert_eq!(game.clients[1].session.available(), 0);
}

#[test]
fn packets_for_unknown_peers_are_refused() {
    let mut game = Game::new(1);
    for target in [1, 2, i32::MAX] {
        let sent = game.server.session.put(target, reliable(0), b"x");
        assert!(matches!(sent, Err(Error::NoPeer(id)) if id == target), "{target}: {sent:?}");
    }
    // The negative id of a peer that does not exist excludes no peer.
    game.server.session.put(i32::MIN, reliable(0), b"x").expect("sent");
    assert_eq!(game.packets_of(0, 1), [(1, b"x".to_vec())]);
}

#[test]
fn packets_arrive_with_their_mode_and_channel() {
    let mut game = Game::new(1);
    for mode in [Mode::Unreliable, Mode::UnreliableOrdered, Mode::Reliable] {
        for channel in [0, 3, 15] {
            let transfer = Transfer::new(mode, channel).expect("a channel");
            game.clients[0].session.put(1, transfer, b"x").expect("sent");
            game.until("the packet arrives", |game| game.server.session.available() == 1);
            assert_eq!(game.server.session.front().expect("a packet").transfer(), transfer);
            assert_eq!(game.server.session.take().expect("a packet").transfer(), transfer);
        }
    }
}

#[test]
fn reliable_packets_arrive_in_order_through_losses() {
    let mut game = Game::with(1, &[("simulate", text("loss=20%,latency=2ms"))]);
    game.join(&[("simulate", text("loss=20%,latency=2ms"))]);
    game.until("the client is connected", |game| game.clients[0].session.status() == Status::Connected);
    for number in 0..200_u32 {
        game.clients[0].session.put(1, reliable(2), &number.to_be_bytes()).expect("sent");
    }
    let packets = game.packets_of_server(200);
    assert!(
        packets
            .iter()
            .map(|packet| packet.payload().to_vec())
            .eq((0..200_u32).map(|n| n.to_be_bytes().to_vec()))
    );
}

#[test]
fn ordered_unreliable_packets_never_arrive_out_of_order() {
    let mut game = Game::with(1, &[("simulate", text("loss=10%,latency=5ms,jitter=5ms"))]);
    game.join(&[("simulate", text("loss=10%,latency=5ms,jitter=5ms"))]);
    game.until("the client is connected", |game| game.clients[0].session.status() == Status::Connected);
    let ordered = Transfer::new(Mode::UnreliableOrdered, 1).expect("a channel");
    let mut seen = Vec::new();
    for number in 0..300_u32 {
        game.clients[0].session.put(1, ordered, &number.to_be_bytes()).expect("sent");
        let mut polls = 0;
        game.until("all sessions are polled", |_| {
            polls += 1;
            polls > 1
        });
        seen.extend(game.server.take_all().into_iter().map(|(_, payload)| payload));
    }
    game.clients[0].session.put(1, reliable(1), b"last").expect("sent");
    game.until("the last packet arrives", |game| {
        seen.extend(game.server.take_all().into_iter().map(|(_, payload)| payload));
        seen.contains(&b"last".to_vec())
    });
    seen.retain(|payload| payload != b"last");
    assert!(seen.len() > 30, "{} arrived", seen.len());
    assert!(seen.is_sorted(), "{seen:?}");
}

#[test]
fn large_packets_arrive_unchanged() {
    let mut game = Game::new(1);
    let payload: Vec<u8> = (0..1_000_000_u32).map(|n| n as u8).collect();
    game.server.session.put(0, reliable(0), &payload).expect("sent");
    assert!(game.packets_of(0, 1) == [(1, payload)], "the payload arrived changed");
}

#[test]
fn empty_and_oversized_packets_are_refused() {
    let mut game = Game::new(1);
    let session = &mut game.server.session;
    assert!(matches!(session.put(0, reliable(0), b""), Err(Error::Empty)));
    let most = session.max_packet_size();
    assert!(most >= 1_000_000, "{most}");
    let sent = session.put(0, reliable(0), &vec![0; most + 1]);
    assert!(
        matches!(sent, Err(Error::TooLong { length, most: limit }) if (length, limit) == (most + 1, most))
    );
    session.put(0, reliable(0), b"x").expect("sent");
    assert_eq!(game.packets_of(0, 1).len(), 1);
}

#[test]
fn packets_are_queued_while_the_send_memory_is_full() {
    let mut game = Game::new(1);
    let payload = vec![5; 300_000];
    for _ in 0..40 {
        game.server.session.put(0, reliable(0), &payload).expect("sent, or waiting");
    }
    let mut arrived = 0;
    game.until("all packets arrive", |game| {
        let packets = game.clients[0].take_all();
        assert!(packets.iter().all(|(_, received)| *received == payload));
        arrived += packets.len();
        arrived == 40
    });
}

#[test]
fn a_peer_that_exceeds_the_backlog_is_disconnected() {
    let mut game = Game::with(1, &[("backlog", Value::Whole(1_000_000))]);
    game.join(&[]);
    game.until("the client is connected", |game| game.clients[0].session.status() == Status::Connected);
    let id = game.clients[0].id();
    let payload = vec![5; 300_000];
    let mut sent = Ok(());
    for _ in 0..1_000 {
        sent = sent.and_then(|()| game.server.session.put(id, reliable(0), &payload));
    }
    assert!(matches!(sent, Err(Error::Backlog(slow)) if slow == id), "{sent:?}");
    // A packet for a peer that is being disconnected is not an error: the game has not received the notice yet.
    game.server.session.put(0, reliable(0), b"x").expect("the packet is dropped without an error");
    game.until("the server reports the disconnect", |game| {
        game.clients[0].take_all();
        game.server.left() == [id]
    });
    assert!(game.server.session.dropped().not_connected >= 1);
    assert!(game.server.session.end_reason().expect("a reason").contains("does not keep up"));
}

#[test]
fn a_client_keeps_the_first_reason_for_its_disconnect() {
    let mut game = Game::with(1, &[]);
    game.join(&[("backlog", Value::Whole(1_000))]);
    game.until("the client is connected", |game| game.clients[0].session.status() == Status::Connected);
    let payload = vec![5; 300_000];
    let mut sent = Ok(());
    for _ in 0..1_000 {
        sent = sent.and_then(|()| game.clients[0].session.put(1, reliable(0), &payload));
    }
    assert!(matches!(sent, Err(Error::Backlog(1))), "{sent:?}");
    let mut polls = 0;
    game.until("the client has been disconnected for 10 polls", |game| {
        game.server.take_all();
        polls += usize::from(game.clients[0].session.status() == Status::Disconnected);
        polls > 10
    });
    assert!(game.clients[0].session.end_reason().expect("a reason").contains("does not keep up"));
}

#[test]
fn unreliable_packets_dropped_at_a_full_queue_are_counted() {
    let mut game = Game::new(1);
    let unreliable = Transfer::new(Mode::Unreliable, 0).expect("a channel");
    for _ in 0..1_000 {
        game.server.session.put(0, unreliable, &[7; 300_000]).expect("sent or dropped");
    }
    assert!(game.server.session.dropped().unreliable > 0);
    let figures = game.server.session.figures(0).expect("the socket");
    let unreliable = game.server.session.dropped().unreliable;
    assert!(figures.contains(&("packets_without_room", Figure::Count(unreliable))));
}

#[test]
fn messages_in_another_format_are_counted_and_dropped() {
    let mut game = Game::with(1, &[]);
    let mut other =
        polled::Endpoint::<RakNet>::bind("127.0.0.1:0", Options::client().expect("entropy")).expect("a port");
    let connection = other.connect(game.server.session.local_addr()).expect("an attempt");
    let mut is_open = false;
    game.until("the plain client is connected", |game| {
        other.update();
        while let Some(event) = other.poll_event() {
            is_open |= matches!(event, Event::Connected { .. });
        }
        is_open && !game.server.joined().is_empty()
    });
    for message in [&b"\x1B"[..], b"\x86", b"\x96\x01\x00\x00\x00\x09", b"\xFFmessage"] {
        other.send(connection, message, Delivery::RELIABLE_ORDERED).expect("sent");
    }
    other.send(connection, b"\x86x", Delivery::RELIABLE_ORDERED).expect("sent");
    game.until("the packet arrives", |game| {
        other.update();
        game.server.session.available() == 1
    });
    assert_eq!(game.server.session.dropped().unknown, 4);
}
