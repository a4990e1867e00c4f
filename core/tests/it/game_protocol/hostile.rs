//! Attacks of hostile peers on an endpoint of the Game Protocol.

use core::net::SocketAddr;
use core::time::Duration;

use rakwire::game_protocol::Reliability::{Reliable, Unreliable};
use rakwire::game_protocol::{ConnectionState, DropReason, Peer, Resources, SendError};
use rakwire::sim::Conditions;

use crate::model::random::Random;
use crate::support::game_protocol::*;

fn unknown_source(number: u32) -> SocketAddr {
    let [a, b, c, d] = number.to_be_bytes();
    ([10 + a, b, c, d], 1_000 + (number % 50_000) as u16).into()
}

#[test]
fn ten_thousand_half_open_handshakes_leave_no_state() {
    let mut server = peer(server_config());
    let (mut bytes_in, mut bytes_out) = (0, 0);
    for number in 0..10_000_u32 {
        let datagram = number.wrapping_mul(0x9E37_79B9).to_be_bytes();
        server.handle_datagram(START, unknown_source(number * 97), &datagram);
        bytes_in += datagram.len();
        if number % 100 == 0 {
            for (_, answer) in output(&mut server, START) {
                assert_eq!(answer.len(), 4);
                bytes_out += answer.len();
            }
        }
    }
    bytes_out += packets(&mut server, START).concat().len();
    assert!(
        bytes_out <= bytes_in && bytes_out > bytes_in / 2,
        "{bytes_out} bytes sent for {bytes_in} received"
    );
    assert_eq!((server.connections().count(), server.poll_timeout()), (0, None));
    assert_eq!(server.blocks_available(), server.blocks());
    assert_eq!(take_events(&mut server), []);
    // A genuine client can still connect.
    enter(&mut server, START + Duration::from_secs(1), CLIENT.into(), 3);
}

#[test]
fn one_address_gets_at_most_three_quarters_of_the_slots() {
    let mut config = server_config();
    config.max_incoming = 16;
    let mut server = peer(config);
    let crowded = |port: u16| SocketAddr::from(([198, 51, 100, 1], port));
    for port in 1..=12 {
        enter(&mut server, START, crowded(port), 9);
    }
    let answer = seasoning(&mut server, START, crowded(13), 9);
    server.handle_datagram(START, crowded(13), &answer);
    assert_eq!(output(&mut server, START), [(crowded(13), vec![0x0C, 0, 0, 0])]);
    assert_eq!(dropped(&server, DropReason::AddressLimit), 1);
    // The limit of the network leaves two more slots for its other addresses. Two slots remain for other networks.
    enter(&mut server, START, ([198, 51, 100, 2], 1).into(), 9);
    enter(&mut server, START, ([198, 51, 100, 2], 2).into(), 9);
    let neighbour = SocketAddr::from(([198, 51, 100, 3], 1));
    let answer = seasoning(&mut server, START, neighbour, 9);
    server.handle_datagram(START, neighbour, &answer);
    assert_eq!(dropped(&server, DropReason::AddressLimit), 2);
    output(&mut server, START);
    enter(&mut server, START, ([203, 0, 113, 1], 1).into(), 9);
}

#[test]
fn a_guessed_challenge_response_opens_no_connection() {
    let mut server = peer(server_config());
    let mut random = Random::new(3);
    for number in 0..100_000_u32 {
        server.handle_datagram(START, unknown_source(number), &(random.draw() as u32).to_be_bytes());
        output(&mut server, START);
    }
    assert_eq!(server.connections().count(), 0);
}

#[test]
fn a_flood_of_end_from_other_addresses_closes_no_connection() {
    let (mut server, id) = server_with_client();
    for number in 0..10_000 {
        let end =
            packet(if number % 2 == 0 { 0x0C } else { 8 }, 0, 0, if number % 3 == 0 { b"body" } else { b"" });
        server.handle_datagram(START, unknown_source(number), &end);
    }
    assert_eq!(output(&mut server, START), []);
    assert_eq!(dropped(&server, DropReason::UnknownSource), 10_000);
    assert_eq!(server.connection(id).expect("an open connection").state, ConnectionState::Connected);
}

