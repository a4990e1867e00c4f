//! Accepts WebTransport sessions up to a limit. Each step of a client has a deadline.
//!
//! The HTTP/3 settings and the session request follow the drafts of WebTransport over HTTP/3. Browsers and libraries
//! implement different drafts, which have different names for the same settings and tokens.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use bytes::{Buf, BufMut, BytesMut};
use futures_util::StreamExt;
use quinn::{
    Connection, ConnectionError, Endpoint, EndpointConfig, Incoming, RecvStream, Runtime, ServerConfig,
    TokioRuntime, TransportConfig,
};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;
use tracing::{debug, error};
use web_transport_proto::{
    ConnectError, ConnectRequest, ConnectResponse, Frame, Setting, Settings, SettingsError, StreamUni, VarInt,
};

use super::app::{App, PATH};
use super::client::{self, Opening, Resume};
use super::quic::{Beside, Handshake, Handshakes, SharedSocket};
use super::serve::{TOO_MANY_CONNECTIONS, admit};
use super::transport::{
    Connected, Connection as ClientConnection, OtherStreams, Streams, Transport, WebTransportTransport,
};
use crate::admission::{Request, parameter};
use crate::config::Limits;
use crate::congestion::QuicCongestionConfig;
use crate::counters::TransportKind;
use crate::flow::FLOW_PROTOCOL;
use crate::tls::{QuicCertificate, TlsError, quic_config};

/// Maximum bytes of datagrams in QUIC's send buffer, where a flow can no longer drop them for their age.
const SEND_BUFFER: usize = 32 * 1024;

/// Maximum bytes of received datagrams that wait for the task of the flow. Above this limit QUIC drops the oldest
/// datagrams, which may be those of the handshake. The limit exceeds the default system buffer of the socket, which
/// QUIC may read in one step.
const RECEIVE_BUFFER: usize = 256 * 1024;

/// Maximum bytes that a client may send on streams, which carry only the request and the close.
const STREAM_BUFFER: u32 = 32 * 1024;

/// The maximum number of streams. Bidirectional: the request. Unidirectional: the settings, and three others of HTTP/3.
const STREAMS_MAX: [u32; 2] = [1, 4];

/// TLS alerts about certificates (RFC 8446 section 6.2), as QUIC error codes (RFC 9001 section 4.8).
const CERTIFICATE_ALERTS: [u64; 6] = [0x12a, 0x12b, 0x12c, 0x12d, 0x12e, 0x130];

/// Reasons for refusals before a session exists, in addition to those of all transports.
const WRONG_CERTIFICATE: &str =
    "the client rejected the WebTransport certificate; its page needs the current hash from /transports";
const NO_DATAGRAMS: &str = "the client does not support WebTransport datagrams";
const NO_SESSION: &str = "the WebTransport handshake ended without a session";
const LATE: &str = "the client did not complete the WebTransport handshake within limits.header_timeout";
const OTHER_PATH: &str = "the client requested WebTransport at a path other than the one in /transports";

const NO_PLACE: &str = "too many WebTransport handshakes are in progress, in total or from this network";

/// The error codes with which clients close an HTTP/3 connection on purpose: none, `H3_NO_ERROR`, and
/// `H3_REQUEST_CANCELLED` (RFC 9114 section 8.1).
const LEAVING: [u64; 3] = [0, 0x100, 0x10c];

/// The corresponding QUIC codes before the handshake is complete: `NO_ERROR` and `APPLICATION_ERROR` (RFC 9000 section
/// 20.1).
const LEAVING_EARLY: [u64; 2] = [0, 0xc];

/// Time limit for a refused client to receive the response.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(2);

