//! The stream of a connection: opens its socket, and reads and writes it in a task, with or without TLS.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rakwire::codec::frames;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{sleep, timeout};

use super::connection::{DisconnectReason, Opened, Phase, Queued, READ_BUFFER, Shared};
use super::options::{Framing, Options};

/// The minimum keep-alive interval of the system, which counts whole seconds.
const MIN_PROBE: Duration = Duration::from_secs(1);

/// The reason why a connection could not be opened.
pub type ConnectError = rakwire_native::endpoint::ConnectError<ConnectFailure>;

/// The reason why an attempt to open a connection failed.
///
/// ```
/// use std::io::ErrorKind;
/// use rakwire_extras::tcp::{ConnectError, ConnectFailure, Endpoint, Options};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let closed = "127.0.0.1:1".parse()?;
/// let client = Endpoint::bind("127.0.0.1:0", Options::client()).await?;
/// let refused = ConnectFailure::Socket(ErrorKind::ConnectionRefused);
/// assert_eq!(client.connect(closed).await.err(), Some(ConnectError::Failed(refused)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectFailure {
    /// The server did not answer, or complete the TLS handshake, within
    /// [`connect_timeout`](super::ConnectOptions::connect_timeout).
    #[error("the server does not answer")]
    NoAnswer,
    /// The error of the system: usually the server refused the connection, or is unreachable.
    #[error("{0}")]
    Socket(ErrorKind),
    /// TLS does not trust the server's certificate, or has no parameters in common with the server. The text is that of
    /// rustls.
    #[error("TLS: {0}")]
    Tls(String),
}

/// Disables Nagle's algorithm, and enables keep-alive probes, which detect that the other machine is gone. Options that
/// a system does not support are ignored: the connection works without them.
pub(super) fn configure(stream: &TcpStream, timeout: Duration) {
    let _ = stream.set_nodelay(true);
    // The first probe is sent after half of the timeout, and two more in the other half.
    let keepalive = TcpKeepalive::new()
        .with_time((timeout / 2).max(MIN_PROBE))
        .with_interval((timeout / 4).max(MIN_PROBE));
    #[cfg(any(target_os = "linux", target_os = "macos", windows))]
    let keepalive = keepalive.with_retries(2);
    let _ = SockRef::from(stream).set_tcp_keepalive(&keepalive);
}

/// Connects a socket bound to `local` to a server.
pub(super) async fn dial(local: SocketAddr, remote: SocketAddr) -> io::Result<TcpStream> {
    let socket = if remote.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    let chooses = local.ip().is_unspecified() && local.port() == 0;
    if !chooses && local.is_ipv4() == remote.is_ipv4() {
        socket.set_reuseaddr(true)?;
        socket.bind(local)?;
    }
    socket.connect(remote).await
}

/// Returns the failure for an error of the system or of TLS.
pub(super) fn failure(error: &io::Error) -> ConnectFailure {
    #[cfg(feature = "tls")]
    if let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<tokio_rustls::rustls::Error>()) {
        return ConnectFailure::Tls(tls.to_string());
    }
    ConnectFailure::Socket(error.kind())
}

/// Starts the task of a connection. The task keeps `kept` until the connection is closed.
pub(super) fn start<K: Send + 'static>(
    stream: impl AsyncRead + AsyncWrite + Send + 'static,
    opened: Opened,
    options: &Options,
    kept: K,
) -> Arc<Shared> {
    let (received, receive_queue) = mpsc::unbounded_channel();
    let (send_queue, queued) = mpsc::unbounded_channel();
    let Opened { remote, span, first_message_timeout } = opened;
    span.connected();
    let shared = Arc::new(Shared::new(options, remote, span, receive_queue, send_queue));
    let of_task = shared.clone();
    tokio::spawn(async move {
        let reason = tokio::select! {
            reason = run(stream, received.clone(), queued, &of_task) => reason,
            () = first_message_deadline(first_message_timeout, &of_task) => DisconnectReason::NoFirstMessage,
        };
        of_task.end(reason);
        // Receivers see the end of the queue only after the disconnect reason is set.
        drop((received, kept));
    });
    shared
}

/// Reads and writes until either direction fails or is closed. The stream is closed when this returns.
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
                // If bytes were unread, the system would reset the connection and lose data in flight to the peer.
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

/// Completes when the first message from the peer is overdue.
async fn first_message_deadline(limit: Duration, shared: &Shared) {
    sleep(limit).await;
    let stats = shared.counters.read();
    if stats.messages_received > 0 || stats.messages_sent > 0 || shared.phase() != Phase::Open {
        std::future::pending().await
    }
}

/// Completes when the close timeout of this side has passed.
async fn close_deadline(shared: &Shared) {
    shared.closing().await;
    sleep(shared.options.close_timeout).await;
}

/// Bytes allocated for a message before any of it has arrived.
const ANNOUNCED: usize = 64 << 10;

