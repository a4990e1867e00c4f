//! Connections between two peers of the Game Protocol, and the effects of single packets.

use core::net::SocketAddr;
use core::time::Duration;

use rakwire::game_protocol::{Config, Peer};
use rakwire::game_protocol::{
    ConnectError, ConnectFailure, ConnectionState, DisconnectReason, DropReason, Redial, Reliability,
    ResendInterval, Resources, SendError, Side,
};
use rakwire::sim::Conditions;

use Reliability::{Reliable, Unreliable};

use crate::support::game_protocol::*;

fn latency(millis: u64) -> Conditions {
    Conditions { latency: Duration::from_millis(millis), ..Conditions::default() }
}

#[test]
fn messages_arrive_in_both_directions_with_their_reliability() {
    let mut net = Net::new(latency(10), 1);
    let (here, there) = net.connect();
    assert_eq!(net.pair.a.connection(here).expect("an open connection").side, Side::Client);
    assert_eq!(net.pair.b.connection(there).expect("an open connection").side, Side::Server);
    let now = net.now();
    net.pair.a.send(now, here, b"yes", Reliable).expect("an open connection");
    net.pair.b.send(now, there, b"maybe", Unreliable).expect("an open connection");
    net.run_for(Duration::from_secs(1));
    assert_eq!(net.server, [OwnedEvent::Message(there, Reliable, b"yes".to_vec())]);
    assert_eq!(net.client, [OwnedEvent::Message(here, Unreliable, b"maybe".to_vec())]);
    assert_eq!(net.pair.a.connection_stats(here).expect("an open connection").chunks_acknowledged, 1);
    assert_eq!(net.pair.b.connection_stats(there).expect("an open connection").in_flight, 0);
}

#[test]
fn a_session_has_the_wire_format_of_the_original_implementation() {
    let (mut client, mut server) = (peer(Config::new([1; 32])), peer(server_config()));
    let id = client.connect(START, SERVER.into()).expect("a free slot");
    let salt = packets(&mut client, START).concat();
    server.handle_datagram(START, CLIENT.into(), &salt);
    let pepper = packets(&mut server, START).concat();
    client.handle_datagram(START, SERVER.into(), &pepper);
    client.send(START, id, &[0x08, 0x00], Reliable).expect("an open connection");
    let sent = packets(&mut client, START);
    let seasoning: Vec<u8> = salt.iter().zip(&pepper).map(|(salt, pepper)| salt ^ pepper).collect();
    assert_eq!(sent, [seasoning, vec![5, 0, 0, 0, 8, 0]]);
    for packet in sent {
        server.handle_datagram(START, CLIENT.into(), &packet);
    }
    assert_eq!(packets(&mut server, START), [[6, 0, 0, 0]]);
    client.handle_datagram(START, SERVER.into(), &[6, 0, 0, 0]);
    client.disconnect(START, id);
    assert_eq!(packets(&mut client, START), [[0x0C, 0, 0, 0]]);
}

/// An application that cannot wait, such as a web page that is closed, calls `handle_timeout` with a time after all
/// deadlines directly after `disconnect`.
#[test]
fn an_immediate_disconnect_notifies_the_peer_despite_unacknowledged_messages() {
    for silence in [0, 10_000] {
        let mut net = Net::new(latency(10), 1);
        let (here, there) = net.connect();
        net.pair.set_conditions(Conditions { loss: 1.0, ..Conditions::default() });
        net.pair.a.send(net.pair.now, here, b"unacknowledged", Reliable).expect("an open connection");
        net.run_for(Duration::from_millis(silence));
        net.pair.set_conditions(latency(10));
        let now = net.pair.now;
        net.pair.a.disconnect(now, here);
        net.pair.a.handle_timeout(now + Duration::from_secs(6));
        net.pair.transmit();
        net.run_for(Duration::from_secs(1));
        assert_eq!(net.client, [OwnedEvent::Disconnected(here, DisconnectReason::Local)]);
        assert_eq!(net.server.last(), Some(&OwnedEvent::Disconnected(there, DisconnectReason::Remote)));
    }
}

