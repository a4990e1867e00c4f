//! The WebSocket of one client: frames in, frames out, and how it is closed.

use std::error::Error as _;
use std::future::pending;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::WebSocketUpgrade;
use axum::extract::ws::{CloseFrame, Message, WebSocket};
use futures_util::{SinkExt, StreamExt};
use tokio::time::timeout;

use crate::close::{CloseKind, CloseReason};
use crate::config::Limits;
use crate::session::{FromClient, Session, ToClient};

/// The longest message that is read to its end. What is longer than a datagram, but not than this, is refused with an
/// orderly close; of what is beyond it only the head is looked at.
const MESSAGE_MAX: usize = 64 * 1024;

/// Allocated for each client.
const READ_BUFFER: usize = 8 * 1024;

/// How much is gathered for one write.
const WRITE_BUFFER: usize = 16 * 1024;

/// How long a client has to answer a close. Without the wait the system could throw the close frame away, together with
/// what the client had sent and nobody read.
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

/// Bounds what one client can make the relay buffer.
pub(crate) fn configure(upgrade: WebSocketUpgrade, limits: &Limits) -> WebSocketUpgrade {
    let message_max = MESSAGE_MAX.max(limits.max_datagram);
    upgrade
        .max_message_size(message_max)
        .max_frame_size(message_max)
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
        // Messages go in only while no write is blocked, so that one and its head always fit.
        .max_write_buffer_size(WRITE_BUFFER + 2 * message_max)
}

/// Waits for the next message of the client, and writes in the meantime what it takes.
pub(crate) fn poll(
    context: &mut Context<'_>,
    socket: &mut WebSocket,
    session: &mut Session,
) -> Poll<FromClient> {
    if let Poll::Ready(Err(_)) = poll_write(context, socket, session) {
        return Poll::Ready(FromClient::Vanished);
    }
    let item = ready!(socket.poll_next_unpin(context));
    Poll::Ready(match item {
        None => FromClient::Vanished,
        Some(Ok(Message::Binary(message))) => FromClient::Binary(message),
        Some(Ok(Message::Text(_))) => FromClient::Text,
        Some(Ok(Message::Ping(_) | Message::Pong(_))) => FromClient::Control,
        Some(Ok(Message::Close(_))) => FromClient::Closed,
        Some(Err(error)) => classify(&error),
    })
}

/// Writes what `session` has, as far as the client takes it.
pub(crate) fn poll_write(
    context: &mut Context<'_>,
    socket: &mut WebSocket,
    session: &mut Session,
) -> Poll<Result<(), axum::Error>> {
    loop {
        // A frame leaves the session only when there is room for it. Until then it can be dropped for a fresher one.
        ready!(socket.poll_ready_unpin(context))?;
        let message = match session.next_to_client() {
            Some(ToClient::Binary(datagram)) => Message::Binary(datagram),
            Some(ToClient::Ping) => Message::Ping(Bytes::new()),
            None => return socket.poll_flush_unpin(context),
        };
        socket.start_send_unpin(message)?;
    }
}

fn classify(error: &axum::Error) -> FromClient {
    use tungstenite::error::{CapacityError, Error, ProtocolError};

    match error.source().and_then(|source| source.downcast_ref::<Error>()) {
        Some(Error::Capacity(CapacityError::MessageTooLong { size, .. })) => {
            FromClient::Oversized { len: *size }
        }
        Some(Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)) => FromClient::Vanished,
        Some(Error::Protocol(_)) => FromClient::Violation,
        // Only a text message can be badly encoded.
        Some(Error::Utf8(_)) => FromClient::Text,
        Some(_) | None => FromClient::Vanished,
    }
}

/// Tells the client why it ends, if somebody is there, and waits a little for the answer.
pub(crate) async fn close(mut socket: WebSocket, reason: &CloseReason) {
    let goodbye = async {
        match reason.kind().code() {
            Some(code) => say_goodbye(&mut socket, code, reason).await,
            // The answer to the client's close, if it still wants one. Nobody is left to be told about an error.
            None => drop(SinkExt::close(&mut socket).await),
        }
    };
    // Time is up or not: the connection ends here.
    let _ = timeout(CLOSE_PATIENCE, goodbye).await;
}

async fn say_goodbye(socket: &mut WebSocket, code: u16, reason: &CloseReason) {
    let frame = CloseFrame { code, reason: reason.words().into() };
    if socket.send(Message::Close(Some(frame))).await.is_err() {
        return;
    }
    while let Some(Ok(message)) = socket.next().await {
        if matches!(message, Message::Close(_)) {
            return;
        }
    }
    // After a message that was not read to its end nothing can be read any more, and ending the connection now would
    // reset it, upon which some systems forget what has arrived: the code.
    if reason.kind() == CloseKind::MessageTooBig {
        pending::<()>().await;
    }
}
