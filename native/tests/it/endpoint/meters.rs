//! The values that a `metrics` recorder receives.

use std::collections::BTreeMap;
use std::net::UdpSocket;

use metrics::Unit;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use rakwire::game_protocol::GameProtocol;
use rakwire::raknet::RakNet;

use super::subject::{Subject, client, join, message, receive, server, until};

/// Recorded values, keyed by name and labels as in `name{label=value}`. A snapshot contains the changes since the
/// last snapshot, even for gauges.
struct Recorded {
    snapshotter: Snapshotter,
    values: BTreeMap<String, (Option<Unit>, f64)>,
}

impl Recorded {
    fn update(&mut self) {
        for (key, unit, _, value) in self.snapshotter.snapshot().into_vec() {
            let (_, key) = key.into_parts();
            let mut labels: Vec<_> =
                key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
            labels.sort();
            let change = match value {
                DebugValue::Counter(count) => u32::try_from(count).map(f64::from).expect("a small count"),
                DebugValue::Gauge(level) => level.into_inner(),
                DebugValue::Histogram(_) => panic!("{key} is a histogram"),
            };
            let name = format!("{}{{{}}}", key.name(), labels.join(","));
            self.values.entry(name).or_insert((unit, 0.0)).1 += change;
        }
    }

    /// Returns the value of a metric with the label of the protocol and these labels.
    fn value<P: Subject>(&self, name: &str, labels: &str) -> f64 {
        let name = format!("{name}{{protocol={}{labels}}}", P::NAME);
        self.values.get(&name).unwrap_or_else(|| panic!("no {name} in {:#?}", self.values)).1
    }
}

/// Runs everything on this thread, because the recorder is set for this thread only.
fn record<P: Subject>() {
    let recorder = DebuggingRecorder::new();
    let recorded = Recorded { snapshotter: recorder.snapshotter(), values: BTreeMap::new() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    metrics::with_local_recorder(&recorder, || runtime.block_on(play::<P>(recorded)));
}

#[test]
fn raknet_reports_its_counters_to_a_recorder() {
    record::<RakNet>();
}

#[test]
fn the_game_protocol_reports_its_counters_to_a_recorder() {
    record::<GameProtocol>();
}

async fn play<P: Subject>(mut recorded: Recorded) {
    let (server, client) = (server::<P>(|_| {}).await, client::<P>(|_| {}).await);
    let (here, there) = join(&client, &server).await;
    for number in 0..20 {
        here.send(&message(2_000, number), P::RELIABLE).await.expect("an open connection");
        receive(&there).await;
    }
    let unconnected = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    unconnected.send_to(&[1], server.local_addr()).expect("a server");
    // Running endpoints report periodically.
    until("the recorder has counted the malformed datagrams", || {
        recorded.update();
        recorded.value::<P>("rakwire_dropped_total", ",reason=TooShort") > 0.0
    })
    .await;
    assert_eq!(recorded.value::<P>("rakwire_connections", ""), 2.0);
    assert_eq!(recorded.value::<P>("rakwire_connections_opened_total", ",side=client"), 1.0);
    assert_eq!(recorded.value::<P>("rakwire_connections_opened_total", ",side=server"), 1.0);
    here.disconnect().await;
    there.closed().await;
    let stats = [client.stats(), server.stats()];
    tokio::join!(client.close(), server.close());
    // An endpoint reports its remaining changes when it is dropped.
    recorded.update();
    let total = |count: fn(&rakwire_native::endpoint::EndpointStats<P>) -> u64| {
        stats.iter().map(|stats| count(stats) as f64).sum::<f64>()
    };
    let sent = recorded.value::<P>("rakwire_datagrams_sent_total", "");
    assert!(sent >= total(|stats| stats.peer.datagrams_sent) && sent > 40.0, "{sent}");
    let bytes = recorded.value::<P>("rakwire_bytes_received_total", "");
    assert!(bytes >= total(|stats| stats.peer.bytes_received) && bytes > 40_000.0, "{bytes}");
    assert_eq!(recorded.value::<P>("rakwire_dropped_total", ",reason=TooShort"), 1.0);
    for (name, labels, value) in [
        ("rakwire_connections_ended_total", ",reason=Local", 1.0),
        ("rakwire_connections_ended_total", ",reason=Remote", 1.0),
        ("rakwire_queue_full_total", ",queue=arrival", 0.0),
        ("rakwire_connections", "", 0.0),
        ("rakwire_blocks_used", "", 0.0),
    ] {
        assert_eq!(recorded.value::<P>(name, labels), value, "{name}{labels}");
    }
    let readme = include_str!("../../../README.md");
    for key in recorded.values.keys() {
        let name = key.split('{').next().expect("a name");
        assert!(readme.contains(&format!("`{name}`")), "the README has no row for {name}");
    }
    let has = |unit| recorded.values.values().filter(|(of_one, _)| *of_one == unit).count();
    assert_eq!((has(Some(Unit::Bytes)), has(None)), (2, 0), "{:#?}", recorded.values);
}
