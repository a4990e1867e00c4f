//! Loss detection over a stream carrier such as WebSocket, in virtual time.
//!
//! The stream leads to a relay, which forwards datagrams over UDP. "Beyond the stream" means on that UDP path.

use core::time::Duration;

use rakwire::Instant;
use rakwire::game_protocol::{Carrier, Config, ConnectionId, ConnectionStats, Reliability::Reliable};
use rakwire::sim::Conditions;

use crate::support::game_protocol::*;

const LATENCY: Duration = Duration::from_millis(25);
const TICK: Duration = Duration::from_millis(16);

/// A client and a server, connected by a stream that may stall.
struct Path {
    net: Net,
    id: ConnectionId,
}

impl Path {
    fn new(carrier: Carrier) -> Self {
        Self::between(carrier, client_config(), server_config())
    }

    fn between(carrier: Carrier, client: Config, server: Config) -> Self {
        let mut client = peer(client);
        client.set_carrier(carrier);
        let mut net = Net::with(client, peer(server), Conditions::default(), 1);
        set_latency(&mut net, LATENCY);
        let (id, _) = net.connect();
        Self { net, id }
    }

    /// Sends a message and runs for one tick.
    fn send(&mut self, number: u8) {
        let now = self.net.now();
        self.net.pair.a.send(now, self.id, &[number], Reliable).expect("free memory");
        self.net.run_for(TICK);
    }

    /// Stalls both directions of the stream for `time` while sending messages; then delivers all of them in order.
    fn stall_acks(&mut self, time: Duration, numbers: core::ops::Range<u8>) {
        let end = self.net.now() + time;
        for number in numbers {
            self.hold_back_until(end);
            self.send(number);
        }
        while self.net.now() < end {
            self.hold_back_until(end);
            self.net.run_for(TICK);
        }
        set_latency(&mut self.net, LATENCY);
    }

    /// Sends messages 0 to 49 during a stall and delivers them; returns the number of resent chunks.
    fn resent_while_stalled(&mut self, time: Duration) -> u64 {
        self.stall_acks(time, 0..50);
        self.net.run_for(Duration::from_secs(3));
        assert_eq!(self.received(), (0..50).collect::<Vec<_>>());
        self.resent()
    }

    fn hold_back_until(&mut self, end: Instant) {
        let latency = LATENCY.max(end.saturating_since(self.net.now()));
        set_latency(&mut self.net, latency);
    }

    /// Sends a message that is lost beyond the stream.
    fn lose(&mut self, number: u8) {
        let now = self.net.now();
        self.net.pair.a.send(now, self.id, &[number], Reliable).expect("free memory");
        assert_eq!(packets(&mut self.net.pair.a, now).len(), 1);
    }

    fn run_until_received(&mut self, number: u8) {
        let arrived =
            self.net.run_until(Duration::from_secs(10), |net| messages(&net.server).contains(&&[number][..]));
        assert!(arrived, "message {number} never arrived");
    }

    fn received(&self) -> Vec<u8> {
        messages(&self.net.server).iter().map(|message| message[0]).collect()
    }

    fn resent(&self) -> u64 {
        self.stats().chunks_resent
    }

    fn stats(&self) -> ConnectionStats {
        self.net.pair.a.connection_stats(self.id).expect("an open connection")
    }
}

/// Sets the fraction of the client's datagrams that are lost beyond the stream.
fn set_loss(net: &mut Net, loss: f64) {
    net.pair.forth().set_conditions(Conditions { latency: LATENCY, loss, ..Conditions::default() });
}

fn set_latency(net: &mut Net, latency: Duration) {
    let conditions = Conditions { latency, ..Conditions::default() };
    net.pair.forth().set_conditions(conditions);
    net.pair.back().set_conditions(conditions);
}