/// Reads until the stream ends, and returns the reason.
async fn read(
    reader: impl AsyncRead + Unpin,
    receive_queue: mpsc::UnboundedSender<Queued>,
    shared: &Shared,
) -> DisconnectReason {
    let mut reader = BufReader::with_capacity(READ_BUFFER, reader);
    loop {
        match read_message(&mut reader, &receive_queue, shared).await {
            Ok(true) => {}
            Ok(false) => return DisconnectReason::Remote,
            Err(reason) => return reason,
        }
    }
}

/// Reads a message and queues it; returns false if the stream ends before its first byte.
async fn read_message(
    reader: &mut BufReader<impl AsyncRead + Unpin>,
    receive_queue: &mpsc::UnboundedSender<Queued>,
    shared: &Shared,
) -> Result<bool, DisconnectReason> {
    let available = reader.fill_buf().await.map_err(|error| lost(&error))?.len();
    if available == 0 {
        return Ok(false);
    }
    let len = match shared.options.framing {
        Framing::Packets => announced_len(reader, shared).await?,
        Framing::Stream => available,
    };
    let room = room_for(len, shared).await;
    let mut bytes = Vec::with_capacity(len.min(ANNOUNCED));
    let read = reader.take(len as u64).read_to_end(&mut bytes).await.map_err(|error| lost(&error))?;
    if read < len {
        return Err(DisconnectReason::Lost(ErrorKind::UnexpectedEof));
    }
    shared.counters.messages_received.add(1);
    shared.counters.bytes_received.add(len as u64);
    match room {
        // If the message cannot be queued, no handle is left to receive it.
        Some(room) => drop(receive_queue.send(Queued { bytes, room })),
        None => shared.counters.messages_dropped.add(1),
    }
    Ok(true)
}

/// Returns the length of the next message from its header.
async fn announced_len(
    reader: &mut BufReader<impl AsyncRead + Unpin>,
    shared: &Shared,
) -> Result<usize, DisconnectReason> {
    let mut header = [0; frames::HEADER_LEN];
    reader.read_exact(&mut header).await.map_err(|error| lost(&error))?;
    let len = frames::message_len(header);
    if len > shared.options.max_message {
        return Err(DisconnectReason::MessageTooLong(len));
    }
    usize::try_from(len).map_err(|_| DisconnectReason::MessageTooLong(len))
}

/// Waits for space in the receive queue; meanwhile TCP flow control stops the peer. Returns `None` if this side closes
/// the connection first.
async fn room_for(len: usize, shared: &Shared) -> Option<OwnedSemaphorePermit> {
    tokio::select! {
        biased;
        room = shared.receive_room.take(len) => room,
        () = shared.closing() => None,
    }
}

fn lost(error: &io::Error) -> DisconnectReason {
    DisconnectReason::Lost(error.kind())
}

/// Maximum number of bytes written by one call, if messages are short.
const BATCH: usize = 64 << 10;

/// Writes queued messages until the queue is closed, and then shuts down this side of the stream.
async fn write(
    mut writer: impl AsyncWrite + Unpin,
    mut send_queue: mpsc::UnboundedReceiver<Queued>,
    shared: &Shared,
) -> Result<(), DisconnectReason> {
    let limit = shared.options.timeout;
    let header = match shared.options.framing {
        Framing::Packets => frames::HEADER_LEN,
        Framing::Stream => 0,
    };
    while let Some(first) = send_queue.recv().await {
        // The queue space of the messages is freed once they are written.
        let (mut bytes, mut rooms, mut messages) = (first.bytes, vec![first.room], 1);
        while bytes.len() < BATCH {
            let Ok(Queued { bytes: next, room }) = send_queue.try_recv() else { break };
            bytes.extend_from_slice(&next);
            rooms.push(room);
            messages += 1;
        }
        write_all(&mut writer, &bytes, limit).await?;
        shared.counters.messages_sent.add(messages);
        shared.counters.bytes_sent.add(bytes.len() as u64 - messages * header as u64);
        drop(rooms);
    }
    progress(limit, writer.shutdown()).await
}

/// Writes all bytes. The time limit applies to each call.
async fn write_all(
    writer: &mut (impl AsyncWrite + Unpin),
    mut bytes: &[u8],
    limit: Duration,
) -> Result<(), DisconnectReason> {
    while !bytes.is_empty() {
        let written = progress(limit, writer.write(bytes)).await?;
        if written == 0 {
            return Err(DisconnectReason::Lost(ErrorKind::WriteZero));
        }
        bytes = bytes.get(written..).unwrap_or_default();
    }
    // TLS buffers data that the system has not accepted.
    progress(limit, writer.flush()).await
}

async fn progress<T>(
    limit: Duration,
    call: impl Future<Output = io::Result<T>>,
) -> Result<T, DisconnectReason> {
    let result = timeout(limit, call).await.map_err(|_| DisconnectReason::TimedOut)?;
    result.map_err(|error| DisconnectReason::Lost(error.kind()))
}
