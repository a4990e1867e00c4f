//! Arbitrary data from any source causes no panic, leaves no state for unknown addresses and costs bounded work. Every
//! drop is counted.

use core::net::SocketAddr;
use core::time::Duration;

use proptest::prelude::*;
use rakwire::raknet::{
    Capacity, ConnectionId, CookiePolicy, Delivery, DisconnectReason, DropReason, Guid, Peer, Reliability,
};
use rakwire::sim::Conditions;
use rakwire::wire::MAX_DATAGRAM;
use rakwire::wire::datagram::{CapsuleHeader, DatagramHeader, Record, Split};
use rakwire::wire::offline::{ClientSecurity, Offline, PingScope};
use rakwire::{Instant, U24};

use crate::support::forged::{UNKNOWN_SOURCE, capsule, data, written};
use crate::support::raknet::{Net, OwnedEvent, client_config, messages, peer, server_config};

fn drops(peer: &Peer<'_>) -> u64 {
    peer.stats().drops().map(|(_, count)| count).sum()
}

/// Polls all datagrams from the peer; returns their total length.
fn drain(peer: &mut Peer<'_>, now: Instant) -> u64 {
    let mut buffer = [0; MAX_DATAGRAM];
    let mut bytes = 0;
    while let Some(transmit) = peer.poll_transmit(now, &mut buffer) {
        bytes += transmit.payload.len() as u64;
    }
    bytes
}

/// Opens a connection over a path without latency.
fn connected() -> (Net, ConnectionId, ConnectionId) {
    let mut net = Net::new(Conditions::default(), 1);
    let (client, server) = net.connect();
    net.run_for(Duration::from_millis(100));
    (net, client, server)
}

/// A number that is greater than all datagram and message numbers of the client's handshake.
const NEXT: u32 = 20;

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Bytes from an unknown address leave no state and get no response.
    #[test]
    fn unknown_addresses_leave_no_state(datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 1..8)) {
        let mut server = peer(server_config());
        let now = Instant::from_micros(1);
        for datagram in &datagrams {
            server.handle_datagram(now, UNKNOWN_SOURCE.into(), datagram);
        }
        prop_assert_eq!(server.connections().count(), 0);
        prop_assert_eq!(server.blocks_available(), server.blocks());
        prop_assert!(server.poll_event().is_none());
        prop_assert_eq!(drops(&server), datagrams.len() as u64);
        prop_assert_eq!(drain(&mut server, now), 0);
    }

    /// Each peer receives random datagrams with the address of the other peer.
    #[test]
    fn malformed_datagrams_leak_no_memory(
        heads in prop::collection::vec((0x80_u8.., prop::collection::vec(any::<u8>(), 0..200)), 1..20)
    ) {
        let (mut net, client, _) = connected();
        for (first, rest) in &heads {
            let datagram = [core::slice::from_ref(first), rest].concat();
            let (now, from) = (net.now(), net.pair.a_address);
            net.pair.b.handle_datagram(now, from, &datagram);
            let from = net.pair.b_address;
            net.pair.a.handle_datagram(now, from, &datagram);
            net.run_for(Duration::from_millis(5));
        }
        net.pair.a.disconnect(net.pair.now, client);
        net.run_for(Duration::from_secs(40));
        for peer in [&net.pair.a, &net.pair.b] {
            prop_assert_eq!(peer.connections().count(), 0);
            prop_assert_eq!(peer.blocks_available(), peer.blocks());
        }
    }

    /// The server receives offline messages with one byte changed and the end cut off.
    #[test]
    fn modified_offline_messages_leave_no_state_and_are_not_amplified(which in 0_usize..6, at in 0_usize..64, xor in 1_u8.., cut in 0_usize..64) {
        let address: SocketAddr = UNKNOWN_SOURCE.into();
        let guid = Guid(5);
        let messages = [
            Offline::Ping { scope: PingScope::Any, time: 5, guid: Some(guid) },
            Offline::Pong { time: 5, guid, data: b"data" },
            Offline::Request1 { protocol: 6, mtu: 576 },
            Offline::Request2 { security: ClientSecurity::Cookie(9), server: address, mtu: 1_492, guid },
            Offline::Reply2 { guid, client: address, mtu: 1_492, answer: None },
            Offline::IncompatibleProtocol { protocol: 6, guid },
        ];
        let mut bytes = written(&messages[which]);
        let at = at % bytes.len();
        bytes[at] ^= xor;
        bytes.truncate(bytes.len().saturating_sub(cut));
        let mut server = peer(server_config());
        server.handle_datagram(Instant::from_micros(1), address, &bytes);
        prop_assert_eq!(server.connections().count(), 0);
        // A pong has a separate limit: 33 bytes plus the advertisement, which is empty here.
        let cap = (bytes.len() as u64).max(33);
        prop_assert!(drain(&mut server, Instant::from_micros(1)) <= cap);
    }
}

