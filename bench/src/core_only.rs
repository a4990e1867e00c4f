//! Measurements of the core without a driver.

use std::time::Duration;

use anyhow::Result;
use nix::time::{ClockId, clock_gettime};
use rakwire_bench::connected_peers::{ConnectedPeers, Path};
use rakwire_bench::hot_path::HotPath;

use crate::instructions;
use crate::pairing::median;
use crate::report::{Better, Row};

/// The number of messages queued at once.
const BATCH: usize = 128;

/// The shortest measurement has this many times the runs of the other measurements.
const MORE_RUNS: u32 = 20;

/// The duration of a measurement: a smoke test or the full measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    Quick,
    Full,
}

/// Measures the core without a driver.
pub(crate) fn core(effort: Effort, runs: u32) -> Result<Vec<Row>> {
    let repetitions = if effort == Effort::Quick { 20 } else { 2_000 };
    let mut peers = ConnectedPeers::new(1, 16_384, Path::Clean);
    // One run is so short that a single interruption can distort it, so more runs are needed.
    let nanos = time(runs * MORE_RUNS, repetitions, || peers.exchange(BATCH, 100)) / BATCH as f64;
    let counted = instructions::committed(HotPath::Messages100)?;
    let mut rows = vec![
        Row::new("core_100b", nanos, "ns/message", Better::Lower),
        Row::new("core_100b_instructions", counted as f64, "instructions/message", Better::Lower),
    ];
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
    Ok(rows)
}

/// Returns the CPU time of one repetition in nanoseconds: the median of `runs` runs, after one repetition to warm up.
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

/// Returns the CPU time of this thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    time.map_or(Duration::ZERO, Duration::from)
}
