//! Limits on the part of a peer's memory that one connection may take.

use core::net::SocketAddr;
use core::time::Duration;

use rakwire::Instant;
use rakwire::U24;
use rakwire::raknet::{
    Capacity, Channel, ConnectFailure, ConnectOptions, Delivery, DisconnectReason, DropReason, Guid, Peer,
    Priority, Reliability, SendError,
};
use rakwire::sim::{Bottleneck, Conditions};
use rakwire::wire::datagram::{CapsuleHeader, DatagramHeader, Record, Split};
use rakwire::wire::offline::{ClientSecurity, Offline, ServerSecurity};
use rakwire::wire::{MAX_DATAGRAM, Reader, Wire, id};

use crate::support::forged::{capsule, data, written};
use crate::support::raknet::{Net, OwnedEvent, client_config, messages, peer, server_config};

/// A number that is greater than all datagram and message numbers of the client's handshake.
const NEXT: u32 = 20;

fn latency(millis: u64) -> Conditions {
    Conditions { latency: Duration::from_millis(millis), ..Conditions::default() }
}

/// Returns a datagram with part `index` of a message of `count` parts; the part has `length` bytes.
fn part(index: u32, count: u32, length: usize) -> Vec<u8> {
    let bits = u16::try_from(length * 8).unwrap_or(u16::MAX);
    let split = Some(Split { count, id: 1, index });
    let mut bytes = written(&DatagramHeader::Data { hints: 4, number: U24::new(NEXT + index) });
    bytes.extend(written(&CapsuleHeader { split, bits, ..capsule(Reliability::Reliable, NEXT + index, 0) }));
    bytes.extend(vec![0x86; length]);
    bytes
}

/// The client sends parts that exceed its negotiated MTU, and jumbo frames.
#[test]
fn parts_longer_than_the_mtu_take_at_most_half_of_the_memory() {
    for (mtu, length) in [(576, 1_432), (1_492, 8_000)] {
        let mut config = client_config();
        config.mtu = mtu;
        let mut net = Net::with(peer(config), peer(server_config()), Conditions::default(), 1);
        net.connect();
        net.run_for(Duration::from_millis(100));
        let blocks = net.pair.b.blocks();
        for index in 0..1_300 {
            let (now, from) = (net.now(), net.pair.a_address);
            net.pair.b.handle_datagram(now, from, &part(index, 1_301, length));
        }
        assert!(
            net.pair.b.blocks_available() >= blocks / 2 - 40,
            "only {} blocks are free",
            net.pair.b.blocks_available()
        );
    }
}

/// The client acknowledges nothing and then starts a message that exceeds the limit.
#[test]
fn a_connection_holds_at_most_the_configured_blocks() {
    let mut config = server_config();
    config.connection_blocks = Some(64);
    let mut net = Net::with(peer(client_config()), peer(config), Conditions::default(), 1);
    let (_, server) = net.connect();
    net.run_for(Duration::from_millis(100));
    let blocks = net.pair.b.blocks();
    let (now, from) = (net.now(), net.pair.a_address);
    let mut sent = 0;
    while net.pair.b.send(now, server, &[0x86; 100], Delivery::RELIABLE).is_ok() {
        sent += 1;
    }
    assert!((60..=64).contains(&sent), "{sent}");
    assert!(net.pair.b.blocks_available() >= blocks - 64);
    net.pair.b.handle_datagram(now, from, &part(0, 100, 1_000));
    net.run_for(Duration::from_millis(10));
    let too_large = OwnedEvent::Disconnected(server, DisconnectReason::MessageTooLarge);
    assert!(net.server.contains(&too_large), "{:?}", net.server);
}

/// The client acknowledges nothing and floods the server with pings. Pongs take no memory, and lost path probes free
/// theirs.
#[test]
fn a_flood_of_pings_takes_no_memory() {
    for length in [500, 1_000, 1_400] {
        a_flood_of_pings_beside_messages(length);
    }
}

