//! Loss detection over a stream carrier such as WebSocket, in virtual time.
//!
//! The stream leads to a relay, which forwards datagrams over UDP. "Beyond the stream" means on that UDP path.

use core::time::Duration;

use rakwire::Instant;
use rakwire::raknet::{Capacity, Carrier, ConnectionId, ConnectionStats, Delivery, Event, Peer};
use rakwire::sim::{Conditions, Pair};

use crate::support::raknet::{client_config, server_config};

const LATENCY: Duration = Duration::from_millis(25);
const TICK: Duration = Duration::from_millis(16);

/// A client and a server, connected by a stream that may stall.
struct Path {
    pair: Pair<Peer<'static>, Peer<'static>>,
    id: ConnectionId,
    /// The end of the stall, before which nothing is delivered.
    stalled_until: Instant,
    received: Vec<u32>,
}

impl Path {
    fn new(carrier: Carrier) -> Self {
        let mut server = server_config();
        server.max_incoming = 1;
        let [mut client, server] = [client_config(), server].map(|mut config| {
            // Only messages reveal losses.
            config.ping_interval = None;
            Peer::with_capacity(Capacity::default(), config)
        });
        client.set_carrier(carrier);
        let conditions = Conditions { latency: LATENCY, ..Conditions::default() };
        let mut pair = Pair::new(client, server, conditions, 1);
        let id = pair.a.connect(pair.now, pair.b_address).expect("a free slot");
        while !matches!(pair.a.poll_event(), Some(Event::Connected { .. })) {
            assert!(pair.step());
        }
        let mut path = Self { pair, id, stalled_until: Instant::ZERO, received: Vec::new() };
        // Takes RTT samples and waits until everything is acknowledged.
        (0..100).for_each(|number| path.send(number));
        path.run_for(Duration::from_secs(2));
        path
    }

    /// Sends a message and runs for one tick.
    fn send(&mut self, number: u32) {
        let message = [&[0x86][..], &number.to_be_bytes()].concat();
        self.pair.a.send(self.pair.now, self.id, &message, Delivery::RELIABLE).expect("free memory");
        self.run_for(TICK);
    }

    fn run_for(&mut self, time: Duration) {
        let end = self.pair.now + time;
        while self.pair.now < end {
            let latency = LATENCY.max(self.stalled_until.saturating_since(self.pair.now));
            let conditions = Conditions { latency, ..Conditions::default() };
            self.pair.forth().set_conditions(conditions);
            self.pair.back().set_conditions(conditions);
            assert!(self.pair.step());
            while let Some(event) = self.pair.b.poll_event() {
                if let Event::Message { message, .. } = event {
                    let bytes = message.to_vec();
                    self.received.push(u32::from_be_bytes(bytes[1..5].try_into().expect("four bytes")));
                }
            }
        }
    }

    fn run_until_received(&mut self, number: u32) {
        while !self.received.contains(&number) {
            self.run_for(TICK);
        }
    }

    /// Sends a message that is lost beyond the stream.
    fn lose(&mut self, number: u32) {
        let message = [&[0x86][..], &number.to_be_bytes()].concat();
        self.pair.a.send(self.pair.now, self.id, &message, Delivery::RELIABLE).expect("free memory");
        self.pair.forth().take_stats();
        self.pair.forth().set_conditions(Conditions { loss: 1.0, ..Conditions::default() });
        self.pair.transmit();
        assert_eq!(self.pair.forth().stats().lost, 1);
    }

    fn stats(&self) -> ConnectionStats {
        self.pair.a.connection_stats(self.id).expect("an open connection")
    }
}

/// A stream that retransmits a lost segment delivers nothing meanwhile, and then everything at once.
#[test]
fn data_delayed_by_a_stream_is_not_resent() {
    let lost = |carrier| {
        let mut path = Path::new(carrier);
        path.stalled_until = path.pair.now + Duration::from_millis(700);
        (100..150).for_each(|number| path.send(number));
        path.run_for(Duration::from_secs(3));
        path.received.sort_unstable();
        assert_eq!(path.received, (0..150).collect::<Vec<_>>(), "{carrier:?}");
        path.stats().datagrams_lost
    };
    assert_eq!(lost(Carrier::Stream), 0);
    let spurious = lost(Carrier::Datagrams);
    assert!(spurious > 0, "the stall must cause spurious losses over UDP");
}

/// Data that the path delays is declared lost and resent although it arrives later, so it does not count as missing.
#[test]
fn late_data_does_not_count_as_missing() {
    let mut path = Path::new(Carrier::Datagrams);
    path.stalled_until = path.pair.now + Duration::from_millis(700);
    (100..150).for_each(|number| path.send(number));
    path.run_for(Duration::from_secs(3));
    let stats = path.stats();
    assert!(stats.datagrams_lost > 0, "the stall must cause losses");
    assert_eq!(stats.datagrams_missing(), 0, "{stats:?}");

    path.lose(150);
    path.run_until_received(150);
    path.run_for(Duration::from_secs(3));
    assert_eq!(path.stats().datagrams_missing(), 1, "only the lost datagram may count as missing");
}

#[test]
fn data_lost_beyond_a_stream_is_resent() {
    let mut path = Path::new(Carrier::Stream);
    path.lose(100);
    let lost_at = path.pair.now;
    (101..110).for_each(|number| path.send(number));
    path.run_until_received(100);
    let waited = path.pair.now.saturating_since(lost_at);
    assert!(waited < Duration::from_millis(500), "the loss was detected only after {waited:?}");

    // No acknowledgement of a later datagram reveals the loss, so it takes the timeout of one second.
    path.lose(110);
    let lost_at = path.pair.now;
    path.run_until_received(110);
    let waited = path.pair.now.saturating_since(lost_at);
    assert!((Duration::from_secs(1)..Duration::from_millis(1_200)).contains(&waited), "{waited:?}");
}

/// The retransmission timeout is one second over a stream. After the move, the shorter timeout of UDP applies even to
/// data that was sent over the stream.
#[test]
fn data_is_resent_soon_after_a_move_from_a_stream_to_udp() {
    let mut path = Path::new(Carrier::Stream);
    path.lose(100);
    path.pair.now = path.pair.now + Duration::from_millis(400);
    path.pair.transmit();
    assert!(path.pair.a.poll_timeout() > Some(path.pair.now));
    path.pair.a.set_carrier(Carrier::Datagrams);
    path.pair.transmit();
    assert!(path.pair.a.poll_timeout() < Some(path.pair.now));
}

/// A retransmission timeout over a stream does not indicate congestion, even if it occurs repeatedly.
#[test]
fn a_timeout_over_a_stream_does_not_reduce_the_window() {
    let window = |carrier| {
        let mut path = Path::new(carrier);
        let before = path.stats().congestion_window;
        path.stalled_until = path.pair.now + Duration::from_secs(8);
        path.send(100);
        path.run_for(Duration::from_secs(7));
        let stats = path.stats();
        assert!(stats.datagrams_lost > 0, "{carrier:?}");
        (before, stats.congestion_window)
    };
    let (before, after) = window(Carrier::Stream);
    assert_eq!(before, after);
    let (before, after) = window(Carrier::Datagrams);
    assert!(after < before, "the window must shrink: {before} before, {after} after");
}
