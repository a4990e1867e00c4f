//! `rakwire echo` and `rakwire send` in the Game Protocol.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rakwire_native::game::{self, Connection, Options, Reliability};
use tracing::info;

use crate::capture::Capture;
use crate::failure::{Failure, print};
use crate::{echo, host, send, text};

/// Refuses options that mean nothing to the Game Protocol.
pub(crate) fn refuse(given: &[(&str, bool)]) -> Result<(), Failure> {
    match given.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((option, _)) => {
            Err(Failure::usage(format!("{option} means nothing to the Game Protocol; leave it out")))
        }
    }
}

/// Listens, and sends every message back as it came.
pub(crate) async fn serve(listen: &str, capture: &Capture, mut options: Options) -> Result<(), Failure> {
    options.backlog = 65_000;
    let endpoint = capture.bind_game(listen, options).await?;
    echo::start_logging();
    let end = echo::end_of_operation()?;
    print(format_args!("listening on {}\n", endpoint.local_addr()))?;
    let serve = async {
        while let Some(connection) = endpoint.accept().await {
            tokio::spawn(echo_all(connection));
        }
    };
    tokio::select! {
        () = serve => {}
        () = end => {}
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

/// What to send.
#[derive(Debug)]
pub(crate) struct Errand<'a> {
    pub(crate) head: &'a [u8],
    pub(crate) size: Option<usize>,
    pub(crate) count: u32,
    pub(crate) reliability: Reliability,
    pub(crate) timeout: Duration,
}

/// Connects, sends messages and checks every echo. With a capture everything goes through one port, so that there is one
/// attempt to connect.
pub(crate) async fn exchange(
    server: SocketAddr,
    capture: &Capture,
    errand: &Errand<'_>,
) -> Result<(), Failure> {
    let mut options = Options::client().map_err(host::no_entropy)?;
    let refuse = |reason: String| Failure::runtime(format!("cannot connect to {server}: {reason}"));
    let late = |_| refuse(format!("no connection within {} s", errand.timeout.as_secs_f64()));
    if !capture.is_asked_for() {
        let connected = tokio::time::timeout(errand.timeout, game::connect(server, options)).await;
        let connection = connected.map_err(late)?.map_err(|error| refuse(error.to_string()))?;
        return exchange_over(&connection, errand).await;
    }
    options.config.handshake_timeout = errand.timeout;
    let endpoint = capture.bind_game(host::any_towards(server), options).await?;
    let connected = tokio::time::timeout(errand.timeout, endpoint.connect(server)).await;
    let connection = connected.map_err(late)?.map_err(|error| refuse(error.to_string()))?;
    let result = exchange_over(&connection, errand).await;
    endpoint.close().await;
    result
}

async fn exchange_over(connection: &Connection, errand: &Errand<'_>) -> Result<(), Failure> {
    for number in 0..errand.count {
        let message = send::message(errand.head, errand.size.unwrap_or(errand.head.len()), number);
        let time = echo_of(connection, &message, errand).await?;
        let shown = match errand.size {
            Some(size) => format!("of {size} bytes"),
            None => format!("\"{}\"", text::escape(&message)),
        };
        print(format_args!("echo {shown} in {}\n", host::millis(time)))?;
    }
    connection.disconnect().await;
    Ok(())
}

/// Sends a message and returns the time until its echo.
async fn echo_of(connection: &Connection, message: &[u8], errand: &Errand<'_>) -> Result<Duration, Failure> {
    let start = Instant::now();
    let sent = connection.send(message, errand.reliability).await;
    sent.map_err(|error| Failure::runtime(format!("the message cannot be sent: {error}")))?;
    let echo = tokio::time::timeout(errand.timeout, connection.recv()).await;
    let echo = echo.map_err(|_| send::no_echo(errand.timeout))?.ok_or_else(|| {
        let reason = connection.closed_reason().map_or_else(String::new, |reason| format!(": {reason}"));
        Failure::runtime(format!("the connection ended before the echo{reason}"))
    })?;
    send::check(&echo.bytes, message)?;
    Ok(start.elapsed())
}