#[test]
fn a_flood_of_end_from_a_client_closes_its_connection_once() {
    let (mut server, id) = server_with_client();
    for number in 0..10_000_u32 {
        assert_eq!(feed(&mut server, &packet(8, 0, number as u16, &[])), [[0; 0]; 0]);
    }
    assert_eq!(take_events(&mut server).len(), 1);
    assert!(server.connection(id).is_none_or(|info| info.state == ConnectionState::Disconnected));
    assert_eq!(dropped(&server, DropReason::Ended), 9_999);
}

/// A connection's acknowledgement and the response to an unknown address both wait for a larger buffer.
#[test]
fn a_transmit_buffer_that_is_too_short_loses_no_packet() {
    let (mut server, _) = server_with_client();
    server.handle_datagram(START, CLIENT.into(), &packet(5, 0, 0, b"body"));
    server.handle_datagram(START, unknown_source(1), &packet(0x40, 1, 2, &[]));
    assert!(server.poll_transmit(START, &mut [0; 3]).is_none());
    let sent = output(&mut server, START);
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0], (CLIENT.into(), packet(6, 0, 0, &[])));
    assert_eq!(sent[1].0, unknown_source(1));
}

#[test]
fn packets_from_unknown_addresses_are_dropped_and_counted() {
    let mut server = peer(server_config());
    for length in 5..600 {
        server.handle_datagram(START, UNKNOWN_SOURCE.into(), &vec![5; length]);
    }
    assert_eq!(dropped(&server, DropReason::UnknownSource), 595);
    for length in 0..4 {
        server.handle_datagram(START, UNKNOWN_SOURCE.into(), &vec![5; length]);
    }
    assert_eq!(dropped(&server, DropReason::TooShort), 4);
    assert_eq!(output(&mut server, START), []);
}

#[test]
fn a_peer_without_incoming_slots_answers_no_unknown_address() {
    let mut client = peer(client_config());
    for number in 0..1_000_u32 {
        client.handle_datagram(START, unknown_source(number), &number.to_be_bytes());
    }
    assert_eq!(output(&mut client, START), []);
    assert_eq!(dropped(&client, DropReason::UnknownSource), 1_000);
}

/// Each server mistakes the other's challenge for a client's first message. The rate limit of challenges ends the loop.
#[test]
fn two_servers_do_not_answer_each_other_forever() {
    let mut config = server_config();
    config.challenges_per_network = 5;
    let (mut a, mut b) = (peer(config.clone()), peer(server_config()));
    let (a_address, b_address) = (SocketAddr::from(CLIENT), SocketAddr::from(SERVER));
    a.handle_datagram(START, b_address, &[0x49, 9, 9, 9]);
    let mut rounds = 0;
    loop {
        let from_a = output(&mut a, START);
        from_a.iter().for_each(|(_, packet)| b.handle_datagram(START, a_address, packet));
        let from_b = output(&mut b, START);
        from_b.iter().for_each(|(_, packet)| a.handle_datagram(START, b_address, packet));
        if from_a.is_empty() && from_b.is_empty() {
            break;
        }
        rounds += 1;
        assert!(rounds < 10, "the servers still answer each other");
    }
    assert_eq!((rounds, dropped(&a, DropReason::ChallengeLimit)), (5, 1));
}

#[test]
fn responses_that_exceed_the_queue_are_dropped_and_counted() {
    let mut server = peer(server_config());
    (0..1_000).for_each(|number| server.handle_datagram(START, unknown_source(number * 9_973), &[7; 4]));
    let sent = output(&mut server, START).len() as u64;
    let refused = dropped(&server, DropReason::ChallengeLimit);
    assert!(sent > 0);
    assert_eq!(dropped(&server, DropReason::AnswersFull), 1_000 - sent - refused);
    assert!(dropped(&server, DropReason::AnswersFull) > 0);
}

#[test]
fn one_network_cannot_exhaust_the_challenge_limit() {
    let mut server = peer(server_config());
    let answers = |server: &mut Peer<'_>, network: u8| {
        (0..1_000_u16)
            .filter(|port| {
                server.handle_datagram(START, ([198, 51, network, 1], *port).into(), &[7; 4]);
                !output(server, START).is_empty()
            })
            .count()
    };
    assert_eq!(answers(&mut server, 1), 200);
    assert_eq!(answers(&mut server, 2), 200);
}

