//! Resend intervals of the Game Protocol on paths with a round trip of more than 100 ms.

use core::time::Duration;

use rakwire::game_protocol::Reliability::Reliable;
use rakwire::game_protocol::{ConnectionId, DisconnectReason, ResendInterval};
use rakwire::sim::Conditions;

use crate::support::game_protocol::*;

#[test]
fn a_chunk_is_resent_after_the_retransmission_timeout_or_while_closing_after_100_ms() {
    let (mut server, id) = server_with_client();
    server.send(START, id, b"sample", Reliable).expect("an open connection");
    output(&mut server, START);
    // One sample of 400 ms yields a timeout of 1.2 s.
    server.handle_datagram(at(400), CLIENT.into(), &packet(6, 0, 0, &[]));
    server.send(at(400), id, b"lost", Reliable).expect("an open connection");
    output(&mut server, at(400));
    assert_eq!(server.poll_timeout(), Some(at(1_600)));
    server.disconnect(at(400), id);
    for tick in 5..14 {
        server.handle_timeout(at(tick * 100));
        assert_eq!(packets(&mut server, at(tick * 100)), [packet(5, 0, 1, b"lost")]);
    }
}

/// The number of chunks that the server has retransmitted.
fn resent(net: &Net, there: ConnectionId) -> u64 {
    net.pair.b.connection_stats(there).expect("an open connection").chunks_resent
}

/// Sends 50 reliable messages per second from the server for `seconds`.
fn stream(net: &mut Net, there: ConnectionId, seconds: u64) {
    for _ in 0..50 * seconds {
        let now = net.now();
        net.pair.b.send(now, there, &payload(500), Reliable).expect("free memory");
        net.run_for(Duration::from_millis(20));
    }
}

/// The round trip exceeds the default resend interval on most of the paths, from the start or after a change.
#[test]
fn a_long_round_trip_causes_no_spurious_resends() {
    for resend in [ResendInterval::default(), ResendInterval::MEASURED] {
        for (first, then) in [(10, 10), (10, 150), (10, 450), (60, 60), (250, 250), (450, 450), (450, 10)] {
            let on_path =
                |latency| Conditions { latency: Duration::from_millis(latency), ..Conditions::default() };
            let (mut client, mut server) = (client_config(), server_config());
            client.resend_interval = resend;
            server.resend_interval = resend;
            let mut net = Net::with(peer(client), peer(server), on_path(first), 3);
            let (_, there) = net.connect();
            stream(&mut net, there, 4);
            net.pair.set_conditions(on_path(then));
            stream(&mut net, there, 4);
            let settled = resent(&net, there);
            stream(&mut net, there, 10);
            assert_eq!(resent(&net, there) - settled, 0, "{resend:?}, latency {first} ms, then {then} ms");
        }
    }
}

#[test]
fn chunks_are_sent_once_on_a_path_with_a_round_trip_of_seconds() {
    let millis = Duration::from_millis;
    for resend in [ResendInterval::default(), ResendInterval::MEASURED] {
        for (latency, jitter) in [(750, 0), (1_250, 0), (750, 500)] {
            let path =
                Conditions { latency: millis(latency), jitter: millis(jitter), ..Conditions::default() };
            let (mut client, mut server) = (client_config(), server_config());
            client.resend_interval = resend;
            server.resend_interval = resend;
            let mut net = Net::with(peer(client), peer(server), path, 5);
            let (_, there) = net.connect();
            stream(&mut net, there, 20);
            let settled = resent(&net, there);
            stream(&mut net, there, 20);
            let spurious = resent(&net, there) - settled;
            assert!(spurious < 50, "{resend:?}, {path:?}: {spurious} of 1,000 chunks resent");
        }
    }
}

/// The path has a measured retransmission timeout of 1.5 s, and the connection is lost after 2 s without packets.
#[test]
fn a_lost_chunk_is_resent_several_times_before_a_short_timeout() {
    for resend in [ResendInterval::default(), ResendInterval::MEASURED] {
        let mut config = server_config();
        config.timeout = Duration::from_secs(2);
        config.resend_interval = resend;
        let mut server = peer(config);
        let id = enter(&mut server, START, CLIENT.into(), 7);
        server.send(START, id, b"sample", Reliable).expect("an open connection");
        output(&mut server, START);
        server.handle_datagram(at(500), CLIENT.into(), &packet(6, 0, 0, &[]));
        server.send(at(500), id, b"lost", Reliable).expect("an open connection");
        let mut sent = 0;
        for millis in 500..2_500 {
            server.handle_timeout(at(millis));
            sent += packets(&mut server, at(millis)).iter().filter(|sent| sent.ends_with(b"lost")).count();
        }
        assert_eq!(sent, 3, "{resend:?}");
        server.handle_timeout(at(2_500));
        assert!(
            matches!(take_events(&mut server)[..], [OwnedEvent::Disconnected(_, DisconnectReason::Lost)]),
            "{resend:?}"
        );
    }
}

/// The path carries twice the load. The queueing delay of a burst is much longer than the resend interval.
#[test]
fn a_queue_drains_after_a_burst() {
    for resend in [ResendInterval::default(), ResendInterval::MEASURED] {
        let path = Conditions::bottlenecked(Duration::from_millis(40), 450_000, Duration::from_millis(800));
        let (mut client, mut server) = (client_config(), server_config());
        client.resend_interval = resend;
        server.resend_interval = resend;
        let mut net = Net::with(peer(client), peer(server), path, 4);
        let (_, there) = net.connect();
        stream(&mut net, there, 2);
        for _ in 0..60 {
            let now = net.now();
            net.pair.b.send(now, there, &payload(500), Reliable).expect("free memory");
        }
        stream(&mut net, there, 10);
        let settled = resent(&net, there);
        stream(&mut net, there, 10);
        let stats = net.pair.b.connection_stats(there).expect("an open connection");
        assert_eq!(stats.chunks_resent - settled, 0, "{resend:?}: {stats:?}");
        assert!(stats.in_flight < 10, "{resend:?}: {stats:?}");
    }
}
