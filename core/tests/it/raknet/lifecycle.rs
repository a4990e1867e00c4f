//! The life cycle of a connection, in virtual time: opening, sending and closing.

use core::time::Duration;

use rakwire::Instant;
use rakwire::raknet::{
    Channel, CongestionControl, ConnectError, ConnectFailure, ConnectOptions, ConnectionState, CookiePolicy,
    Delivery, DialledAddress, DisconnectReason, DropReason, Reliability, SendError, SetError,
};
use rakwire::sim::Conditions;
use rakwire::wire::MAX_DATAGRAM;

use crate::support::forged::answers;
use crate::support::raknet::{Net, OwnedEvent, client_config, messages, peer, server_config};

fn latency(millis: u64) -> Conditions {
    Conditions { latency: Duration::from_millis(millis), ..Conditions::default() }
}

#[test]
fn a_connection_opens_delivers_messages_and_closes() {
    let mut net = Net::new(latency(10), 1);
    let (client, server) = net.connect();
    let now = net.now();
    net.pair.a.send(now, client, b"\x86hello", Delivery::RELIABLE_ORDERED).expect("free memory");
    net.pair.b.send(now, server, b"\x86welcome", Delivery::UNRELIABLE).expect("free memory");
    net.run_for(Duration::from_secs(1));
    assert_eq!(messages(&net.server), [b"\x86hello"]);
    assert_eq!(messages(&net.client), [b"\x86welcome"]);
    net.pair.a.disconnect(net.pair.now, client);
    let state = net.pair.a.connection(client).map(|info| info.state);
    assert_eq!(state, Some(ConnectionState::Disconnecting));
    net.run_for(Duration::from_secs(3));
    assert_eq!(net.client.last(), Some(&OwnedEvent::Disconnected(client, DisconnectReason::Local)));
    assert_eq!(net.server.last(), Some(&OwnedEvent::Disconnected(server, DisconnectReason::Remote)));
    assert_eq!(net.pair.a.connection(client), None);
    assert_eq!(net.pair.b.connection(server), None);
    assert_eq!(net.pair.a.blocks_available(), net.pair.a.blocks());
    assert_eq!(net.pair.b.blocks_available(), net.pair.b.blocks());
}

#[test]
fn the_server_or_both_peers_may_disconnect() {
    for both in [false, true] {
        let mut net = Net::new(latency(10), 1);
        let (client, server) = net.connect();
        net.pair.b.disconnect(net.pair.now, server);
        if both {
            net.pair.a.disconnect(net.pair.now, client);
        }
        net.run_for(Duration::from_secs(8));
        let reason = if both { DisconnectReason::Local } else { DisconnectReason::Remote };
        assert_eq!(net.client, [OwnedEvent::Disconnected(client, reason)]);
        assert_eq!(net.server, [OwnedEvent::Disconnected(server, DisconnectReason::Local)]);
        assert_eq!(net.pair.a.connections().count() + net.pair.b.connections().count(), 0);
    }
}

#[test]
fn messages_sent_before_a_disconnect_are_delivered() {
    let conditions = Conditions { loss: 0.3, ..latency(20) };
    let mut net = Net::new(conditions, 5);
    let (client, server) = net.connect();
    for number in 0..50 {
        let message = [0x86, number];
        net.pair.a.send(net.pair.now, client, &message, Delivery::RELIABLE_ORDERED).expect("free memory");
    }
    net.pair.a.disconnect(net.pair.now, client);
    net.run_for(Duration::from_secs(20));
    assert_eq!(messages(&net.server).len(), 50);
    assert_eq!(net.server.last(), Some(&OwnedEvent::Disconnected(server, DisconnectReason::Remote)));
    assert_eq!(net.client, [OwnedEvent::Disconnected(client, DisconnectReason::Local)]);
}

