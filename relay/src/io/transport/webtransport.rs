//! The WebTransport session of one client: only datagrams and the close.
//!
//! A session is an HTTP/3 request with a stream that stays open (draft-ietf-webtrans-http3). Each QUIC datagram begins
//! with the ID of that stream divided by four.

use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use futures_util::stream::FuturesUnordered;
use quinn::{Connection, ConnectionError, RecvStream, SendDatagramError, SendStream};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;
use tokio_util::sync::ReusableBoxFuture;
use web_transport_proto::{
    Capsule, CapsuleError, Frame, Http3CapsuleReader, Settings, SettingsError, VarInt,
};

use super::websocket::Broken;
use crate::close::CloseReason;
use crate::flow::{CONTROL_PREFIX, FLOW_REQUEST, Flow, FromClient, ToClient, TransportLimits};

/// The HTTP/3 error code for a close without an error.
const H3_NO_ERROR: u32 = 0x100;

/// The maximum bytes of capsules that a session reads. Browsers send a single capsule, which closes the session.
/// Incomplete capsules are buffered.
const CAPSULES_MAX: u64 = 16 * 1024;

/// Time limit for a client to acknowledge a close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The streams of a session.
#[derive(Debug)]
pub(crate) struct Streams {
    /// The request stream, on which the session is closed.
    pub(crate) request: (SendStream, RecvStream),
    /// The HTTP/3 control streams, which must not be closed before the connection.
    pub(crate) settings: (SendStream, RecvStream),
    /// Other streams opened by the client, some of which must not be closed either.
    pub(crate) others: OtherStreams,
}

/// The client's streams of unknown kinds. Streams without settings stay in this set.
pub(crate) type OtherStreams =
    FuturesUnordered<Pin<Box<dyn Future<Output = Result<(RecvStream, Settings), SettingsError>> + Send>>>;

/// The result of passing a datagram to QUIC.
type Written = Result<(), SendDatagramError>;

/// The session of one client.
pub(crate) struct WebTransportTransport {
    connection: Connection,
    /// The prefix of each datagram.
    session: VarInt,
    request: SendStream,
    _settings: (SendStream, RecvStream),
    _others: OtherStreams,
    reading: ReusableBoxFuture<'static, Result<Bytes, ConnectionError>>,
    /// Number of datagrams that were read, or counted as dropped.
    accounted: u64,
    /// Completes with the result and the length of the datagram, as [`check`] expects them.
    writing: ReusableBoxFuture<'static, (Written, Option<usize>)>,
    /// True if `writing` holds a datagram for which QUIC had no space.
    is_writing: bool,
    /// Completes when the request stream ends the session.
    closing: Pin<Box<dyn Future<Output = FromClient> + Send>>,
    /// True if the client has closed the session; earlier datagrams may still be unread.
    is_closed: bool,
    /// True if pings need no answer, because QUIC itself checks that the peer is alive.
    is_ping_answered: bool,
}

impl fmt::Debug for WebTransportTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebTransportTransport")
            .field("connection", &self.connection)
            .field("is_writing", &self.is_writing)
            .finish_non_exhaustive()
    }
}

impl WebTransportTransport {
    pub(crate) fn new(connection: Connection, streams: Streams) -> Self {
        let (request, capsules) = streams.request;
        let stream = quinn::VarInt::from(request.id()).into_inner();
        Self {
            session: VarInt::from_u64(stream / 4).unwrap_or(VarInt::MAX),
            request,
            _settings: streams.settings,
            _others: streams.others,
            reading: ReusableBoxFuture::new(read(connection.clone())),
            accounted: 0,
            writing: ReusableBoxFuture::new(write(connection.clone(), Bytes::new(), None)),
            is_writing: false,
            closing: Box::pin(read_close(connection.clone(), capsules)),
            is_closed: false,
            is_ping_answered: false,
            connection,
        }
    }