#[test]
fn invalid_sends_are_refused_with_a_reason() {
    let (mut server, id) = server_with_client();
    assert_eq!(server.send(START, id, &[], Reliable), Err(SendError::Empty));
    assert_eq!(server.send(START, id, &payload(129_025), Reliable), Err(SendError::TooLong));
    assert!(SendError::TooLong.to_string().contains("129,024"));
    assert_eq!(server.can_send(id, 129_025, Reliable), Err(SendError::TooLong));
    assert_eq!(server.can_send(id, 0, Reliable), Err(SendError::Empty));
    assert_eq!(server.can_send(id, 129_024, Reliable), Ok(()));
    server.send(START, id, &payload(129_024), Reliable).expect("256 chunks");
    let sent = packets(&mut server, START);
    assert_eq!((sent.len(), sent[255][0], sent[255][1], sent[255].len()), (256, 5, 255, 508));
    server.disconnect(START, id);
    assert_eq!(server.send(START, id, b"x", Reliable), Err(SendError::NotConnected));
    assert_eq!(server.can_send(id, 1, Reliable), Err(SendError::NotConnected));
}

#[test]
fn sends_fail_until_acknowledgements_free_memory() {
    let mut resources = Resources::<2, 32, 512>::new();
    let mut server = Peer::new(&mut resources, server_config());
    let id = enter(&mut server, START, CLIENT.into(), 7);
    let other = enter(&mut server, START, UNKNOWN_SOURCE.into(), 8);
    // 10 chunks and a record fit into 11 blocks: the 4 guaranteed ones and half of the 16 shared ones, minus one that
    // the receiving peer may need for the window of numbers.
    assert_eq!(server.max_message_len(id), Some(504 * 10));
    assert_eq!(server.send(START, id, &payload(504 * 10 + 1), Reliable), Err(SendError::NeverFits));
    server.send(START, id, &payload(504 * 10), Reliable).expect("the longest possible message");
    server.send(START, id, b"x", Unreliable).expect("one more free block");
    assert_eq!(server.send(START, id, b"x", Unreliable), Err(SendError::QuotaExceeded));
    assert_eq!(server.can_send(id, 1, Unreliable), Err(SendError::QuotaExceeded));
    server.send(START, other, &payload(504 * 7), Reliable).expect("a message that fits the free blocks");
    assert_eq!(server.send(START, other, b"x", Reliable), Err(SendError::QuotaExceeded));
    assert_eq!(server.send(START, other, &payload(504 * 5), Reliable), Err(SendError::PoolExhausted));
    assert_eq!(server.can_send(other, 1, Reliable), Err(SendError::QuotaExceeded));
    assert_eq!(server.can_send(other, 504 * 5, Reliable), Err(SendError::PoolExhausted));
    assert_eq!(server.can_send(other, 504 * 16, Reliable), Err(SendError::NeverFits));
    output(&mut server, START);
    for chunk in 0..4 {
        server.handle_datagram(START, CLIENT.into(), &packet(6, chunk, 0, &[]));
    }
    assert_eq!(server.can_send(other, 1, Reliable), Ok(()));
    server.send(START, other, b"x", Reliable).expect("acknowledgements free blocks");
}

#[test]
fn a_chunk_is_resent_every_100_ms_until_acknowledged() {
    let (mut server, id) = server_with_client();
    server.send(START, id, &payload(1_000), Reliable).expect("an open connection");
    assert_eq!(output(&mut server, START).len(), 2);
    server.handle_datagram(at(30), CLIENT.into(), &packet(2, 0, 0, &[]));
    for tick in 1..=20 {
        server.handle_timeout(at(tick * 100 - 1));
        assert_eq!(packets(&mut server, at(tick * 100 - 1)), [[0; 0]; 0]);
        assert_eq!(server.poll_timeout(), Some(at(tick * 100)));
        server.handle_timeout(at(tick * 100));
        let sent = packets(&mut server, at(tick * 100));
        assert_eq!(sent, [packet(5, 1, 0, &payload(1_000)[504..])]);
    }
    server.handle_datagram(at(2_050), CLIENT.into(), &packet(6, 1, 0, b"extra bytes"));
    assert_eq!(packets(&mut server, at(2_500)), [[0; 0]; 0]);
    assert_eq!(server.connection_stats(id).expect("an open connection").chunks_resent, 20);
    assert_eq!(server.blocks_available(), server.blocks());
}

#[test]
fn resends_back_off_without_acknowledgements_and_recover() {
    let (mut server, id) = server_with_client();
    for _ in 0..1_000 {
        server.send(START, id, &payload(400), Reliable).expect("free memory");
    }
    assert_eq!(output(&mut server, START).len(), 1_000);
    let resent_at = |server: &mut Peer<'_>, time| {
        server.handle_timeout(time);
        packets(server, time).len()
    };
    let rounds: Vec<usize> = (1..=20).map(|tick| resent_at(&mut server, at(tick * 100))).collect();
    assert_eq!(rounds[..3], [1_000, 500, 250]);
    assert!(rounds[10..].iter().all(|resent| *resent == 16), "{rounds:?}");
    for acknowledged in 0..10 {
        server.handle_datagram(at(2_010), CLIENT.into(), &packet(6, 0, acknowledged, &[]));
    }
    assert_eq!(resent_at(&mut server, at(2_010)), 20);
}

