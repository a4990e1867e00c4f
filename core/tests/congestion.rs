//! Speed, fairness and good manners on simulated paths, under virtual time. `docs/congestion.md` has the table that
//! `cargo test -p rakwire --test congestion -- --nocapture --test-threads 1` prints.

mod support;

use core::time::Duration;

use rakwire::Instant;
use rakwire::raknet::{Capacity, Config, CongestionControl, ConnectionId, Delivery, Event, Peer, SendError};
use rakwire::sim::{Bottleneck, Conditions, Dumbbell, Pair};
use support::{client_config, server_config};

use CongestionControl::{Adaptive, Classic};

const ROUND_TRIP: Duration = Duration::from_millis(50);

fn path(bits_per_second: u64, queue: Duration) -> Conditions {
    let bottleneck = Some(Bottleneck::with_queue_of(bits_per_second, queue));
    Conditions { latency: ROUND_TRIP / 2, bottleneck, ..Conditions::default() }
}

fn large_peer(config: Config) -> Peer<'static> {
    Peer::with_capacity(Capacity { connections: 1, blocks: 65_536, block_size: 512 }, config)
}

/// A sender that always has something to send, and what arrived of it.
struct Flow {
    control: CongestionControl,
    starts: Duration,
    ends: Duration,
    id: Option<ConnectionId>,
    bytes: u64,
}

impl Flow {
    const fn new(control: CongestionControl) -> Self {
        Self::from(control, Duration::ZERO)
    }

    const fn from(control: CongestionControl, starts: Duration) -> Self {
        Self { control, starts, ends: Duration::MAX, id: None, bytes: 0 }
    }
}

/// Flows through one bottleneck.
struct Race {
    net: Dumbbell<Peer<'static>, Peer<'static>>,
    flows: Vec<Flow>,
    start: Instant,
}

/// What a race brought in the time that counts.
#[derive(Debug)]
struct Outcome {
    /// Bits of messages a second.
    goodput: Vec<f64>,
    mean_queueing: Duration,
    longest_queueing: Duration,
    /// The share of datagrams that the bottleneck dropped.
    overflow: f64,
}

impl Outcome {
    fn jain(&self) -> f64 {
        let sum: f64 = self.goodput.iter().sum();
        let squares: f64 = self.goodput.iter().map(|goodput| goodput * goodput).sum();
        sum * sum / (squares * self.goodput.len() as f64)
    }

    fn share(&self, flow: usize) -> f64 {
        self.goodput[flow] / self.goodput.iter().sum::<f64>()
    }
}

impl Race {
    fn new(conditions: Conditions, flows: Vec<Flow>, seed: u64) -> Self {
        let mut net = Dumbbell::new(conditions, seed);
        for (number, flow) in (1..).zip(&flows) {
            let (mut client, mut server) = (Config::new([number; 32]), Config::new([100 + number; 32]));
            server.max_incoming = 1;
            client.congestion_control = flow.control;
            server.congestion_control = flow.control;
            net.join(large_peer(client), large_peer(server));
        }
        let start = net.now;
        Self { net, flows, start }
    }

