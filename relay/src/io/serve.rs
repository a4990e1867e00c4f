//! Accepts TCP connections, up to a limit, and serves HTTP on them with a timeout for requests.

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
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::sleep;
use tokio_util::task::TaskTracker;
use tracing::{debug, error};

use super::app::App;
use super::tcp::tune;

/// How long the listener pauses when the system is out of resources, such as file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// The permit of an open connection. A WebSocket that takes over the connection keeps a clone.
#[derive(Debug, Clone)]
pub(crate) struct Connected {
    peer: SocketAddr,
    _permit: Arc<OwnedSemaphorePermit>,
}

impl Connected {
    /// The other end of the TCP connection.
    pub(crate) const fn peer(&self) -> SocketAddr {
        self.peer
    }
}

/// Serves until the relay stops and pending responses have been sent.
pub(crate) async fn serve(app: Arc<App>, listener: TcpListener, router: Router) {
    let connections = TaskTracker::new();
    loop {
        let (stream, peer) = tokio::select! {
            accepted = accept(&listener) => accepted,
            () = app.stop.cancelled() => break,
        };
        let Ok(permit) = Arc::clone(&app.connections).try_acquire_owned() else {
            app.counters.connections_refused.increment();
            debug!("too many connections");
            continue;
        };
        tune(&stream);
        let connected = Connected { peer, _permit: Arc::new(permit) };
        connections.spawn(serve_connection(Arc::clone(&app), stream, router.clone(), connected));
    }
    drop(listener);
    connections.close();
    connections.wait().await;
}

async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
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
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(connected.clone());
        router.call(request)
    });
    // Not the builder of hyper-util: it waits without a timeout for the first bytes, to detect the HTTP version.
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(app.limits.header_timeout)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = app.stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    match served {
        Err(error) if error.is_timeout() => {
            app.counters.headers_timed_out.increment();
            debug!("request header timed out");
        }
        Err(error) => debug!(%error, "connection failed"),
        Ok(()) => {}
    }
}
