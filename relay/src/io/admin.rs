//! Serves the admin address.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::serve::{accept, serve_http};
use super::stall::WriteDeadline;

/// The most connections at a time, which is more than monitoring opens.
const CONNECTIONS_MAX: usize = 64;

/// How long a connection may take for the header of a request, or to read while a response waits for it.
const TIMEOUT: Duration = Duration::from_secs(10);

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