/// The server receives a million forged requests 1, each from another address.
#[test]
fn forged_first_requests_take_no_memory_and_are_not_amplified() {
    let mut server = peer(server_config());
    let request = written(&Offline::Request1 { protocol: 6, mtu: 576 });
    for number in 0..1_000_000_u32 {
        let from = SocketAddr::from((number.to_be_bytes(), 1_000));
        server.handle_datagram(Instant::from_micros(number.into()), from, &request);
        if number % 8 == 0 {
            let bytes = drain(&mut server, Instant::from_micros(number.into()));
            assert!(bytes <= 8 * request.len() as u64);
        }
    }
    assert_eq!(server.connections().count(), 0);
    assert_eq!(server.blocks_available(), server.blocks());
}

#[test]
fn a_short_first_request_gets_no_answer() {
    let mut server = peer(server_config());
    let full = written(&Offline::Request1 { protocol: 6, mtu: 576 });
    for length in 18..32 {
        server.handle_datagram(Instant::ZERO, UNKNOWN_SOURCE.into(), &full[..length]);
        assert_eq!(drain(&mut server, Instant::ZERO), 0, "a request 1 of {length} bytes got a reply");
    }
    assert_eq!(server.stats().dropped(DropReason::WouldAmplify), 14);
    server.handle_datagram(Instant::ZERO, UNKNOWN_SOURCE.into(), &full[..32]);
    assert_eq!(drain(&mut server, Instant::ZERO), 32);
}

#[test]
fn a_second_request_without_its_cookie_leaves_no_state() {
    let mut server = peer(server_config());
    let address: SocketAddr = UNKNOWN_SOURCE.into();
    for security in [ClientSecurity::None, ClientSecurity::Cookie(0), ClientSecurity::Cookie(7)] {
        let request = Offline::Request2 { security, server: address, mtu: 1_492, guid: Guid(5) };
        server.handle_datagram(Instant::ZERO, address, &written(&request));
    }
    assert_eq!(server.stats().dropped(DropReason::MissingCookie), 1);
    assert_eq!(server.stats().dropped(DropReason::BadCookie), 2);
    assert_eq!((server.connections().count(), drain(&mut server, Instant::ZERO)), (0, 0));
}

/// Without cookies, forged sources can take all slots, but only until their half-open connections expire.
#[test]
fn half_open_connections_are_bounded_and_expire() {
    let mut config = server_config();
    config.cookies = CookiePolicy::Off;
    // All sources are in one network, and its limit would otherwise refuse some of them.
    config.max_per_network = Some(8);
    let mut server = peer(config);
    for number in 0..100_u8 {
        let address = SocketAddr::from(([203, 0, 113, number], 4_000));
        let request = Offline::Request2 {
            security: ClientSecurity::None,
            server: address,
            mtu: 1_492,
            guid: Guid(number.into()),
        };
        server.handle_datagram(
            Instant::ZERO,
            address,
            &written(&Offline::Request1 { protocol: 6, mtu: 576 }),
        );
        server.handle_datagram(Instant::ZERO, address, &written(&request));
    }
    assert_eq!(server.connections().count(), 8);
    drain(&mut server, Instant::ZERO);
    let later = Instant::from_micros(11_000_000);
    server.handle_timeout(later);
    assert_eq!(drain(&mut server, later), 0, "nothing may be sent to an unvalidated address");
    assert_eq!(server.connections().count(), 0);
    assert!(server.poll_event().is_none());
}