#[test]
fn a_measured_resend_interval_follows_the_rtt() {
    let resent_after = |resend, millis: u64| {
        let mut config = server_config();
        config.resend_interval = resend;
        let mut net = Net::with(peer(client_config()), peer(config), latency(millis / 2), 1);
        let (_, there) = net.connect();
        for _ in 0..50 {
            let now = net.now();
            net.pair.b.send(now, there, b"sample", Reliable).expect("an open connection");
            net.run_for(Duration::from_millis(400));
        }
        let now = net.now();
        assert_eq!(net.pair.b.connection_stats(there).expect("an open connection").chunks_resent, 0);
        net.pair.b.send(now, there, b"lost", Reliable).expect("an open connection");
        output(&mut net.pair.b, now);
        let timeout = net.pair.b.poll_timeout().expect("a resend is due");
        timeout.saturating_since(now)
    };
    let patient = resent_after(ResendInterval::default(), 60);
    assert_eq!(patient, Duration::from_millis(100));
    let measured = resent_after(ResendInterval::MEASURED, 60);
    assert!((60..75).contains(&measured.as_millis()), "{measured:?}");
}

#[test]
fn unreliable_messages_pass_while_a_reliable_message_is_resent() {
    let (mut server, id) = server_with_client();
    server.send(START, id, b"stuck", Reliable).expect("an open connection");
    for tick in 0..60_u64 {
        server.send(at(tick * 16), id, b"snapshot", Unreliable).expect("an open connection");
        server.handle_timeout(at(tick * 16));
        let sent = packets(&mut server, at(tick * 16));
        assert_eq!(sent.iter().filter(|packet| packet.ends_with(b"snapshot")).count(), 1);
    }
    assert_eq!(server.connection_stats(id).expect("an open connection").chunks_resent, 8);
}

#[test]
fn reliable_packets_are_acknowledged_immediately_and_delivered_once() {
    let (mut server, id) = server_with_client();
    let hello = packet(5, 0, 3, b"hello");
    assert_eq!(feed(&mut server, &hello), [[6, 0, 0, 3]]);
    assert_eq!(feed(&mut server, &hello), [[6, 0, 0, 3]]);
    assert_eq!(take_events(&mut server), [OwnedEvent::Message(id, Reliable, b"hello".to_vec())]);
    assert_eq!(feed(&mut server, &packet(4, 0, 4, b"once")), [[0; 0]; 0]);
    assert_eq!(feed(&mut server, &packet(4, 0, 4, b"once")), [[0; 0]; 0]);
    assert_eq!(take_events(&mut server), [OwnedEvent::Message(id, Unreliable, b"once".to_vec())]);
    assert_eq!(dropped(&server, DropReason::Duplicate), 2);
}

#[test]
fn reserved_bits_and_bodies_of_acknowledgements_are_ignored() {
    let (mut server, id) = server_with_client();
    assert_eq!(feed(&mut server, &packet(0xF5, 0, 6, b"GG")), [[6, 0, 0, 6]]);
    assert_eq!(messages(&take_events(&mut server)), [b"GG"]);
    server.send(START, id, b"x", Reliable).expect("an open connection");
    output(&mut server, START);
    assert_eq!(feed(&mut server, &packet(0xF2, 0, 0, b"body")), [[0; 0]; 0]);
    assert_eq!(take_events(&mut server), []);
    assert_eq!(server.connection_stats(id).expect("an open connection").in_flight, 0);
}

#[test]
fn the_last_chunk_may_arrive_first_and_may_be_empty() {
    let (mut server, id) = server_with_client();
    let long = payload(1_200);
    for (chunk, body) in [(2, &long[1_008..]), (0, &long[..504]), (1, &long[504..1_008])] {
        feed(&mut server, &packet(if chunk == 2 { 5 } else { 1 }, chunk, 0, body));
    }
    assert_eq!(messages(&take_events(&mut server)), [&long[..]]);
    assert_eq!(feed(&mut server, &packet(5, 0, 1, &[])), [[6, 0, 0, 1]]);
    assert_eq!(take_events(&mut server), [OwnedEvent::Message(id, Reliable, vec![])]);
    feed(&mut server, &packet(1, 0, 2, &long[..504]));
    feed(&mut server, &packet(5, 1, 2, &[]));
    assert_eq!(messages(&take_events(&mut server)), [&long[..504]]);
    assert_eq!(server.blocks_available(), server.blocks());
}

