//! Accepts TCP connections, up to a limit, and serves HTTP on them with a deadline for everything that a client has to do.

use std::error::Error as _;
use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rakwire_udp::proxy::ProxyHeader;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, error};

use super::app::App;
use super::connected::Connected;
use super::http::router_for_banned;
use super::read_ahead::ReadAhead;
use super::tcp::tune;
use super::write_deadline::WriteDeadline;
use crate::admission::Refusal;
use crate::close::{BANNED, CloseReason};
use crate::now::Now;

/// The transport of clients before it is known what they want, for the log.
const TCP: &str = "tcp";

/// The text for clients for whose connection there is no place.
pub(super) const TOO_MANY_CONNECTIONS: &str = "this relay has too many open connections; try again later";

/// How long the listener pauses when the system is out of resources, such as file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// The longest header of a request, in bytes: a browser's cookies for the site are sent too.
const HEADER_MAX: usize = 16 * 1024;

/// The length of the part of a PROXY protocol header that says how long the rest is.
const PROXY_HEADER_FIXED: usize = 16;

/// The most fields in the header of a request.
const HEADER_FIELDS_MAX: usize = 64;

/// Serves until the relay drains and pending responses have been sent.
pub(crate) async fn serve(app: Arc<App>, listener: TcpListener, router: Router) {
    let connections = TaskTracker::new();
    loop {
        let (stream, peer) = tokio::select! {
            accepted = accept(&listener) => accepted,
            () = app.drain.cancelled() => break,
        };
        let Ok(permit) = Arc::clone(&app.connections).try_acquire_owned() else {
            app.counters.connections_refused.increment();
            app.log_refusal(peer, TCP, TOO_MANY_CONNECTIONS, TOO_MANY_CONNECTIONS);
            continue;
        };
        tune(&stream);
        let (app, router) = (Arc::clone(&app), router.clone());
        if app.expects_proxy_header(peer) {
            connections.spawn(serve_proxy(app, stream, peer, permit, router));
        } else if let Some(connected) = admit(&app, peer, permit, TCP) {
            connections.spawn(serve_connection(app, stream, router, connected));
        }
    }
    drop(listener);
    connections.close();
    connections.wait().await;
}

/// Gives a connection of `peer` its place, or logs and counts why its address has none.
pub(super) fn admit(
    app: &App,
    peer: SocketAddr,
    permit: OwnedSemaphorePermit,
    transport: impl Display,
) -> Option<Connected> {
    let refused = |reason: &CloseReason| app.log_refusal(peer, transport, reason.class(), reason.class());
    take_place(app, peer, permit).inspect_err(refused).ok()
}

/// Gives a connection of `peer` its place, if its address may have one more. Of banned addresses a few have one for as long as it
/// takes to tell them. A refusal is counted, and the caller logs it.
pub(super) fn take_place(
    app: &App,
    peer: SocketAddr,
    permit: OwnedSemaphorePermit,
) -> Result<Connected, CloseReason> {
    let now = Now::read();
    match app.admission.admit_connection(now, peer.ip()) {
        Ok(share) => Ok(Connected::new(peer, permit, share)),
        Err(Refusal::Forbidden(_)) if app.bans_told.admits(now.at, 1) => {
            Ok(Connected::new(peer, permit, None).banned())
        }
        Err(Refusal::Forbidden(_)) => {
            app.counters.bans_refused.increment();
            Err(CloseReason::Forbidden(BANNED))
        }
        Err(Refusal::Close(reason)) => {
            app.counters.connections_refused.increment();
            Err(reason)
        }
    }
}

/// Serves a connection of a trusted proxy, once that has told the client.
async fn serve_proxy(
    app: Arc<App>,
    mut stream: TcpStream,
    proxy: SocketAddr,
    permit: OwnedSemaphorePermit,
    router: Router,
) {
    let header = async { if begins(&stream).await { Some(read_client(&mut stream).await) } else { None } };
    match timeout(app.limits.header_timeout, header).await {
        Ok(Some(Ok(client))) => {
            if let Some(connected) = admit(&app, client.unwrap_or(proxy), permit, TCP) {
                let connected = if client.is_some() { connected.with_proxy_header() } else { connected };
                serve_connection(app, stream, router, connected).await;
            }
        }
        Ok(Some(Err(error))) => {
            app.counters.proxy_headers_refused.increment();
            app.log_refusal(proxy, TCP, NO_PROXY_HEADER, NO_PROXY_HEADER);
            debug!(%proxy, %error, "no PROXY protocol header");
        }
        Ok(None) => {}
        Err(_) => {
            app.counters.handshakes_timed_out.increment();
            app.log_refusal(proxy, TCP, LATE_PROXY_HEADER, LATE_PROXY_HEADER);
        }
    }
}

/// Whether a connection begins with something. Health checks close theirs before a byte, and that is no fault.
async fn begins(stream: &TcpStream) -> bool {
    stream.peek(&mut [0]).await.is_ok_and(|length| length > 0)
}