/// The reasons why a client gets no session.
#[derive(Debug, Error)]
enum HandshakeError {
    #[error("{0}")]
    Connection(#[from] ConnectionError),
    #[error("HTTP/3 settings: {0}")]
    Settings(#[from] SettingsError),
    #[error("the client does not support datagrams")]
    NoDatagrams,
    // The complete error is omitted, because it may repeat input of the client.
    #[error("no valid request for a session")]
    Request(#[from] ConnectError),
}

impl HandshakeError {
    /// Returns the reason for the operator, given the error with which the connection has `ended`. `None` if the client
    /// has left on purpose, for example a page that continues on another transport.
    fn reason(&self, ended: Option<&ConnectionError>) -> Option<&'static str> {
        let ended = if let Self::Connection(error) = self { Some(error) } else { ended };
        match (self, ended) {
            (_, Some(ConnectionError::ApplicationClosed(close)))
                if LEAVING.contains(&close.error_code.into()) =>
            {
                None
            }
            (_, Some(ConnectionError::ConnectionClosed(close))) => match close.error_code.into() {
                code if LEAVING_EARLY.contains(&code) => None,
                code if CERTIFICATE_ALERTS.contains(&code) => Some(WRONG_CERTIFICATE),
                _ => Some(NO_SESSION),
            },
            (Self::NoDatagrams, _) => Some(NO_DATAGRAMS),
            (Self::Connection(_) | Self::Settings(_) | Self::Request(_), _) => Some(NO_SESSION),
        }
    }
}

/// A client without a session.
struct Newcomer<'a> {
    address: SocketAddr,
    /// True if the client has validated its address.
    is_proven: bool,
    connection: Option<&'a Connection>,
}

impl<'a> Newcomer<'a> {
    const fn connected(address: SocketAddr, connection: &'a Connection) -> Self {
        Self { address, is_proven: true, connection: Some(connection) }
    }
}

/// A socket on which sessions are accepted.
#[derive(Debug)]
pub(crate) struct WebTransport {
    endpoint: Endpoint,
    settings: ConnectionSettings,
    certificate: QuicCertificate,
    local_addr: SocketAddr,
    /// True if the socket also receives for other parts.
    is_shared: bool,
}

/// The settings of new connections.
#[derive(Debug)]
struct ConnectionSettings {
    config: Arc<ServerConfig>,
    ping_interval: Duration,
}

impl ConnectionSettings {
    fn new(certificate: &QuicCertificate, limits: &Limits) -> Result<Self, TlsError> {
        let mut config = ServerConfig::with_crypto(Arc::new(quic_config(certificate)?));
        config.transport_config(Arc::new(transport_config(limits)));
        Ok(Self { config: Arc::new(config), ping_interval: limits.ping_interval })
    }

    /// Returns the configuration with the current limits, which a reload may have changed.
    fn current(&mut self, limits: &Limits) -> Arc<ServerConfig> {
        if limits.ping_interval != self.ping_interval {
            Arc::make_mut(&mut self.config).transport_config(Arc::new(transport_config(limits)));
            self.ping_interval = limits.ping_interval;
        }
        Arc::clone(&self.config)
    }
}

/// A session request that has not been answered.
struct Requested {
    request: ConnectRequest,
    streams: Streams,
}

impl WebTransport {
    /// Receives on a socket, and passes datagrams for the other parts at its port on to them.
    pub(crate) fn over(
        socket: UdpSocket,
        certificate: QuicCertificate,
        app: &Arc<App>,
        beside: Beside,
    ) -> io::Result<Self> {
        let settings = ConnectionSettings::new(&certificate, &app.limits);
        let settings = settings.map_err(|error| io::Error::other(error.to_string()))?;
        let local_addr = socket.local_addr()?;
        let runtime = Arc::new(TokioRuntime);
        let mut socket = runtime.wrap_udp_socket(socket)?;
        let is_shared = !beside.is_empty();
        if is_shared {
            socket = Arc::new(SharedSocket::new(socket, beside, Arc::clone(app)));
        }
        let mut endpoint = EndpointConfig::default();
        // Datagrams of other protocols are recognized by their first bits (RFC 9443), which QUIC-bit greasing would
        // change (RFC 9287).
        endpoint.grease_quic_bit(!is_shared);
        let config = Some(ServerConfig::clone(&settings.config));
        let endpoint = Endpoint::new_with_abstract_socket(endpoint, config, socket, runtime)?;
        Ok(Self { endpoint, settings, certificate, local_addr, is_shared })
    }

    pub(crate) const fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    pub(crate) const fn certificate(&self) -> &QuicCertificate {
        &self.certificate
    }