#[test]
fn a_large_split_count_takes_no_memory_and_closes_the_connection() {
    let (mut net, client, server) = connected();
    let before = net.pair.b.blocks_available();
    let split = Some(Split { count: u32::MAX, id: 1, index: 7 });
    let datagram = data(NEXT, CapsuleHeader { split, ..capsule(Reliability::Reliable, NEXT, 0) }, b"\x86");
    let (now, from) = (net.now(), net.pair.a_address);
    net.pair.b.handle_datagram(now, from, &datagram);
    net.poll();
    assert_eq!(net.server, [OwnedEvent::Disconnected(server, DisconnectReason::MessageTooLarge)]);
    net.run_for(Duration::from_secs(2));
    assert!(net.pair.b.blocks_available() >= before);
    assert_eq!(net.client, [OwnedEvent::Disconnected(client, DisconnectReason::SentTooLarge)]);
}

#[test]
fn two_peers_that_abort_simultaneously_stop_notifying_each_other() {
    let (mut net, client, server) = connected();
    let split = Some(Split { count: u32::MAX, id: 1, index: 7 });
    let datagram = data(NEXT, CapsuleHeader { split, ..capsule(Reliability::Reliable, NEXT, 0) }, b"\x86");
    let (now, a, b) = (net.now(), net.pair.a_address, net.pair.b_address);
    net.pair.a.handle_datagram(now, b, &datagram);
    net.pair.b.handle_datagram(now, a, &datagram);
    let sent = |net: &Net| {
        let counts = [&net.pair.a, &net.pair.b].map(|peer| peer.stats().datagrams_sent);
        counts.iter().sum::<u64>()
    };
    let before = sent(&net);
    // The path has no latency, so an endless exchange would never return.
    net.run_for(Duration::from_secs(2));
    assert!((2..=8).contains(&(sent(&net) - before)), "{} datagrams were sent", sent(&net) - before);
    let too_large = DisconnectReason::MessageTooLarge;
    assert_eq!(net.client, [OwnedEvent::Disconnected(client, too_large)]);
    assert_eq!(net.server, [OwnedEvent::Disconnected(server, too_large)]);
    assert_eq!(net.pair.a.connections().count() + net.pair.b.connections().count(), 0);
}

/// The work depends on the number of datagrams in flight, not on the span of a record. A loop over 200 times 2^24
/// numbers would make this test very slow.
#[test]
fn acknowledgement_records_may_span_all_datagram_numbers() {
    let (mut net, client, _) = connected();
    net.pair.set_conditions(Conditions { loss: 1.0, ..Conditions::default() });
    for _ in 0..50 {
        net.pair.a.send(net.pair.now, client, &[0x86; 1_000], Delivery::RELIABLE).expect("free memory");
    }
    net.pair.transmit();
    let in_flight = net.pair.a.connection_stats(client).map_or(0, |stats| stats.in_flight);
    assert!(in_flight > 0);
    let all = Record { first: U24::new(0), last: U24::new(0xFF_FFFE) };
    let mut datagram = written(&DatagramHeader::Nack { records: 200 });
    (0..200).for_each(|_| datagram.extend(written(&all)));
    let (now, from) = (net.now(), net.pair.b_address);
    net.pair.a.handle_datagram(now, from, &datagram);
    let mut datagram = written(&DatagramHeader::Ack { arrival_speed: None, records: 1 });
    datagram.extend(written(&all));
    net.pair.a.handle_datagram(now, from, &datagram);
    let stats = net.pair.a.connection_stats(client).expect("an open connection");
    assert_eq!(stats.in_flight, 0);
}

