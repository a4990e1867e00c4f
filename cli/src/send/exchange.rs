//! Sends messages and checks their echoes, with either protocol or over TCP.

use std::time::{Duration, Instant};

use rakwire_native::SendError;

use crate::connection::Connection;
use crate::failure::{Failure, print};
use crate::{host, text};

/// The messages to send.
#[derive(Debug)]
pub(super) struct Request<'a, D> {
    /// The prefix of every message.
    pub(super) prefix: &'a [u8],
    /// The offset of the text in a message.
    pub(super) text_at: usize,
    /// The length to pad messages to.
    pub(super) size: Option<usize>,
    pub(super) count: u32,
    pub(super) delivery: D,
    /// The time to wait for each echo.
    pub(super) timeout: Duration,
}

/// Sends messages, checks every echo and disconnects.
pub(super) async fn exchange<C: Connection>(
    connection: &C,
    request: &Request<'_, C::Delivery>,
) -> Result<(), Failure> {
    for number in 0..request.count {
        let message = message(request.prefix, request.size.unwrap_or(request.prefix.len()), number);
        let time = echo(connection, &message, request).await?;
        let shown = match request.size {
            Some(size) => format!("of {size} bytes"),
            None => format!("\"{}\"", text::escape(message.get(request.text_at..).unwrap_or(&[]))),
        };
        let mtu = connection.mtu().map_or_else(String::new, |mtu| format!(", MTU {mtu}"));
        print(format_args!("echo {shown} in {}{mtu}\n", host::millis(time)))?;
    }
    connection.disconnect().await;
    Ok(())
}

/// Builds message `number`: the prefix, and a byte pattern that depends on the number.
fn message(prefix: &[u8], size: usize, number: u32) -> Vec<u8> {
    let mut message = prefix.to_vec();
    let padding = (prefix.len()..size).map(|at| {
        let mixed = 31 * u64::from(number) + 7 * at as u64 + 13 * (at as u64 / 256);
        mixed.to_le_bytes()[0]
    });
    message.extend(padding);
    message
}

/// Sends a message and returns the time until its echo.
async fn echo<C: Connection>(
    connection: &C,
    message: &[u8],
    request: &Request<'_, C::Delivery>,
) -> Result<Duration, Failure> {
    let start = Instant::now();
    let echo = async {
        let sent = connection.send(message, request.delivery).await;
        sent.map_err(|error| {
            if error == SendError::NotConnected {
                return ended(connection);
            }
            Failure::runtime(format!("cannot send the message: {error}"))
        })?;
        connection.recv().await.ok_or_else(|| ended(connection))
    };
    let echo = tokio::time::timeout(request.timeout, echo).await;
    let echo = echo.map_err(|_| no_echo(request.timeout))??;
    check(&echo.bytes, message)?;
    Ok(start.elapsed())
}

fn ended(connection: &impl Connection) -> Failure {
    let reason = connection.closed_reason().map_or_else(String::new, |reason| format!(": {reason}"));
    Failure::runtime(format!("the connection was closed before the echo{reason}"))
}

fn no_echo(timeout: Duration) -> Failure {
    let seconds = timeout.as_secs_f64();
    Failure::runtime(format!(
        "no echo within {seconds} s; check that the server echoes, or allow more time with --timeout"
    ))
}

/// Compares an echo with its message, byte for byte.
fn check(echo: &[u8], message: &[u8]) -> Result<(), Failure> {
    if echo == message {
        return Ok(());
    }
    let same = echo.iter().zip(message).take_while(|(a, b)| a == b);
    Err(Failure::runtime(format!(
        "the echo differs from the message: {} bytes instead of {}, equal up to byte {}",
        echo.len(),
        message.len(),
        same.count()
    )))
}
