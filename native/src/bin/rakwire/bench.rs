//! `rakwire bench`: measures a path between two machines that both run it.

mod measure;
mod summary;
mod wire;

use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use rakwire_native::{Capacity, Connection, Delivery, Endpoint, Options, Simulation};

use crate::echo::end_of_operation;
use crate::failure::{Failure, print};
use crate::host;
use wire::{Count, Probe};

/// Messages of at most so many bytes.
const MAX_SIZE: u64 = 1_000_000;

/// Measures the path to another machine that runs `rakwire bench --listen`: round-trip times, losses and how much it
/// carries.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The other machine, as 192.0.2.1:19132 or example.org:19132
    #[arg(value_name = "HOST:PORT", required_unless_present = "listen", conflicts_with = "listen")]
    target: Option<String>,
    /// Be the other machine: the address to listen on, as 0.0.0.0:19132; port 0 is a free one
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// How long each of the three parts lasts
    #[arg(long, value_name = "SECONDS", default_value = "3", value_parser = host::seconds)]
    seconds: Duration,
    /// Bytes of a message where it is measured how much the path carries
    #[arg(long, value_name = "BYTES", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(9..=MAX_SIZE))]
    size: u64,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Simulate a bad network in both directions: loss=5%,latency=50ms,jitter=10ms, each as you like
    #[arg(long, value_name = "NETWORK")]
    simulate: Option<Simulation>,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    match (&arguments.listen, &arguments.target) {
        (Some(listen), _) => serve(listen, &arguments).await,
        (None, Some(target)) => client(host::resolve(target).await?, &arguments).await,
        (None, None) => Err(Failure::usage("give HOST:PORT, or --listen ADDR")),
    }
}

fn capacity(connections: usize) -> Capacity {
    Capacity { connections, blocks: 32_768, block_size: 1_024 }
}

async fn client(server: SocketAddr, arguments: &Arguments) -> Result<(), Failure> {
    let mut options = Options::client().map_err(host::no_entropy)?;
    options.capacity = capacity(1);
    options.simulate = arguments.simulate;
    let endpoint = host::endpoint_towards(server, options).await?;
    let connected = endpoint.connect(server).await;
    let connection =
        connected.map_err(|error| Failure::runtime(format!("cannot connect to {server}: {error}")))?;
    let plan = measure::Plan {
        each: arguments.seconds,
        size: usize::try_from(arguments.size).unwrap_or(usize::MAX),
        shows: io::stderr().is_terminal(),
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
    options.simulate = arguments.simulate;
    let endpoint = Endpoint::bind(listen, options).await;
    let endpoint = endpoint.map_err(|error| host::refuse_to_bind(listen, &error))?;
    endpoint.set_advertisement(b"rakwire bench").map_err(|error| Failure::runtime(error.to_string()))?;
    let end = end_of_operation()?;
    print(format_args!("listening on {}\n", endpoint.local_addr()))?;
    let accept = async {
        while let Some(connection) = endpoint.accept().await {
            tokio::spawn(answer(connection));
        }
    };
    tokio::select! {
        () = accept => {}
        () = end => {}
    }
    endpoint.close().await;
    Ok(())
}

/// Echoes what wants to be echoed, counts what wants to be counted, and tells the count.
async fn answer(connection: Connection) {
    let mut count = Count::default();
    while let Some(message) = connection.recv().await {
        let answer = match Probe::of(&message.bytes) {
            Some(Probe::Echo) => connection.send(&message.bytes, message.delivery).await,
            Some(Probe::Counted) => {
                count.add(message.bytes.len());
                continue;
            }
            Some(Probe::Tell) => {
                let told = std::mem::take(&mut count).to_bytes();
                connection.send(&told, Delivery::RELIABLE_ORDERED).await
            }
            None => continue,
        };
        if answer.is_err() {
            return;
        }
    }
}