/// Negative acknowledgements that arrive within one round trip cause no additional resend.
#[test]
fn a_flood_of_negative_acknowledgements_is_bounded() {
    let mut net = Net::new(Conditions { latency: Duration::from_millis(50), ..Conditions::default() }, 1);
    let (client, _) = net.connect();
    net.run_for(Duration::from_secs(1));
    net.pair.a.send(net.pair.now, client, &[0x86; 1_000], Delivery::RELIABLE).expect("free memory");
    net.pair.transmit();
    let before = net.pair.a.stats().datagrams_sent;
    for _ in 0..1_000 {
        let (now, from) = (net.now(), net.pair.b_address);
        let all = Record { first: U24::new(0), last: U24::new(1_000) };
        let mut datagram = written(&DatagramHeader::Nack { records: 1 });
        datagram.extend(written(&all));
        net.pair.a.handle_datagram(now, from, &datagram);
        net.pair.transmit();
    }
    assert_eq!(net.pair.a.stats().datagrams_sent, before);
}

/// Messages buffered behind a missing one take at most the memory limit of a connection, which then closes.
#[test]
fn withholding_a_reliable_message_closes_the_connection() {
    let (mut net, _, server) = connected();
    let blocks = net.pair.b.blocks();
    let mut sent = 0;
    let end = net.now() + Duration::from_secs(60);
    while net.server.is_empty() && net.now() < end {
        for _ in 0..200 {
            sent += 1;
            let ordered = capsule(Reliability::ReliableOrdered, NEXT + sent, NEXT + sent);
            let (now, from) = (net.now(), net.pair.a_address);
            net.pair.b.handle_datagram(now, from, &data(NEXT + sent, ordered, &[0x86; 1_300]));
            assert!(
                net.pair.b.blocks_available() >= blocks / 2 - 40,
                "the messages took more than half of the memory"
            );
        }
        net.run_for(Duration::from_millis(50));
    }
    assert_eq!(net.server, [OwnedEvent::Disconnected(server, DisconnectReason::ReceiveMemory)]);
    net.run_for(Duration::from_secs(1));
    assert_eq!(net.pair.b.blocks_available(), blocks);
}

/// Each of the two interleaved messages takes 60 % of the connection's memory limit.
#[test]
fn two_messages_that_together_exceed_the_memory_are_delivered() {
    let capacity = Capacity { connections: 1, blocks: 400, block_size: 256 };
    let small = Peer::with_capacity(capacity, server_config());
    let conditions = Conditions { latency: Duration::from_millis(5), loss: 0.02, ..Conditions::default() };
    let mut net = Net::with(peer(client_config()), small, conditions, 1);
    let (client, _) = net.connect();
    let large = |byte: u8| vec![byte; 200 * 256 * 6 / 10];
    for byte in [0x90, 0x91] {
        net.pair.a.send(net.pair.now, client, &large(byte), Delivery::RELIABLE).expect("free memory");
    }
    net.run_for(Duration::from_secs(60));
    let mut arrived = messages(&net.server);
    arrived.sort();
    assert!(arrived == [large(0x90), large(0x91)], "{} messages arrived", arrived.len());
}

/// A part is dropped if its part count differs from that of the first received part of its message.
#[test]
fn parts_that_contradict_their_message_are_dropped() {
    let (mut net, _, _) = connected();
    let part = |reliable, count, index| {
        let split = Some(Split { count, id: 9, index });
        CapsuleHeader { split, ..capsule(Reliability::Reliable, reliable, 0) }
    };
    let parts = [(0, 3, 2, b'c'), (1, 4, 1, b'x'), (2, 3, 0, 0x86), (3, 3, 2, b'y'), (4, 3, 1, b'b')];
    for (step, count, index, byte) in parts {
        let datagram = data(NEXT + step, part(NEXT + step, count, index), &[byte]);
        let (now, from) = (net.now(), net.pair.a_address);
        net.pair.b.handle_datagram(now, from, &datagram);
    }
    net.poll();
    assert_eq!(messages(&net.server), [b"\x86bc"]);
    assert_eq!(net.pair.b.stats().dropped(DropReason::BadSplit), 1);
    assert_eq!(net.pair.b.stats().dropped(DropReason::DuplicateMessage), 1);
}