    /// Accepts sessions until the relay drains.
    pub(crate) async fn serve(mut self, app: Arc<App>) {
        let renewing = self.certificate.renew();
        tokio::select! {
            () = accept(&self.endpoint, &mut self.settings, &app) => {}
            () = renewing => {}
            () = app.drain.cancelled() => {}
        }
        self.endpoint.set_server_config(None);
        if self.is_shared {
            // The endpoint is kept, because its socket also receives for the other parts, which still have clients.
            std::future::pending().await
        }
    }
}

async fn accept(endpoint: &Endpoint, settings: &mut ConnectionSettings, app: &Arc<App>) {
    let handshakes = Handshakes::default();
    while let Some(incoming) = endpoint.accept().await {
        if handshakes.must_validate() && incoming.may_retry() {
            // This cannot fail, because the address is not validated yet.
            let _ = incoming.retry();
            continue;
        }
        let proven = incoming.remote_address_validated().then(|| incoming.remote_address().ip());
        let Some(handshake) = handshakes.begin(proven) else {
            app.counters.handshakes_refused.increment();
            log_refusal(app, incoming.remote_address(), proven.is_some(), NO_PLACE);
            // The client retries, and a slot may be free then.
            incoming.ignore();
            continue;
        };
        let (app, config) = (Arc::clone(app), settings.current(&app.admission.limits()));
        tokio::spawn(async move {
            if let Some((connection, opening)) = open(&app, incoming, config, handshake).await {
                client::serve(&app, Box::new(connection), &opening).await;
            }
        });
    }
    error!("the UDP socket of WebTransport failed");
    app.fail("WebTransport has failed");
}

fn transport_config(limits: &Limits) -> TransportConfig {
    let mut config = TransportConfig::default();
    let [requests, others] = STREAMS_MAX;
    // The number of intervals equals the number of WebSocket pings that may remain unanswered.
    let silence = limits.ping_interval.saturating_mul(3);
    config
        .congestion_controller_factory(Arc::new(QuicCongestionConfig))
        .max_idle_timeout(silence.try_into().ok())
        .keep_alive_interval(Some(limits.ping_interval))
        .datagram_send_buffer_size(SEND_BUFFER)
        .datagram_receive_buffer_size(Some(RECEIVE_BUFFER))
        .max_concurrent_bidi_streams(requests.into())
        .max_concurrent_uni_streams(others.into())
        .stream_receive_window(STREAM_BUFFER.into())
        .receive_window(STREAM_BUFFER.saturating_mul(requests + others).into());
    config
}

/// Handles the handshake and the request of a client. Returns its connection and the request, or `None` if the client
/// was refused.
async fn open(
    app: &Arc<App>,
    incoming: Incoming,
    config: Arc<ServerConfig>,
    handshake: Handshake,
) -> Option<(ClientConnection, Opening)> {
    let client = incoming.remote_address();
    let newcomer =
        Newcomer { address: client, is_proven: incoming.remote_address_validated(), connection: None };
    let connection = within(app, newcomer, async { Ok(incoming.accept_with(config)?.await?) }).await?;
    // The handshake has validated the client's address.
    let Ok(permit) = Arc::clone(&app.connections).try_acquire_owned() else {
        app.counters.connections_refused.increment();
        app.log_refusal(client, TransportKind::WebTransport, TOO_MANY_CONNECTIONS, TOO_MANY_CONNECTIONS);
        return None;
    };
    let connected = admit(app, connection.remote_address(), permit, TransportKind::WebTransport)?;
    // From here on, the client holds a connection slot.
    drop(handshake);
    let newcomer = Newcomer::connected(client, &connection);
    let requested = within(app, newcomer, request(&connection)).await?;
    decide(app, connection, connected, requested).await
}

/// Awaits a step of the client, with the handshake timeout.
async fn within<T>(
    app: &App,
    newcomer: Newcomer<'_>,
    work: impl Future<Output = Result<T, HandshakeError>>,
) -> Option<T> {
    let reason = match timeout(app.limits.header_timeout, work).await {
        Ok(Ok(done)) => return Some(done),
        Ok(Err(error)) => {
            debug!(%error, "WebTransport handshake failed");
            let ended = newcomer.connection.and_then(Connection::close_reason);
            let reason = error.reason(ended.as_ref())?;
            app.counters.handshakes_failed.increment();
            reason
        }
        Err(_) => {
            app.counters.handshakes_timed_out.increment();
            LATE
        }
    };
    log_refusal(app, newcomer.address, newcomer.is_proven, reason);
    None
}

/// Logs a refusal. An address that is not validated is omitted, because it may be that of a victim.
fn log_refusal(app: &App, client: SocketAddr, is_proven: bool, reason: &'static str) {
    if is_proven {
        app.log_refusal(client, TransportKind::WebTransport, reason, reason);
    } else {
        app.log_unproven(TransportKind::WebTransport, reason);
    }
}

/// Exchanges the settings, and reads the request of the client.
async fn request(connection: &Connection) -> Result<Requested, HandshakeError> {
    let (sent, (received, others)) =
        tokio::try_join!(send_settings(connection), receive_settings(connection))?;
    let (answer, mut stream) = connection.accept_bi().await?;
    let request = read(&mut stream).await?;
    let streams = Streams { request: (answer, stream), settings: (sent, received), others };
    Ok(Requested { request, streams })
}

async fn send_settings(connection: &Connection) -> Result<quinn::SendStream, HandshakeError> {
    let mut stream = connection.open_uni().await?;
    settings().write(&mut stream).await?;
    Ok(stream)
}

/// Reads the settings from one of the client's streams, which may arrive in any order (RFC 9114 section 6.2).
async fn receive_settings(connection: &Connection) -> Result<(RecvStream, OtherStreams), HandshakeError> {
    let [_, streams_max] = STREAMS_MAX;
    let mut streams = OtherStreams::default();
    let (stream, settings) = loop {
        tokio::select! {
            stream = connection.accept_uni(), if streams.len() < streams_max as usize => {
                streams.push(Box::pin(read_settings(stream?)));
            }
            Some(read) = streams.next() => break read?,
        }
    };
    if !takes_datagrams(&settings) || connection.max_datagram_size().is_none() {
        return Err(HandshakeError::NoDatagrams);
    }
    Ok((stream, streams))
}

/// Decides on a request as for a WebSocket. A client is refused with a close code, because a page cannot read an HTTP
/// status. Only a session at another path is rejected with a status.
async fn decide(
    app: &Arc<App>,
    connection: Connection,
    connected: Connected,
    requested: Requested,
) -> Option<(ClientConnection, Opening)> {
    let Requested { request: asked, mut streams } = requested;
    let query = asked.url.query().unwrap_or_default();
    let resume = Resume::read(parameter(query, "resume").as_deref());
    let request = Request::from_http(connected.peer(), &asked.headers, query);
    let is_returning = app.admits_resumption(resume.secret(), request.target.as_deref());
    let request = request.returning(is_returning);
    if asked.url.path() != PATH {
        app.counters.handshakes_failed.increment();
        app.log_refusal(request.client, TransportKind::WebTransport, OTHER_PATH, OTHER_PATH);
        return refuse(connection, streams, StatusCode::NOT_FOUND).await;
    }
    let permission = client::permission(app, &request);
    let opening = Opening {
        client: request.client,
        permission,
        has_control: parameter(query, "protocol").as_deref() == Some(FLOW_PROTOCOL),
        resume,
        is_deferred: request.is_deferred,
        is_counted: request.is_counted(),
        closes_on_unreachable: request.closes_on_unreachable,
    };
    let answer = async { Ok(ConnectResponse::OK.write(&mut streams.request.0).await?) };
    within(app, Newcomer::connected(request.client, &connection), answer).await?;
    let tracked = app.sessions.token();
    let transport = Transport::WebTransport(WebTransportTransport::new(connection, streams));
    let connection = ClientConnection::new(request.client, transport, &app.counters, tracked, connected);
    Some((connection, opening))
}

async fn refuse<T>(connection: Connection, mut streams: Streams, status: StatusCode) -> Option<T> {
    let (answer, _) = &mut streams.request;
    let refusing = async {
        if ConnectResponse::new(status).write(answer).await.is_ok() && answer.finish().is_ok() {
            connection.closed().await;
        }
    };
    // The connection ends here even if the timeout has elapsed.
    let _ = timeout(REFUSAL_TIMEOUT, refusing).await;
    None
}

/// `SETTINGS_WT_MAX_SESSIONS` of drafts 13 and 14, which Safari 26 requires.
const WT_MAX_SESSIONS: Setting = Setting(VarInt::from_u32(0x14e9_cd29));
/// `SETTINGS_WT_ENABLED` of drafts 15 and 16.
const WT_ENABLED: Setting = Setting(VarInt::from_u32(0x2c7c_f000));
/// The maximum length of a request in bytes, which is also the library's limit after decoding.
const LONGEST_REQUEST: u64 = 16 * 1024;

/// The field name `:protocol` as a QPACK literal, without and with Huffman coding (RFC 9204 section 4.5.6). The first
/// byte is omitted, because one of its bits only forbids proxies to compress the field.
const NAMES: [(u8, &[u8]); 2] = [(0x27, b"\x02:protocol"), (0x2f, b"\x00\xb9\x5d\x87\x49\xc8\x7a\x3f")];
const NEVER_COMPRESSED: u8 = 0x10;
/// `webtransport-h3`, the token since draft 15, in both codings.
const TOKENS: [&[u8]; 2] = [b"\x0fwebtransport-h3", b"\x8b\xf0\x58\xd3\x60\xea\x45\x67\xb1\x2b\x4e\xcf"];
/// `webtransport`, the earlier token, and the only one that the library supports.
const OLDER_TOKEN: &[u8] = b"\x0cwebtransport";

/// Returns the relay's settings: support for WebTransport in the form of every supported draft, with one session per
/// connection.
pub(super) fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.enable_webtransport(1);
    for setting in [WT_MAX_SESSIONS, WT_ENABLED] {
        settings.insert(setting, VarInt::from_u32(1));
    }
    settings
}

