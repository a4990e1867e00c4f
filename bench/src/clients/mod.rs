//! A server with many clients, each of which sends and gets a message in each of 60 ticks a second.

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
use crate::core_only::Effort;
use crate::pairing::{Bench, median};
use crate::report::{Better, Row};
use crate::udp_baseline::UdpBaseline;

/// Play one role in a measurement of a server with many clients. Each prints what it did since the last line of input
/// whenever a line comes.
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
    /// The server without RakNet: a socket that receives many datagrams per call
    Udp {
        #[arg(long)]
        clients: u16,
    },
    /// All clients
    Load {
        server: SocketAddr,
        #[arg(long)]
        clients: u16,
        /// Without RakNet
        #[arg(long)]
        udp: bool,
    },
}

pub(crate) fn run(role: &Role) -> Result<()> {
    match role {
        Role::Server { clients, shards } => server::run(*clients, *shards),
        Role::Udp { clients } => udp_server::run(*clients),
        Role::Load { server, clients, udp } => load::run(*server, *clients, *udp),
    }
}

fn of(runs: &[Measured], value: fn(&Measured) -> f64) -> f64 {
    median(runs.iter().map(value)).unwrap_or(f64::NAN)
}

/// The server on one core and the clients on another, in rounds with a socket that has the same load.
pub(crate) fn rows(bench: &Bench, effort: Effort) -> Result<Vec<Row>> {
    let (mut ours, mut udp, mut baseline) = (Vec::new(), Vec::new(), UdpBaseline::default());
    for _ in 0..bench.runs {
        let cores = Cores::Apart(bench.cores);
        baseline.wake_up(bench, effort)?;
        udp.push(measure::once(Subject::Udp, cores, Size::of(effort), bench.limit)?);
        ours.push(measure::once(Subject::Shards(1), cores, Size::of(effort), bench.limit)?);
    }
    let wake_up = baseline.wake_up_us();
    let row = |name, unit, better, value: fn(&Measured) -> f64| {
        let row = Row::new(name, of(&ours, value), unit, better).with_wake_up(wake_up);
        row.compared_with_baseline(Some(of(&udp, value)))
    };
    let carried = row("clients_1000", "messages/s", Better::Higher, |run| run.per_second);
    let micros = |name, value| Row::new(name, value, "µs", Better::Lower).with_wake_up(wake_up);
    Ok(vec![
        Row { cpu_us: Some(of(&ours, |run| run.cpu_us)), ..carried },
        row("clients_1000_per_core", "messages/s of CPU time", Better::Higher, |run| 1e6 / run.cpu_us),
        micros("clients_1000_tick_p99", of(&ours, |run| run.tick_p99_us)),
        micros("clients_1000_late_p99", of(&ours, |run| run.late_p99_us)),
    ])
}

/// The server with one and with two shards, which share two cores with the clients.
pub(crate) fn shards(bench: &Bench, effort: Effort) -> Result<Vec<Row>> {
    let (mut one, mut two) = (Vec::new(), Vec::new());
    for _ in 0..bench.runs {
        for (shards, runs) in [(1, &mut one), (2, &mut two)] {
            runs.push(measure::once(Subject::Shards(shards), Cores::Shared, Size::of(effort), bench.limit)?);
        }
    }
    let row = |name, runs: &[Measured]| {
        let row = Row::new(name, of(runs, |run| run.per_second), "messages/s", Better::Higher);
        Row { cpu_us: Some(of(runs, |run| run.cpu_us)), ..row }
    };
    let scaling = scaling(2, of(&one, |run| run.cpu_us), of(&two, |run| run.cpu_us));
    let scaling = Row::new("shards_scaling", scaling, "x one shard", Better::Higher);
    Ok(vec![row("shards_1", &one), row("shards_2", &two), scaling])
}

/// How many times as much as one shard as many shards carry on as many cores, if nothing but their CPU time limits them.
fn scaling(shards: u32, cpu_of_one: f64, cpu_of_all: f64) -> f64 {
    f64::from(shards) * cpu_of_one / cpu_of_all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_that_cost_a_message_no_more_scale_with_their_number() {
        assert_eq!(scaling(2, 5.0, 5.0), 2.0);
        assert_eq!(scaling(2, 5.0, 6.25), 1.6);
    }
}