    /// Returns the next input of the client.
    pub(super) fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<FromClient> {
        if mem::take(&mut self.is_ping_answered) {
            return Poll::Ready(FromClient::Control);
        }
        if let Poll::Ready(end) = self.closing.as_mut().poll(context) {
            self.closing = Box::pin(std::future::pending());
            self.is_closed = matches!(end, FromClient::Closed);
            if !self.is_closed {
                return Poll::Ready(end);
            }
        }
        match self.poll_datagram(context) {
            Poll::Ready(read_before) => Poll::Ready(self.received(read_before)),
            // The client's last datagrams are read before the close: in some protocols, the last one announces that the
            // player leaves.
            Poll::Pending if mem::take(&mut self.is_closed) => Poll::Ready(FromClient::Closed),
            Poll::Pending => self.poll_dropped(context),
        }
    }

    fn poll_datagram(&mut self, context: &mut Context<'_>) -> Poll<Result<Bytes, ConnectionError>> {
        let read_before = ready!(self.reading.poll(context));
        self.reading.set(read(self.connection.clone()));
        self.accounted += u64::from(read_before.is_ok());
        Poll::Ready(read_before)
    }

    /// Returns the number of datagrams that QUIC dropped. QUIC does not report drops: such datagrams have arrived, but
    /// are neither read nor queued.
    fn poll_dropped(&mut self, context: &mut Context<'_>) -> Poll<FromClient> {
        let arrived = self.connection.stats().frame_rx.datagram;
        if let Poll::Ready(read_since) = self.poll_datagram(context) {
            return Poll::Ready(self.received(read_since));
        }
        let count = arrived.saturating_sub(self.accounted);
        self.accounted += count;
        if count > 0 { Poll::Ready(FromClient::Dropped { count }) } else { Poll::Pending }
    }

    fn received(&self, read: Result<Bytes, ConnectionError>) -> FromClient {
        match read {
            Ok(datagram) => self.input(datagram),
            Err(_) if self.is_closed => FromClient::Closed,
            Err(ConnectionError::ApplicationClosed(close)) if close.error_code == H3_NO_ERROR.into() => {
                FromClient::Closed
            }
            Err(_) => FromClient::Vanished,
        }
    }

    fn input(&self, datagram: Bytes) -> FromClient {
        let mut payload = datagram;
        if VarInt::decode(&mut payload).ok() != Some(self.session) {
            // The datagram belongs to no session, or to a session other than that of this connection.
            return FromClient::ForeignSession;
        }
        match payload.strip_prefix(CONTROL_PREFIX) {
            Some(text) if text == FLOW_REQUEST.as_bytes() => FromClient::FlowRequest,
            Some(_) | None => FromClient::Datagram(payload),
        }
    }

    /// Passes the output of `flow` to QUIC until QUIC's send buffer is full. QUIC sends the buffered datagrams.
    pub(super) fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        flow: &mut Flow,
        now: Instant,
    ) -> Poll<Result<(), Broken>> {
        loop {
            if self.is_writing {
                let (written, length) = ready!(self.writing.poll(context));
                self.is_writing = false;
                check(written, length, flow)?;
            }
            flow.set_transport_limits(self.transport_limits());
            let (datagram, length) = match flow.poll_to_client(now) {
                Some(ToClient::Datagram(datagram)) => (self.datagram(&[&datagram]), Some(datagram.len())),
                Some(ToClient::Control(text)) => (self.datagram(&[CONTROL_PREFIX, text.as_bytes()]), None),
                Some(ToClient::Ping) => {
                    self.is_ping_answered = true;
                    context.waker().wake_by_ref();
                    continue;
                }
                None => return Poll::Ready(Ok(())),
            };
            // If QUIC has no space, the datagram waits here, because QUIC would drop an older one instead.
            if datagram.len() <= self.connection.datagram_send_buffer_space() {
                check(self.connection.send_datagram(datagram), length, flow)?;
            } else {
                self.writing.set(write(self.connection.clone(), datagram, length));
                self.is_writing = true;
            }
        }
    }

    pub(super) fn transport_limits(&self) -> TransportLimits {
        let max = self.connection.max_datagram_size().unwrap_or(0).saturating_sub(self.session.size());
        TransportLimits { max_datagram: Some(max), max_unfragmented: Some(max), has_control_datagrams: true }
    }

    fn datagram(&self, parts: &[&[u8]]) -> Bytes {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let mut datagram = BytesMut::with_capacity(self.session.size() + length);
        self.session.encode(&mut datagram);
        parts.iter().for_each(|part| datagram.extend_from_slice(part));
        datagram.freeze()
    }

    /// Closes the session, unless the client has already left, and waits briefly for the client to close the
    /// connection.
    pub(super) async fn close(mut self, reason: &CloseReason) {
        if let Some(code) = reason.kind().code() {
            let closing = async {
                let close = close_frame(code.into(), reason.text());
                if self.request.write_all(&close).await.is_ok() && self.request.finish().is_ok() {
                    self.connection.closed().await;
                }
            };
            // The connection ends here even if the timeout has elapsed.
            let _ = timeout(CLOSE_TIMEOUT, closing).await;
        }
        self.connection.close(H3_NO_ERROR.into(), b"");
    }
}

