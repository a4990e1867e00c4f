//! The WebSocket of one client: reading, writing and closing.

use std::error::Error as _;
use std::future::pending;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::WebSocketUpgrade;
use axum::extract::ws::{CloseCode, CloseFrame, Message, WebSocket, close_code};
use futures_util::{SinkExt, StreamExt};
use tokio::time::timeout;

use crate::close::{CloseKind, CloseReason};
use crate::config::Limits;
use crate::flow::{FLOW_REQUEST, Flow, FromClient, ToClient};

/// The maximum length in bytes of a message that is read completely. A message between the datagram limit and this
/// limit is rejected with an orderly close. Of a longer message, only the frame header is read.
const MESSAGE_MAX: usize = 64 * 1024;

/// The initial read buffer of each client in bytes, which exists even while the client is idle. It grows with the
/// client's messages. The shared read-ahead below it saves most system calls.
const READ_BUFFER: usize = 512;

/// The number of buffered bytes at which frames are written.
const WRITE_BUFFER: usize = 16 * 1024;

/// The first close code for applications (RFC 6455 section 7.4.2). Pages can close only with these codes and with 1000.
const FIRST_APPLICATION_ID: CloseCode = 3_000;

/// Time limit for a client to answer a close. Closing the connection immediately with unread input would reset it, and
/// the client might lose the close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Limits the buffers of one client.
pub(crate) fn configure(upgrade: WebSocketUpgrade, limits: &Limits) -> WebSocketUpgrade {
    let message_max = MESSAGE_MAX.max(limits.max_datagram);
    upgrade
        .max_message_size(message_max)
        .max_frame_size(message_max)
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
        // Messages are added only while no write is blocked, so there is always space for a message and its header.
        .max_write_buffer_size(WRITE_BUFFER + 2 * message_max)
}

/// The WebSocket of one client.
#[derive(Debug)]
pub(crate) struct WebSocketTransport {
    socket: WebSocket,
    /// True if the last write may have left data in the buffer.
    has_unwritten: bool,
    /// True if a proxy has opened the connection for the client.
    is_through_proxy: bool,
}

impl WebSocketTransport {
    pub(crate) const fn new(socket: WebSocket, is_through_proxy: bool) -> Self {
        Self { socket, has_unwritten: false, is_through_proxy }
    }

    /// Returns the next message from the client.
    pub(super) fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<FromClient> {
        let item = ready!(self.socket.poll_next_unpin(context));
        Poll::Ready(match item {
            None => FromClient::Vanished,
            Some(Ok(Message::Binary(message))) => FromClient::Datagram(message),
            Some(Ok(Message::Text(text))) if text.as_str() == FLOW_REQUEST => FromClient::FlowRequest,
            Some(Ok(Message::Text(_))) => FromClient::Text,
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => FromClient::Control,
            Some(Ok(Message::Close(frame))) => self.closed(context, frame.map(|frame| frame.code)),
            Some(Err(error)) => classify(&error),
        })
    }

    /// Answers a close immediately (RFC 6455 section 5.5.1), because a flow that continues drops this connection.
    fn closed(&mut self, context: &mut Context<'_>, code: Option<CloseCode>) -> FromClient {
        // If the answer cannot be written, the connection ends without it.
        let _ = self.socket.poll_flush_unpin(context);
        if is_by_the_client(code, self.is_through_proxy) { FromClient::Closed } else { FromClient::Vanished }
    }