#[test]
fn messages_are_delivered_with_their_reliability_and_channel() {
    let mut net = Net::new(latency(5), 1);
    let (client, _) = net.connect();
    let channel = Channel::new(31).expect("a channel below 32");
    let all = [
        Delivery::UNRELIABLE,
        Delivery::UNRELIABLE_SEQUENCED.on(channel),
        Delivery::RELIABLE,
        Delivery::RELIABLE_ORDERED.on(channel),
        Delivery::RELIABLE_SEQUENCED.on(channel),
    ];
    for delivery in all {
        let message = [0x86, delivery.reliability as u8];
        net.pair.a.send(net.pair.now, client, &message, delivery).expect("free memory");
    }
    net.run_for(Duration::from_secs(1));
    let arrived: Vec<_> = net
        .server
        .iter()
        .map(|event| match event {
            OwnedEvent::Message(_, delivery, bytes) => (*delivery, bytes[1]),
            other @ (OwnedEvent::Connected(_)
            | OwnedEvent::Failed(..)
            | OwnedEvent::Disconnected(..)
            | OwnedEvent::Pong(..)
            | OwnedEvent::Receipt(..)
            | OwnedEvent::Progress(_)) => {
                panic!("{other:?}")
            }
        })
        .collect();
    assert_eq!(arrived, all.map(|delivery| (delivery, delivery.reliability as u8)));
}

/// An unreliable message becomes reliable when it is split.
#[test]
fn large_messages_are_split_and_sent_reliably() {
    let mut net = Net::new(Conditions { loss: 0.1, reordering: 0.2, ..latency(10) }, 3);
    let (client, _) = net.connect();
    let large: Vec<u8> = (0..200_000_u32).map(|index| ((index * 31) >> 3) as u8 | 0x86).collect();
    net.pair.a.send(net.pair.now, client, &large, Delivery::UNRELIABLE).expect("free memory");
    assert!(net.run_until(Duration::from_secs(60), |net| !net.server.is_empty()));
    let OwnedEvent::Message(_, delivery, bytes) = &net.server[0] else { panic!("{:?}", net.server[0]) };
    assert_eq!(delivery.reliability, Reliability::Reliable);
    assert!(*bytes == large, "the received message must equal the sent one");
}

#[test]
fn an_attempt_fails_after_thirteen_unanswered_requests() {
    let mut net = Net::new(Conditions { loss: 1.0, ..Conditions::default() }, 1);
    let id = net.pair.a.connect(net.pair.now, net.pair.b_address).expect("a free slot");
    let start = net.now();
    assert!(net.run_until(Duration::from_secs(30), |net| !net.client.is_empty()));
    assert_eq!(net.client, [OwnedEvent::Failed(id, ConnectFailure::NoAnswer)]);
    assert_eq!(net.now().saturating_since(start), Duration::from_millis(6_500));
    assert_eq!(net.pair.a.stats().datagrams_sent, 13);
    let sizes = 4 * 1464 + 4 * 1172 + 5 * 548;
    assert_eq!(net.pair.a.stats().bytes_sent, sizes);
}

/// The client probes MTUs in descending order; larger datagrams are dropped.
#[test]
fn the_mtu_is_the_first_size_that_the_path_carries() {
    for (longest, mtu) in [(1_464, 1_492), (1_463, 1_200), (1_171, 576)] {
        let mut peers = [peer(client_config()), peer(server_config())];
        let addresses = ["192.0.2.1:7", "192.0.2.2:7"].map(|address| address.parse().expect("an address"));
        let mut now = Instant::from_micros(1_000_000);
        let id = peers[0].connect(now, addresses[1]).expect("a free slot");
        let mut buffer = [0; MAX_DATAGRAM];
        for _ in 0..700 {
            now = now + Duration::from_millis(10);
            for from in [0, 1] {
                peers[from].handle_timeout(now);
                while let Some(transmit) = peers[from].poll_transmit(now, &mut buffer) {
                    let datagram = transmit.payload.to_vec();
                    if datagram.len() <= longest {
                        peers[1 - from].handle_datagram(now, addresses[from], &datagram);
                    }
                }
            }
        }
        let at_server = peers[1].connection_at(addresses[0]);
        let known = [(&peers[0], Some(id)), (&peers[1], at_server)].map(|(peer, id)| {
            let id = id?;
            Some((peer.connection(id)?.state, peer.connection_stats(id)?.mtu))
        });
        assert_eq!(known, [Some((ConnectionState::Connected, mtu)); 2]);
    }
}