/// The first message from a client must be its connection request. If it is another message, the server drops the
/// connection, and the client may retry immediately from its address.
#[test]
fn a_client_without_a_connection_request_is_dropped() {
    let mut config = server_config();
    config.cookies = CookiePolicy::Off;
    let mut net = Net::with(peer(client_config()), peer(config), Conditions::default(), 1);
    let (now, from) = (net.now(), net.pair.a_address);
    let request =
        Offline::Request2 { security: ClientSecurity::None, server: from, mtu: 1_492, guid: Guid(77) };
    net.pair.b.handle_datagram(now, from, &written(&Offline::Request1 { protocol: 6, mtu: 576 }));
    net.pair.b.handle_datagram(now, from, &written(&request));
    assert_eq!(net.pair.b.connections().count(), 1);
    net.pair.b.handle_datagram(now, from, &data(0, capsule(Reliability::Reliable, 0, 0), b"\x15"));
    net.run_for(Duration::from_millis(10));
    assert_eq!(net.pair.b.connections().count(), 0);
    net.connect();
}

/// A receiver without memory refuses reliable messages, and the sender retransmits them until they are accepted.
#[test]
fn an_application_that_does_not_read_blocks_the_sender() {
    let capacity = Capacity { connections: 1, blocks: 64, block_size: 256 };
    let (a, b) = (peer(client_config()), Peer::with_capacity(capacity, server_config()));
    let mut net =
        Net::with(a, b, Conditions { latency: Duration::from_millis(5), ..Conditions::default() }, 1);
    let (client, _) = net.connect();
    for number in 0..500_u32 {
        let message = [&[0x86][..], &number.to_be_bytes(), &[0; 300]].concat();
        net.pair.a.send(net.pair.now, client, &message, Delivery::RELIABLE_ORDERED).expect("free memory");
    }
    // The application stops reading for a while.
    let end = net.now() + Duration::from_secs(30);
    while net.now() < end && net.pair.step() {}
    assert!(net.pair.b.stats().dropped(DropReason::NoMemory) > 0);
    net.run_for(Duration::from_secs(60));
    let arrived = messages(&net.server);
    assert_eq!(
        arrived.len(),
        500,
        "client: {:?}, server: {:?}, connection: {:?}",
        net.client,
        net.server.last(),
        net.pair.a.connection_stats(client)
    );
    assert!(arrived.iter().zip(0_u32..).all(|(message, number)| message[1..5] == number.to_be_bytes()));
}

/// A paused connection refuses data once its memory is full, and delivers everything after it is resumed.
#[test]
fn a_paused_connection_keeps_its_events() {
    let capacity = Capacity { connections: 1, blocks: 64, block_size: 256 };
    let (a, b) = (peer(client_config()), Peer::with_capacity(capacity, server_config()));
    let mut net =
        Net::with(a, b, Conditions { latency: Duration::from_millis(5), ..Conditions::default() }, 1);
    let (client, server) = net.connect();
    assert!(net.pair.b.pause(server));
    for number in 0..100_u8 {
        net.pair
            .a
            .send(
                net.pair.now,
                client,
                &[&[0x86, number][..], &[0; 300]].concat(),
                Delivery::RELIABLE_ORDERED,
            )
            .expect("free memory");
    }
    net.run_for(Duration::from_secs(3));
    assert!(net.server.is_empty());
    assert!(net.pair.b.stats().dropped(DropReason::NoMemory) > 0);
    assert!(net.pair.b.resume(server));
    net.run_for(Duration::from_secs(20));
    assert!(messages(&net.server).iter().zip(0..100).all(|(message, number)| message[1] == number));
    assert_eq!(net.server.len(), 100);
    net.pair.b.pause(server);
    net.pair.a.disconnect(net.pair.now, client);
    net.run_for(Duration::from_secs(5));
    assert_eq!((net.server.len(), net.pair.b.connections().count()), (100, 1));
    net.pair.b.resume(server);
    net.run_for(Duration::from_secs(1));
    assert_eq!(net.server.last(), Some(&OwnedEvent::Disconnected(server, DisconnectReason::Remote)));
    assert!(!net.pair.b.resume(server));
}
