//! Echoes the messages of a connection over any transport.

use std::io::{self, IsTerminal};

use tracing::info;

use crate::connection::Connection;

/// Echoes the messages that `is_echoed` selects, with their delivery, until the connection is closed.
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
        // The subscriber would report a failed write on the same output and panic.
        .log_internal_errors(false)
        .init();
}