#[test]
fn invalid_chunks_are_acknowledged_and_dropped() {
    let (mut server, _) = server_with_client();
    let full = [1; 504];
    let bad = [
        packet(1, 0, 0, &full[..503]),
        packet(5, 0, 0, &[1; 505]),
        packet(1, 255, 0, &full),
        packet(1, 0, 0, &[]),
    ];
    for (count, bad) in (1..).zip(&bad) {
        assert_eq!(feed(&mut server, bad), [packet(6, bad[1], 0, &[])]);
        assert_eq!(dropped(&server, DropReason::BadChunk), count);
    }
    // The first chunk to arrive declares seven chunks; later chunks contradict it.
    feed(&mut server, &packet(5, 6, 1, b"end"));
    for contradiction in
        [packet(5, 5, 1, b"end"), packet(1, 7, 1, &full), packet(5, 0, 1, b"x"), packet(1, 6, 1, &full)]
    {
        assert_eq!(feed(&mut server, &contradiction), [packet(6, contradiction[1], 1, &[])]);
    }
    // A chunk that is not the last one, followed by a last chunk with a lower number.
    feed(&mut server, &packet(1, 9, 2, &full));
    feed(&mut server, &packet(5, 8, 2, b"end"));
    assert_eq!(dropped(&server, DropReason::BadChunk), 9);
    assert_eq!(take_events(&mut server), []);
    feed(&mut server, &packet(5, 0, 3, b"still here"));
    assert_eq!(messages(&take_events(&mut server)), [b"still here"]);
}

#[test]
fn an_incomplete_payload_is_dropped_when_it_leaves_the_window() {
    for start in [0_u16, 65_000] {
        let (mut server, _) = server_with_client();
        let sequence = |step: u16| start.wrapping_add(step);
        feed(&mut server, &packet(0, 0, sequence(0), &[1; 504]));
        feed(&mut server, &packet(4, 0, sequence(1_023), b"in time"));
        feed(&mut server, &packet(4, 1, sequence(0), b"end"));
        assert_eq!(messages(&take_events(&mut server)).len(), 2);
        feed(&mut server, &packet(0, 0, sequence(1_024), &[1; 504]));
        feed(&mut server, &packet(4, 0, sequence(2_048), b"passes it"));
        assert_eq!(dropped(&server, DropReason::Incomplete), 1);
        feed(&mut server, &packet(4, 1, sequence(1_024), b"end"));
        assert_eq!(messages(&take_events(&mut server)), [b"passes it"]);
        assert_eq!(dropped(&server, DropReason::OutsideWindow), 1);
        assert_eq!(server.blocks_available(), server.blocks());
    }
}

#[test]
fn sequences_are_distinguished_across_wraparound() {
    for start in [0_u16, 64_900, 65_535] {
        let (mut server, _) = server_with_client();
        for step in 0..3_000_u16 {
            let number = packet(5, 0, start.wrapping_add(step), &step.to_be_bytes());
            feed(&mut server, &number);
            feed(&mut server, &number);
            assert_eq!(messages(&take_events(&mut server)), [&step.to_be_bytes()[..]]);
        }
        let old = packet(5, 0, start.wrapping_add(2_999 - 1_023), b"again");
        let older = packet(5, 0, start.wrapping_add(2_999 - 1_024), b"again");
        assert_eq!(feed(&mut server, &old).len() + feed(&mut server, &older).len(), 2);
        assert_eq!(take_events(&mut server), []);
        assert_eq!(dropped(&server, DropReason::Duplicate), 3_001);
        assert_eq!(dropped(&server, DropReason::OutsideWindow), 1);
    }
}

#[test]
fn a_sender_never_exceeds_the_window_of_the_oldest_sequence() {
    let (mut server, id) = server_with_client();
    for number in 0..1_100_u16 {
        server.send(START, id, &number.to_be_bytes(), Reliable).expect("free memory");
    }
    assert_eq!(output(&mut server, START).len(), 1_024);
    for number in 1..1_024 {
        feed(&mut server, &packet(6, 0, number, &[]));
    }
    assert_eq!(server.connection_stats(id).expect("an open connection").waiting, 76);
    server.handle_datagram(START, CLIENT.into(), &packet(6, 0, 0, &[]));
    assert_eq!(output(&mut server, START).len(), 76);
}

