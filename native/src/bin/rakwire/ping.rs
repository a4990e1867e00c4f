//! `rakwire ping`: what a server says of itself.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use clap::Args;
use rakwire_native::{Endpoint, Options, PingError, Pong};
use serde_json::{Value, json};

use crate::failure::{Failure, print};
use crate::{hex, host, text};

/// After which time without a pong another ping is sent.
const RETRY: Duration = Duration::from_secs(1);

/// Asks a server what it says of itself, without connecting.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The server, as 127.0.0.1:19132, [::1]:19132 or example.org:19132
    #[arg(value_name = "HOST:PORT")]
    target: String,
    /// How long to wait; every second another ping is sent
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = host::seconds)]
    timeout: Duration,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let server = host::resolve(&arguments.target).await?;
    let options = Options::client().map_err(host::no_entropy)?;
    let endpoint = host::endpoint_towards(server, options).await?;
    let pong = ask(&endpoint, server, arguments.timeout).await;
    endpoint.close().await;
    let pong = pong.map_err(|error| {
        Failure::runtime(format!(
            "no pong from {server} within {} s: {error}; check the address, and that the path lets UDP through",
            arguments.timeout.as_secs_f64()
        ))
    })?;
    print(if arguments.json { format!("{}\n", as_json(&pong)) } else { as_text(&pong) })
}

async fn ask(endpoint: &Endpoint, server: SocketAddr, timeout: Duration) -> Result<Pong, PingError> {
    let start = Instant::now();
    loop {
        let left = timeout.saturating_sub(start.elapsed());
        match endpoint.ping(server, left.min(RETRY)).await {
            Err(PingError::NoAnswer) if left > RETRY => {}
            result => return result,
        }
    }
}

/// What a pong says, in a line.
pub(crate) fn as_text(pong: &Pong) -> String {
    format!(
        "pong from {} in {}, guid {}, data: \"{}\"\n",
        pong.from,
        host::millis(pong.latency),
        pong.guid,
        text::escape(&pong.data)
    )
}

/// What a pong says, as an object.
pub(crate) fn as_json(pong: &Pong) -> Value {
    json!({
        "from": pong.from.to_string(),
        "latency_ms": pong.latency.as_secs_f64() * 1_000.0,
        "guid": pong.guid.to_string(),
        "data": String::from_utf8_lossy(&pong.data),
        "data_hex": hex::format(&pong.data),
    })
}
