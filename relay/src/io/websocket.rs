//! The WebSocket of one client: reading, writing and closing.

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

/// The longest message that is read completely. A message between the datagram limit and this one is rejected with an
/// orderly close; of a longer one only the frame header is read.
const MESSAGE_MAX: usize = 64 * 1024;

/// The read buffer of each client.
const READ_BUFFER: usize = 8 * 1024;

/// The size at which buffered frames are written.
const WRITE_BUFFER: usize = 16 * 1024;

/// How long a client has to answer a close. Closing at once with unread input would reset the connection, and the
/// client could lose the close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Limits the buffers of one client.
pub(crate) fn configure(upgrade: WebSocketUpgrade, limits: &Limits) -> WebSocketUpgrade {
    let message_max = MESSAGE_MAX.max(limits.max_datagram);
    upgrade
        .max_message_size(message_max)
        .max_frame_size(message_max)
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
        // Messages are only added while no write is blocked, so that one message and its header always fit.
        .max_write_buffer_size(WRITE_BUFFER + 2 * message_max)
}

/// Waits for the next message of the client, and writes in the meantime.
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

/// Writes the frames of `session` until the socket would block.
pub(crate) fn poll_write(
    context: &mut Context<'_>,
    socket: &mut WebSocket,
    session: &mut Session,
) -> Poll<Result<(), axum::Error>> {
    loop {
        // A frame stays in the session, where a newer one can replace it, until the socket has room.
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
        // Only text messages have to be UTF-8.
        Some(Error::Utf8(_)) => FromClient::Text,
        Some(_) | None => FromClient::Vanished,
    }
}

/// Sends the close frame, if the client is still there, and waits briefly for the answer.
pub(crate) async fn close(mut socket: WebSocket, reason: &CloseReason) {
    let closing = async {
        match reason.kind().code() {
            Some(code) => send_close(&mut socket, code, reason).await,
            // Answers the close of the client. An error has no consequence here.
            None => drop(SinkExt::close(&mut socket).await),
        }
    };
    // The connection ends here even if the timeout has elapsed.
    let _ = timeout(CLOSE_TIMEOUT, closing).await;
}

async fn send_close(socket: &mut WebSocket, code: u16, reason: &CloseReason) {
    let frame = CloseFrame { code, reason: reason.text().into() };
    if socket.send(Message::Close(Some(frame))).await.is_err() {
        return;
    }
    while let Some(Ok(message)) = socket.next().await {
        if matches!(message, Message::Close(_)) {
            return;
        }
    }
    // After a message that was not read completely nothing can be read any more. Ending the connection now would reset
    // it, and some systems then discard received data: the close frame.
    if reason.kind() == CloseKind::MessageTooBig {
        pending::<()>().await;
    }
}