    fn drive(&mut self) {
        let now = self.net.now;
        let time = now.saturating_since(self.start);
        for (ends, flow) in self.net.pairs_mut().iter_mut().zip(&mut self.flows) {
            if flow.starts <= time && ends.a.connections().count() == 0 {
                ends.a.connect(now, ends.b_address).expect("a free slot");
            }
            while let Some(event) = ends.a.poll_event() {
                if let Event::Connected { id, .. } = event {
                    flow.id = Some(id);
                }
            }
            while let Some(event) = ends.b.poll_event() {
                if let Event::Message { message, .. } = event {
                    flow.bytes += message.len() as u64;
                }
            }
            let Some(id) = flow.id.filter(|_| time < flow.ends) else { continue };
            // Enough for any window, and little enough to keep the pool from being the limit.
            while ends
                .a
                .connection_stats(id)
                .is_some_and(|stats| stats.messages_sent * 1_400 < flow.bytes + 4_000_000)
            {
                match ends.a.send(now, id, &[0x86; 1_400], Delivery::RELIABLE_ORDERED) {
                    Ok(_) => {}
                    Err(SendError::QuotaExceeded) => break,
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }

    /// Runs until `to` and tells what happened from `from` on.
    fn run(&mut self, from: Duration, to: Duration) -> Outcome {
        self.until(from);
        let before: Vec<_> = self.flows.iter().map(|flow| flow.bytes).collect();
        self.net.forth().take_stats();
        self.until(to);
        let stats = self.net.forth().take_stats();
        let seconds = (to - from).as_secs_f64();
        let goodput = self.flows.iter().zip(before);
        let goodput = goodput.map(|(flow, before)| (flow.bytes - before) as f64 * 8.0 / seconds);
        Outcome {
            goodput: goodput.collect(),
            mean_queueing: stats.mean_queueing(),
            longest_queueing: stats.longest_queueing,
            overflow: stats.overflowed as f64 / (stats.carried + stats.overflowed) as f64,
        }
    }

    fn until(&mut self, time: Duration) {
        let trace = std::env::var("TRACE").is_ok();
        let mut last = self.net.now;
        while self.net.now.saturating_since(self.start) < time {
            self.drive();
            if trace && self.net.now.saturating_since(last) > Duration::from_millis(200) {
                last = self.net.now;
                let w: Vec<_> = self
                    .net
                    .pairs()
                    .iter()
                    .zip(&self.flows)
                    .map(|(e, f)| {
                        let s = f.id.and_then(|id| e.a.connection_stats(id)).unwrap_or_default();
                        (
                            s.congestion_window / 1464,
                            s.in_flight / 1464,
                            s.round_trip.as_millis(),
                            s.datagrams_lost,
                        )
                    })
                    .collect();
                println!("{:?} {w:?}", self.net.now.saturating_since(self.start));
            }
            assert!(self.net.step(), "nothing will ever happen");
        }
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn print(name: &str, outcome: &Outcome) {
    let goodput: Vec<_> = outcome.goodput.iter().map(|bits| format!("{:.2}", bits / 1e6)).collect();
    println!(
        "{name:44} Mbit/s {:28} Jain {:.3}  queue mean {:5.1} ms, max {:5.1} ms, dropped {:.2} %",
        goodput.join(" "),
        outcome.jain(),
        outcome.mean_queueing.as_secs_f64() * 1e3,
        outcome.longest_queueing.as_secs_f64() * 1e3,
        outcome.overflow * 100.0,
    );
}

#[test]
fn one_flow_fills_a_path() {
    for control in [Adaptive, Classic] {
        let mut race = Race::new(path(100_000_000, ROUND_TRIP), vec![Flow::new(control)], 1);
        let outcome = race.run(seconds(5), seconds(15));
        print(&format!("{control:?}, 100 Mbit/s"), &outcome);
        assert!(outcome.goodput[0] >= 90e6, "{control:?}: {outcome:?}");
    }
}

#[test]
fn flows_share_fairly() {
    for control in [Adaptive, Classic] {
        for count in [2_u64, 4] {
            for gap in [0, 3] {
                let flows = (0..count).map(|number| Flow::from(control, seconds(gap * number))).collect();
                let mut race = Race::new(path(20_000_000, ROUND_TRIP), flows, count);
                let outcome = race.run(seconds(gap * (count - 1)), seconds(gap * (count - 1) + 60));
                print(&format!("{count} {control:?} flows, {gap} s apart, 20 Mbit/s"), &outcome);
                assert!(outcome.jain() >= 0.9, "{count} {control:?}: {outcome:?}");
                if control == Adaptive {
                    assert!(outcome.mean_queueing < Duration::from_millis(25), "{outcome:?}");
                    let fair = (0..2).all(|flow| (0.4..0.6).contains(&outcome.share(flow)));
                    assert!(count != 2 || fair, "{outcome:?}");
                }
            }
        }
    }
}

#[test]
fn an_adaptive_and_a_classic_flow_get_along() {
    for queue in [25, 50, 200] {
        for gaps in [[0, 0], [0, 3], [3, 0]] {
            let flows = vec![Flow::from(Adaptive, seconds(gaps[0])), Flow::from(Classic, seconds(gaps[1]))];
            let mut race = Race::new(path(20_000_000, Duration::from_millis(queue)), flows, 1);
            let outcome = race.run(seconds(3), seconds(63));
            print(&format!("Adaptive against Classic {gaps:?} s, queue of {queue} ms"), &outcome);
            assert!(outcome.share(0) <= 0.6, "{outcome:?}");
        }
    }
}

/// 20,000 messages at once; how many a second arrived, and after how long 99 % had.
fn messages(control: CongestionControl, conditions: Conditions, seed: u64) -> (f64, Duration) {
    const MESSAGES: u32 = 20_000;
    let (mut client, mut server) = (client_config(), server_config());
    (client.congestion_control, server.congestion_control) = (control, control);
    let mut pair = Pair::new(large_peer(client), large_peer(server), conditions, seed);
    let id = pair.a.connect(pair.now, pair.b_address).expect("a free slot");
    let mut connected = false;
    while !connected {
        while let Some(event) = pair.a.poll_event() {
            connected |= matches!(event, Event::Connected { .. });
        }
        assert!(connected || pair.step());
    }
    let start = pair.now;
    for number in 0..MESSAGES {
        let mut message = [0x86; 100];
        message[1..5].copy_from_slice(&number.to_be_bytes());
        pair.a.send(start, id, &message, Delivery::RELIABLE_ORDERED).expect("room");
    }
    let (mut arrived, mut late) = (0, Duration::ZERO);
    while arrived < MESSAGES {
        assert!(pair.step());
        while let Some(event) = pair.b.poll_event() {
            if let Event::Message { message, .. } = event {
                let message = message.to_vec();
                assert_eq!(message[1..5], arrived.to_be_bytes());
                arrived += 1;
                if arrived == MESSAGES / 100 * 99 {
                    late = pair.now.saturating_since(start);
                }
            }
        }
    }
    (f64::from(MESSAGES) / pair.now.saturating_since(start).as_secs_f64(), late)
}

#[test]
fn chance_does_not_slow_messages_down() {
    for control in [Adaptive, Classic] {
        for (loss, goal) in [(0.0, 9_097.0), (0.01, 3.0 * 1_245.0), (0.05, 3.0 * 1_121.0), (0.2, 0.0)] {
            let conditions = Conditions { loss, latency: ROUND_TRIP / 2, ..Conditions::default() };
            let mut runs: Vec<_> = (0..5).map(|seed| messages(control, conditions, seed)).collect();
            runs.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (rate, late) = runs[2];
            println!(
                "{control:?}, 20,000 messages, {:>2.0} % loss: {rate:>6.0}/s, p99 delivered after {late:?}",
                loss * 100.0
            );
            assert!(control == Classic || rate >= goal, "{control:?} {loss}: {rate}");
        }
    }
}

#[test]
fn zz_explore() {
    let base = path(20_000_000, ROUND_TRIP);
    let ms = Duration::from_millis;
    let rows = [
        ("jitter 10 ms", Conditions { jitter: ms(10), ..base }),
        ("reordering 2 %", Conditions { reordering: 0.02, ..base }),
        ("loss 5 %", Conditions { loss: 0.05, ..base }),
        ("loss 1 %", Conditions { loss: 0.01, ..base }),
        ("queue 5 ms", path(20_000_000, ms(5))),
        ("queue 10 ms, loss 1 %", Conditions { loss: 0.01, ..path(20_000_000, ms(10)) }),
        ("queue 500 ms", path(20_000_000, ms(500))),
        ("rtt 200 ms", Conditions { latency: ms(100), ..path(20_000_000, ms(200)) }),
        ("rtt 10 ms", Conditions { latency: ms(5), ..path(20_000_000, ms(50)) }),
        ("1 Mbit/s", path(1_000_000, ms(200))),
        ("500 Mbit/s", path(500_000_000, ms(50))),
    ];
    for (name, conditions) in rows {
        if std::env::var("ROW").is_ok_and(|row| !name.contains(&row)) {
            continue;
        }
        for control in [Adaptive, Classic] {
            let mut race = Race::new(conditions, vec![Flow::new(control)], 1);
            let outcome = race.run(seconds(5), seconds(25));
            print(&format!("{name}: {control:?}"), &outcome);
        }
        let mut race = Race::new(conditions, vec![Flow::new(Adaptive), Flow::from(Adaptive, seconds(5))], 1);
        let outcome = race.run(seconds(10), seconds(40));
        print(&format!("{name}: 2 Adaptive"), &outcome);
    }
}
