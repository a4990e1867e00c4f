//! What is done with a connection, whatever carries it.

use std::io::{self, IsTerminal};

use tracing::info;

use crate::connection::Connection;

/// Sends the messages that `is_echoed` picks back, as they travelled, until the connection ends.
pub(super) async fn echo(connection: impl Connection, is_echoed: fn(&[u8]) -> bool) {
    let remote = connection.remote();
    let (mut messages, mut bytes) = (0_u64, 0_u64);
    while let Some(message) = connection.recv().await {
        if !is_echoed(&message.bytes) {
            continue;
        }
        if let Err(error) = connection.send(&message.bytes, message.delivery).await {
            info!(%remote, %error, "a message was not echoed");
            continue;
        }
        messages += 1;
        bytes += message.bytes.len() as u64;
    }
    let reason = connection.closed_reason().unwrap_or_default();
    info!(%remote, messages, bytes, %reason, "disconnected");
}

pub(super) fn start_logging() {
    tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        // A line that cannot be written would be told on the same output, by a panic.
        .log_internal_errors(false)
        .init();
}
