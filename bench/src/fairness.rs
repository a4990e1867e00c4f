//! Measures how fairly two flows share a bottleneck, on simulated paths and in virtual time.

use std::time::Duration;

use rakwire::raknet::{Capacity, Config, CongestionControl, ConnectionId, Delivery, Event, Peer};
use rakwire::sim::{Conditions, Dumbbell};

use crate::core_only::Effort;
use crate::report::{Better, Row};

use CongestionControl::{DelayBased, NewReno};

const MBIT: u64 = 1_000_000;
const ROUND_TRIP: Duration = Duration::from_millis(50);
/// The bottleneck queues, in milliseconds until a full one has drained, for a delay-based flow against a NewReno flow.
const QUEUES_MS: [u64; 3] = [25, 50, 200];

/// Runs all races and returns one row per race, or the worst result of several similar races.
pub(crate) fn rows(effort: Effort) -> Vec<Row> {
    let time = Duration::from_secs(if effort == Effort::Quick { 5 } else { 60 });
    let equal =
        Race::new(path(20 * MBIT, ROUND_TRIP), [Flow::new(DelayBased); 2], 2).run(Duration::ZERO, time);
    let mut rows = vec![
        Row::new("fair_delay_based", percent(equal.larger_share()), SHARE, Better::Lower),
        Row::new("fair_queueing", equal.queueing.as_secs_f64() * 1e3, "ms", Better::Lower),
    ];
    rows.extend(QUEUES_MS.map(|queue| beside_new_reno(queue, time)));
    let schedule = Schedule::of(effort);
    rows.extend(jain_paths().map(|(name, conditions)| jain(name, conditions, schedule)));
    rows
}

/// The timing of two flows with the same congestion control.
#[derive(Clone, Copy)]
struct Schedule {
    /// The start of the second flow.
    second: Duration,
    /// The start of the measurement, when both flows should have converged to fair shares.
    from: Duration,
    /// The end of the measurement.
    to: Duration,
    /// The number of random seeds for the path; the row is the worst result.
    seeds: u64,
}

impl Schedule {
    const fn of(effort: Effort) -> Self {
        let [second, from, to, seeds] = match effort {
            Effort::Quick => [1, 2, 3, 1],
            Effort::Full => [5, 15, 45, 3],
        };
        let seconds = Duration::from_secs;
        Self { second: seconds(second), from: seconds(from), to: seconds(to), seeds }
    }
}

const SHARE: &str = "% of the throughput";

fn percent(share: f64) -> f64 {
    share * 100.0
}

/// Measures the share of a delay-based flow against a NewReno flow.
///
/// The row is the least even of three results: both flows start together, or either starts 3 s after the other.
fn beside_new_reno(queue_ms: u64, time: Duration) -> Row {
    let conditions = path(20 * MBIT, Duration::from_millis(queue_ms));
    let late = Duration::from_secs(3);
    let shares =
        [[Duration::ZERO; 2], [Duration::ZERO, late], [late, Duration::ZERO]].map(|[first, second]| {
            let flows = [Flow::from(DelayBased, first), Flow::from(NewReno, second)];
            percent(Race::new(conditions, flows, 1).run(late, late + time).shares[0])
        });
    let worst = shares.into_iter().min_by(|a, b| Better::Even.compare(*a, *b)).unwrap_or(f64::NAN);
    Row::new(format!("fair_beside_new_reno_{queue_ms}ms"), worst, SHARE, Better::Even)
}

/// Measures Jain's index of two delay-based flows that start at different times: the lowest of all seeds.
fn jain(name: &str, conditions: Conditions, Schedule { second, from, to, seeds }: Schedule) -> Row {
    let flows = [Flow::new(DelayBased), Flow::from(DelayBased, second)];
    let indices = (1..=seeds).map(|seed| Race::new(conditions, flows, seed).run(from, to).jain());
    Row::new(name, indices.fold(1.0, f64::min), "Jain's index", Better::Higher)
}

