//! `rakwire send` with the Game Protocol.

use std::fmt::Display;
use std::net::SocketAddr;

use rakwire::game_protocol::wire::MAX_PAYLOAD;
use rakwire_native::game_protocol::{self, ConnectError, Connection, GameProtocol, Options, Reliability};

use super::arguments::{Arguments, ReliabilityArgument};
use super::exchange::{Request, exchange};
use crate::failure::Failure;
use crate::protocol::reject_options_of_raknet;
use crate::{hex, host};

/// Sends messages that contain only the text.
pub(super) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    reject_options_of_raknet(&[
        ("--channel", arguments.channel != 0),
        ("--password", arguments.password.is_given()),
        ("--server-key", arguments.server_key.is_some()),
        ("--token", arguments.token.is_some()),
    ])?;
    let delivery = reliability(arguments)?;
    let size = arguments.size.and_then(|size| usize::try_from(size).ok());
    let prefix = prefix(arguments, size)?;
    let servers = host::resolve_all(&arguments.target).await?;
    let (count, timeout) = (arguments.count, arguments.timeout);
    let request = Request { prefix: &prefix, text_at: 0, size, count, delivery, timeout };
    if !arguments.capture.is_enabled() {
        return exchange(&connect(&servers, arguments).await?, &request).await;
    }
    record(&servers, arguments, &request).await
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

/// Returns the prefix of every message.
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

/// Connects to the first address at which a server answers. Each attempt may use several local ports.
async fn connect(servers: &[SocketAddr], arguments: &Arguments) -> Result<Connection, Failure> {
    let attempt = async |server, share| {
        let connecting = game_protocol::connect(server, Options::client().map_err(host::no_entropy)?);
        match tokio::time::timeout(share, connecting).await {
            Ok(connected) => connected.map_err(|error| failure(servers, &error)),
            Err(_) => Err(timed_out(servers, arguments)),
        }
    };
    host::try_each(servers, arguments.timeout, timed_out(servers, arguments), |_| true, attempt).await
}

/// Sends with a capture. Each address is tried once, because further attempts would use other ports.
async fn record(
    servers: &[SocketAddr],
    arguments: &Arguments,
    request: &Request<'_, Reliability>,
) -> Result<(), Failure> {
    let mut options = Options::client().map_err(host::no_entropy)?;
    options.config.handshake_timeout = arguments.timeout;
    let any = host::unspecified_address_for(servers);
    let (endpoint, statistics) = arguments.capture.bind(any, options).await?;
    let attempt = async |server, share| match tokio::time::timeout(share, endpoint.connect(server)).await {
        Ok(connected) => connected.map_err(Some),
        Err(_) => Err(None),
    };
    let was_unanswered =
        |error: &Option<ConnectError>| error.as_ref().is_none_or(host::was_unanswered::<GameProtocol>);
    let connected = host::try_each(servers, arguments.timeout, None, was_unanswered, attempt).await;
    let result = match connected {
        Ok(connection) => {
            statistics.watch(&connection);
            exchange(&connection, request).await
        }
        Err(Some(error)) => Err(failure(servers, &error)),
        Err(None) => Err(timed_out(servers, arguments)),
    };
    endpoint.close().await;
    result.and(statistics.finish().await)
}

fn timed_out(servers: &[SocketAddr], arguments: &Arguments) -> Failure {
    failure(servers, &format_args!("no connection within {} s", arguments.timeout.as_secs_f64()))
}

fn failure(servers: &[SocketAddr], reason: &dyn Display) -> Failure {
    Failure::runtime(format!("cannot connect to {}: {reason}", host::list(servers)))
}