/// Random headers, lengths and bodies sent to an open connection cause no panic, and all memory is freed afterwards.
#[test]
fn malformed_datagrams_leak_no_memory() {
    let mut resources = Resources::<4, 64, 128>::new();
    let mut random = Random::new(9);
    let mut server = Peer::new(&mut resources, server_config());
    for round in 0..200_u64 {
        let now = START + Duration::from_secs(40 * round);
        let id = enter(&mut server, now, CLIENT.into(), 1);
        server.send(now, id, &payload(700), Reliable).expect("free memory");
        for _ in 0..500 {
            let mut bytes = random.bytes(4);
            // END is rare, because it closes the connection.
            bytes[0] &= if random.below(500) == 0 { 0xFF } else { 0xF7 };
            bytes[2] = 0;
            let length = [0, 1, 503, 504, 504, 504, 505, 1_400][random.below(8) as usize];
            bytes.extend(vec![7; length]);
            bytes.truncate(bytes.len() - (random.below(20) == 0) as usize * random.below(5) as usize);
            server.handle_datagram(now, CLIENT.into(), &bytes);
            for (_, answer) in output(&mut server, now) {
                assert!(answer.len() <= 508);
            }
            if random.below(4) == 0 {
                take_events(&mut server);
            }
        }
        server.disconnect(now, id);
        for second in 0..30 {
            let now = now + Duration::from_secs(second);
            server.handle_timeout(now);
            output(&mut server, now);
            take_events(&mut server);
        }
        assert_eq!((server.blocks_available(), server.poll_timeout()), (64, None), "round {round}");
    }
    for reason in [
        DropReason::BadChunk,
        DropReason::Duplicate,
        DropReason::NoMemory,
        DropReason::UnknownAcknowledgement,
    ] {
        assert!(dropped(&server, reason) > 0, "{reason:?}");
    }
}

/// The chunks belong to incomplete messages with random sequences. Other connections are unaffected.
#[test]
fn chunks_with_forged_sequences_take_at_most_half_of_the_memory() {
    let mut resources = Resources::<2, 128, 512>::new();
    let mut server = Peer::new(&mut resources, server_config());
    enter(&mut server, START, CLIENT.into(), 1);
    let other = enter(&mut server, START, UNKNOWN_SOURCE.into(), 1);
    let mut random = Random::new(4);
    for _ in 0..20_000 {
        let (flags, sequence) = (random.below(2) as u8, random.draw() as u16);
        feed(&mut server, &packet(flags, random.below(255) as u8, sequence, &[1; 504]));
        assert!(server.blocks_available() >= 64);
    }
    server.handle_datagram(START, UNKNOWN_SOURCE.into(), &packet(5, 0, 0, b"I am honest"));
    assert_eq!(take_events(&mut server), [OwnedEvent::Message(other, Reliable, b"I am honest".to_vec())]);
}

/// With a low limit per connection, many hostile connections leave memory for others.
#[test]
fn hostile_connections_take_at_most_their_memory_limit() {
    let mut config = server_config();
    (config.max_incoming, config.connection_blocks) = (9, Some(8));
    let mut resources = Resources::<9, 256, 512>::new();
    let mut server = Peer::new(&mut resources, config);
    let honest = enter(&mut server, START, CLIENT.into(), 1);
    let hostile: Vec<_> =
        (0..8).map(|number| enter(&mut server, START, unknown_source(number), number + 2)).collect();
    for (number, hostile) in (0..).zip(hostile) {
        for sequence in 0..100 {
            let never_whole = packet(1, 254, sequence * 2, &[1; 504]);
            server.handle_datagram(START, unknown_source(number), &never_whole);
        }
        // The hostile client acknowledges nothing.
        while server.send(START, hostile, &[7; 504], Reliable).is_ok() {}
        assert_eq!(server.send(START, hostile, &[7; 504], Reliable), Err(SendError::QuotaExceeded));
    }
    // Eight connections with 8 blocks in each direction.
    assert!(server.blocks_available() >= 256 - 8 * 16, "{}", server.blocks_available());
    assert_eq!(server.send(START, honest, &[7; 4_200], Reliable), Err(SendError::NeverFits));
    assert_eq!(server.send(START, honest, &[7; 504], Reliable), Ok(None));
}

#[test]
fn a_forged_chunk_count_takes_memory_only_for_received_chunks() {
    let (mut server, _) = server_with_client();
    let all = server.blocks();
    for sequence in 0..100 {
        feed(&mut server, &packet(4, 255, sequence, b"of 256 chunks"));
    }
    assert_eq!(all - server.blocks_available(), 200);
}

