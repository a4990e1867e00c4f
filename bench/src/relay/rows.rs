//! Measures the rows of the report. All measurements of a group alternate within a round, so that a change in the
//! machine's load affects all of them.

use anyhow::{Context, Result};

use super::load::Outcome;
use super::measure::{Measure, Measured, Way};
use super::socket::Calls;
use super::table::Row;
use crate::pairing::median;

/// The packet sizes in bytes.
const SIZES: [usize; 2] = [100, 1_200];
/// The loads in percent of the relay's maximum throughput, or of the direct throughput if that is less.
const LOADS: [u32; 3] = [10, 50, 80];
/// The goal for the 99th percentile of the added latency, in microseconds.
const ADDED_US: f64 = 1_000.0;
/// The load to which that goal applies, in percent.
const ADDED_AT: u32 = 50;
/// The goal for the memory of an idle client, in bytes.
const IDLE_BYTES: f64 = 8_192.0;
/// The goal for packets per second and core through the UDP front.
const FRONT_PACKETS: f64 = 200_000.0;

/// The goal for the time to resume a flow, in microseconds, without one round trip.
const RESUMED_US: f64 = 50_000.0;

/// Measures all rows.
pub(super) fn all(measure: &Measure, rounds: u32) -> Result<Vec<Row>> {
    let (mut rows, echoes) = throughput(measure, rounds)?;
    rows.extend(front(measure, rounds)?);
    rows.extend(latency(measure, rounds, echoes)?);
    rows.extend(clients(measure, rounds)?);
    let resumed = (0..rounds).map(|_| measure.resumption()).collect::<Result<_>>()?;
    rows.push(Row::new("resumed", "µs", resumed).below(RESUMED_US));
    Ok(rows)
}

/// Measures the throughput rows.
///
/// Also returns the echoes per second for packets of the first size: through the relay or without it, whichever is
/// lower.
fn throughput(measure: &Measure, rounds: u32) -> Result<(Vec<Row>, f64)> {
    let mut rows = Vec::new();
    let mut echoes = None;
    for size in SIZES {
        let (mut relay, mut echo, mut websockify) = (Vec::new(), Vec::new(), Vec::new());
        let (mut udp, mut flood, mut direct) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            direct.push(measure.throughput(Way::Direct, size)?.echoes());
            relay.push(measure.throughput(Way::Relay, size)?);
            echo.push(measure.throughput(Way::WebSocketEcho, size)?);
            websockify.push(measure.throughput(Way::Websockify, size)?.per_core());
            udp.push(measure.throughput(Way::UdpEcho, size)?.per_core());
            flood.push(measure.udp_flood(size)?);
        }
        let name = format!("packets_{size}b");
        relay.iter().for_each(|run| eprintln!("{name}: {run}"));
        let most = [median(relay.iter().map(Measured::echoes)), median(direct)];
        echoes = echoes.or_else(|| most.into_iter().flatten().reduce(f64::min));
        let row = Row::new(name, "packets/s/core", relay.iter().map(Measured::per_core).collect());
        let row = row.beside_websocket_echo(echo.iter().map(Measured::per_core)).beside_udp(udp);
        let row = row.beside_websockify(websockify);
        rows.push(row.beside_udp_flood(flood).at_least_of_websocket_echo(1.0));
    }
    Ok((rows, echoes.context("the number of rounds is 0")?))
}

/// Measures the throughput of the relay's UDP front.
fn front(measure: &Measure, rounds: u32) -> Result<Vec<Row>> {
    let kinds = [("udp_front_100b", Calls::Single), ("udp_front_bursts_100b", Calls::Bursts)];
    let mut found = kinds.map(|_| Vec::new());
    let mut udp = Vec::new();
    for _ in 0..rounds {
        for ((_, calls), found) in kinds.iter().zip(&mut found) {
            found.push(measure.front(*calls)?.per_core());
        }
        udp.push(measure.throughput(Way::UdpEcho, 100)?.per_core());
    }
    let row = |((name, calls), runs)| {
        let row = Row::new(name, "packets/s/core", runs).beside_udp(udp.iter().copied());
        // The goal applies to programs that send each datagram with its own call, as most do.
        if calls == Calls::Single { row.at_least(FRONT_PACKETS) } else { row }
    };
    Ok(kinds.into_iter().zip(found).map(row).collect())
}

/// The latency that a program adds to the round trips of plain UDP, in microseconds per round.
#[derive(Default)]
struct Added {
    p50: Vec<f64>,
    p99: Vec<f64>,
}

impl Added {
    fn push(&mut self, outcome: &Outcome, udp: &Outcome) {
        self.p50.push(outcome.p50_us - udp.p50_us);
        self.p99.push(outcome.p99_us - udp.p99_us);
    }
}

fn latency(measure: &Measure, rounds: u32, echoes: f64) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for load in LOADS {
        let rate = echoes * f64::from(load) / 100.0;
        let (mut relay, mut echo) = (Added::default(), Added::default());
        let (mut udp_p50, mut udp_p99) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let udp = measure.round_trips(Way::Direct, rate)?;
            if udp.p99_us > ADDED_US {
                eprintln!(
                    "{load} % load: this round is discarded, because round trips without a relay already take \
                     {:.0} µs (p99): the core of the clients is overloaded or busy",
                    udp.p99_us
                );
                continue;
            }
            relay.push(&measure.round_trips(Way::Relay, rate)?, &udp);
            echo.push(&measure.round_trips(Way::WebSocketEcho, rate)?, &udp);
            udp_p50.push(udp.p50_us);
            udp_p99.push(udp.p99_us);
        }
        let p50 = Row::new(format!("added_p50_{load}_percent"), "µs", relay.p50);
        rows.push(p50.beside_websocket_echo(echo.p50).beside_udp(udp_p50));
        let p99 = Row::new(format!("added_p99_{load}_percent"), "µs", relay.p99);
        let p99 = p99.beside_websocket_echo(echo.p99).beside_udp(udp_p99);
        rows.push(if load == ADDED_AT { p99.below(ADDED_US) } else { p99 });
    }
    Ok(rows)
}

/// Measures the relay's memory per idle client, and its CPU time for players.
fn clients(measure: &Measure, rounds: u32) -> Result<Vec<Row>> {
    let (mut memory, mut echo_memory) = (Vec::new(), Vec::new());
    let (mut cpu, mut echo_cpu) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        memory.push(measure.idle_memory(Way::Relay)?);
        echo_memory.push(measure.idle_memory(Way::WebSocketEcho)?);
        cpu.push(measure.players_cpu(Way::Relay)?);
        echo_cpu.push(measure.players_cpu(Way::WebSocketEcho)?);
    }
    let memory = Row::new(format!("idle_memory_{}_clients", measure.idle_clients()), "bytes/client", memory);
    let cpu = Row::new(format!("cpu_60_hz_{}_clients", measure.players()), "cores/1,000 clients", cpu);
    Ok(vec![memory.beside_websocket_echo(echo_memory).below(IDLE_BYTES), cpu.beside_websocket_echo(echo_cpu)])
}
