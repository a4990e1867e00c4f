//! A prober for each RakNet target that is offered.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::AbortHandle;
use tracing::warn;

use super::prober::probe;
use crate::admission::{ResolvedTarget, Targets};
use crate::directory::{ServerEntry, ServerList};
use crate::protocol::{PongCache, ProtocolKind};
use crate::target::TargetName;

/// How often targets that came or went are noticed.
pub(crate) const PROBES_INTERVAL: Duration = Duration::from_secs(1);

/// What is known of the targets.
#[derive(Debug)]
pub(crate) struct Probes {
    /// What the relay calls itself.
    guid: u64,
    by_target: Mutex<BTreeMap<TargetName, Probe>>,
}

#[derive(Debug)]
struct Probe {
    address: SocketAddr,
    pongs: Arc<PongCache>,
    task: Option<AbortHandle>,
}

impl Drop for Probe {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Probes {
    pub(crate) fn new() -> Self {
        let guid = getrandom::u64().unwrap_or(1);
        Self { guid, by_target: Mutex::default() }
    }

    pub(crate) const fn guid(&self) -> u64 {
        self.guid
    }

    /// The pongs of a target.
    pub(crate) fn pongs(&self, target: &ResolvedTarget) -> Arc<PongCache> {
        let mut probes = self.lock();
        let known = probes.get(&target.name).filter(|probe| probe.address == target.address);
        if let Some(probe) = known {
            return Arc::clone(&probe.pongs);
        }
        let pongs = Arc::<PongCache>::default();
        let probe = Probe { address: target.address, pongs: Arc::clone(&pongs), task: None };
        probes.insert(target.name.clone(), probe);
        pongs
    }

    /// Begins to ask targets that are new or have moved, and forgets those that are gone.
    pub(crate) fn follow(&self, targets: &Targets) {
        let raknet = |target: &&Arc<ResolvedTarget>| target.settings.kind == ProtocolKind::RakNet;
        for target in targets.iter().filter(raknet) {
            let pongs = self.pongs(target);
            let mut probes = self.lock();
            let Some(probe) = probes.get_mut(&target.name).filter(|probe| probe.task.is_none()) else {
                continue;
            };
            let (address, guid) = (target.address, self.guid);
            let probing = tokio::spawn(async move {
                if let Err(error) = probe_until_dropped(address, guid, pongs).await {
                    warn!(%error, "cannot ask a game server for its pong");
                }
            });
            probe.task = Some(probing.abort_handle());
        }
        self.lock().retain(|name, _| targets.find(name.as_str()).is_some());
    }

    /// The list of servers.
    pub(crate) fn list(&self, targets: &Targets) -> ServerList {
        let now = Instant::now();
        let entry = |target: &Arc<ResolvedTarget>| {
            let pongs = self.pongs(target);
            ServerEntry::new(target.name.as_str(), target.settings.kind, &pongs, now)
        };
        ServerList { servers: targets.iter().map(entry).collect() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TargetName, Probe>> {
        self.by_target.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn probe_until_dropped(server: SocketAddr, guid: u64, pongs: Arc<PongCache>) -> std::io::Result<()> {
    probe(server, guid, &pongs).await
}
