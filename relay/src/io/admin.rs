//! Serves the admin address.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
#[cfg(unix)]
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::debug;

#[cfg(unix)]
use super::admin_socket::AdminSocket;
use super::serve::{accept, serve_http};
use super::write_deadline::WriteDeadline;

/// The most connections at a time, which is more than monitoring opens.
const CONNECTIONS_MAX: usize = 64;

/// How long a connection may take for the header of a request, or to read while a response waits for it.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection to the admin socket may take in all: it has one order and its answer.
#[cfg(unix)]
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);

/// How long the admin socket pauses when the system is out of resources.
#[cfg(unix)]
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// Serves the admin socket for as long as it is polled.
#[cfg(unix)]
pub(crate) async fn serve_admin_socket(socket: AdminSocket, router: Router) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let stop = CancellationToken::new();
    let _stop_on_drop = stop.clone().drop_guard();
    loop {
        // A place first, so that connections wait in the system and not here.
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        let stream = match socket.accept().await {
            Ok(stream) => stream,
            Err(error) => {
                debug!(%error, "cannot accept a connection to the admin socket");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (router, stop) = (router.clone(), stop.clone());
        tokio::spawn(async move {
            let stream = WriteDeadline::new(stream, TIMEOUT, Arc::default());
            let served = serve_http(stream, router, (), TIMEOUT, &stop);
            match timeout(CONNECTION_TIMEOUT, served).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => debug!(%error, "connection to the admin socket failed"),
                Err(_) => debug!("connection to the admin socket timed out"),
            }
            drop(slot);
        });
    }
}

/// Serves for as long as it is polled: while the relay drains, too.
pub(crate) async fn serve_admin(listener: TcpListener, router: Router) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let stop = CancellationToken::new();
    let _stop_on_drop = stop.clone().drop_guard();
    loop {
        let (stream, _) = accept(&listener).await;
        let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else {
            debug!("too many connections to the admin address");
            continue;
        };
        let (router, stop) = (router.clone(), stop.clone());
        tokio::spawn(async move {
            let stream = WriteDeadline::new(stream, TIMEOUT, Arc::default());
            if let Err(error) = serve_http(stream, router, (), TIMEOUT, &stop).await {
                debug!(%error, "connection to the admin address failed");
            }
            drop(slot);
        });
    }
}
