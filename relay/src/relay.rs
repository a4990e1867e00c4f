//! The relay: binding and running it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::admission::{Admission, Targets};
use crate::config::{Config, ConfigError, LoadError, Loaded, absolute};
use crate::counters::Counters;
use crate::io::{App, router, serve};
use crate::reload::Reloader;

/// How long a shutdown waits for connections to end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// How often the counters are logged.
const SUMMARY_INTERVAL: Duration = Duration::from_secs(60);

/// A relay that is listening.
#[derive(Debug)]
pub struct Relay {
    listener: TcpListener,
    local_addr: SocketAddr,
    router: Router,
    app: Arc<App>,
    config: Arc<Mutex<Config>>,
}

impl Relay {
    /// Checks the configuration, resolves the targets and starts to listen.
    ///
    /// # Errors
    ///
    /// If the configuration is invalid; the error says what to change.
    pub async fn bind(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        let targets = Targets::resolve(&config, &Targets::default()).await?;
        let admission = Admission::new(&config, targets)?;
        let error = |source| ConfigError::Listen { address: config.listen, source };
        let listener = TcpListener::bind(config.listen).await.map_err(error)?;
        let local_addr = listener.local_addr().map_err(error)?;
        let app = Arc::new(App::new(admission, config.limits));
        let router = router(Arc::clone(&app), config.serve.as_deref());
        if let Some(directory) = &config.serve {
            info!(directory = %absolute(directory).display(), "serving files");
        }
        let config = Arc::new(Mutex::new(config));
        Ok(Self { listener, local_addr, router, app, config })
    }

    /// The address that the relay listens on.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// What reloads this relay from now on, with the configuration that `load` gives.
    pub fn reloader(&self, load: impl Fn() -> Result<Loaded, LoadError> + Send + Sync + 'static) -> Reloader {
        Reloader::new(Arc::clone(&self.app.admission), Arc::clone(&self.config), load)
    }

    /// The counters, which are valid after the relay has ended too.
    #[must_use]
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.app.counters)
    }

    /// Serves until `shutdown` completes, then closes every session with 1001 and waits a few seconds at most for
    /// clients that do not answer. Dropping the future closes the sessions too.
    ///
    /// # Errors
    ///
    /// Never at present: accepting is retried after errors.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
        let Self { listener, local_addr, router, app, config: _ } = self;
        let stop = app.stop.clone();
        let _stop_on_drop = app.stop.clone().drop_guard();
        let summary = tokio::spawn(log_summaries(Arc::clone(&app.counters), stop.clone()));
        let resolver = tokio::spawn(resolve_again(Arc::clone(&app.admission)));
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
            () = shutdown_timeout(&stop) => {}
        }
        app.sessions.close();
        if tokio::time::timeout(SHUTDOWN_TIMEOUT, app.sessions.wait()).await.is_err() {
            warn!(left = app.sessions.len(), "sessions did not end in time");
        }
        summary.abort();
        resolver.abort();
        info!("ended: {}", app.counters.snapshot());
        Ok(())
    }
}

/// Completes some time after `stop`, so that idle HTTP connections cannot keep the relay running.
async fn shutdown_timeout(stop: &CancellationToken) {
    stop.cancelled().await;
    tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
}

/// Follows the changes of names.
async fn resolve_again(admission: Arc<Admission>) {
    loop {
        tokio::time::sleep(admission.resolve_interval()).await;
        admission.resolve_again().await;
    }
}

async fn log_summaries(counters: Arc<Counters>, stop: CancellationToken) {
    while tokio::time::timeout(SUMMARY_INTERVAL, stop.cancelled()).await.is_err() {
        debug!("{}", counters.snapshot());
    }
}
