//! Rows that need no socket: the core without a driver, and flows on simulated paths.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use rakwire::raknet::{Capacity, Config, CongestionControl, ConnectionId, Delivery, Event, Peer};
use rakwire::sim::{Bottleneck, Conditions, Dumbbell};
use rakwire_bench::connected_peers::{ConnectedPeers, Path};

use crate::pairing::median;
use crate::report::{Better, Row};

/// Messages that are queued at once.
const BATCH: usize = 128;

/// How many times as many runs the shortest row gets.
const MORE_RUNS: u32 = 20;

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    Quick,
    Full,
}

/// The rows of the core without a driver.
pub(crate) fn core(effort: Effort, runs: u32) -> Vec<Row> {
    let repetitions = if effort == Effort::Quick { 20 } else { 2_000 };
    let mut peers = ConnectedPeers::new(1, 16_384, Path::Clean);
    // One run is so short that another process can disturb all of it, so there are many runs.
    let nanos = time(runs * MORE_RUNS, repetitions, || peers.exchange(BATCH, 100)) / BATCH as f64;
    let mut rows = vec![Row::new("core_100b", nanos, "ns/message", Better::Lower).goal(150.0)];
    for connections in [1_u16, 10, 100, 1_000, 10_000] {
        if effort == Effort::Quick && connections > 100 {
            continue;
        }
        let mut peers = ConnectedPeers::new(connections, 64, Path::Clean);
        let repetitions = (repetitions * 100 / u32::from(connections).max(10)).max(4);
        let nanos = time(runs, repetitions, || peers.exchange(1, 100)) / f64::from(connections);
        let name = format!("core_connections_{connections}");
        rows.push(Row::new(name, nanos, "ns/message", Better::Lower));
    }
    for depth in [1_usize, 10, 100, 1_000, 10_000] {
        let mut peers = ConnectedPeers::new(1, 65_534, Path::Clean);
        let repetitions = u32::try_from(repetitions as usize * 100 / depth.max(10)).unwrap_or(1).max(4);
        let nanos = time(runs, repetitions, || peers.exchange(depth, 100)) / depth as f64;
        rows.push(Row::new(format!("core_queue_{depth}"), nanos, "ns/message", Better::Lower));
    }
    rows
}

/// Nanoseconds of CPU time of one repetition: the median of the runs. Other processes do not count.
fn time(runs: u32, repetitions: u32, mut repeat: impl FnMut()) -> f64 {
    repeat();
    let runs = (0..runs).map(|_| {
        let began = cpu_time();
        for _ in 0..repetitions {
            repeat();
        }
        (cpu_time() - began).as_nanos() as f64 / f64::from(repetitions)
    });
    median(runs).unwrap_or(0.0)
}

/// The CPU time of this thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    time.map_or(Duration::ZERO, Duration::from)
}

/// The rows of two flows that share a bottleneck of 20 Mbit/s and 50 ms, in virtual time.
pub(crate) fn fairness(effort: Effort) -> Vec<Row> {
    let seconds = if effort == Effort::Quick { 10 } else { 60 };
    let equal = Race::run([CongestionControl::DelayBased; 2], seconds);
    let mixed = Race::run([CongestionControl::DelayBased, CongestionControl::NewReno], seconds);
    let share =
        |name: &str, share: f64| Row::new(name, share * 100.0, "% of the path", Better::Lower).goal(60.0);
    vec![
        share("fair_delay_based", equal.share.max(1.0 - equal.share)),
        share("fair_beside_new_reno", mixed.share),
        Row::new("fair_queueing", equal.queueing.as_secs_f64() * 1e3, "ms", Better::Lower).goal(25.0),
    ]
}

/// Two senders that always have something to send.
struct Race {
    net: Dumbbell<Peer<'static>, Peer<'static>>,
    ids: [Option<ConnectionId>; 2],
    bytes: [u64; 2],
}

/// The result of a race.
struct Outcome {
    /// The share of the path that the first flow got.
    share: f64,
    queueing: Duration,
}

impl Race {
    fn run(controls: [CongestionControl; 2], seconds: u64) -> Outcome {
        let bottleneck = Some(Bottleneck::with_queue_of(20_000_000, Duration::from_millis(50)));
        let path = Conditions { latency: Duration::from_millis(25), bottleneck, ..Conditions::default() };
        let mut net = Dumbbell::new(path, 2);
        let capacity = Capacity { connections: 1, blocks: 65_534, block_size: 512 };
        for (number, control) in (1..).zip(controls) {
            let (mut client, mut server) = (Config::new([number; 32]), Config::new([100 + number; 32]));
            server.max_incoming = 1;
            client.congestion_control = control;
            server.congestion_control = control;
            net.join(Peer::with_capacity(capacity, client), Peer::with_capacity(capacity, server));
        }
        let now = net.now;
        for ends in net.pairs_mut() {
            ends.a.connect(now, ends.b_address).expect("a free slot");
        }
        let mut race = Self { net, ids: [None; 2], bytes: [0; 2] };
        while race.net.now.saturating_since(now) < Duration::from_secs(seconds) {
            race.drive();
            assert!(race.net.step(), "nothing is scheduled any more");
        }
        let [first, second] = race.bytes.map(|bytes| bytes as f64);
        Outcome { share: first / (first + second), queueing: race.net.forth().stats().mean_queueing() }
    }

    fn drive(&mut self) {
        let now = self.net.now;
        for ((ends, id), bytes) in self.net.pairs_mut().iter_mut().zip(&mut self.ids).zip(&mut self.bytes) {
            while let Some(event) = ends.a.poll_event() {
                if let Event::Connected { id: new, .. } = event {
                    *id = Some(new);
                }
            }
            while let Some(event) = ends.b.poll_event() {
                if let Event::Message { message, .. } = event {
                    *bytes += message.len() as u64;
                }
            }
            let Some(id) = *id else { continue };
            let sent =
                |peer: &Peer<'_>| peer.connection_stats(id).map_or(u64::MAX, |stats| stats.messages_sent);
            while sent(&ends.a) * 1_400 < *bytes + 4_000_000 {
                if ends.a.send(now, id, &[0x86; 1_400], Delivery::RELIABLE_ORDERED).is_err() {
                    break;
                }
            }
        }
    }
}
