//! Pings, clocks and counters of a connection.

use core::time::Duration;

use rakwire::Instant;
use rakwire::raknet::{ConnectionId, Delivery, Event, Peer};
use rakwire::sim::{Conditions, Link};

use crate::support::raknet::{Net, client_config, peer, server_config};

const LATENCY: Duration = Duration::from_millis(20);

/// A client, and a server with a clock that is `ahead` of the client's.
struct DifferingClocks {
    now: Instant,
    ahead: Duration,
    client: Peer<'static>,
    server: Peer<'static>,
    up: Link,
    down: Link,
}

impl DifferingClocks {
    fn new(ahead: Duration) -> Self {
        let conditions = Conditions { latency: LATENCY, ..Conditions::default() };
        Self {
            now: Instant::from_micros(1_000_000),
            ahead,
            client: peer(client_config()),
            server: peer(server_config()),
            up: Link::new(conditions, 1),
            down: Link::new(conditions, 2),
        }
    }

    /// Runs both peers for `time` in steps of a millisecond; returns the last message that the server received.
    fn run(&mut self, time: Duration) -> Option<Vec<u8>> {
        let (client_address, server_address) = addresses();
        let end = self.now + time;
        let mut last = None;
        let mut buffer = [0; 1500];
        while self.now < end {
            let server_now = self.now + self.ahead;
            while let Some(transmit) = self.client.poll_transmit(self.now, &mut buffer) {
                self.up.send(self.now, transmit.payload);
            }
            while let Some(transmit) = self.server.poll_transmit(server_now, &mut buffer) {
                self.down.send(self.now, transmit.payload);
            }
            self.now = self.now + Duration::from_millis(1);
            let server_now = self.now + self.ahead;
            while let Some(datagram) = self.up.receive(self.now) {
                self.server.handle_datagram(server_now, client_address, &datagram);
            }
            while let Some(datagram) = self.down.receive(self.now) {
                self.client.handle_datagram(self.now, server_address, &datagram);
            }
            self.client.handle_timeout(self.now);
            self.server.handle_timeout(server_now);
            while self.client.poll_event().is_some() {}
            while let Some(event) = self.server.poll_event() {
                if let Event::Message { message, .. } = event {
                    last = Some(message.to_vec());
                }
            }
        }
        last
    }

    fn connect(&mut self) -> ConnectionId {
        let id = self.client.connect(self.now, addresses().1).expect("a free slot");
        self.run(Duration::from_millis(500));
        id
    }
}

fn addresses() -> (core::net::SocketAddr, core::net::SocketAddr) {
    ("192.0.2.1:1".parse().expect("an address"), "192.0.2.2:2".parse().expect("an address"))
}

#[test]
fn pings_measure_the_rtt_and_the_remote_clock() {
    let mut clocks = DifferingClocks::new(Duration::from_secs(3_600));
    let id = clocks.connect();
    let stats = clocks.client.connection_stats(id).expect("an open connection");
    let ping = stats.last_ping.as_millis();
    assert!((40..=45).contains(&ping), "an RTT of {ping} ms");
    assert_eq!(stats.lowest_ping.min(stats.average_ping), stats.lowest_ping);
    let difference = stats.clock_difference.expect("a ping was answered");
    assert!((difference - 3_600_000).abs() <= 3, "a clock difference of {difference} ms");
    let server = clocks.server.connections().next().expect("an open connection");
    let difference = clocks.server.connection_stats(server).and_then(|stats| stats.clock_difference);
    let difference = difference.expect("a ping was answered");
    assert!((difference + 3_600_000).abs() <= 3, "a clock difference of {difference} ms");
}

/// The time in a timestamped message is converted to the receiver's clock (docs/raknet.md#timestamps).
#[test]
fn timestamps_are_converted_to_the_receivers_clock() {
    let mut clocks = DifferingClocks::new(Duration::from_secs(500));
    let id = clocks.connect();
    let sent = clocks.now.as_millis();
    let message = [&[0x1B][..], &sent.to_be_bytes(), b"\x86hello"].concat();
    clocks.client.send(clocks.now, id, &message, Delivery::RELIABLE_ORDERED).expect("free memory");
    let arrived = clocks.run(Duration::from_millis(200)).expect("the message arrives");
    assert_eq!((arrived[0], &arrived[9..]), (0x1B, &b"\x86hello"[..]));
    let time = u64::from_be_bytes(arrived[1..9].try_into().expect("eight bytes"));
    let expected = sent + 500_000;
    assert!(time.abs_diff(expected) <= 3, "time {time} instead of {expected}");
}

#[test]
fn statistics_count_every_byte_once() {
    let mut net = Net::new(Conditions { latency: LATENCY, ..Conditions::default() }, 1);
    let (client, server) = net.connect();
    net.run_for(Duration::from_secs(2));
    let before = net.pair.a.connection_stats(client).expect("an open connection");
    for _ in 0..10 {
        net.pair
            .a
            .send(net.pair.now, client, &[0x86; 5_000], Delivery::RELIABLE_ORDERED)
            .expect("free memory");
    }
    let waiting = net.pair.a.connection_stats(client).expect("an open connection").waiting;
    assert_eq!((waiting[2].messages, waiting[2].bytes), (40, 50_000));
    net.run_for(Duration::from_secs(1));
    let stats = net.pair.a.connection_stats(client).expect("an open connection");
    assert_eq!(stats.bytes_pushed.total, 50_000);
    let sent = stats.bytes_sent.total - before.bytes_sent.total;
    assert!((50_000..50_100).contains(&sent), "sent {sent} bytes instead of the messages and a few pings");
    assert_eq!((stats.bytes_resent.total, stats.loss()), (0, 0.0));
    assert!(stats.waiting.iter().all(|waiting| waiting.messages == 0));
    assert!(stats.actual_bytes_sent.total > 50_000);
    let other = net.pair.b.connection_stats(server).expect("an open connection");
    assert_eq!(other.bytes_processed.total, 50_000);
    assert_eq!((other.messages_received, other.bytes_ignored.total), (10, 0));
    // Requests 1 and 2 arrived before the server had a connection, so its counters exclude them.
    assert_eq!(other.actual_bytes_received.total + 1464 + 39, stats.actual_bytes_sent.total);
}

#[test]
fn losses_appear_in_the_statistics() {
    let mut net = Net::new(Conditions { latency: LATENCY, loss: 0.2, ..Conditions::default() }, 4);
    let (client, _) = net.connect();
    for _ in 0..100 {
        net.pair.a.send(net.pair.now, client, &[0x86; 5_000], Delivery::RELIABLE).expect("free memory");
    }
    net.run_for(Duration::from_secs(20));
    let stats = net.pair.a.connection_stats(client).expect("an open connection");
    assert!((0.1..0.4).contains(&stats.loss()), "{}", stats.loss());
    assert!(stats.datagrams_lost > 0);
    assert_eq!(net.server.len(), 100);
}
