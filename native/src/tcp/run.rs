//! The task of a connection.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::error::DisconnectReason;
use super::options::Options;
use super::reader::read;
use super::shared::{Opened, Phase, Queued, Shared};
use super::writer::write;

/// Starts the task of a connection over a stream. The task keeps `kept` until the connection has ended.
pub(super) fn start<K: Send + 'static>(
    stream: impl AsyncRead + AsyncWrite + Send + 'static,
    opened: Opened,
    options: &Options,
    kept: K,
) -> Arc<Shared> {
    let (received, receive_queue) = mpsc::unbounded_channel();
    let (send_queue, queued) = mpsc::unbounded_channel();
    let Opened { remote, span, first_message_timeout } = opened;
    span.connected(None);
    let shared = Arc::new(Shared::new(options, remote, span, receive_queue, send_queue));
    let of_task = shared.clone();
    tokio::spawn(async move {
        let reason = tokio::select! {
            reason = run(stream, received.clone(), queued, &of_task) => reason,
            () = first_message_deadline(first_message_timeout, &of_task) => DisconnectReason::NoFirstMessage,
        };
        of_task.end(reason);
        // Whoever receives learns that this was all when the reason is known.
        drop((received, kept));
    });
    shared
}

/// Reads and writes until one of them ends the connection. The stream is closed when this returns.
async fn run(
    stream: impl AsyncRead + AsyncWrite,
    receive_queue: mpsc::UnboundedSender<Queued>,
    send_queue: mpsc::UnboundedReceiver<Queued>,
    shared: &Shared,
) -> DisconnectReason {
    let (reader, writer) = tokio::io::split(stream);
    tokio::pin!(reader, writer);
    let read = read(reader, receive_queue, shared);
    tokio::pin!(read);
    let reason = tokio::select! {
        reason = &mut read => reason,
        written = write(writer, send_queue, shared) => match written {
            Err(reason) => reason,
            Ok(()) => {
                // The system would reset the connection, and lose what is under way to the other side, if bytes were unread.
                let _ = timeout(shared.options.close_timeout, read).await;
                DisconnectReason::Local
            }
        },
        () = close_deadline(shared) => DisconnectReason::Local,
    };
    match shared.phase() {
        Phase::Closing => DisconnectReason::Local,
        Phase::Open | Phase::Ended(_) => reason,
    }
}

/// When a connection is over by which no message has passed.
async fn first_message_deadline(limit: Duration, shared: &Shared) {
    sleep(limit).await;
    let stats = shared.counters.read();
    if stats.messages_received > 0 || stats.messages_sent > 0 || shared.phase() != Phase::Open {
        std::future::pending().await
    }
}

/// When a connection that this side has closed has to be over.
async fn close_deadline(shared: &Shared) {
    shared.closing().await;
    sleep(shared.options.close_timeout).await;
}
