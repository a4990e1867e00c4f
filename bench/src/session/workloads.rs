//! The workloads that are measured with pairings of implementations.

use anyhow::Result;

use super::figure::Figure;
use super::runner::Runner;
use super::step::Step;
use crate::pairing::{Network, Pairing, Pattern, Peer, Workload};
use crate::report::Row;
use crate::spin::Spinners;
use crate::udp_baseline::UdpBaseline;

/// The number of messages of 100 bytes in a full datagram. Each message has 10 bytes of headers, and the datagram 4.
const MESSAGES_PER_DATAGRAM: f64 = 13.0;
/// The number of round trips in a run.
const ROUND_TRIPS: u32 = 10_000;
/// The number of round trips in a run on busy cores, where each may take milliseconds.
const BUSY_ROUND_TRIPS: u32 = 1_000;
/// The pairings that are measured with heavy losses, because the other pairings need minutes.
///
/// They are rakwire alone, rakwire with the two servers that keep up, and the best other pairing at a loss of 5 %.
const AT_HEAVY_LOSSES: [Pairing; 4] = [
    Pairing::OURS,
    Pairing { client: Peer::Rakwire, server: Peer::Cpp },
    Pairing { client: Peer::Rakwire, server: Peer::RustRaknet },
    Pairing { client: Peer::RustRaknet, server: Peer::RustRaknet },
];

const fn loopback(pattern: Pattern, count: u32, size: usize) -> Workload {
    Workload { pattern, count, size, network: Network::Loopback }
}

/// Measures small messages and the UDP floods with which they are compared.
pub(super) fn messages(runner: &mut Runner) -> Result<Vec<Row>> {
    let step = Step::Messages;
    let workload = loopback(Pattern::Blast, runner.count(100_000), 100);
    let mut baseline = UdpBaseline::default();
    let found = runner
        .rounds(step, Pairing::all(), &workload, |runner| baseline.flood(&runner.bench, runner.effort))?;
    let limit = baseline.datagrams().map(|datagrams| datagrams * MESSAGES_PER_DATAGRAM);
    let row = Figure::MessagesPerSecond.row(step.name(), &found, &workload);
    let row = row.compared_with_baseline(limit).with_wake_up(baseline.wake_up_us());
    Ok(baseline.flood_rows().into_iter().chain([row]).collect())
}

/// Measures the throughput of large messages.
pub(super) fn bulk(runner: &mut Runner, step: Step, count: u32, size: usize) -> Result<Vec<Row>> {
    let workload = loopback(Pattern::Blast, count, size);
    let mut baseline = UdpBaseline::default();
    let found = runner
        .rounds(step, Pairing::all(), &workload, |runner| baseline.flood(&runner.bench, runner.effort))?;
    let row = Figure::MegabytesPerSecond.row(step.name(), &found, &workload);
    Ok(vec![row.compared_with_baseline(baseline.megabytes()).with_wake_up(baseline.wake_up_us())])
}

pub(super) fn round_trips(runner: &mut Runner) -> Result<Vec<Row>> {
    let step = Step::PingPong;
    let count = runner.count(ROUND_TRIPS);
    let workload = loopback(Pattern::PingPong, count, 64);
    let mut baseline = UdpBaseline::default();
    let measure = |runner: &Runner| baseline.round_trip(&runner.bench, count);
    let found = runner.rounds(step, Pairing::all(), &workload, measure)?;
    let wake_up = baseline.wake_up_us();
    let row = |figure: Figure, name: &str| figure.row(name, &found, &workload).with_wake_up(wake_up);
    let median = row(Figure::Median, step.name()).compared_with_baseline(baseline.p50_us());
    let p99 = row(Figure::Percentile99, "pingpong_64b_p99").compared_with_baseline(baseline.p99_us());
    let own = [("udp_pingpong_64b", baseline.p50_us()), ("udp_pingpong_64b_p99", baseline.p99_us())];
    Ok(UdpBaseline::round_trip_rows(own).chain([median, p99]).collect())
}

/// Measures round trips of rakwire and of the UDP baseline while another program keeps each core busy.
pub(super) fn busy_round_trips(runner: &mut Runner) -> Result<Vec<Row>> {
    let step = Step::BusyPingPong;
    let count = runner.count(BUSY_ROUND_TRIPS);
    let workload = loopback(Pattern::PingPong, count, 64);
    let _busy = Spinners::start(runner.bench.cores)?;
    let mut baseline = UdpBaseline::default();
    let measure = |runner: &Runner| baseline.round_trip(&runner.bench, count);
    let found = runner.rounds(step, [Pairing::OURS], &workload, measure)?;
    let row = Figure::Median.row(step.name(), &found, &workload);
    let row = row.compared_with_baseline(baseline.p50_us()).with_wake_up(baseline.wake_up_us());
    Ok(UdpBaseline::round_trip_rows([("udp_pingpong_64b_busy", baseline.p50_us())]).chain([row]).collect())
}

/// Measures messages over a path with latency and light losses, with all pairings.
pub(super) fn losses(runner: &mut Runner, step: Step, network: Network) -> Result<Vec<Row>> {
    over_path(runner, step, network, &Pairing::all().collect::<Vec<_>>())
}

/// Measures messages over a path with heavy losses, with the pairings that complete within the time limit.
pub(super) fn heavy_losses(runner: &mut Runner, step: Step, network: Network) -> Result<Vec<Row>> {
    over_path(runner, step, network, &AT_HEAVY_LOSSES)
}

fn over_path(runner: &mut Runner, step: Step, network: Network, pairings: &[Pairing]) -> Result<Vec<Row>> {
    let workload = Workload { pattern: Pattern::Blast, count: runner.count(20_000), size: 100, network };
    let mut baseline = UdpBaseline::default();
    let measure = |runner: &Runner| baseline.wake_up(&runner.bench, runner.effort);
    let found = runner.one_by_one(step, pairings.iter().copied(), &workload, measure)?;
    let name = step.name();
    let row =
        |figure: Figure, name: &str| figure.row(name, &found, &workload).with_wake_up(baseline.wake_up_us());
    Ok(vec![row(Figure::MessagesPerSecond, name), row(Figure::Percentile99, &format!("{name}_p99"))])
}