/// A stream that retransmits a lost segment delivers nothing meanwhile, and then everything at once.
#[test]
fn data_delayed_by_a_stream_is_not_resent() {
    let resent = |carrier| {
        let mut path = Path::new(carrier);
        (0..50).for_each(|number| path.send(number));
        path.stall_acks(Duration::from_millis(900), 50..100);
        path.net.run_for(Duration::from_secs(3));
        assert_eq!(path.received(), (0..100).collect::<Vec<_>>(), "{carrier:?}");
        path.resent()
    };
    assert_eq!(resent(Carrier::Stream), 0);
    let spurious = resent(Carrier::Datagrams);
    assert!(spurious > 100, "the stall caused only {spurious} spurious resends over UDP");
}

/// Data that the path delays is resent although it arrives later, so it counts as late instead of missing.
#[test]
fn late_data_does_not_count_as_missing() {
    let mut path = Path::new(Carrier::Datagrams);
    (0..50).for_each(|number| path.send(number));
    path.stall_acks(Duration::from_millis(900), 50..100);
    path.net.run_for(Duration::from_secs(3));
    let stats = path.stats();
    assert!(stats.chunks_resent > 100, "the stall caused too few resends: {stats:?}");
    assert_eq!(stats.chunks_missing(), 0, "{stats:?}");

    path.lose(100);
    path.run_until_received(100);
    path.net.run_for(Duration::from_secs(3));
    assert_eq!(path.stats().chunks_missing(), 1, "only the lost chunk may count as missing");
}

/// Nothing is lost, but chunks and their acknowledgements are duplicated.
#[test]
fn duplicates_count_as_neither_missing_nor_late() {
    let mut path = Path::new(Carrier::Datagrams);
    let conditions = Conditions { latency: LATENCY, duplication: 1.0, ..Conditions::default() };
    path.net.pair.forth().set_conditions(conditions);
    path.net.pair.back().set_conditions(conditions);
    (0..50).for_each(|number| path.send(number));
    path.net.run_for(Duration::from_secs(3));
    let stats = path.stats();
    assert_eq!(
        (stats.chunks_missing(), stats.chunks_late, stats.chunks_acknowledged),
        (0, 0, 50),
        "{stats:?}"
    );
}

/// Each timeout resends one chunk, the first after one second and the others two seconds apart. The stream itself
/// delivers the other chunks.
#[test]
fn a_stalled_stream_is_probed_once_per_timeout() {
    let mut path = Path::new(Carrier::Stream);
    // Timeouts after one, three, five and seven seconds.
    assert_eq!(path.resent_while_stalled(Duration::from_secs(8)), 4);
}

/// Long in flight, a chunk is still resent only by the timeouts: after one second, and then every two seconds.
#[test]
fn a_minute_long_stall_is_probed_by_one_chunk_at_a_time() {
    let patient = |mut config: Config| {
        config.timeout = Duration::from_secs(100);
        config
    };
    let mut path = Path::between(Carrier::Stream, patient(client_config()), patient(server_config()));
    assert_eq!(path.resent_while_stalled(Duration::from_secs(60)), 30);
}

#[test]
fn data_lost_beyond_a_stream_is_resent() {
    let mut path = Path::new(Carrier::Stream);
    path.send(0);
    path.lose(1);
    let lost_at = path.net.now();
    (2..12).for_each(|number| path.send(number));
    path.run_until_received(1);
    let waited = path.net.now().saturating_since(lost_at);
    assert!(waited < Duration::from_millis(200), "the loss was detected only after {waited:?}");

    // No acknowledgement of a later chunk reveals the loss, so it takes the timeout of one second.
    path.net.run_for(Duration::from_secs(1));
    path.lose(12);
    let lost_at = path.net.now();
    path.run_until_received(12);
    let waited = path.net.now().saturating_since(lost_at);
    assert!((Duration::from_secs(1)..Duration::from_millis(1_100)).contains(&waited), "{waited:?}");
    assert_eq!(path.resent(), 2);
}

/// Chunks sent in one burst have the same send time.
#[test]
fn a_lost_chunk_of_a_burst_is_resent() {
    let mut path = Path::new(Carrier::Stream);
    path.send(0);
    let now = path.net.now();
    for number in 1..20 {
        path.net.pair.a.send(now, path.id, &[number], Reliable).expect("free memory");
    }
    let chunks = packets(&mut path.net.pair.a, now);
    assert_eq!(chunks.len(), 19);
    let from = path.net.pair.a_address;
    for chunk in chunks.iter().enumerate().filter(|(at, _)| *at != 7).map(|(_, chunk)| chunk) {
        path.net.pair.b.handle_datagram(now, from, chunk);
    }
    path.run_until_received(8);
    let waited = path.net.now().saturating_since(now);
    assert!(waited < Duration::from_millis(400), "{waited:?}");
}