#[test]
fn an_unresponsive_peer_times_out() {
    let mut net = Net::new(latency(10), 1);
    let (client, server) = net.connect();
    net.run_for(Duration::from_secs(60));
    assert_eq!((&net.client[..], &net.server[..]), (&[][..], &[][..]), "an idle connection must stay open");
    net.pair.set_conditions(Conditions { loss: 1.0, ..Conditions::default() });
    let start = net.now();
    net.run_for(Duration::from_secs(30));
    assert_eq!(net.client, [OwnedEvent::Disconnected(client, DisconnectReason::Lost)]);
    assert_eq!(net.server, [OwnedEvent::Disconnected(server, DisconnectReason::Lost)]);
    assert!(net.now().saturating_since(start) <= Duration::from_secs(31));
    assert_eq!(net.pair.a.blocks_available(), net.pair.a.blocks());
}

/// An application that cannot wait, such as a web page that is closed, calls `handle_timeout` with a time after all
/// deadlines directly after `disconnect`.
#[test]
fn an_immediate_disconnect_notifies_the_peer_despite_unacknowledged_messages() {
    for (timeout, silence) in [(10, 0), (10, 4_500), (2, 0), (2, 900)] {
        let mut config = client_config();
        config.timeout = Duration::from_secs(timeout);
        let mut net = Net::with(peer(config), peer(server_config()), latency(10), 1);
        let (client, server) = net.connect();
        net.pair.set_conditions(Conditions { loss: 1.0, ..Conditions::default() });
        net.pair
            .a
            .send(net.pair.now, client, b"\x86unacknowledged", Delivery::RELIABLE_ORDERED)
            .expect("free memory");
        net.run_for(Duration::from_millis(silence));
        assert_eq!(net.client, [], "timeout {timeout} s, silence {silence} ms");
        net.pair.set_conditions(latency(10));
        let now = net.pair.now;
        net.pair.a.disconnect(now, client);
        net.pair.a.handle_timeout(now + Duration::from_secs(6));
        net.pair.transmit();
        net.run_for(Duration::from_secs(1));
        assert_eq!(net.client, [OwnedEvent::Disconnected(client, DisconnectReason::Local)]);
        let ended = OwnedEvent::Disconnected(server, DisconnectReason::Remote);
        assert_eq!(net.server.last(), Some(&ended), "timeout {timeout} s, silence {silence} ms");
    }
}

#[test]
fn another_protocol_version_is_refused_with_the_servers_version() {
    let mut net = Net::new(latency(1), 1);
    let options = ConnectOptions { protocol_version: Some(9), ..ConnectOptions::default() };
    let id = net.pair.a.connect_with(net.pair.now, net.pair.b_address, &options).expect("a free slot");
    net.run_for(Duration::from_secs(1));
    let reason = ConnectFailure::IncompatibleProtocol { server: 11 };
    assert_eq!(net.client, [OwnedEvent::Failed(id, reason)]);
}

#[test]
fn a_client_with_an_unknown_dialled_address_connects_to_a_server_without_cookies() {
    let mut server = server_config();
    server.cookies = CookiePolicy::Off;
    let mut client = client_config();
    client.dialled_address = DialledAddress::Unknown;
    client.mtu = 600;
    client.address_count = Some(20);
    let mut net = Net::with(peer(client), peer(server), latency(1), 1);
    let (client, server) = net.connect();
    assert_eq!(net.pair.a.connection_stats(client).map(|stats| stats.mtu), Some(600));
    assert_eq!(net.pair.b.connection_stats(server).map(|stats| stats.mtu), Some(600));
}

#[test]
fn pings_are_answered_with_the_advertisement() {
    let mut net = Net::new(latency(10), 1);
    assert_eq!(net.pair.b.set_advertisement(b"a server"), Ok(()));
    assert_eq!(net.pair.b.set_advertisement(&[0; 400]), Err(SetError::AdvertisementTooLong));
    net.pair.a.ping(net.pair.now, net.pair.b_address).expect("few pings");
    net.run_for(Duration::from_secs(1));
    assert_eq!(net.client, [OwnedEvent::Pong(Duration::from_millis(20), b"a server".to_vec())]);
    assert_eq!(net.pair.a.blocks_available(), net.pair.a.blocks());
}

