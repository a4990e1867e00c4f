//! A prober for each RakNet target that is offered.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::AbortHandle;
use tokio::time::sleep;
use tracing::warn;

use super::prober::Prober;
use crate::admission::{ResolvedTarget, Targets};
use crate::counters::Counters;
use crate::directory::{ServerEntry, ServerList};
use crate::front_target::FrontTarget;
use crate::ops::TargetHealth;
use crate::protocol::{PongCache, ProtocolKind};
use crate::target::TargetName;

/// How often targets that came or went are noticed.
pub(crate) const PROBES_INTERVAL: Duration = Duration::from_secs(1);

/// How long a prober that failed waits at first, and at most: the system may be out of sockets for a while.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);

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

    /// Begins to ask targets that are new or have moved, and forgets those that are gone. A front goes on with the protocol
    /// of its start, and answers pings from what its target says.
    pub(crate) fn follow(&self, targets: &Targets, front: Option<&FrontTarget>, counters: &Counters) {
        let front = front.filter(|front| front.protocol.kind() == ProtocolKind::RakNet);
        let raknet = |target: &&Arc<ResolvedTarget>| {
            target.settings.kind == ProtocolKind::RakNet
                || front.is_some_and(|front| front.name == target.name)
        };
        for target in targets.iter().filter(raknet) {
            let pongs = self.pongs(target);
            let mut probes = self.lock();
            let Some(probe) = probes.get_mut(&target.name).filter(|probe| probe.task.is_none()) else {
                continue;
            };
            let (name, counters) = (target.name.clone(), counters.target(&target.name));
            let mut prober = Prober::new(name, target.address, self.guid, pongs, counters);
            let probing = tokio::spawn(again(async move || prober.ask().await));
            probe.task = Some(probing.abort_handle());
        }
        self.lock().retain(|name, probe| {
            // One of another protocol is not asked any more.
            targets.find(name.as_str()).is_some_and(|target| raknet(&target) || probe.task.is_none())
        });
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

    /// What the targets that are asked say.
    pub(crate) fn health(&self) -> Vec<TargetHealth> {
        let (now, probes) = (Instant::now(), self.lock());
        let asked = probes.iter().filter(|(_, probe)| probe.task.is_some());
        let health = |(name, probe): (&TargetName, &Probe)| {
            let last = probe.pongs.last(now);
            let latency = last.as_ref().and_then(|pong| pong.latency);
            TargetHealth { name: name.clone(), is_up: last.is_some(), latency }
        };
        asked.map(health).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TargetName, Probe>> {
        self.by_target.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks again whenever asking fails, after a pause that doubles each time.
async fn again(mut ask: impl AsyncFnMut() -> io::Result<()>) {
    let mut pause = RETRY_FIRST;
    loop {
        if let Err(error) = ask().await {
            warn!(%error, "cannot ask a game server for its pong");
        }
        sleep(pause).await;
        pause = pause.saturating_mul(2).min(RETRY_MAX);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::pending;

    use tokio::time::timeout;

    use super::*;
    use crate::config::Target;
    use crate::front::FrontProtocol;

    #[tokio::test(start_paused = true)]
    async fn a_prober_that_fails_begins_again() {
        let attempts = Cell::new(0);
        let probing = again(async || {
            attempts.set(attempts.get() + 1);
            if attempts.get() < 4 { Err(io::Error::other("no sockets")) } else { pending().await }
        });
        assert!(timeout(Duration::from_secs(3_600), probing).await.is_err());
        assert_eq!(attempts.get(), 4);
    }

    #[tokio::test]
    async fn a_target_of_another_protocol_is_not_asked_any_more() {
        let probes = Probes::new();
        let task = || probes.lock().values().find_map(|probe| probe.task.clone());
        probes.follow(&targets(ProtocolKind::RakNet), None, &Counters::default());
        let probing = task().unwrap();
        probes.follow(&targets(ProtocolKind::Raw), None, &Counters::default());
        assert!(task().is_none());
        while !probing.is_finished() {
            tokio::task::yield_now().await;
        }
        probes.follow(&targets(ProtocolKind::RakNet), None, &Counters::default());
        assert!(task().is_some());
    }

    /// One target, which is of this kind.
    fn targets(kind: ProtocolKind) -> Targets {
        let settings = Target { kind, ..Target::new("127.0.0.1:9".parse().unwrap()) };
        let mut targets = Targets::default();
        let (name, address) = ("game".parse().unwrap(), "127.0.0.1:9".parse().unwrap());
        targets.insert(ResolvedTarget { name, settings, address });
        targets
    }

    #[tokio::test]
    async fn a_target_behind_a_front_of_raknet_is_asked_as_long_as_the_front_is_there() {
        let front = |name: &str, protocol| FrontTarget { name: name.parse().unwrap(), protocol };
        for (front, is_asked) in [
            (front("game", FrontProtocol::RakNet), true),
            (front("game", FrontProtocol::GameProtocol), false),
            (front("other", FrontProtocol::RakNet), false),
        ] {
            let probes = Probes::new();
            probes.follow(&targets(ProtocolKind::RakNet), Some(&front), &Counters::default());
            let pongs = |kind| probes.pongs(targets(kind).find("game").unwrap());
            let before = pongs(ProtocolKind::RakNet);
            probes.follow(&targets(ProtocolKind::GameProtocol), Some(&front), &Counters::default());
            assert_eq!(probes.lock().values().any(|probe| probe.task.is_some()), is_asked, "{front:?}");
            assert_eq!(Arc::ptr_eq(&before, &pongs(ProtocolKind::GameProtocol)), is_asked, "{front:?}");
        }
    }
}