#[test]
fn an_unreliable_message_that_waits_too_long_is_dropped() {
    let (mut server, id) = server_with_client();
    for _ in 0..1_024 {
        server.send(START, id, b"x", Reliable).expect("free memory");
    }
    server.send(START, id, &payload(2_000), Unreliable).expect("free memory");
    server.send(START, id, b"last", Reliable).expect("free memory");
    output(&mut server, START);
    server.handle_timeout(at(1_001));
    output(&mut server, at(1_001));
    assert_eq!(dropped(&server, DropReason::Expired), 1);
    for number in 0..1_024 {
        server.handle_datagram(at(1_002), CLIENT.into(), &packet(6, 0, number, &[]));
    }
    assert_eq!(packets(&mut server, at(1_002)), [packet(5, 0, 1_025, b"last")]);
}

#[test]
fn an_incomplete_unreliable_payload_is_dropped_after_a_second() {
    let (mut server, _) = server_with_client();
    feed(&mut server, &packet(0, 0, 0, &[1; 504]));
    assert_eq!(server.poll_timeout(), Some(at(1_000)));
    server.handle_timeout(at(1_000));
    output(&mut server, at(1_000));
    assert_eq!(dropped(&server, DropReason::Expired), 1);
    assert_eq!(server.blocks_available(), server.blocks());
}

#[test]
fn an_unfinished_reliable_message_closes_the_connection() {
    let (mut server, id) = server_with_client();
    feed(&mut server, &packet(1, 0, 0, &[1; 504]));
    for second in 1..=15 {
        let now = START + Duration::from_secs(second);
        server.handle_datagram(now, CLIENT.into(), &packet(4, 0, 9, b"alive"));
        server.handle_timeout(now);
        output(&mut server, now);
    }
    let list = take_events(&mut server);
    assert_eq!(ended(&list), Some(DisconnectReason::MessageUnfinished));
    assert!(server.connection(id).is_none_or(|info| info.state == ConnectionState::Disconnected));
}

#[test]
fn a_connection_times_out_after_15_seconds_without_packets_and_sends_end() {
    let (mut server, id) = server_with_client();
    server.handle_datagram(at(5_000), CLIENT.into(), &packet(4, 0, 0, b"alive"));
    output(&mut server, at(5_000));
    assert_eq!(server.poll_timeout(), Some(at(20_000)));
    server.handle_timeout(at(19_999));
    assert_eq!(messages(&take_events(&mut server)), [b"alive"]);
    server.handle_timeout(at(20_000));
    assert_eq!(packets(&mut server, at(20_000)), [[0x0C, 0, 0, 0]]);
    assert_eq!(take_events(&mut server), [OwnedEvent::Disconnected(id, DisconnectReason::Lost)]);
}

#[test]
fn end_is_sent_after_reliable_messages_are_acknowledged() {
    let (mut server, id) = server_with_client();
    server.send(START, id, b"game over", Reliable).expect("an open connection");
    server.disconnect(START, id);
    assert_eq!(packets(&mut server, START), [packet(5, 0, 0, b"game over")]);
    server.handle_timeout(at(100));
    assert_eq!(packets(&mut server, at(100)), [packet(5, 0, 0, b"game over")]);
    assert_eq!(take_events(&mut server), []);
    server.handle_datagram(at(150), CLIENT.into(), &packet(6, 0, 0, &[]));
    assert_eq!(packets(&mut server, at(150)), [[0x0C, 0, 0, 0]]);
    assert_eq!(take_events(&mut server), [OwnedEvent::Disconnected(id, DisconnectReason::Local)]);
}

/// Applications poll events before datagrams. An event caused by sending a datagram therefore waits for the next
/// timeout, which is due immediately.
#[test]
fn poll_transmit_creates_no_events() {
    let (mut server, id) = server_with_client();
    server.send(START, id, b"unreliable", Unreliable).expect("an open connection");
    server.disconnect(START, id);
    assert_eq!(take_events(&mut server), []);
    assert_eq!(packets(&mut server, START), [packet(4, 0, 0, b"unreliable")]);
    assert_eq!((take_events(&mut server), server.poll_timeout()), (vec![], Some(START)));
    server.handle_timeout(START);
    assert_eq!(take_events(&mut server), [OwnedEvent::Disconnected(id, DisconnectReason::Local)]);
    assert_eq!(packets(&mut server, START), [[0x0C, 0, 0, 0]]);
}

