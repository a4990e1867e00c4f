//! Accepts TCP connections, up to a limit, and serves HTTP on them with a deadline for everything that a client has to do.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, error};

use super::app::App;
use super::stall::WriteDeadline;
use super::tcp::tune;

/// How long the listener pauses when the system is out of resources, such as file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// The longest header of a request, in bytes: a browser's cookies for the site are sent too.
const HEADER_MAX: usize = 16 * 1024;

/// The most fields in the header of a request.
const HEADER_FIELDS_MAX: usize = 64;

/// An open connection. A WebSocket that takes it over keeps a clone.
#[derive(Debug, Clone)]
pub(crate) struct Connected {
    peer: SocketAddr,
    is_websocket: Arc<AtomicBool>,
    _permit: Arc<OwnedSemaphorePermit>,
}

impl Connected {
    /// The other end of the TCP connection.
    pub(crate) const fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// From now on the connection carries no HTTP.
    pub(crate) fn set_websocket(&self) {
        self.is_websocket.store(true, Ordering::Relaxed);
    }
}

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
            debug!("too many connections");
            continue;
        };
        tune(&stream);
        let connected =
            Connected { peer, is_websocket: Arc::default(), _permit: Arc::new(permit) };
        connections.spawn(serve_connection(Arc::clone(&app), stream, router.clone(), connected));
    }
    drop(listener);
    connections.close();
    connections.wait().await;
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

/// Answers the requests of one connection, until it ends or becomes a WebSocket.
async fn serve_connection(app: Arc<App>, stream: TcpStream, router: Router, connected: Connected) {
    let Some(tls) = &app.tls else {
        return serve_requests(&app, stream, router, connected).await;
    };
    match timeout(app.limits.header_timeout, tls.accept(stream)).await {
        Ok(Ok(Some(stream))) => serve_requests(&app, stream, router, connected).await,
        Ok(Ok(None)) => {}
        Ok(Err(error)) => {
            app.counters.handshakes_failed.increment();
            debug!(%error, "TLS handshake failed");
        }
        Err(_) => {
            app.counters.handshakes_timed_out.increment();
            debug!("TLS handshake timed out");
        }
    }
}

async fn serve_requests<S>(app: &App, stream: S, router: Router, connected: Connected)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let stall = app.limits.write_stall_timeout;
    let stream = WriteDeadline::new(stream, stall, Arc::clone(&connected.is_websocket));
    match serve_http(stream, router, connected, app.limits.header_timeout, &app.drain).await {
        Err(error) if error.is_timeout() => {
            app.counters.headers_timed_out.increment();
            debug!("request header timed out");
        }
        Err(error) => debug!(%error, "connection failed"),
        Ok(()) => {}
    }
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