#[test]
fn invalid_calls_return_distinct_errors() {
    let mut net = Net::new(latency(1), 1);
    let (client, _) = net.connect();
    let now = net.now();
    let a = &mut net.pair.a;
    assert_eq!(a.send(now, client, &[], Delivery::RELIABLE), Err(SendError::Empty));
    assert_eq!(a.send(now, client, &[0x15], Delivery::RELIABLE), Err(SendError::ReservedId));
    let huge = vec![0x86; 8_192 * 512];
    assert_eq!(a.send(now, client, &huge, Delivery::RELIABLE), Err(SendError::NeverFits));
    let half = vec![0x86; 3_000 * 512];
    assert_eq!(a.send(now, client, &half, Delivery::RELIABLE), Ok(None));
    assert_eq!(a.send(now, client, &half, Delivery::RELIABLE), Err(SendError::QuotaExceeded));
    a.disconnect(now, client);
    assert_eq!(a.send(now, client, &[0x86], Delivery::RELIABLE), Err(SendError::NotConnected));
}

#[test]
fn can_send_reports_whether_a_message_would_be_accepted() {
    let mut net = Net::new(latency(1), 1);
    let (client, _) = net.connect();
    let now = net.now();
    let a = &mut net.pair.a;
    let far = Delivery::RELIABLE_ORDERED.on(Channel::new(31).expect("a channel"));
    let recorded = Delivery::new(Reliability::ReliableWithReceipt);
    let mut refusals = [0; 3];
    for length in [0, 5_000_000, 3_000 * 512, 1, 900_000, 60_000, 60_000, 60_000, 512, 512, 512, 1, 512, 512]
    {
        for delivery in [Delivery::RELIABLE, recorded, far] {
            let expected = a.can_send(client, length, delivery);
            assert_eq!(
                a.can_send(client, length, delivery),
                expected,
                "`can_send` must not change its own result"
            );
            let sent = a.send(now, client, &vec![0x86; length], delivery);
            assert_eq!(sent.map(|_| ()), expected, "a message of {length} bytes");
            for (count, refusal) in
                refusals.iter_mut().zip([SendError::Empty, SendError::NeverFits, SendError::QuotaExceeded])
            {
                *count += usize::from(expected == Err(refusal));
            }
        }
    }
    assert!(refusals.iter().all(|count| *count > 0), "{refusals:?}");
    net.run_for(Duration::from_secs(20));
    assert_eq!(
        net.pair.a.can_send(client, 900_000, recorded),
        Ok(()),
        "acknowledgements must free the memory"
    );
    net.pair.a.disconnect(net.pair.now, client);
    assert_eq!(net.pair.a.can_send(client, 1, far), Err(SendError::NotConnected));
    net.run_for(Duration::from_secs(20));
    assert_eq!(net.pair.a.can_send(client, 1, far), Err(SendError::NotConnected), "the connection is closed");
}

#[test]
fn a_cancelled_attempt_fails_immediately() {
    let mut net = Net::new(latency(1), 1);
    let id = net.pair.a.connect(net.pair.now, net.pair.b_address).expect("a free slot");
    assert!(net.pair.a.connect(net.pair.now, net.pair.b_address).is_err());
    net.pair.a.disconnect(net.pair.now, id);
    net.run_for(Duration::from_secs(1));
    assert_eq!(net.client, [OwnedEvent::Failed(id, ConnectFailure::Cancelled)]);
    assert!(net.pair.a.connect(net.pair.now, net.pair.b_address).is_ok());
}

#[test]
fn duplicated_unreliable_messages_arrive_once() {
    let mut net = Net::new(Conditions { duplication: 1.0, ..latency(5) }, 1);
    let (client, _) = net.connect();
    for number in 0..20 {
        let message = [0x86, number];
        net.pair.a.send(net.pair.now, client, &message, Delivery::UNRELIABLE).expect("free memory");
        net.run_for(Duration::from_millis(5));
    }
    net.run_for(Duration::from_secs(1));
    assert_eq!(messages(&net.server).len(), 20);
    assert!(net.pair.b.stats().dropped(DropReason::DuplicateDatagram) > 0);
}