/// Returns true if a client accepts HTTP/3 datagrams (RFC 9297 section 2.1.1). Its other settings are irrelevant: since
/// draft 16, a client requests sessions without announcing support.
fn takes_datagrams(settings: &Settings) -> bool {
    let one = VarInt::from_u32(1);
    [Setting::ENABLE_DATAGRAM, Setting::ENABLE_DATAGRAM_DEPRECATED]
        .iter()
        .any(|setting| settings.get(setting) == Some(&one))
}

/// Reads the settings of a client from a stream, if it is the control stream.
///
/// Streams of other kinds are kept open: no HTTP/3 stream has to be read before the settings, and QPACK streams must
/// not be closed (RFC 9204 section 4.2). A stream that ends before its kind is known is ignored (RFC 9114 section 6.2).
async fn read_settings(mut stream: RecvStream) -> Result<(RecvStream, Settings), SettingsError> {
    let kind = VarInt::read(&mut stream).await.map(StreamUni);
    if kind.as_ref().is_ok_and(|kind| *kind == StreamUni::CONTROL) {
        // The library expects to read the stream kind again.
        let settings = Settings::read(&mut AsyncReadExt::chain(&b"\0"[..], &mut stream)).await?;
        return Ok((stream, settings));
    }
    if let Ok(kind @ StreamUni::PUSH) = kind {
        // Only servers may open a push stream (RFC 9114 section 6.2.2).
        return Err(SettingsError::UnexpectedStreamType(kind));
    }
    std::future::pending().await
}

