//! `rakwire send` with the Game Protocol.

use std::fmt::Display;
use std::net::SocketAddr;

use rakwire::game_protocol::wire::MAX_PAYLOAD;
use rakwire_native::game_protocol::{self, Connection, Endpoint, Options, Reliability};

use super::arguments::{Arguments, ReliabilityArgument};
use super::exchange::{Request, exchange};
use crate::failure::Failure;
use crate::protocol::reject_options_of_raknet;
use crate::{hex, host};

/// Sends messages that are just the text.
pub(super) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    reject_options_of_raknet(&[
        ("--channel", arguments.channel != 0),
        ("--password", !arguments.password.is_empty()),
        ("--server-key", arguments.server_key.is_some()),
        ("--token", arguments.token.is_some()),
    ])?;
    let delivery = reliability(arguments)?;
    let size = arguments.size.and_then(|size| usize::try_from(size).ok());
    let prefix = prefix(arguments, size)?;
    let server = host::resolve(&arguments.target).await?;
    let (count, timeout) = (arguments.count, arguments.timeout);
    let request = Request { prefix: &prefix, text_at: 0, size, count, delivery, timeout };
    let (endpoint, connection) = connect(server, arguments).await?;
    let result = exchange(&connection, &request).await;
    if let Some(endpoint) = endpoint {
        endpoint.close().await;
    }
    result
}

fn reliability(arguments: &Arguments) -> Result<Reliability, Failure> {
    match arguments.reliability {
        Some(ReliabilityArgument::Unreliable) => Ok(Reliability::Unreliable),
        None | Some(ReliabilityArgument::Reliable) => Ok(Reliability::Reliable),
        Some(
            ReliabilityArgument::UnreliableSequenced
            | ReliabilityArgument::ReliableOrdered
            | ReliabilityArgument::ReliableSequenced,
        ) => Err(Failure::usage(
            "the Game Protocol has only --reliability reliable and unreliable; choose one of them",
        )),
    }
}

/// What every message begins with.
fn prefix(arguments: &Arguments, size: Option<usize>) -> Result<Vec<u8>, Failure> {
    let is_hex = arguments.raw && arguments.text.to_ascii_lowercase().starts_with("0x");
    let prefix = if is_hex {
        hex::parse(&arguments.text).map_err(|error| Failure::usage(format!("TEXT is not hex: {error}")))?
    } else {
        arguments.text.as_bytes().to_vec()
    };
    let length = size.unwrap_or(prefix.len());
    if length == 0 || length > MAX_PAYLOAD || length < prefix.len() {
        return Err(Failure::usage(format!(
            "a message has {} to {MAX_PAYLOAD} bytes, not {length}; change TEXT or --size",
            prefix.len().max(1)
        )));
    }
    Ok(prefix)
}

/// Connects. With a capture there is only one attempt, because further attempts would use other ports; its endpoint comes
/// back, too.
async fn connect(
    server: SocketAddr,
    arguments: &Arguments,
) -> Result<(Option<Endpoint>, Connection), Failure> {
    let mut options = Options::client().map_err(host::no_entropy)?;
    let timeout = arguments.timeout;
    let failure = |reason: &dyn Display| Failure::runtime(format!("cannot connect to {server}: {reason}"));
    let timed_out = |_| failure(&format_args!("no connection within {} s", timeout.as_secs_f64()));
    if !arguments.capture.is_enabled() {
        let connected = tokio::time::timeout(timeout, game_protocol::connect(server, options)).await;
        return Ok((None, connected.map_err(timed_out)?.map_err(|error| failure(&error))?));
    }
    options.config.handshake_timeout = timeout;
    let endpoint = arguments.capture.bind(host::unspecified_address_for(server), options).await?;
    let connected = tokio::time::timeout(timeout, endpoint.connect(server)).await;
    let connection = connected.map_err(timed_out)?.map_err(|error| failure(&error))?;
    Ok((Some(endpoint), connection))
}