/// Reads the PROXY protocol header and nothing behind it: the client, unless the proxy speaks for itself.
async fn read_client(stream: &mut TcpStream) -> io::Result<Option<SocketAddr>> {
    let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let mut header = vec![0; PROXY_HEADER_FIXED];
    stream.read_exact(&mut header).await?;
    // Refuses what is no header, or too long a one, before the rest is read.
    if let Some(parsed) = ProxyHeader::read(&header).map_err(invalid)? {
        return Ok(parsed.client);
    }
    let rest = header.last_chunk().map_or(0, |length| usize::from(u16::from_be_bytes(*length)));
    header.resize(PROXY_HEADER_FIXED + rest, 0);
    stream.read_exact(&mut header[PROXY_HEADER_FIXED..]).await?;
    Ok(ProxyHeader::read(&header).map_err(invalid)?.and_then(|parsed| parsed.client))
}

pub(super) async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if is_client_error(error.kind()) => {}
            Err(error) => {
                error!(%error, "cannot accept a connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Errors of a connection that ended before it was accepted.
const fn is_client_error(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(kind, ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// What is said of connections that begin with something else than they have to.
const NO_PROXY_HEADER: &str = "a trusted proxy sent no header of the PROXY protocol, version 2; have it send one, or turn admission.proxy_protocol off";
const LATE_PROXY_HEADER: &str = "a trusted proxy sent no header of the PROXY protocol within limits.header_timeout; have it send one, or turn admission.proxy_protocol off";
const LATE_TLS: &str = "the client did not end its handshake by TLS within limits.header_timeout";
const LARGE_HEADER: &str = "the header of a request is longer than the relay reads";
const NO_HTTP: &str = "no request by HTTP came; TLS needs a certificate here, and the header of a proxy counts if admission.trusted_proxies has it";

/// Why a handshake by TLS failed, in one of few texts.
fn handshake_reason(error: &io::Error) -> &'static str {
    use rustls::AlertDescription::{BadCertificate, CertificateExpired, CertificateUnknown, UnknownCA};
    match error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::AlertReceived(CertificateExpired)) => {
            "the client says that the certificate has expired"
        }
        Some(rustls::Error::AlertReceived(UnknownCA | BadCertificate | CertificateUnknown)) => {
            "the client does not trust the certificate"
        }
        Some(rustls::Error::InvalidMessage(_)) => "the client does not speak TLS",
        Some(_) | None => "the handshake by TLS failed",
    }
}

/// Answers the requests of one connection, until it ends or becomes a WebSocket.
async fn serve_connection(app: Arc<App>, stream: TcpStream, router: Router, connected: Connected) {
    let router = if connected.is_banned() { router_for_banned(Arc::clone(&app)) } else { router };
    let Some(tls) = &app.tls else {
        return serve_requests(&app, stream, router, connected).await;
    };
    let handshake = async { if begins(&stream).await { Some(tls.accept(stream).await) } else { None } };
    match timeout(app.limits.header_timeout, handshake).await {
        Ok(Some(Ok(Some(stream)))) => serve_requests(&app, stream, router, connected).await,
        Ok(Some(Ok(None)) | None) => {}
        Ok(Some(Err(error))) => {
            app.counters.handshakes_failed.increment();
            let reason = handshake_reason(&error);
            app.log_refusal(connected.peer(), TCP, reason, reason);
            debug!(%error, "TLS handshake failed");
        }
        Err(_) => {
            app.counters.handshakes_timed_out.increment();
            app.log_refusal(connected.peer(), TCP, LATE_TLS, LATE_TLS);
        }
    }
}

async fn serve_requests<S>(app: &App, stream: S, router: Router, connected: Connected)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (stall, peer) = (app.admission.limits().write_stall_timeout, connected.peer());
    let stream = ReadAhead::new(WriteDeadline::new(stream, stall, connected.is_websocket()));
    match serve_http(stream, router, connected, app.limits.header_timeout, &app.drain).await {
        Err(error) if error.is_timeout() => {
            // A browser's idle connection ends like this too, so that a line would name clients that did nothing wrong.
            app.counters.headers_timed_out.increment();
            debug!("request header timed out");
        }
        Err(error) => {
            if is_stalled(&error) {
                app.counters.stalled.increment();
            }
            if error.is_parse() {
                app.counters.handshakes_failed.increment();
                let reason = if error.is_parse_too_large() { LARGE_HEADER } else { NO_HTTP };
                app.log_refusal(peer, TCP, reason, reason);
            }
            debug!(%error, "connection failed");
        }
        Ok(()) => {}
    }
}

/// Whether a connection was ended because its other end did not read.
fn is_stalled(error: &hyper::Error) -> bool {
    let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    source.is_some_and(|error| error.kind() == io::ErrorKind::TimedOut)
}

/// Answers the requests on a connection, each of which gets `extension`; `stop` ends it once a response is sent.
pub(super) async fn serve_http<S, E>(
    stream: S,
    router: Router,
    extension: E,
    header_timeout: Duration,
    stop: &CancellationToken,
) -> hyper::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    E: Clone + Send + Sync + 'static,
{
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(extension.clone());
        router.call(request)
    });
    // Not the builder of hyper-util: it waits without a timeout for the first bytes, to detect the HTTP version.
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .max_buf_size(HEADER_MAX)
        .max_headers(HEADER_FIELDS_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    tokio::select! {
        served = connection.as_mut() => served,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    }
}