/// Reads a session request with the token of any draft.
pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Result<ConnectRequest, ConnectError> {
    loop {
        let kind = Frame(varint(stream).await?);
        let len = varint(stream).await?.into_inner();
        if len > LONGEST_REQUEST {
            return Err(ConnectError::FrameTooLarge);
        }
        let mut payload = Vec::new();
        stream.take(len).read_to_end(&mut payload).await?;
        if (payload.len() as u64) < len {
            return Err(ConnectError::UnexpectedEnd);
        }
        // Frames of reserved kinds are ignored (RFC 9114 section 7.2.8).
        if !kind.is_grease() {
            return decode(kind, &payload);
        }
    }
}

async fn varint(stream: &mut (impl AsyncRead + Unpin)) -> Result<VarInt, ConnectError> {
    VarInt::read(stream).await.map_err(|_| ConnectError::UnexpectedEnd)
}

fn decode(kind: Frame, payload: &[u8]) -> Result<ConnectRequest, ConnectError> {
    let (before, after) = around_newer_token(payload).unwrap_or((payload, &[]));
    let token = if before.len() == payload.len() { &[] } else { OLDER_TOKEN };
    let mut frame = BytesMut::new();
    kind.encode(&mut frame);
    let len = before.len() + token.len() + after.len();
    VarInt::try_from(len).map_err(|_| ConnectError::FrameTooLarge)?.encode(&mut frame);
    [before, token, after].into_iter().for_each(|part| frame.put_slice(part));
    ConnectRequest::decode(&mut frame)
}

