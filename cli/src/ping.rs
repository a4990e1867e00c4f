//! `rakwire ping`: pings a server.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use clap::Args;
use rakwire_native::{Endpoint, Options, PingError, Pong};
use serde_json::{Value, json};

use crate::failure::{Failure, print};
use crate::protocol::PongFramingArgument;
use crate::{hex, host, text};

/// The interval of pings until a pong arrives.
const RETRY: Duration = Duration::from_secs(1);

/// Pings a server without connecting, and prints its pong.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The server, such as 127.0.0.1:19132, [::1]:19132 or example.org:19132
    #[arg(value_name = "HOST:PORT")]
    target: String,
    /// Time to wait for a pong; a ping is sent every second
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = host::seconds)]
    timeout: Duration,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// The framing of pong data: raw, or prefixed with its length (default: a length prefix is detected and removed)
    #[arg(long, value_enum, value_name = "FRAMING")]
    pong_framing: Option<PongFramingArgument>,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let servers = host::resolve_all(&arguments.target).await?;
    let mut options = Options::client().map_err(host::no_entropy)?;
    options.config.pong_framing = arguments.pong_framing.map(Into::into);
    let endpoint = host::endpoint_for(&servers, options).await?;
    let pong = ping_until_pong(&endpoint, &servers, arguments.timeout).await;
    endpoint.close().await;
    let pong = pong.map_err(|error| explain(&servers, error, arguments.timeout))?;
    print(if arguments.json { format!("{}\n", as_json(&pong)) } else { as_text(&pong) })
}

/// Pings each address until a pong arrives.
async fn ping_until_pong(
    endpoint: &Endpoint,
    servers: &[SocketAddr],
    timeout: Duration,
) -> Result<Pong, PingError> {
    let was_unanswered = |error: &PingError| matches!(error, PingError::NoAnswer | PingError::Unreachable);
    let ping = async |server, share| ping_repeatedly(endpoint, server, share).await;
    host::try_each(servers, timeout, PingError::NoAnswer, was_unanswered, ping).await
}

async fn ping_repeatedly(
    endpoint: &Endpoint,
    server: SocketAddr,
    timeout: Duration,
) -> Result<Pong, PingError> {
    let start = Instant::now();
    loop {
        let left = timeout.saturating_sub(start.elapsed());
        match endpoint.ping(server, left.min(RETRY)).await {
            Err(PingError::NoAnswer) if left > RETRY => {}
            result => return result,
        }
    }
}

fn explain(servers: &[SocketAddr], error: PingError, timeout: Duration) -> Failure {
    let (servers, seconds) = (host::list(servers), timeout.as_secs_f64());
    Failure::runtime(if error == PingError::Unreachable {
        format!("no pong from {servers}: {error}; check the address and the port")
    } else {
        format!(
            "no pong from {servers} within {seconds} s: {error}; check the address, and that UDP is not blocked"
        )
    })
}

/// Formats a pong as a line of text.
pub(crate) fn as_text(pong: &Pong) -> String {
    format!(
        "pong from {} in {}, guid {}, data: \"{}\"\n",
        pong.from,
        host::millis(pong.latency),
        pong.identity,
        text::escape(&pong.data)
    )
}

/// Formats a pong as a JSON object.
pub(crate) fn as_json(pong: &Pong) -> Value {
    json!({
        "from": pong.from.to_string(),
        "latency_ms": pong.latency.as_secs_f64() * 1_000.0,
        "guid": pong.identity.to_string(),
        "data": String::from_utf8_lossy(&pong.data),
        "data_hex": hex::format(&pong.data),
    })
}