fn a_flood_of_pings_beside_messages(length: usize) {
    /// The blocks of path probes that are in flight or not yet declared lost.
    const PATH_PROBES: usize = 8;
    let mut net = Net::new(Conditions::default(), 1);
    let (_, server) = net.connect();
    net.run_for(Duration::from_secs(1));
    let mut sent = 0;
    while net.pair.b.send(net.pair.now, server, &vec![0x86; length], Delivery::RELIABLE).is_ok() && sent < 400
    {
        sent += 1;
    }
    let free = net.pair.b.blocks_available();
    let mut pings = written(&DatagramHeader::Data { hints: 4, number: U24::new(0) });
    for _ in 0..100 {
        pings.extend(written(&CapsuleHeader { bits: 72, ..capsule(Reliability::Unreliable, 0, 0) }));
        pings.extend([0; 9]);
    }
    let mut buffer = [0; MAX_DATAGRAM];
    let (mut now, mut number) = (net.now(), NEXT);
    for _ in 0..300 {
        now = now + Duration::from_millis(100);
        for _ in 0..10 {
            pings[1..4].copy_from_slice(&number.to_le_bytes()[..3]);
            number += 1;
            let from = net.pair.a_address;
            net.pair.b.handle_datagram(now, from, &pings);
        }
        net.pair.b.handle_timeout(now);
        while net.pair.b.poll_transmit(now, &mut buffer).is_some() {}
        let held = free.saturating_sub(net.pair.b.blocks_available());
        assert!(held <= PATH_PROBES, "{held} more blocks held, messages of {length} bytes");
    }
}

/// The remote peer disconnects while its acknowledged messages still wait for blocks. They are delivered before
/// `Disconnected`.
#[test]
fn a_disconnection_notification_loses_no_message_waiting_for_blocks() {
    const MESSAGES: u32 = 64;
    let capacity = Capacity { connections: 1, blocks: 32, block_size: 128 };
    let (a, b) = (peer(client_config()), Peer::with_capacity(capacity, server_config()));
    let mut net = Net::with(a, b, latency(5), 1);
    let (_, server) = net.connect();
    net.run_for(Duration::from_secs(1));
    let (now, from) = (net.now(), net.pair.a_address);
    // Messages that wait for the first message of their channel share blocks. Once it arrives, each needs a block.
    for order in (1..MESSAGES).chain([0]) {
        let number = NEXT + order;
        let header = CapsuleHeader { channel: 1, ..capsule(Reliability::ReliableOrdered, number, order) };
        net.pair.b.handle_datagram(now, from, &data(number, header, &[0x86, order as u8]));
    }
    let notification = capsule(Reliability::Reliable, NEXT + MESSAGES, 0);
    for again in 0..2 {
        let number = NEXT + MESSAGES + again;
        net.pair.b.handle_datagram(now, from, &data(number, notification, &[id::DISCONNECTION_NOTIFICATION]));
        net.poll();
    }
    let expected: Vec<_> = (0..MESSAGES).map(|order| [0x86, order as u8]).collect();
    assert_eq!(messages(&net.server), expected);
    let end = OwnedEvent::Disconnected(server, DisconnectReason::Remote);
    assert_eq!(net.server.last(), Some(&end));
    assert!(net.pair.b.stats().dropped(DropReason::NoMemory) > 0);
}

/// The connection stays open, and neither peer reports an event.
#[test]
fn an_unreliable_message_that_exceeds_the_memory_is_only_dropped() {
    let capacity = Capacity { connections: 1, blocks: 16, block_size: 128 };
    let (a, b) = (peer(client_config()), Peer::with_capacity(capacity, server_config()));
    let mut net = Net::with(a, b, latency(5), 1);
    let (client, _) = net.connect();
    net.run_for(Duration::from_secs(1));
    net.pair.a.send(net.pair.now, client, &[0x86; 1_200], Delivery::UNRELIABLE).expect("free memory");
    net.run_for(Duration::from_secs(30));
    assert_eq!((&net.client[..], &net.server[..]), (&[][..], &[][..]));
    assert!(net.pair.b.stats().dropped(DropReason::NoMemory) > 0);
}

/// The path is slow, and the receiver has memory for only one of the two large messages at a time.
#[test]
fn two_large_messages_are_delivered_although_one_waits_for_memory() {
    for second in [Priority::Immediate, Priority::High, Priority::Low] {
        both_arrive(second);
    }
}