/// Returns the bytes before and after the newer token.
fn around_newer_token(fields: &[u8]) -> Option<(&[u8], &[u8])> {
    (0..fields.len()).find_map(|at| {
        let (before, mut rest) = fields.split_at(at);
        let first = rest.try_get_u8().ok()? & !NEVER_COMPRESSED;
        let name = NAMES.iter().find(|(is_first, name)| *is_first == first && rest.starts_with(name))?.1;
        let value = rest.get(name.len()..)?;
        let token = TOKENS.iter().find(|token| value.starts_with(token))?;
        let named = before.len() + 1 + name.len();
        Some((fields.get(..named)?, fields.get(named + token.len()..)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &[u8] = b"\x51\x0b/wt?token=1";
    const AUTHORITY: &[u8] = b"\x50\x07a.b:443";
    /// The field section's prefix, `:method` CONNECT and `:scheme` https of the static table.
    const BEGIN: &[u8] = b"\x00\x00\xcf\xd7";

    fn request(first: u8, name: &[u8], token: &[u8]) -> Vec<u8> {
        let fields = [BEGIN, AUTHORITY, PATH, &[first], name, token].concat();
        [&[1, u8::try_from(fields.len()).unwrap()], &fields[..]].concat()
    }

    async fn read_all(mut bytes: &[u8]) -> Result<ConnectRequest, ConnectError> {
        let request = read(&mut bytes).await;
        assert!(request.is_err() || bytes.is_empty());
        request
    }

    #[tokio::test]
    async fn tokens_of_all_drafts_are_accepted_in_both_codings() {
        const OLDER: [&[u8]; 2] = [OLDER_TOKEN, b"\x89\xf0\x58\xd3\x60\xea\x45\x67\xb1\x3f"];
        for (first, name) in NAMES {
            for first in [first, first | NEVER_COMPRESSED] {
                for token in TOKENS.into_iter().chain(OLDER) {
                    let asked = read_all(&request(first, name, token)).await.unwrap();
                    assert_eq!(asked.url.as_str(), "https://a.b/wt?token=1");
                }
            }
        }
    }

    #[tokio::test]
    async fn unknown_tokens_and_truncated_requests_are_refused() {
        let (first, name) = NAMES[0];
        for token in [&b"\x09websocket"[..], b"\x10webtransport-h33", b"\x0ewebtransport-h"] {
            let error = read_all(&request(first, name, token)).await.unwrap_err();
            assert!(matches!(error, ConnectError::WrongProtocol(Some(_))), "{error}");
        }
        let whole = request(first, name, TOKENS[0]);
        for len in 0..whole.len() {
            let error = read_all(&whole[..len]).await.unwrap_err();
            assert!(matches!(error, ConnectError::UnexpectedEnd), "{len}: {error}");
        }
        // The header announces a frame of 2^30 bytes, none of which have to arrive.
        let error = read_all(b"\x01\xc0\x00\x00\x00\x40\x00\x00\x00").await.unwrap_err();
        assert!(matches!(error, ConnectError::FrameTooLarge), "{error}");
    }

    #[tokio::test]
    async fn frames_of_reserved_kinds_are_ignored() {
        let (first, name) = NAMES[1];
        let bytes = [b"\x21\x03abc", &request(first, name, TOKENS[1])[..]].concat();
        assert!(read_all(&bytes).await.is_ok());
        let error = read_all(b"\x00\x00").await.unwrap_err();
        assert!(matches!(error, ConnectError::UnexpectedFrame(Frame::DATA)), "{error}");
    }
}
