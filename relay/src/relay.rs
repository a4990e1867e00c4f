//! The relay as a whole: bind it, run it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::config::{Config, ConfigError};
use crate::counters::Counters;
use crate::io::{App, router, serve};

/// How long a shutdown waits for connections that do not end.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(5);

/// How often the counters are logged.
const SUMMARY_INTERVAL: Duration = Duration::from_secs(60);

/// A relay that listens already.
#[derive(Debug)]
pub struct Relay {
    listener: TcpListener,
    local_addr: SocketAddr,
    router: Router,
    app: Arc<App>,
}

impl Relay {
    /// Checks the configuration, resolves the targets and starts to listen.
    ///
    /// # Errors
    ///
    /// When the configuration cannot work; the error says what to change.
    pub async fn bind(config: Config) -> Result<Self, ConfigError> {
        let origins = config.check()?;
        let targets = config.resolve().await?;
        let error = |source| ConfigError::Listen { address: config.listen, source };
        let listener = TcpListener::bind(config.listen).await.map_err(error)?;
        let local_addr = listener.local_addr().map_err(error)?;
        let app = Arc::new(App::new(targets, origins, config.limits));
        let router = router(Arc::clone(&app), config.serve.as_deref());
        Ok(Self { listener, local_addr, router, app })
    }

    /// Where clients connect to.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// What the relay counts, also after it ended.
    #[must_use]
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.app.counters)
    }

    /// Serves until `shutdown` completes, then closes every session with 1001 and waits a few seconds at the most for
    /// clients that do not answer. Dropping the future closes the sessions, too.
    ///
    /// # Errors
    ///
    /// None so far: a listener that cannot accept tries again.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
        let Self { listener, local_addr, router, app } = self;
        let stop = app.stop.clone();
        let _stop_on_drop = app.stop.clone().drop_guard();
        let summary = tokio::spawn(log_summaries(Arc::clone(&app.counters), stop.clone()));
        let announce_stop = {
            let stop = stop.clone();
            async move {
                shutdown.await;
                info!("shutting down");
                stop.cancel();
            }
        };
        info!(%local_addr, "listening");
        let serve = serve(Arc::clone(&app), listener, router);
        tokio::select! {
            ((), ()) = async { tokio::join!(announce_stop, serve) } => {}
            () = impatient(&stop) => {}
        }
        app.sessions.close();
        if tokio::time::timeout(SHUTDOWN_PATIENCE, app.sessions.wait()).await.is_err() {
            warn!(left = app.sessions.len(), "gave up waiting for sessions to end");
        }
        summary.abort();
        info!("ended: {}", app.counters.snapshot());
        Ok(())
    }
}

/// Ends a while after `stop`: an idle HTTP connection must not keep the relay.
async fn impatient(stop: &CancellationToken) {
    stop.cancelled().await;
    tokio::time::sleep(SHUTDOWN_PATIENCE).await;
}

async fn log_summaries(counters: Arc<Counters>, stop: CancellationToken) {
    while tokio::time::timeout(SUMMARY_INTERVAL, stop.cancelled()).await.is_err() {
        debug!("{}", counters.snapshot());
    }
}