#[test]
fn end_is_delayed_by_at_most_a_second() {
    let (mut server, id) = server_with_client();
    server.send(START, id, b"game over", Reliable).expect("an open connection");
    server.disconnect(START, id);
    output(&mut server, START);
    for tick in 1..10 {
        server.handle_timeout(at(tick * 100));
        assert_eq!(packets(&mut server, at(tick * 100)), [packet(5, 0, 0, b"game over")]);
    }
    server.handle_timeout(at(1_000));
    let last = packets(&mut server, at(1_000));
    assert_eq!(last.last().map(Vec::as_slice), Some(&[0x0C, 0, 0, 0][..]));
    assert_eq!(ended(&take_events(&mut server)), Some(DisconnectReason::Local));
}

#[test]
fn end_closes_the_connection_and_is_never_answered() {
    for end in [
        packet(8, 0, 0, &[]),
        packet(0x0C, 0, 0, &[]),
        packet(0x0D, 0, 0x1234, b"body"),
        packet(0x0F, 1, 2, &[]),
    ] {
        let (mut server, id) = server_with_client();
        feed(&mut server, &packet(4, 0, 0, b"before"));
        assert_eq!(feed(&mut server, &end), [[0; 0]; 0]);
        let before = OwnedEvent::Message(id, Unreliable, b"before".to_vec());
        assert_eq!(
            take_events(&mut server),
            [before, OwnedEvent::Disconnected(id, DisconnectReason::Remote)]
        );
        assert_eq!(feed(&mut server, &end), [[0; 0]; 0]);
        assert_eq!(server.blocks_available(), server.blocks());
    }
}

#[test]
fn a_lost_end_is_repeated() {
    let (mut server, id) = server_with_client();
    server.disconnect(START, id);
    assert_eq!(packets(&mut server, START), [[0x0C, 0, 0, 0]]);
    assert_eq!(feed(&mut server, &packet(5, 0, 0, b"still talking")), [[0x0C, 0, 0, 0]]);
    assert_eq!(feed(&mut server, &packet(6, 0, 0, &[])), [[0x0C, 0, 0, 0]]);
    assert_eq!(dropped(&server, DropReason::Ended), 2);
    take_events(&mut server);
    server.handle_timeout(at(2_000));
    output(&mut server, at(2_000));
    assert_eq!(feed(&mut server, &packet(5, 0, 0, b"still talking")), [[0; 0]; 0]);
    assert_eq!(dropped(&server, DropReason::UnknownSource), 1);
}

#[test]
fn a_client_may_reconnect_immediately_from_the_same_port() {
    let mut net = Net::new(latency(20), 3);
    for _ in 0..20 {
        let (here, _) = net.connect();
        let now = net.now();
        net.pair.a.send(now, here, b"hello", Reliable).expect("an open connection");
        net.pair.a.disconnect(now, here);
        let gone = net.run_until(Duration::from_secs(2), |net| {
            ended(&net.server) == Some(DisconnectReason::Remote) && ended(&net.client).is_some()
        });
        assert!(gone, "client: {:?}, server: {:?}", net.client, net.server);
        assert_eq!(messages(&net.server), [b"hello"]);
        net.client.clear();
        net.server.clear();
    }
}

#[test]
fn a_lost_challenge_response_is_resent_to_a_stateless_server() {
    let mut net = Net::new(latency(10), 1);
    let to = net.pair.b_address;
    let id = net.pair.a.connect(net.now(), to).expect("a free slot");
    assert!(net.run_until(Duration::from_secs(1), |net| net.client.contains(&OwnedEvent::Connected(id))));
    let lost = output(&mut net.pair.a, net.pair.now);
    assert_eq!(lost.len(), 1);
    assert!(net.run_until(Duration::from_secs(1), |net| !net.server.is_empty()));
}

#[test]
fn a_challenge_response_that_parses_as_an_acknowledgement_is_resent_to_any_server() {
    let mut server = peer(server_config());
    let mut client = peer(Config::new([1; 32]));
    let id = client.connect(START, SERVER.into()).expect("a free slot");
    let (_, salt) = output(&mut client, START).remove(0);
    server.handle_datagram(START, CLIENT.into(), &salt);
    let (_, pepper) = output(&mut server, START).remove(0);
    client.handle_datagram(START, SERVER.into(), &pepper);
    let [lost] = &packets(&mut client, START)[..] else { panic!("expected only the challenge response") };
    // Its first byte has the flags of an acknowledgement, so a server that is already connected ignores it.
    assert_eq!(lost[0] & 0x8A, 0x82);
    client.send(START, id, b"early", Reliable).expect("an open connection");
    output(&mut client, START);

    let (later, last) = (at(250), at(500));
    client.handle_timeout(later);
    let sent = packets(&mut client, later);
    assert!(sent.contains(lost), "{sent:?}");
    for packet in sent {
        server.handle_datagram(later, CLIENT.into(), &packet);
    }
    assert_eq!(messages(&take_events(&mut server)), [b"early"]);
    for packet in packets(&mut server, later) {
        client.handle_datagram(later, SERVER.into(), &packet);
    }
    client.handle_timeout(last);
    assert_eq!(packets(&mut client, last), [[0; 0]; 0]);
}