fn both_arrive(second: Priority) {
    let capacity = Capacity { connections: 1, blocks: 4_096, block_size: 512 };
    let bottleneck = Some(Bottleneck::with_queue_of(300_000, Duration::from_millis(300)));
    let path = Conditions { bottleneck, ..latency(20) };
    let mut net = Net::with(peer(client_config()), Peer::with_capacity(capacity, server_config()), path, 1);
    let (client, _) = net.connect();
    net.run_for(Duration::from_secs(1));
    for (byte, priority) in [(0x90, Priority::High), (0x91, second)] {
        let delivery = Delivery::RELIABLE.with_priority(priority);
        net.pair.a.send(net.pair.now, client, &vec![byte; 600_000], delivery).expect("free memory");
        net.run_for(Duration::from_millis(500));
    }
    net.run_for(Duration::from_secs(120));
    assert_eq!(messages(&net.server).len(), 2, "{second:?}: {:?}", net.client);
}

/// A second message waits for the large one, so both need memory at the same time.
///
/// Either both messages are delivered, or both peers report `Disconnected`.
#[test]
fn a_message_beyond_half_of_the_memory_limit_is_delivered_or_closes_the_connection() {
    let capacity = Capacity { connections: 1, blocks: 24, block_size: 128 };
    let (a, b) = (peer(client_config()), Peer::with_capacity(capacity, server_config()));
    let mut net = Net::with(a, b, latency(5), 1);
    let (client, server) = net.connect();
    net.run_for(Duration::from_secs(1));
    net.pair.set_conditions(Conditions { loss: 1.0, ..latency(5) });
    net.pair.a.send(net.pair.now, client, &[0x86; 1_000], Delivery::RELIABLE_ORDERED).expect("free memory");
    net.pair.transmit();
    net.pair.set_conditions(latency(5));
    net.pair.a.send(net.pair.now, client, &[0x87; 700], Delivery::RELIABLE_ORDERED).expect("free memory");
    net.run_for(Duration::from_secs(30));
    let ended = [OwnedEvent::Disconnected(server, DisconnectReason::ReceiveMemory)];
    let events = [OwnedEvent::Disconnected(client, DisconnectReason::Remote)];
    let both_notified = net.server == ended && net.client == events;
    assert!(messages(&net.server).len() == 2 || both_notified, "{:?}, {:?}", net.server, net.client);
}

/// The state of channels above 3 takes memory, so messages that no longer fit are refused with `NeverFits`.
#[test]
fn high_channels_reduce_the_longest_message_of_a_small_peer() {
    let capacity = Capacity { connections: 1, blocks: 24, block_size: 64 };
    let (a, b) =
        (Peer::with_capacity(capacity, client_config()), Peer::with_capacity(capacity, server_config()));
    let mut net = Net::with(a, b, latency(5), 1);
    let (client, server) = net.connect();
    net.run_for(Duration::from_secs(1));
    let rare = Delivery::RELIABLE_ORDERED.on(Channel::new(31).expect("channel 31"));
    for length in [1, 320, 700, 320, 700] {
        let bytes = vec![0x86; length];
        // The tables of the high channels take half of the memory, and a quarter is reserved for incoming messages.
        let room = if length == 700 { Err(SendError::NeverFits) } else { Ok(None) };
        assert_eq!(net.pair.a.send(net.pair.now, client, &bytes, rare), room, "{length}");
        net.run_for(Duration::from_secs(1));
        assert_eq!(net.pair.b.send(net.pair.now, server, &bytes, rare), room, "{length}");
        net.run_for(Duration::from_secs(1));
    }
    assert_eq!((messages(&net.server).len(), messages(&net.client).len()), (3, 3));
}

#[test]
fn a_peer_too_small_for_high_channels_refuses_them() {
    let capacity = Capacity { connections: 1, blocks: 16, block_size: 32 };
    let mut net =
        Net::with(Peer::with_capacity(capacity, client_config()), peer(server_config()), latency(5), 1);
    let (client, _) = net.connect();
    net.run_for(Duration::from_secs(1));
    for (number, sent) in [(3, Ok(None)), (4, Err(SendError::NeverFits))] {
        let channel = Channel::new(number).expect("a channel");
        let delivery = Delivery::RELIABLE_ORDERED.on(channel);
        assert_eq!(net.pair.a.send(net.pair.now, client, &[0x86], delivery), sent);
    }
    net.run_for(Duration::from_secs(1));
    assert_eq!(messages(&net.server).len(), 1);
}

