//! A port of the router that leads to a socket (feature `port-mapping`), by PCP, NAT-PMP or UPnP.
//!
//! A task of its own asks the router, renews the mapping, and removes it in the end, so that an endpoint never waits for
//! it. [`PortMapping::granted`] waits for the router's first answer, which comes within [`PortMappingOptions::timeout`].
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

/// What became of the requests of a [`PortMapping`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PortMappingStats {
    /// The router was asked, or asked to renew.
    pub asked: u64,
    /// It has granted a port.
    pub granted: u64,
    /// It has not.
    pub failed: u64,
    /// It has removed the mapping when the handle was closed or dropped.
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

/// What the router has said last.
type State = Option<Result<MappedPort, PortMappingError>>;

/// A port of the router that leads to a socket, as long as this handle is kept.
///
/// Dropping it has the mapping removed in the background; [`close`](Self::close) waits for that. A program that ends
/// before leaves it to the router, which forgets it after the lease.
#[derive(Debug)]
pub struct PortMapping {
    state: watch::Receiver<State>,
    counters: Arc<Counters>,
    /// Dropped, it ends the task.
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
    /// Begins to ask the router for a UDP port by which others reach the socket that is bound to `local`.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn start(local: SocketAddr, options: PortMappingOptions) -> Self {
        let (told, state) = watch::channel(None);
        let (stop, stopped) = oneshot::channel();
        let counters = Arc::new(Counters::default());
        let task = tokio::spawn(keep(local, options, told, Arc::clone(&counters), stopped));
        Self { state, counters, stop, task }
    }

    /// The port that the router has opened, unless it has not, or not yet.
    #[must_use]
    pub fn mapped(&self) -> Option<MappedPort> {
        self.state.borrow().as_ref().and_then(|said| said.as_ref().ok().copied())
    }

    /// Waits for the first answer of the router, and returns the last one.
    ///
    /// # Errors
    /// [`PortMappingError`]. The router is asked again after [`PortMappingOptions::retry`].
    pub async fn granted(&mut self) -> Result<MappedPort, PortMappingError> {
        let said = self.state.wait_for(Option::is_some).await;
        said.ok().and_then(|said| said.clone()).unwrap_or(Err(PortMappingError::Closed))
    }

    /// Waits until something else is so than when this was called last: another port, one after none, none after one.
    ///
    /// # Errors
    /// [`PortMappingError`].
    pub async fn changed(&mut self) -> Result<MappedPort, PortMappingError> {
        self.state.changed().await.map_err(|_| PortMappingError::Closed)?;
        self.state.borrow_and_update().clone().unwrap_or(Err(PortMappingError::Closed))
    }

    /// What became of the requests.
    #[must_use]
    pub fn stats(&self) -> PortMappingStats {
        self.counters.read()
    }

    /// Has the mapping removed, and waits for the router as long as twice [`PortMappingOptions::timeout`].
    pub async fn close(self) -> PortMappingStats {
        drop(self.stop);
        // A task that ended otherwise has nothing to remove.
        let _ = self.task.await;
        self.counters.read()
    }
}

/// Asks, renews and asks again until the handle is gone.
async fn keep(
    local: SocketAddr,
    options: PortMappingOptions,
    told: watch::Sender<State>,
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
        told.send_if_modified(|last| {
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
