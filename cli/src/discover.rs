//! `rakwire discover`: finds servers on the local network.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use clap::Args;
use rakwire_native::{Options, PingScope};
use serde_json::Value;

use crate::failure::{Failure, print};
use crate::protocol::PongFramingArgument;
use crate::{host, ping};

/// Finds servers on the local network by a broadcast ping.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The port that servers listen on
    #[arg(long, value_name = "N", default_value_t = 19_132, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// The broadcast address of one network, or 255.255.255.255 for all
    #[arg(long, value_name = "BROADCAST", default_value = "255.255.255.255")]
    address: IpAddr,
    /// Find only servers that accept new connections
    #[arg(long)]
    open_only: bool,
    /// Time to wait for pongs; a ping is sent every second
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = host::seconds)]
    timeout: Duration,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
    /// The framing of pong data: raw, or prefixed with its length (default: a length prefix is detected and removed)
    #[arg(long, value_enum, value_name = "FRAMING")]
    pong_framing: Option<PongFramingArgument>,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let broadcast = SocketAddr::new(arguments.address, arguments.port);
    let mut options = Options::client().map_err(host::no_entropy)?;
    options.config.pong_framing = arguments.pong_framing.map(Into::into);
    let endpoint = host::endpoint_for(&[broadcast], options).await?;
    let scope = if arguments.open_only { PingScope::OpenConnections } else { PingScope::Any };
    let found = endpoint.discover(broadcast, scope, arguments.timeout).await;
    let send_failures = endpoint.stats().send_failures;
    endpoint.close().await;
    let mut found = found.map_err(|error| Failure::runtime(format!("cannot ping {broadcast}: {error}")))?;
    found.sort_by_key(|pong| pong.from);
    if arguments.json {
        let objects: Value = found.iter().map(ping::as_json).collect();
        print(format_args!("{objects}\n"))?;
    } else {
        found.iter().try_for_each(|pong| print(ping::as_text(pong)))?;
    }
    if found.is_empty() && send_failures > 0 {
        return Err(Failure::runtime(format!(
            "the system cannot send to {broadcast}; set --address to the broadcast address of your network"
        )));
    }
    if found.is_empty() {
        let seconds = arguments.timeout.as_secs_f64();
        return Err(Failure::runtime(format!("no server answered on {broadcast} within {seconds} s")));
    }
    Ok(())
}