/// Attack A11: clients with valid cookies never continue their handshakes.
#[test]
fn new_clients_evict_half_open_connections_of_a_full_server() {
    let mut config = server_config();
    (config.max_per_address, config.max_per_network) = (Some(9), Some(9));
    let mut server = peer(config);
    let now = Instant::from_micros(1_000_000);
    for port in 5_000..5_020 {
        let from = SocketAddr::from(([203, 0, 113, 1], port));
        let cookie = request_cookie(&mut server, now, from);
        let request = |guid| {
            let security = ClientSecurity::Cookie(cookie);
            written(&Offline::Request2 { security, server: from, mtu: 1_492, guid: Guid(guid) })
        };
        server.handle_datagram(now, from, &request(port.into()));
        if server.connection_at(from).is_none() {
            // The first request 2 only evicts a connection. A real client retransmits it half a second later.
            let mut buffer = [0; MAX_DATAGRAM];
            assert!(
                server.poll_transmit(now, &mut buffer).is_none(),
                "the request that evicts a client must get no reply"
            );
            server.handle_datagram(now, from, &request(port.into()));
        }
        assert!(server.connection_at(from).is_some(), "port {port} got no slot");
        let mut buffer = [0; MAX_DATAGRAM];
        while server.poll_transmit(now, &mut buffer).is_some() {}
    }
    assert!(server.connections().count() <= 8);
}

fn request_cookie(server: &mut Peer<'_>, now: Instant, from: SocketAddr) -> u32 {
    server.handle_datagram(now, from, &written(&Offline::Request1 { protocol: 6, mtu: 1_492 }));
    let mut buffer = [0; MAX_DATAGRAM];
    let reply = server.poll_transmit(now, &mut buffer).expect("a reply");
    match Offline::read(&mut Reader::new(reply.payload)) {
        Ok(Offline::Reply1 { security: ServerSecurity::Cookie(cookie), .. }) => cookie,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_attempt_with_255_requests_fails_after_the_last_request() {
    let mut net =
        Net::with(peer(client_config()), peer(server_config()), Conditions { loss: 1.0, ..latency(1) }, 1);
    let options = ConnectOptions {
        attempts: Some(u8::MAX),
        interval: Some(Duration::from_millis(10)),
        ..ConnectOptions::default()
    };
    let to = net.pair.b_address;
    let id = net.pair.a.connect_with(net.pair.now, to, &options).expect("a free slot");
    assert!(net.run_until(Duration::from_secs(60), |net| !net.client.is_empty()));
    assert_eq!(net.client, [OwnedEvent::Failed(id, ConnectFailure::NoAnswer)]);
    assert_eq!(net.pair.a.stats().datagrams_sent, 255);
}

/// Only the last record is cut off.
#[test]
fn the_complete_records_of_a_truncated_acknowledgement_are_processed() {
    let mut net = Net::new(latency(20), 1);
    let (client, _) = net.connect();
    net.run_for(Duration::from_secs(1));
    net.pair.set_conditions(Conditions { loss: 1.0, ..latency(20) });
    net.pair.a.send(net.pair.now, client, &[0x86; 1_000], Delivery::RELIABLE).expect("free memory");
    net.pair.transmit();
    let before = net.pair.a.connection_stats(client).expect("an open connection");
    let mut datagram = written(&DatagramHeader::Ack { arrival_speed: None, records: 2 });
    datagram.extend(written(&Record { first: U24::new(0), last: U24::new(100) }));
    datagram.extend([1, 0]);
    let (now, from) = (net.now() + Duration::from_millis(90), net.pair.b_address);
    net.pair.a.handle_datagram(now, from, &datagram);
    let after = net.pair.a.connection_stats(client).expect("an open connection");
    assert_eq!(after.in_flight, 0);
    assert!(after.round_trip > before.round_trip);
    assert_eq!(net.pair.a.stats().dropped(DropReason::BadDatagram), 1);
}
