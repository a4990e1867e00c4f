//! `rakwire echo` and `rakwire send` with the Game Protocol.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rakwire_native::game::{self, Connection, Options, Reliability};
use tracing::info;

use crate::capture::Capture;
use crate::failure::{Failure, print};
use crate::{echo, host, send, text};

/// Rejects options that do not apply to the Game Protocol.
pub(crate) fn reject_options(given: &[(&str, bool)]) -> Result<(), Failure> {
    match given.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((option, _)) => {
            Err(Failure::usage(format!("{option} does not apply to the Game Protocol; remove it")))
        }
    }
}

/// Echoes every message with its reliability.
pub(crate) async fn serve(listen: &str, capture: &Capture, mut options: Options) -> Result<(), Failure> {
    options.backlog = 65_000;
    let endpoint = capture.bind_game_protocol(listen, options).await?;
    echo::start_logging();
    let stop = echo::stop_signal()?;
    print(format_args!("listening on {}\n", endpoint.local_addr()))?;
    let serve = async {
        while let Some(connection) = endpoint.accept().await {
            tokio::spawn(echo_all(connection));
        }
    };
    tokio::select! {
        () = serve => {}
        () = stop => {}
    }
    info!("closing");
    endpoint.close().await;
    Ok(())
}

async fn echo_all(connection: Connection) {
    let remote = connection.remote();
    info!(%remote, "connected");
    let mut messages = 0_u64;
    while let Some(message) = connection.recv().await {
        match connection.send(&message.bytes, message.reliability).await {
            Ok(()) => messages += 1,
            Err(error) => info!(%remote, %error, "a message was not echoed"),
        }
    }
    let reason = connection.closed_reason().map_or_else(String::new, |reason| reason.to_string());
    info!(%remote, messages, %reason, "disconnected");
}

/// The messages of `rakwire send`.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    /// What every message begins with.
    pub(crate) prefix: &'a [u8],
    pub(crate) size: Option<usize>,
    pub(crate) count: u32,
    pub(crate) reliability: Reliability,
    pub(crate) timeout: Duration,
}

/// Connects, sends messages and checks every echo. With a capture there is only one attempt to connect, because further
/// attempts would use other ports.
pub(crate) async fn exchange(
    server: SocketAddr,
    capture: &Capture,
    request: &Request<'_>,
) -> Result<(), Failure> {
    let mut options = Options::client().map_err(host::no_entropy)?;
    let failure = |reason: String| Failure::runtime(format!("cannot connect to {server}: {reason}"));
    let timed_out = |_| failure(format!("no connection within {} s", request.timeout.as_secs_f64()));
    if !capture.is_enabled() {
        let connected = tokio::time::timeout(request.timeout, game::connect(server, options)).await;
        let connection = connected.map_err(timed_out)?.map_err(|error| failure(error.to_string()))?;
        return exchange_over(&connection, request).await;
    }
    options.config.handshake_timeout = request.timeout;
    let endpoint = capture.bind_game_protocol(host::unspecified_address_for(server), options).await?;
    let connected = tokio::time::timeout(request.timeout, endpoint.connect(server)).await;
    let connection = connected.map_err(timed_out)?.map_err(|error| failure(error.to_string()))?;
    let result = exchange_over(&connection, request).await;
    endpoint.close().await;
    result
}

async fn exchange_over(connection: &Connection, request: &Request<'_>) -> Result<(), Failure> {
    for number in 0..request.count {
        let message = send::message(request.prefix, request.size.unwrap_or(request.prefix.len()), number);
        let time = echo_of(connection, &message, request).await?;
        let shown = match request.size {
            Some(size) => format!("of {size} bytes"),
            None => format!("\"{}\"", text::escape(&message)),
        };
        print(format_args!("echo {shown} in {}\n", host::millis(time)))?;
    }
    connection.disconnect().await;
    Ok(())
}

/// Sends a message and returns the time until its echo.
async fn echo_of(
    connection: &Connection,
    message: &[u8],
    request: &Request<'_>,
) -> Result<Duration, Failure> {
    let start = Instant::now();
    let sent = connection.send(message, request.reliability).await;
    sent.map_err(|error| Failure::runtime(format!("the message cannot be sent: {error}")))?;
    let echo = tokio::time::timeout(request.timeout, connection.recv()).await;
    let echo = echo.map_err(|_| send::no_echo(request.timeout))?.ok_or_else(|| {
        let reason = connection.closed_reason().map_or_else(String::new, |reason| format!(": {reason}"));
        Failure::runtime(format!("the connection ended before the echo{reason}"))
    })?;
    send::check(&echo.bytes, message)?;
    Ok(start.elapsed())
}