#[test]
fn duplicates_cost_at_most_one_acknowledgement_each_and_no_memory() {
    let (mut server, _) = server_with_client();
    let hello = packet(5, 0, 0, b"hello");
    let available = server.blocks_available();
    for _ in 0..20_000 {
        server.handle_datagram(START, CLIENT.into(), &hello);
    }
    assert_eq!(take_events(&mut server).len(), 1);
    assert_eq!(take_events(&mut server), []);
    assert_eq!(server.blocks_available(), available);
    let answers = packets(&mut server, START);
    assert_eq!(answers.len(), server.blocks());
    assert!(answers.iter().all(|answer| answer.len() == 4));
    let lost = dropped(&server, DropReason::AcknowledgementsFull);
    assert_eq!(lost + answers.len() as u64, 20_000);
    assert_eq!(feed(&mut server, &hello), [[6, 0, 0, 0]]);
}

#[test]
fn acknowledgements_of_unsent_chunks_are_only_counted() {
    let (mut server, id) = server_with_client();
    server.send(START, id, &payload(600), Reliable).expect("an open connection");
    for sequence in 0..2_000 {
        feed(&mut server, &packet(2, 7, sequence, &[]));
    }
    assert_eq!(dropped(&server, DropReason::UnknownAcknowledgement), 2_000);
    assert_eq!(server.connection_stats(id).expect("an open connection").in_flight, 2);
}

/// Of the 64 blocks, a client may hold 8 guaranteed ones and borrow 16.
#[test]
fn an_application_that_does_not_read_blocks_only_its_client() {
    let mut resources = Resources::<2, 64, 512>::new();
    let mut server = Peer::new(&mut resources, server_config());
    let id = enter(&mut server, START, CLIENT.into(), 1);
    enter(&mut server, START, UNKNOWN_SOURCE.into(), 1);
    let acknowledged =
        (0..100_u16).filter(|number| !feed(&mut server, &packet(5, 0, *number, b"x")).is_empty()).count();
    assert_eq!((acknowledged, dropped(&server, DropReason::NoMemory)), (8 + 16, 76));
    server.handle_datagram(START, UNKNOWN_SOURCE.into(), &packet(5, 0, 0, b"x"));
    assert_eq!(packets(&mut server, START).len(), 1);
    assert_eq!(take_events(&mut server).len(), 25);
    assert_eq!(feed(&mut server, &packet(5, 0, 50, b"x")).len(), 1);
    assert_eq!(take_events(&mut server), [OwnedEvent::Message(id, Reliable, b"x".to_vec())]);
}

/// Unreliable messages that each lack a chunk are dropped in favour of complete ones.
#[test]
fn incomplete_unreliable_payloads_do_not_block_a_complete_payload() {
    let mut resources = Resources::<1, 64, 512>::new();
    let mut server = Peer::new(&mut resources, server_config());
    let id = enter(&mut server, START, CLIENT.into(), 1);
    for sequence in 0..100 {
        feed(&mut server, &packet(0, 0, sequence, &[1; 504]));
        feed(&mut server, &packet(0, 1, sequence, &[1; 504]));
    }
    feed(&mut server, &packet(5, 0, 100, b"whole"));
    assert_eq!(take_events(&mut server), [OwnedEvent::Message(id, Reliable, b"whole".to_vec())]);
    assert!(dropped(&server, DropReason::NoMemory) > 50);
}

#[test]
fn forged_datagrams_from_other_addresses_do_not_disturb_a_session() {
    let mut net = Net::new(Conditions { latency: Duration::from_millis(10), ..Conditions::default() }, 1);
    let (here, there) = net.connect();
    let mut random = Random::new(8);
    for number in 0..500_u32 {
        let now = net.now();
        net.pair.a.send(now, here, &number.to_be_bytes(), Reliable).expect("free memory");
        net.pair.b.send(now, there, &number.to_be_bytes(), Unreliable).expect("free memory");
        for _ in 0..20 {
            let length = random.below(600) as usize;
            let nonsense = random.bytes(length);
            net.pair.b.handle_datagram(now, unknown_source(random.draw() as u32 >> 4), &nonsense);
            net.pair.a.handle_datagram(now, UNKNOWN_SOURCE.into(), &nonsense);
        }
        net.run_for(Duration::from_millis(5));
    }
    net.run_for(Duration::from_secs(1));
    assert_eq!((messages(&net.server).len(), messages(&net.client).len()), (500, 500));
}