#[test]
fn handshake_messages_are_never_resent_to_the_original_server() {
    let mut client = peer(Config::new([1; 32]));
    let id = client.connect(START, SERVER.into()).expect("a free slot");
    assert_eq!(output(&mut client, START).len(), 1);
    assert_eq!(client.connect(START, SERVER.into()), Err(ConnectError::AlreadyConnected));
    assert_eq!(client.poll_timeout(), Some(at(15_000)));
    client.handle_timeout(at(15_000));
    assert_eq!(packets(&mut client, at(15_000)), [[0; 0]; 0]);
    assert_eq!(take_events(&mut client), [OwnedEvent::Failed(id, ConnectFailure::NoAnswer)]);
    let again = client.connect(at(15_000), SERVER.into()).expect("the slot is free again");
    output(&mut client, at(15_000));
    client.handle_datagram(at(15_000), SERVER.into(), &[9, 9, 9, 9]);
    assert_eq!(packets(&mut client, at(15_000)).len(), 1);
    assert_eq!(take_events(&mut client), [OwnedEvent::Connected(again)]);
    client.handle_datagram(at(15_000), SERVER.into(), &[9, 9, 9, 9]);
    client.handle_timeout(at(18_000));
    assert_eq!(packets(&mut client, at(18_000)), [[0; 0]; 0]);
    assert_eq!(take_events(&mut client), []);
}

#[test]
fn duplicated_handshake_messages_are_ignored() {
    let mut server = peer(server_config());
    let seasoning = seasoning(&mut server, START, CLIENT.into(), 0x4123_4567);
    let id = {
        server.handle_datagram(START, CLIENT.into(), &seasoning);
        connected_id(&take_events(&mut server))
    };
    for _ in 0..3 {
        assert_eq!(feed(&mut server, &seasoning), [[0; 0]; 0]);
        assert_eq!(feed(&mut server, &0x4123_4567_u32.to_be_bytes()), [[0; 0]; 0]);
    }
    assert_eq!(take_events(&mut server), []);
    assert_eq!(server.connection(id).expect("an open connection").state, ConnectionState::Connected);
    assert_eq!(dropped(&server, DropReason::Unexpected), 6);
}

#[test]
fn a_replayed_challenge_response_does_not_reopen_a_closed_connection() {
    let mut server = peer(server_config());
    let answer = seasoning(&mut server, START, CLIENT.into(), 1);
    server.handle_datagram(START, CLIENT.into(), &answer);
    feed(&mut server, &packet(8, 0, 0, &[]));
    assert_eq!(feed(&mut server, &answer), [[0; 0]; 0]);
    assert_eq!((take_events(&mut server).len(), server.connections().count()), (2, 0));
    // The client can reconnect by requesting a new challenge.
    enter(&mut server, START, CLIENT.into(), 0x4000_0001);
}

#[test]
fn a_challenge_response_is_bound_to_its_address_and_expires() {
    let salt = 5_u32;
    let holds = |later: Duration, from: ([u8; 4], u16)| {
        let mut server = peer(server_config());
        let answer = seasoning(&mut server, START, CLIENT.into(), salt);
        server.handle_datagram(START + later, from.into(), &answer);
        server.connections().count() == 1
    };
    assert!(holds(Duration::from_secs(5), CLIENT));
    assert!(!holds(Duration::from_secs(10), CLIENT));
    assert!(!holds(Duration::ZERO, (CLIENT.0, CLIENT.1 + 1)));
    assert!(!holds(Duration::ZERO, UNKNOWN_SOURCE));
}

#[test]
fn many_clients_share_a_server_and_a_full_server_sends_end() {
    let mut config = server_config();
    (config.max_per_address, config.max_per_network) = (Some(9), Some(9));
    let mut server = peer(config);
    let addresses: Vec<_> = (0..9_u16).map(|port| ([192, 0, 2, 1], 100 + port).into()).collect();
    let ids: Vec<_> = addresses[..8].iter().map(|address| enter(&mut server, START, *address, 9)).collect();
    let answer = seasoning(&mut server, START, addresses[8], 9);
    server.handle_datagram(START, addresses[8], &answer);
    assert_eq!(output(&mut server, START), [(addresses[8], vec![0x0C, 0, 0, 0])]);
    assert_eq!(dropped(&server, DropReason::Full), 1);
    for (id, address) in ids.iter().zip(&addresses) {
        server.handle_datagram(START, *address, &packet(4, 0, 0, &address.port().to_be_bytes()));
        assert_eq!(
            take_events(&mut server),
            [OwnedEvent::Message(*id, Unreliable, address.port().to_be_bytes().to_vec())]
        );
    }
    server.disconnect(START, ids[3]);
    output(&mut server, START);
    take_events(&mut server);
    // The new client evicts the disconnected connection, which still occupied its slot.
    let ninth = enter(&mut server, START, addresses[8], 9);
    assert!(server.connection(ninth).is_some() && server.connection(ids[3]).is_none());
}