async fn read(connection: Connection) -> Result<Bytes, ConnectionError> {
    connection.read_datagram().await
}

async fn write(connection: Connection, datagram: Bytes, length: Option<usize>) -> (Written, Option<usize>) {
    (connection.send_datagram_wait(datagram).await, length)
}

/// Evaluates the result of sending, and reports it to the flow. `length` is the length of a datagram; `None` for a
/// control message. A datagram that the path no longer carries is dropped.
fn check(written: Written, length: Option<usize>, flow: &mut Flow) -> Result<(), Broken> {
    match written {
        Ok(()) => {
            length.into_iter().for_each(|length| flow.handle_sent_to_client(length));
            Ok(())
        }
        Err(SendDatagramError::TooLarge) => {
            flow.handle_too_long_for_client();
            Ok(())
        }
        Err(_) => Err(Broken),
    }
}

/// Reads the request stream until it ends the session. The loss of a connection is reported by the reader of datagrams.
async fn read_close(connection: Connection, stream: RecvStream) -> FromClient {
    let mut stream = stream.take(CAPSULES_MAX);
    let mut capsules = Http3CapsuleReader::new(&mut stream);
    let end = loop {
        match capsules.read().await {
            Ok(Some(Capsule::CloseWebTransportSession { .. }) | None) => break FromClient::Closed,
            Ok(Some(_)) => {}
            Err(_) if connection.close_reason().is_some() => std::future::pending().await,
            // A stream that ends without a close capsule, or inside one, also closes the session.
            Err(CapsuleError::UnexpectedEnd | CapsuleError::Io(_)) => break FromClient::Closed,
            Err(_) => break FromClient::Violation,
        }
    };
    if stream.limit() == 0 { FromClient::Violation } else { end }
}

