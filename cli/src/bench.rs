//! `rakwire bench`: measures a path between two machines that both run it.

mod measure;
mod summary;
mod wire;

use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use rakwire_native::{
    Capacity, ConnectError, ConnectOptions, Connection, Delivery, Endpoint, Options, Simulation,
};

use crate::failure::{Failure, print};
use crate::host;
use wire::{Count, Probe};

/// The maximum message size in bytes.
const MAX_SIZE: u64 = 1_000_000;

/// Measures the path to another machine that runs `rakwire bench --listen`: round-trip times, losses and throughput.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The other machine, such as 192.0.2.1:19132 or example.org:19132
    #[arg(value_name = "HOST:PORT", required_unless_present = "listen", conflicts_with = "listen")]
    target: Option<String>,
    /// Serve measurements on this address, such as 0.0.0.0:19132; port 0 picks a free one
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// The duration of each of the three measurements
    #[arg(long, value_name = "SECONDS", default_value = "3", value_parser = host::seconds)]
    seconds: Duration,
    /// The size of a message in the throughput measurement
    #[arg(long, value_name = "BYTES", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(9..=MAX_SIZE))]
    size: u64,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Simulate a bad network in both directions: loss=5%,latency=50ms,jitter=10ms, each optional
    #[arg(long, value_name = "NETWORK")]
    simulate: Option<Simulation>,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    match (&arguments.listen, &arguments.target) {
        (Some(listen), _) => serve(listen, &arguments).await,
        (None, Some(target)) => client(&host::resolve_all(target).await?, &arguments).await,
        (None, None) => Err(Failure::usage("give HOST:PORT, or --listen ADDR")),
    }
}

fn capacity(connections: usize) -> Capacity {
    // One of several connections may use a quarter of the memory per direction; a single connection may use half of it.
    let blocks = if connections == 1 { 32_768 } else { 65_536 };
    Capacity { connections, blocks, block_size: 1_024 }
}

async fn client(servers: &[SocketAddr], arguments: &Arguments) -> Result<(), Failure> {
    let mut options = Options::client().map_err(host::no_entropy)?;
    options.capacity = capacity(1);
    options.config.max_message_len = u32::MAX;
    options.simulate = arguments.simulate;
    let endpoint = host::endpoint_for(servers, options).await?;
    let connected = endpoint.connect_any(servers, &ConnectOptions::default()).await;
    let cannot =
        |error: ConnectError| Failure::runtime(format!("cannot connect to {}: {error}", host::list(servers)));
    let connection = connected.map_err(cannot)?;
    let plan = measure::Plan {
        each: arguments.seconds,
        size: usize::try_from(arguments.size).unwrap_or(usize::MAX),
        shows_progress: io::stderr().is_terminal(),
    };
    let result = measure::run(&connection, &plan).await;
    connection.disconnect().await;
    endpoint.close().await;
    let result = result?;
    print(if arguments.json { result.json() } else { result.table() })
}

async fn serve(listen: &str, arguments: &Arguments) -> Result<(), Failure> {
    let mut options = Options::server(64).map_err(host::no_entropy)?;
    options.capacity = capacity(64);
    options.config.max_message_len = u32::MAX;
    options.simulate = arguments.simulate;
    let endpoint = Endpoint::bind(&host::listening(listen).await?[..], options).await;
    let endpoint = endpoint.map_err(|error| host::bind_failure(listen, &error))?;
    endpoint.set_advertisement(b"rakwire bench").map_err(|error| Failure::runtime(error.to_string()))?;
    host::serve(&endpoint, |connection| {
        tokio::spawn(answer(connection));
    })
    .await?;
    endpoint.close().await;
    Ok(())
}

/// Handles the probes of a connection: echoes them, counts them or reports the count.
async fn answer(connection: Connection) {
    let mut count = Count::default();
    while let Some(message) = connection.recv().await {
        let answer = match Probe::of(&message.bytes) {
            Some(Probe::Echo) => connection.send(&message.bytes, message.delivery).await,
            Some(Probe::Counted) => {
                count.add(message.bytes.len());
                continue;
            }
            Some(Probe::ReportCount) => {
                let report = std::mem::take(&mut count).to_bytes();
                connection.send(&report, Delivery::RELIABLE_ORDERED).await
            }
            None => continue,
        };
        if answer.is_err() {
            return;
        }
    }
}