/// The server has disconnected the client, and its old connection may still be draining.
#[test]
fn a_client_may_reconnect_immediately_from_its_address() {
    let mut net = Net::new(latency(5), 1);
    for _ in 0..5 {
        let (client, server) = net.connect();
        net.pair.b.disconnect(net.pair.now, server);
        assert!(net.run_until(Duration::from_secs(3), |net| !net.client.is_empty()));
        assert_eq!(net.client, [OwnedEvent::Disconnected(client, DisconnectReason::Remote)]);
        net.client.clear();
        net.server.clear();
    }
    net.run_for(Duration::from_secs(30));
    assert!(net.pair.a.connections().count() <= 1);
}

/// The client reports `Connected` as soon as the server accepts it, before the server reports the connection.
#[test]
fn a_server_closing_during_the_handshake_notifies_its_client() {
    let mut net = Net::new(latency(10), 1);
    let to = net.pair.b_address;
    let id = net.pair.a.connect(net.now(), to).expect("a free slot");
    assert!(net.run_until(Duration::from_secs(1), |net| net.client.contains(&OwnedEvent::Connected(id))));
    // The client sends no further datagram.
    net.pair.transmit();
    net.pair.forth().set_conditions(Conditions { loss: 1.0, ..latency(10) });
    while net.pair.forth().receive(Instant::from_micros(u64::MAX)).is_some() {}
    let server = net.pair.b.connections().next().expect("a connection");
    assert_eq!(net.pair.b.connection(server).map(|info| info.state), Some(ConnectionState::Connecting));
    let now = net.now();
    net.pair.b.disconnect(now, server);
    net.run_for(Duration::from_millis(500));
    assert_eq!(
        net.client,
        [OwnedEvent::Connected(id), OwnedEvent::Disconnected(id, DisconnectReason::Remote)]
    );
    net.run_for(Duration::from_secs(10));
    assert_eq!((&net.server[..], net.pair.b.connections().count()), (&[][..], 0));
    assert_eq!(net.pair.b.blocks_available(), net.pair.b.blocks());
}

#[test]
fn an_mtu_outside_576_to_1492_is_refused() {
    for (mtu, is_right) in
        [(0, false), (36, false), (37, false), (575, false), (576, true), (1_492, true), (1_493, false)]
    {
        let mut config = client_config();
        config.mtu = mtu;
        let connected = peer(config).connect(Instant::ZERO, ([192, 0, 2, 1], 1).into());
        let refused = connected == Err(ConnectError::InvalidMtu);
        assert_eq!((connected.is_ok(), refused), (is_right, !is_right), "{mtu}");
    }
}

/// The flag has the same value as in C++ RakNet.
#[test]
fn data_datagrams_signal_whether_the_sender_is_in_slow_start() {
    const SLOW_START: u8 = 0x04;
    let mut config = client_config();
    config.congestion_control = CongestionControl::NewReno;
    let mut net = Net::with(peer(config), peer(server_config()), latency(10), 1);
    let (client, _) = net.connect();
    let (at_a, at_b) = (net.pair.a_address, net.pair.b_address);
    let (mut now, mut hints) = (net.now(), Vec::new());
    // Every fourth datagram is lost.
    for _ in 0..200 {
        net.pair.a.send(now, client, &[0x86; 1_000], Delivery::RELIABLE).expect("free memory");
        for (_, datagram) in answers(&mut net.pair.a, now) {
            hints.extend((datagram[0] & 0xE0 == 0x80).then_some(datagram[0] & SLOW_START));
            if hints.len() % 4 != 0 {
                net.pair.b.handle_datagram(now, at_a, &datagram);
            }
        }
        for (_, datagram) in answers(&mut net.pair.b, now) {
            net.pair.a.handle_datagram(now, at_b, &datagram);
        }
        net.poll();
        now = now + Duration::from_millis(5);
        net.pair.a.handle_timeout(now);
        net.pair.b.handle_timeout(now);
    }
    assert_eq!(hints.first(), Some(&SLOW_START));
    assert!(hints.contains(&0), "{hints:?}");
}
