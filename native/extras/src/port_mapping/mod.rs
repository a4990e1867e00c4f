//! Port mappings on a router that forward a port to a socket (feature `port-mapping`), by PCP, NAT-PMP or UPnP.
//!
//! A separate task requests the mapping, renews it, and finally removes it. An endpoint therefore never waits for the
//! router. [`PortMapping::granted`] waits for the router's first response, for at most [`PortMappingOptions::timeout`].
//!
//! ```no_run
//! use rakwire_extras::port_mapping::{PortMapping, PortMappingOptions};
//! use rakwire_native::{Endpoint, Options};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Endpoint::bind("0.0.0.0:19132", Options::server(64)?).await?;
//! let mut mapping = PortMapping::start(server.local_addr(), PortMappingOptions::default());
//! match mapping.granted().await {
//!     Ok(port) => println!("others reach this server at {}", port.external),
//!     Err(error) => println!("{error}"),
//! }
//! mapping.close().await;
//! # Ok(())
//! # }
//! ```

mod router;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use router::{Granted, ask};

pub use router::{MappedPort, MappingProtocol, PortMappingError, PortMappingOptions};

/// The counters of a [`PortMapping`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PortMappingStats {
    /// Requests sent to the router, including renewals.
    pub asked: u64,
    /// Requests that were granted.
    pub granted: u64,
    /// Requests that the router refused or did not answer.
    pub failed: u64,
    /// Mappings removed when the handle was closed or dropped.
    pub removed: u64,
}

#[derive(Default)]
struct Counters {
    asked: AtomicU64,
    granted: AtomicU64,
    failed: AtomicU64,
    removed: AtomicU64,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// The last response of the router.
type State = Option<Result<MappedPort, PortMappingError>>;

/// A port of the router that is forwarded to a socket, for as long as this handle exists.
///
/// Dropping the handle removes the mapping in the background; [`close`](Self::close) waits for the removal. If the
/// program exits earlier, the mapping remains until its lease expires.
#[derive(Debug)]
pub struct PortMapping {
    state: watch::Receiver<State>,
    counters: Arc<Counters>,
    /// Dropping this sender stops the task.
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl std::fmt::Debug for Counters {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.read().fmt(formatter)
    }
}

impl Counters {
    fn read(&self) -> PortMappingStats {
        PortMappingStats {
            asked: self.asked.load(Ordering::Relaxed),
            granted: self.granted.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            removed: self.removed.load(Ordering::Relaxed),
        }
    }
}

impl PortMapping {
    /// Starts to request a UDP port of the router that is forwarded to the socket bound to `local`.
    ///
    /// # Panics
    /// If called outside of a tokio runtime.
    #[must_use]
    pub fn start(local: SocketAddr, options: PortMappingOptions) -> Self {
        let (results, state) = watch::channel(None);
        let (stop, stopped) = oneshot::channel();
        let counters = Arc::new(Counters::default());
        let task = tokio::spawn(keep(local, options, results, Arc::clone(&counters), stopped));
        Self { state, counters, stop, task }
    }

    /// Returns the port that the router has opened, or `None` if there is no mapping at the moment.
    #[must_use]
    pub fn mapped(&self) -> Option<MappedPort> {
        self.state.borrow().as_ref().and_then(|said| said.as_ref().ok().copied())
    }

    /// Waits for the first response of the router, and returns the latest one.
    ///
    /// # Errors
    /// Returns the [`PortMappingError`] of the latest request. The request is repeated after
    /// [`PortMappingOptions::retry`].
    pub async fn granted(&mut self) -> Result<MappedPort, PortMappingError> {
        let said = self.state.wait_for(Option::is_some).await;
        said.ok().and_then(|said| said.clone()).unwrap_or(Err(PortMappingError::Closed))
    }

    /// Waits until the result differs from that of the last call: another port, a port after a failure, or a failure
    /// after a port.
    ///
    /// # Errors
    /// Returns the [`PortMappingError`] of the latest request.
    pub async fn changed(&mut self) -> Result<MappedPort, PortMappingError> {
        self.state.changed().await.map_err(|_| PortMappingError::Closed)?;
        self.state.borrow_and_update().clone().unwrap_or(Err(PortMappingError::Closed))
    }

    /// Returns the counters of the requests.
    #[must_use]
    pub fn stats(&self) -> PortMappingStats {
        self.counters.read()
    }

    /// Removes the mapping, and waits for the router for at most twice [`PortMappingOptions::timeout`].
    pub async fn close(self) -> PortMappingStats {
        drop(self.stop);
        // A task that has ended earlier has nothing to remove.
        let _ = self.task.await;
        self.counters.read()
    }
}

/// Requests, renews and retries until the handle is dropped.
async fn keep(
    local: SocketAddr,
    options: PortMappingOptions,
    results: watch::Sender<State>,
    counters: Arc<Counters>,
    mut stopped: oneshot::Receiver<()>,
) {
    let mut kept: Option<Granted> = None;
    loop {
        count(&counters.asked);
        let answer = match kept.take() {
            Some(granted) => granted.renewed(local, &options).await,
            None => ask(local, &options).await,
        };
        let said = answer.as_ref().map(|granted| granted.port).map_err(Clone::clone);
        results.send_if_modified(|last| {
            let is_other = last.as_ref() != Some(&said);
            *last = Some(said);
            is_other
        });
        let pause = match answer {
            Ok(granted) => {
                count(&counters.granted);
                let pause = (granted.lease / 2).max(options.shortest_renewal);
                kept = Some(granted);
                pause
            }
            Err(_) => {
                count(&counters.failed);
                options.retry
            }
        };
        tokio::select! {
            _ = &mut stopped => break,
            () = sleep(pause) => {}
        }
    }
    if let Some(granted) = kept
        && granted.remove(&options).await
    {
        count(&counters.removed);
    }
}