/// A closing connection does not wait for the long timeout of a stream carrier.
#[test]
fn data_lost_beyond_a_stream_is_resent_immediately_when_closing() {
    let mut path = Path::new(Carrier::Stream);
    path.send(0);
    path.lose(1);
    let now = path.net.now();
    path.net.pair.a.disconnect(now, path.id);
    path.run_until_received(1);
    assert!(path.net.now().saturating_since(now) < Duration::from_millis(200));
}

/// Data in flight on the old carrier may never arrive, because it is not transferred to the new one.
#[test]
fn a_move_to_another_stream_resends_data_in_flight() {
    for before in [Carrier::Stream, Carrier::Datagrams] {
        let mut path = Path::new(before);
        path.send(0);
        (1..50).for_each(|number| path.lose(number));
        if before == Carrier::Stream {
            // The stall is long enough for several timeouts.
            set_loss(&mut path.net, 1.0);
            path.net.run_for(Duration::from_secs(8));
            set_loss(&mut path.net, 0.0);
        }
        let now = path.net.now();
        path.net.pair.a.set_carrier(Carrier::Stream);
        (1..50).for_each(|number| path.run_until_received(number));
        let waited = path.net.now().saturating_since(now);
        assert!(waited < Duration::from_millis(300), "{before:?}: {waited:?}");
    }
}

/// The timeout resends only the first chunk. If only that chunk is acknowledged, the others are lost and resent.
#[test]
fn a_burst_lost_beyond_a_stream_is_resent_after_one_timeout() {
    let mut path = Path::new(Carrier::Stream);
    path.send(0);
    (1..100).for_each(|number| path.lose(number));
    let lost_at = path.net.now();
    (1..100).for_each(|number| path.run_until_received(number));
    let waited = path.net.now().saturating_since(lost_at);
    // At least the timeout of one second. The rest is a round trip, a wait for further acknowledgements, and the
    // latency of the path.
    assert!((Duration::from_secs(1)..Duration::from_millis(1_300)).contains(&waited), "{waited:?}");
    path.net.run_for(Duration::from_secs(3));
    assert_eq!(path.resent(), 99);
}

#[test]
fn a_burst_lost_twice_is_resent_without_another_timeout() {
    let mut path = Path::new(Carrier::Stream);
    path.send(0);
    (1..100).for_each(|number| path.lose(number));
    path.run_until_received(1);
    set_loss(&mut path.net, 0.2);
    let probed_at = path.net.now();
    (1..100).for_each(|number| path.run_until_received(number));
    let waited = path.net.now().saturating_since(probed_at);
    assert!(waited < Duration::from_secs(1), "{waited:?}");
}

/// When the stream continues, it delivers the older data before the probe.
#[test]
fn a_probe_delivered_in_order_indicates_no_loss() {
    let mut path = Path::new(Carrier::Stream);
    assert_eq!(path.resent_while_stalled(Duration::from_millis(1_500)), 1);
}

/// The shorter timeout of UDP applies to data that was sent over the stream.
#[test]
fn data_is_resent_soon_after_a_move_from_a_stream_to_udp() {
    let mut path = Path::new(Carrier::Stream);
    path.send(0);
    path.net.run_for(Duration::from_secs(1));
    path.lose(1);
    let later: Instant = path.net.now() + Duration::from_millis(400);
    assert_eq!(packets(&mut path.net.pair.a, later), [] as [Vec<u8>; 0]);
    assert!(path.net.pair.a.poll_timeout() > Some(later));
    path.net.pair.a.set_carrier(Carrier::Datagrams);
    assert!(path.net.pair.a.poll_timeout() <= Some(later));
    assert_eq!(packets(&mut path.net.pair.a, later).len(), 1);
}