/// One system call can send consecutive datagrams to one address.
#[test]
fn connections_take_turns_sending_bursts_of_sixteen_datagrams() {
    let mut server = peer(server_config());
    let addresses: [SocketAddr; 2] = [([192, 0, 2, 1], 100).into(), ([192, 0, 2, 1], 101).into()];
    for id in addresses.map(|address| enter(&mut server, START, address, 9)) {
        server.send(START, id, &payload(40 * 504), Unreliable).expect("free memory");
    }
    let to: Vec<_> = output(&mut server, START).into_iter().map(|(to, _)| to).collect();
    let runs: Vec<_> = to.chunk_by(|a, b| a == b).map(<[SocketAddr]>::len).collect();
    assert_eq!(runs, [16, 16, 16, 16, 8, 8]);
}

#[test]
fn a_paused_connection_keeps_its_events() {
    let (mut server, id) = server_with_client();
    assert!(server.pause(id));
    feed(&mut server, &packet(4, 0, 0, b"later"));
    feed(&mut server, &packet(8, 0, 0, &[]));
    assert_eq!(take_events(&mut server), []);
    assert!(server.resume(id));
    assert_eq!(take_events(&mut server).len(), 2);
    assert!(!server.pause(id) || server.connection(id).is_some());
}

#[test]
fn a_cancelled_attempt_sends_no_more_packets() {
    let mut client = peer(client_config());
    // This client retransmits, so an attempt that was not cancelled would send again.
    let Redial::SamePort(_) = client.config().redial else { panic!("expected a client that retransmits") };
    let id = client.connect(START, SERVER.into()).expect("a free slot");
    output(&mut client, START);
    client.disconnect(START, id);
    assert_eq!(packets(&mut client, START), [[0; 0]; 0]);
    assert_eq!(take_events(&mut client), [OwnedEvent::Failed(id, ConnectFailure::Cancelled)]);
    assert_eq!(client.connections().count(), 0);
}

#[test]
fn two_large_messages_that_together_exceed_the_memory_are_delivered() {
    let mut resources = Resources::<1, 64, 512>::new();
    let mut server = Peer::new(&mut resources, server_config());
    enter(&mut server, START, CLIENT.into(), 7);
    // 20 chunks each; one connection may hold 32 blocks.
    let (first, second) = (payload(20 * 504), payload(20 * 504 - 7));
    let chunk = |sequence: u16, bytes: &[u8], number: usize| {
        let flags = if number == 19 { 5 } else { 1 };
        let end = bytes.len().min((number + 1) * 504);
        packet(flags, number as u8, sequence, &bytes[number * 504..end])
    };
    let mut open: Vec<_> =
        (0..20).flat_map(|number| [chunk(0, &first, number), chunk(1, &second, number)]).collect();
    let mut arrived = Vec::new();
    for _ in 0..10 {
        let mut left = Vec::new();
        for packet in open {
            server.handle_datagram(START, CLIENT.into(), &packet);
            if packets(&mut server, START).is_empty() {
                left.push(packet);
            }
        }
        open = left;
        arrived.extend(messages(&take_events(&mut server)).into_iter().map(<[u8]>::to_vec));
    }
    assert!(open.is_empty() && dropped(&server, DropReason::NoMemory) > 0);
    assert!(arrived == [first, second]);
    assert_eq!(server.blocks_available(), 64);
}

#[test]
fn a_message_that_can_never_fit_closes_the_connection() {
    let mut resources = Resources::<1, 64, 512>::new();
    let mut server = Peer::new(&mut resources, server_config());
    enter(&mut server, START, CLIENT.into(), 7);
    assert_eq!(feed(&mut server, &packet(5, 40, 0, b"of 41")), [[0x0C, 0, 0, 0]]);
    assert_eq!(ended(&take_events(&mut server)), Some(DisconnectReason::MessageTooLarge));
    assert_eq!(server.blocks_available(), 64);
}