/// Builds the capsule that closes a session, with the close code of a WebSocket.
fn close_frame(code: u32, reason: String) -> Bytes {
    let mut capsule = BytesMut::new();
    Capsule::CloseWebTransportSession { code, reason }.encode(&mut capsule);
    let mut frame = BytesMut::new();
    Frame::DATA.encode(&mut frame);
    VarInt::from_u32(u32::try_from(capsule.len()).unwrap_or(0)).encode(&mut frame);
    frame.extend_from_slice(&capsule);
    frame.freeze()
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::net::Ipv4Addr;
    use std::sync::Arc;

    use quinn::Endpoint;
    use tokio::task::yield_now;

    use super::*;
    use crate::congestion::tests::quic_pair;

    /// The number of datagrams, more than QUIC buffers.
    const DATAGRAMS: u64 = 200;
    const RECEIVE_BUFFER: usize = 64 * 1024;

    /// Creates two endpoints, the client trusting the server.
    fn endpoints() -> (Endpoint, Endpoint) {
        let (mut config, client_config) = quic_pair();
        Arc::get_mut(&mut config.transport).unwrap().datagram_receive_buffer_size(Some(RECEIVE_BUFFER));
        let server = Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let mut client = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        client.set_default_client_config(client_config);
        (client, server)
    }

    /// Connects a client. Returns its connection, the streams that it keeps open, and its session.
    async fn session(
        client: &Endpoint,
        server: &Endpoint,
    ) -> (Connection, [SendStream; 2], WebTransportTransport) {
        let accepting = async { server.accept().await.unwrap().await.unwrap() };
        let connecting = client.connect(server.local_addr().unwrap(), "localhost").unwrap();
        let (connection, accepted) = tokio::join!(async { connecting.await.unwrap() }, accepting);
        let (mut request, _) = connection.open_bi().await.unwrap();
        let mut settings = connection.open_uni().await.unwrap();
        request.write_all(b"request").await.unwrap();
        settings.write_all(b"settings").await.unwrap();
        let (answer, mut asked) = accepted.accept_bi().await.unwrap();
        asked.read_exact(&mut [0; 7]).await.unwrap();
        let sent = accepted.open_uni().await.unwrap();
        let received = accepted.accept_uni().await.unwrap();
        let streams =
            Streams { request: (answer, asked), settings: (sent, received), others: OtherStreams::default() };
        (connection, [request, settings], WebTransportTransport::new(accepted, streams))
    }

    #[tokio::test]
    async fn datagrams_dropped_by_quic_are_counted() {
        let (client, server) = endpoints();
        let (sender, _streams, mut transport) = session(&client, &server).await;
        let arrived = |transport: &WebTransportTransport| transport.connection.stats().frame_rx.datagram;
        while arrived(&transport) < DATAGRAMS {
            sender.send_datagram_wait(Bytes::from_static(&[0; 1_000])).await.unwrap();
            yield_now().await;
        }
        let (mut read, mut dropped) = (0, 0);
        while read + dropped < DATAGRAMS {
            let event = poll_fn(|context| transport.poll_read(context)).await;
            if let FromClient::Dropped { count } = event {
                dropped += count;
            } else {
                assert!(matches!(event, FromClient::Datagram(_)), "{event:?}");
                read += 1;
            }
        }
        assert!(dropped > 0 && read > 0, "{read} were read, {dropped} dropped");
        assert_eq!(transport.accounted, read + dropped);
    }

    #[tokio::test]
    async fn a_closed_session_is_not_reported_as_lost() {
        for (has_ended, code, expected) in [
            (false, H3_NO_ERROR, "Closed"),
            (false, 7, "Vanished"),
            (true, H3_NO_ERROR, "Closed"),
            (true, 7, "Closed"),
        ] {
            let (client, server) = endpoints();
            let (connection, [mut request, _settings], mut transport) = session(&client, &server).await;
            if has_ended {
                let before = transport.connection.stats().frame_rx.stream;
                request.finish().unwrap();
                while transport.connection.stats().frame_rx.stream == before {
                    yield_now().await;
                }
            }
            connection.close(code.into(), b"");
            transport.connection.closed().await;
            let end = poll_fn(|context| transport.poll_read(context)).await;
            assert_eq!(format!("{end:?}"), expected, "{has_ended}, {code}");
        }
    }

    #[tokio::test]
    async fn datagrams_received_before_a_close_are_delivered_before_it() {
        let (client, server) = endpoints();
        let (sender, [mut request, _settings], mut transport) = session(&client, &server).await;
        let received = |transport: &WebTransportTransport| transport.connection.stats().frame_rx;
        let before = received(&transport).stream;
        for last in [b"\0before", b"\0bye..."] {
            sender.send_datagram(Bytes::from_static(last)).unwrap();
        }
        request.finish().unwrap();
        while received(&transport).datagram < 2 || received(&transport).stream == before {
            yield_now().await;
        }
        let mut events = Vec::new();
        for _ in 0..3 {
            let event = poll_fn(|context| transport.poll_read(context)).await;
            events.push(format!("{event:?}"));
        }
        assert_eq!(events, [r#"Datagram(b"before")"#, r#"Datagram(b"bye...")"#, "Closed"]);
    }
}
