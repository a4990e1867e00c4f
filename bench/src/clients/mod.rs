//! Measures a server with many clients. Every client sends and receives one message in each of 60 ticks per second.

mod alternate;
mod load;
mod measure;
mod server;
mod size;
mod socket;
mod udp_server;
mod window;

use std::net::SocketAddr;

use anyhow::Result;
use clap::Subcommand;

use self::measure::{Cores, Measured, Subject};
use self::size::Size;
use self::socket::ControlMessages;
use crate::core_only::Effort;
use crate::pairing::{Bench, median};
use crate::report::{Better, Row};
use crate::udp_baseline::UdpBaseline;

/// Play one role in a measurement of a server with many clients. For each line of input it prints its work since the
/// previous line.
#[derive(Debug, Subcommand)]
pub(crate) enum Role {
    /// The server
    Server {
        #[arg(long)]
        clients: u16,
        /// Endpoints at one address, each with its own thread
        #[arg(long, default_value_t = 1)]
        shards: usize,
    },
    /// The server and all clients in one process, in turns
    Alternate {
        #[arg(long)]
        clients: u16,
        /// Endpoints at one address, each with its own core
        #[arg(long, default_value_t = 1)]
        shards: usize,
        #[arg(long)]
        seconds: f64,
    },
    /// The server without RakNet: a socket that receives many datagrams per call
    Udp {
        #[arg(long)]
        clients: u16,
        /// Disable the control messages that quinn-udp enables, like the native driver
        #[arg(long)]
        without_control_messages: bool,
    },
    /// All clients
    Load {
        server: SocketAddr,
        #[arg(long)]
        clients: u16,
        /// Send plain datagrams instead of RakNet
        #[arg(long)]
        udp: bool,
    },
}

pub(crate) fn run(role: &Role) -> Result<()> {
    match role {
        Role::Server { clients, shards } => server::run(*clients, *shards),
        Role::Alternate { clients, shards, seconds } => alternate::run(*clients, *shards, *seconds),
        Role::Udp { clients, without_control_messages } => udp_server::run(
            *clients,
            if *without_control_messages { ControlMessages::Off } else { ControlMessages::On },
        ),
        Role::Load { server, clients, udp } => load::run(*server, *clients, *udp),
    }
}

fn of(runs: &[Measured], value: fn(&Measured) -> f64) -> f64 {
    median(runs.iter().map(value)).unwrap_or(f64::NAN)
}

/// Returns the median over all rounds of a value that is computed from the two runs of a round.
///
/// The load of the machine changes less within a round than between rounds.
fn of_pairs<T>(first: &[T], second: &[T], value: impl Fn(&T, &T) -> f64) -> f64 {
    median(first.iter().zip(second).map(|(first, second)| value(first, second))).unwrap_or(f64::NAN)
}

/// Measures the server on one core and the clients on another. Each round also measures plain UDP sockets with the same
/// traffic.
pub(crate) fn rows(bench: &Bench, effort: Effort) -> Result<Vec<Row>> {
    let (mut ours, mut udp, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    let mut baseline = UdpBaseline::default();
    for _ in 0..bench.runs {
        let cores = Cores::Apart(bench.cores);
        baseline.wake_up(bench, effort)?;
        udp.push(measure::once(Subject::Udp, cores, Size::of(effort), bench.limit)?);
        plain.push(measure::once(Subject::PlainUdp, cores, Size::of(effort), bench.limit)?);
        ours.push(measure::once(Subject::Shards(1), cores, Size::of(effort), bench.limit)?);
    }
    let wake_up = baseline.wake_up_us();
    let row = |name, unit, better, value: fn(&Measured) -> f64| {
        let row = Row::new(name, of(&ours, value), unit, better).with_wake_up(wake_up);
        row.compared_with_baseline(Some(of(&udp, value)))
    };
    let carried = row("clients_1000", "messages/s", Better::Higher, |run| run.per_second);
    let micros = |name, value| Row::new(name, value, "µs", Better::Lower).with_wake_up(wake_up);
    let plain = of(&plain, |run| 1e6 / run.cpu_us);
    Ok(vec![
        Row { cpu_us: Some(of(&ours, |run| run.cpu_us)), ..carried },
        row("clients_1000_per_core", "messages/s of CPU time", Better::Higher, |run| 1e6 / run.cpu_us),
        Row::new("udp_clients_1000_per_core", plain, "messages/s of CPU time", Better::Higher)
            .with_wake_up(wake_up),
        micros("clients_1000_tick_p99", of(&ours, |run| run.tick_p99_us)),
        micros("clients_1000_late_p99", of(&ours, |run| run.late_p99_us)),
    ])
}

/// Measures the server with one and with two shards.
///
/// Server and clients first run at the same time and share two cores, and then alternate.
pub(crate) fn shards(bench: &Bench, rounds: u32, effort: Effort) -> Result<Vec<Row>> {
    let size = Size::of(effort);
    let (mut one, mut two) = (OfShards::default(), OfShards::default());
    for _ in 0..rounds {
        for (shards, runs) in [(1, &mut one), (2, &mut two)] {
            runs.shared.push(measure::once(Subject::Shards(shards), Cores::Shared, size, bench.limit)?);
            runs.ticks.push(measure::tick_ms(shards, size, bench.limit)?);
        }
    }
    let times = |name, value| Row::new(name, value, "x one shard", Better::Higher);
    Ok(vec![
        one.shared("shards_1"),
        two.shared("shards_2"),
        times("shards_scaling", of_pairs(&one.shared, &two.shared, |one, two| 2.0 * one.cpu_us / two.cpu_us)),
        one.tick("shards_tick_1"),
        two.tick("shards_tick_2"),
        times("shards_tick_scaling", of_pairs(&one.ticks, &two.ticks, |one, two| one / two)),
    ])
}

/// The results of all runs with the same number of shards.
#[derive(Debug, Default)]
struct OfShards {
    /// Runs with clients that work at the same time as the server.
    shared: Vec<Measured>,
    /// The mean duration of a tick in each run in which server and clients alternate, in milliseconds.
    ticks: Vec<f64>,
}

impl OfShards {
    fn cpu_us(&self) -> f64 {
        of(&self.shared, |run| run.cpu_us)
    }

    fn tick_ms(&self) -> f64 {
        median(self.ticks.iter().copied()).unwrap_or(f64::NAN)
    }

    fn shared(&self, name: &str) -> Row {
        let carried = of(&self.shared, |run| run.per_second);
        Row { cpu_us: Some(self.cpu_us()), ..Row::new(name, carried, "messages/s", Better::Higher) }
    }

    fn tick(&self, name: &str) -> Row {
        Row::new(name, self.tick_ms(), "ms", Better::Lower)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_pairs_returns_the_median_of_the_values_of_all_rounds() {
        let ratio = of_pairs(&[2.0, 30.0, 8.0], &[1.0, 10.0, 2.0], |first, second| first / second);
        assert!((ratio - 3.0).abs() < f64::EPSILON);
    }
}