/// Returns paths on which flows converge more slowly to fair shares: with jitter, a long RTT or a high rate.
fn jain_paths() -> [(&'static str, Conditions); 3] {
    let millis = Duration::from_millis;
    let usual = path(20 * MBIT, ROUND_TRIP);
    [
        ("fair_jitter_10ms", Conditions { jitter: millis(10), ..usual }),
        ("fair_rtt_200ms", Conditions::bottlenecked(millis(200), 20 * MBIT, millis(200))),
        ("fair_500mbit", path(500 * MBIT, ROUND_TRIP)),
    ]
}

/// Creates a path with an RTT of 50 ms and a bottleneck queue that drains in `queue` when it is full.
fn path(bits_per_second: u64, queue: Duration) -> Conditions {
    Conditions::bottlenecked(ROUND_TRIP, bits_per_second, queue)
}

/// A sender that always has data to send.
#[derive(Clone, Copy)]
struct Flow {
    control: CongestionControl,
    starts: Duration,
    id: Option<ConnectionId>,
    /// The number of bytes that have arrived.
    bytes: u64,
}

impl Flow {
    const fn new(control: CongestionControl) -> Self {
        Self::from(control, Duration::ZERO)
    }

    const fn from(control: CongestionControl, starts: Duration) -> Self {
        Self { control, starts, id: None, bytes: 0 }
    }
}

/// Two flows through one bottleneck.
struct Race {
    net: Dumbbell<Peer<'static>, Peer<'static>>,
    flows: [Flow; 2],
    start: rakwire::Instant,
}

/// The result of a race over the measured interval.
struct Outcome {
    shares: [f64; 2],
    queueing: Duration,
}

impl Outcome {
    fn larger_share(&self) -> f64 {
        self.shares[0].max(self.shares[1])
    }

    /// Returns Jain's index: 1 for equal shares, 0.5 if one flow received nothing.
    fn jain(&self) -> f64 {
        1.0 / (2.0 * self.shares.iter().map(|share| share * share).sum::<f64>())
    }
}

impl Race {
    fn new(conditions: Conditions, flows: [Flow; 2], seed: u64) -> Self {
        let mut net = Dumbbell::new(conditions, seed);
        let capacity = Capacity { connections: 1, blocks: 65_534, block_size: 512 };
        for (number, flow) in (1..).zip(&flows) {
            let (mut client, mut server) = (Config::new([number; 32]), Config::new([100 + number; 32]));
            server.max_incoming = 1;
            client.congestion_control = flow.control;
            server.congestion_control = flow.control;
            net.join(Peer::with_capacity(capacity, client), Peer::with_capacity(capacity, server));
        }
        let start = net.now;
        Self { net, flows, start }
    }

    /// Runs until `to` and returns the results since `from`.
    fn run(mut self, from: Duration, to: Duration) -> Outcome {
        self.until(from);
        let before = self.flows.map(|flow| flow.bytes);
        self.net.forth().take_stats();
        self.until(to);
        let [first, second] = [0, 1].map(|at| (self.flows[at].bytes - before[at]) as f64);
        let shares = [first, second].map(|bytes| bytes / (first + second).max(1.0));
        Outcome { shares, queueing: self.net.forth().take_stats().mean_queueing_delay() }
    }

    fn until(&mut self, time: Duration) {
        while self.net.now.saturating_since(self.start) < time {
            self.drive();
            assert!(self.net.step(), "the simulation has no further event, so no flow can continue");
        }
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
            keep_sending(&mut ends.a, now, flow);
        }
    }
}

/// Keeps about 4 MB queued or in flight: more than any congestion window here, and less than the peer's memory.
fn keep_sending(peer: &mut Peer<'static>, now: rakwire::Instant, flow: &Flow) {
    let Some(id) = flow.id else { return };
    let sent = |peer: &Peer<'_>| peer.connection_stats(id).map_or(u64::MAX, |stats| stats.messages_sent);
    while sent(peer).saturating_mul(1_400) < flow.bytes + 4_000_000 {
        if peer.send(now, id, &[0x86; 1_400], Delivery::RELIABLE_ORDERED).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index_is_one_for_equal_shares_only() {
        let outcome = |shares| Outcome { shares, queueing: Duration::ZERO };
        assert_eq!(outcome([0.5, 0.5]).jain(), 1.0);
        assert_eq!(outcome([1.0, 0.0]).jain(), 0.5);
        assert!((outcome([0.8, 0.2]).jain() - 0.735).abs() < 0.001);
        assert_eq!(outcome([0.2, 0.8]).larger_share(), 0.8);
    }
}