    /// Writes the frames of `flow` until the socket would block.
    pub(super) fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        flow: &mut Flow,
        now: Instant,
    ) -> Poll<Result<(), Broken>> {
        ready!(self.poll_fill(context, flow, now))?;
        if self.has_unwritten {
            ready!(self.socket.poll_flush_unpin(context)).map_err(|_| Broken)?;
            self.has_unwritten = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Adds the frames of `flow` to the write buffer, which is flushed when it is full.
    pub(super) fn poll_fill(
        &mut self,
        context: &mut Context<'_>,
        flow: &mut Flow,
        now: Instant,
    ) -> Poll<Result<(), Broken>> {
        loop {
            // A frame stays in the flow until the socket has space, because only the flow can drop it for its age.
            ready!(self.socket.poll_ready_unpin(context)).map_err(|_| Broken)?;
            let message = match flow.poll_to_client(now) {
                Some(ToClient::Datagram(datagram)) => {
                    flow.handle_sent_to_client(datagram.len());
                    Message::Binary(datagram)
                }
                Some(ToClient::Ping) => Message::Ping(Bytes::new()),
                Some(ToClient::Control(text)) => Message::Text(text.into()),
                None => return Poll::Ready(Ok(())),
            };
            self.has_unwritten = true;
            self.socket.start_send_unpin(message).map_err(|_| Broken)?;
        }
    }

    /// Sends the close frame, unless the client has already left, and waits briefly for the answer.
    pub(super) async fn close(mut self, reason: &CloseReason) {
        let closing = async {
            match reason.kind().code() {
                Some(code) => send_close(&mut self.socket, code, reason).await,
                // Answers the close of the client. An error has no consequences here.
                None => drop(SinkExt::close(&mut self.socket).await),
            }
        };
        // The connection ends here even if the timeout has elapsed.
        let _ = timeout(CLOSE_TIMEOUT, closing).await;
    }
}

/// Returns true if a close with this code comes from the client and ends its flow. Other codes come from proxies that
/// restart, fail or lose their connection, and from browsers that could not read a frame. The client treats them as a
/// loss and returns.
///
/// Browsers send "going away" when a page is closed, and proxies send it when they restart. Without a proxy it means
/// that the player has left.
const fn is_by_the_client(code: Option<CloseCode>, is_through_proxy: bool) -> bool {
    match code {
        None => true,
        Some(code) if code == close_code::AWAY => !is_through_proxy,
        Some(code) => {
            code == close_code::NORMAL || code == close_code::STATUS || code >= FIRST_APPLICATION_ID
        }
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
    // After a partially read message, nothing more can be read. Closing the connection now would reset it, and some
    // systems then discard data that was already received, such as the close frame.
    if reason.kind() == CloseKind::MessageTooBig {
        pending::<()>().await;
    }
}

/// The connection is no longer writable. Reading returns the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Broken;

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io;
    use std::pin::Pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::Router;
    use axum::routing::any;
    use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};
    use tokio::sync::mpsc;
    use tokio_tungstenite::client_async;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::flow::{FlowLimits, FromServer, Setup, TargetCounters};
    use crate::io::serve::serve_http;

    const DATAGRAMS: usize = 100;

    /// An in-memory connection that counts its writes.
    struct Counted {
        stream: DuplexStream,
        writes: Arc<AtomicUsize>,
    }

    impl AsyncRead for Counted {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_read(context, buffer)
        }
    }

    impl AsyncWrite for Counted {
        fn poll_write(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.writes.fetch_add(1, Ordering::Relaxed);
            Pin::new(&mut self.stream).poll_write(context, bytes)
        }

        fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_flush(context)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_shutdown(context)
        }
    }

    /// Connects a WebSocket over `stream`. Returns the relay's side, and the messages that the client receives.
    async fn connect(stream: Counted, client: DuplexStream) -> (WebSocket, mpsc::UnboundedReceiver<Bytes>) {
        let (opened, mut sockets) = mpsc::unbounded_channel();
        let upgrade = async move |upgrade: WebSocketUpgrade| {
            let open = async move |socket| drop(opened.send(socket));
            configure(upgrade, &Limits::default()).on_upgrade(open)
        };
        let router = Router::new().route("/ws", any(upgrade));
        tokio::spawn(async move {
            let stop = CancellationToken::new();
            serve_http(stream, router, (), Duration::from_secs(60), &stop).await.unwrap();
        });
        let (mut client, _) = client_async("ws://relay/ws", client).await.unwrap();
        let (received, messages) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(Ok(message)) = client.next().await {
                drop(received.send(message.into_data()));
            }
        });
        (sockets.recv().await.unwrap(), messages)
    }

    #[test]
    fn only_close_codes_of_clients_end_a_flow() {
        for is_through_proxy in [false, true] {
            for code in [None, Some(1000), Some(1005), Some(3000), Some(4000), Some(4999)] {
                assert!(is_by_the_client(code, is_through_proxy), "{code:?}");
            }
            for code in [1002, 1003, 1006, 1007, 1008, 1009, 1011, 1012, 1013, 1014] {
                assert!(!is_by_the_client(Some(code), is_through_proxy), "{code}");
            }
        }
        assert!(is_by_the_client(Some(1001), false), "the browser of a page that is closed");
        assert!(!is_by_the_client(Some(1001), true));
    }

    #[tokio::test]
    async fn queued_datagrams_are_sent_in_one_write() {
        let writes = Arc::<AtomicUsize>::default();
        let (stream, client) = duplex(2 * WRITE_BUFFER);
        let stream = Counted { stream, writes: Arc::clone(&writes) };
        let (socket, mut messages) = connect(stream, client).await;
        let mut transport = WebSocketTransport::new(socket, false);
        let now = Instant::now();
        let counters = Arc::new(TargetCounters::default());
        let mut flow = Flow::new(FlowLimits::default(), counters, Setup::default(), now);
        for number in 0..DATAGRAMS {
            flow.handle_server(now, FromServer::Datagram(&[number as u8; 100]));
        }
        let before = writes.load(Ordering::Relaxed);
        poll_fn(|context| transport.poll_write(context, &mut flow, now)).await.unwrap();
        assert_eq!(writes.load(Ordering::Relaxed) - before, 1);
        for number in 0..DATAGRAMS {
            assert_eq!(messages.recv().await.unwrap(), vec![number as u8; 100]);
        }
    }
}
