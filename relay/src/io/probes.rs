//! Runs a prober for each address of each configured RakNet target.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::AbortHandle;
use tokio::time::sleep;
use tracing::{info, warn};

use super::health::{Change, Judgement, MoveLog, Observations, Prober, State, TargetWatch};
use crate::addresses::TargetName;
use crate::admission::{ResolvedTarget, Targets};
use crate::counters::Counters;
use crate::directory::{ServerEntry, ServerList};
use crate::ops::TargetHealth;
use crate::protocol::{PONG_LIFETIME, PongCache, ProtocolKind};
use crate::reload::FrontTarget;

/// The poll interval for added and removed targets.
pub(crate) const PROBES_INTERVAL: Duration = Duration::from_secs(1);

/// The first pause after a prober has failed, for example because the system is out of sockets.
const RETRY_FIRST: Duration = Duration::from_secs(1);
/// The maximum pause after a prober has failed repeatedly.
const RETRY_MAX: Duration = Duration::from_secs(60);

/// The probing state of all targets.
#[derive(Debug)]
pub(crate) struct Probes {
    /// The GUID of the relay in pings.
    guid: u64,
    by_address: Mutex<BTreeMap<(TargetName, SocketAddr), Probe>>,
    /// Observations of flows by address. They exist for addresses in use, and for unprobed addresses of targets with
    /// alternatives.
    seen: Mutex<BTreeMap<SocketAddr, Seen>>,
    moves: Mutex<MoveLog>,
}

/// Observations of one address by all targets that use it, and the judgement derived from them.
#[derive(Debug, Default)]
struct Seen {
    observations: Arc<Observations>,
    judgement: Judgement,
}

/// The state of one address of a target.
#[derive(Debug)]
struct Probe {
    pongs: Arc<PongCache>,
    task: Option<AbortHandle>,
    /// True if new clients of the target are sent to this address.
    is_in_use: Arc<AtomicBool>,
    begun: Instant,
    watch: TargetWatch,
    /// The last known state of an unprobed address: true if it is up.
    is_up: bool,
}

impl Probe {
    fn new(now: Instant) -> Self {
        Self {
            pongs: Arc::default(),
            task: None,
            is_in_use: Arc::default(),
            begun: now,
            watch: TargetWatch::new(now),
            is_up: true,
        }
    }

    /// Returns true if the address is up, as far as known. A probed address has `PONG_LIFETIME` for its first answer.
    fn is_up(&self, now: Instant) -> bool {
        if self.task.is_none() {
            return self.is_up;
        }
        self.pongs.last(now).is_some() || now.saturating_duration_since(self.begun) < PONG_LIFETIME
    }

    /// Records the state of an unprobed address, and logs a change.
    fn note(&mut self, now: Instant, target_name: &TargetName, server: SocketAddr, state: State) {
        self.is_up = state != State::Down;
        match self.watch.note(now, self.is_up) {
            Some(Change::Down) => {
                warn!(%target_name, %server, "the game server does not answer new clients, or cannot be reached");
            }
            Some(Change::Up(_)) if state == State::Answers => {
                info!(%target_name, %server, "the game server answers");
            }
            Some(Change::Up(_)) => {
                info!(%target_name, %server, "the game server has not answered yet, but new clients may try it again");
            }
            None => {}
        }
    }
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
        Self { guid, by_address: Mutex::default(), seen: Mutex::default(), moves: Mutex::default() }
    }

    pub(crate) const fn guid(&self) -> u64 {
        self.guid
    }

    /// Returns the pongs of a target's current address.
    pub(crate) fn pongs(&self, target: &ResolvedTarget) -> Arc<PongCache> {
        self.pongs_of(&target.name, target.address)
    }

    fn pongs_of(&self, name: &TargetName, address: SocketAddr) -> Arc<PongCache> {
        let probe = |probe: &mut Probe| Arc::clone(&probe.pongs);
        probe(
            lock(&self.by_address)
                .entry((name.clone(), address))
                .or_insert_with(|| Probe::new(Instant::now())),
        )
    }

    /// Returns the shared observations of an address. They are recorded even for a target with a single address,
    /// because a reload may add more.
    pub(crate) fn observations(&self, address: SocketAddr) -> Arc<Observations> {
        Arc::clone(&lock(&self.seen).entry(address).or_default().observations)
    }

    /// Starts probing targets that are new or have another address, and stops probing removed ones. A front keeps its
    /// initial protocol, and answers pings with the pong of its target.
    pub(crate) fn follow(&self, targets: &Targets, front: Option<&FrontTarget>, counters: &Counters) {
        let front = front.filter(|front| front.protocol.kind() == ProtocolKind::RakNet);
        let raknet = |target: &&Arc<ResolvedTarget>| {
            target.settings.kind == ProtocolKind::RakNet
                || front.is_some_and(|front| front.name == target.name)
        };
        for target in targets.iter().filter(raknet) {
            for &address in &target.addresses {
                self.ask(&target.name, address, counters, address == target.address);
            }
        }
        lock(&self.by_address).retain(|(name, address), probe| {
            // A target with a changed protocol is no longer probed.
            targets.find(name.as_str()).is_some_and(|target| {
                target.addresses.contains(address) && (raknet(&target) || probe.task.is_none())
            })
        });
        let others = targets.iter().filter(|target| target.addresses.len() > 1 && !raknet(target));
        let others: Vec<_> = others
            .flat_map(|target| target.addresses.iter().map(|address| (&target.name, *address)))
            .collect();
        self.judge(Instant::now(), &others);
    }

    fn ask(&self, name: &TargetName, address: SocketAddr, counters: &Counters, is_in_use: bool) {
        let pongs = self.pongs_of(name, address);
        let mut probes = lock(&self.by_address);
        let Some(probe) = probes.get_mut(&(name.clone(), address)) else { return };
        probe.is_in_use.store(is_in_use, Ordering::Relaxed);
        if probe.task.is_some() {
            return;
        }
        let (counters, is_in_use) = (counters.target(name), Arc::clone(&probe.is_in_use));
        let mut prober = Prober::new(name.clone(), address, self.guid, pongs, counters, is_in_use);
        let probing = tokio::spawn(again(name.clone(), address, async move || prober.ask().await));
        (probe.task, probe.begun) = (Some(probing.abort_handle()), Instant::now());
    }

    /// Updates the state of unprobed addresses from observations. Several targets may share an address.
    fn judge(&self, now: Instant, others: &[(&TargetName, SocketAddr)]) {
        let mut seen = lock(&self.seen);
        seen.retain(|address, seen| {
            // A flow that began before a reload still reports its address after the reload.
            Arc::strong_count(&seen.observations) > 1 || others.iter().any(|(_, other)| other == address)
        });
        for (_, address) in others {
            seen.entry(*address).or_default();
        }
        let look = |(address, seen): (&SocketAddr, &mut Seen)| {
            (*address, seen.judgement.look(now, &seen.observations))
        };
        let states: BTreeMap<SocketAddr, State> = seen.iter_mut().map(look).collect();
        let mut probes = lock(&self.by_address);
        for (name, address) in others {
            let probe = probes.entry(((*name).clone(), *address)).or_insert_with(|| Probe::new(now));
            probe.note(now, name, *address, states.get(address).copied().unwrap_or(State::Unknown));
        }
    }

    /// Logs that new clients of targets get another address, at most once a minute for each target.
    pub(crate) fn log_moves(&self, now: Instant, moved: &[[Arc<ResolvedTarget>; 2]]) {
        for [old, new] in moved {
            if let Some(left_out) = lock(&self.moves).note(now, &old.name) {
                let (target_name, old, new) = (&old.name, old.address, new.address);
                warn!(%target_name, %old, %new, left_out, "new clients of the target use another address");
            }
        }
    }

    /// Returns true if an address of a target is up, as far as known.
    pub(crate) fn is_up(&self, name: &TargetName, address: SocketAddr) -> bool {
        let now = Instant::now();
        lock(&self.by_address).get(&(name.clone(), address)).is_none_or(|probe| probe.is_up(now))
    }

    /// Returns the list of servers.
    pub(crate) fn list(&self, targets: &Targets) -> ServerList {
        let now = Instant::now();
        let entry = |target: &Arc<ResolvedTarget>| {
            let pongs = self.pongs(target);
            ServerEntry::new(target.name.as_str(), target.settings.kind, &pongs, now)
        };
        ServerList { servers: targets.iter().map(entry).collect() }
    }

    /// Returns the health of probed targets, and of each address of targets with several.
    pub(crate) fn health(&self, targets: &Targets) -> Vec<TargetHealth> {
        let (now, probes) = (Instant::now(), lock(&self.by_address));
        let health = |target: &Arc<ResolvedTarget>| {
            let probe = |address: SocketAddr| probes.get(&(target.name.clone(), address));
            let asked = probe(target.address).filter(|probe| probe.task.is_some());
            let last = asked.map(|probe| probe.pongs.last(now));
            let latency = last.as_ref().and_then(|last| last.as_ref()?.latency);
            let several = target.addresses.iter().filter(|_| target.addresses.len() > 1);
            let known = several.filter_map(|address| Some((*address, probe(*address)?.is_up(now))));
            TargetHealth {
                name: target.name.clone(),
                is_up: last.map(|last| last.is_some()),
                latency,
                addresses: known.collect(),
            }
        };
        targets.iter().map(health).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Restarts `ask` whenever it fails, after a pause that doubles each time.
async fn again(target_name: TargetName, server: SocketAddr, mut ask: impl AsyncFnMut() -> io::Result<()>) {
    let mut pause = RETRY_FIRST;
    loop {
        if let Err(error) = ask().await {
            warn!(%target_name, %server, %error, "cannot ping the game server; pings continue after a pause");
        }
        sleep(pause).await;
        pause = pause.saturating_mul(2).min(RETRY_MAX);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::pending;
    use std::net::{IpAddr, Ipv4Addr};

    use tokio::time::timeout;

    use super::*;
    use crate::config::Target;
    use crate::flow::Unreachable;
    use crate::front::FrontProtocol;

    #[tokio::test(start_paused = true)]
    async fn a_failed_prober_restarts() {
        let attempts = Cell::new(0);
        let probing = again("game".parse().unwrap(), ([127, 0, 0, 1], 1).into(), async || {
            attempts.set(attempts.get() + 1);
            if attempts.get() < 4 { Err(io::Error::other("no sockets")) } else { pending().await }
        });
        assert!(timeout(Duration::from_secs(3_600), probing).await.is_err());
        assert_eq!(attempts.get(), 4);
    }

    #[tokio::test]
    async fn a_target_is_probed_only_while_its_protocol_is_raknet() {
        let probes = Probes::new();
        let task = || lock(&probes.by_address).values().find_map(|probe| probe.task.clone());
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

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

    /// Returns one target with this protocol.
    fn targets(kind: ProtocolKind) -> Targets {
        let settings = Target { kind, ..Target::new("127.0.0.1:9".parse().unwrap()) };
        let mut targets = Targets::default();
        let (name, address) = ("game".parse().unwrap(), "127.0.0.1:9".parse().unwrap());
        targets.insert(ResolvedTarget::new(name, settings, address));
        targets
    }

    /// Returns one target with two addresses and this protocol.
    fn two_addresses(kind: ProtocolKind) -> (Targets, [SocketAddr; 2]) {
        let mut targets = targets(kind);
        let mut target = ResolvedTarget::clone(targets.find("game").unwrap());
        target.addresses.push("127.0.0.1:10".parse().unwrap());
        let addresses = [target.addresses[0], target.addresses[1]];
        targets.insert(target);
        (targets, addresses)
    }

    /// Reports twice, one second apart, that nothing is listening on this address.
    fn refuse(probes: &Probes, targets: &Targets, address: SocketAddr) {
        let addresses = |target: &Arc<ResolvedTarget>| target.addresses.clone();
        let all: Vec<_> = targets
            .iter()
            .flat_map(|target| addresses(target).into_iter().map(|at| (&target.name, at)))
            .collect();
        let start = Instant::now();
        for second in 0..2 {
            probes.observations(address).unreachable(CLIENT, Unreachable::ClosedPort);
            probes.judge(start + Duration::from_secs(second), &all);
        }
    }

    #[tokio::test]
    async fn flows_report_on_unprobed_addresses() {
        let probes = Probes::new();
        let (targets, [first, second]) = two_addresses(ProtocolKind::Raw);
        let name = "game".parse().unwrap();
        probes.follow(&targets, None, &Counters::default());
        assert!(probes.is_up(&name, first) && probes.is_up(&name, second), "addresses count as up at first");
        refuse(&probes, &targets, first);
        assert!(!probes.is_up(&name, first) && probes.is_up(&name, second));
        let health = probes.health(&targets);
        assert_eq!((health[0].is_up, &*health[0].addresses), (None, &[(first, false), (second, true)][..]));
        probes.observations(first).answered();
        probes.follow(&targets, None, &Counters::default());
        assert!(probes.is_up(&name, first));
        // The only address of a target is used regardless of observations.
        probes.follow(&self::targets(ProtocolKind::Raw), None, &Counters::default());
        assert!(lock(&probes.seen).is_empty());
    }

    #[tokio::test]
    async fn flows_report_on_their_address_after_a_reload() {
        let probes = Probes::new();
        let (two, [first, second]) = two_addresses(ProtocolKind::Raw);
        let (name, counters) = ("game".parse().unwrap(), Counters::default());
        let flow = probes.observations(first);
        probes.follow(&targets(ProtocolKind::Raw), None, &counters);
        // A reload.
        probes.follow(&two, None, &counters);
        let others = two.find("game").unwrap().addresses.iter().map(|address| (&name, *address));
        let (start, others) = (Instant::now(), others.collect::<Vec<_>>());
        (0..3).for_each(|number| probes.observations(first).begun([192, 0, number, 1].into()));
        probes.judge(start, &others);
        flow.answered();
        probes.judge(start + Duration::from_secs(9), &others);
        probes.judge(start + Duration::from_secs(10), &others);
        assert!(probes.is_up(&name, first), "the address answers");
        // A reload removes the address.
        let mut moved = targets(ProtocolKind::Raw);
        let settings = moved.find("game").unwrap().settings.clone();
        moved.insert(ResolvedTarget::new(name, settings, second));
        probes.follow(&moved, None, &counters);
        assert!(Arc::ptr_eq(&flow, &probes.observations(first)), "the flow still reports on its address");
        drop(flow);
        probes.follow(&moved, None, &counters);
        assert!(lock(&probes.seen).is_empty());
    }

    #[tokio::test]
    async fn targets_share_the_health_of_an_address() {
        let probes = Probes::new();
        let (mut targets, [first, second]) = two_addresses(ProtocolKind::Raw);
        let mut other = ResolvedTarget::clone(targets.find("game").unwrap());
        other.name = "other".parse().unwrap();
        targets.insert(other);
        probes.follow(&targets, None, &Counters::default());
        refuse(&probes, &targets, first);
        for name in ["game", "other"] {
            let name = name.parse().unwrap();
            assert!(!probes.is_up(&name, first) && probes.is_up(&name, second), "{name}");
        }
    }

    fn is_in_use(probes: &Probes, address: SocketAddr) -> bool {
        lock(&probes.by_address)[&("game".parse().unwrap(), address)].is_in_use.load(Ordering::Relaxed)
    }

    #[tokio::test]
    async fn every_address_of_a_raknet_target_is_probed() {
        let probes = Probes::new();
        let (targets, addresses) = two_addresses(ProtocolKind::RakNet);
        probes.follow(&targets, None, &Counters::default());
        let asked = |address| lock(&probes.by_address)[&("game".parse().unwrap(), address)].task.is_some();
        assert!(addresses.into_iter().all(asked));
        let in_use = || addresses.map(|address| is_in_use(&probes, address));
        assert_eq!(in_use(), [true, false]);
        probes.follow(&targets.failed_over(|_, address| address == addresses[1]), None, &Counters::default());
        assert_eq!(in_use(), [false, true], "reports are counted for the address of new clients");
        assert!(
            probes.is_up(&"game".parse().unwrap(), addresses[0]),
            "the address has time for its first answer"
        );
        probes.follow(&self::targets(ProtocolKind::RakNet), None, &Counters::default());
        assert_eq!(lock(&probes.by_address).len(), 1, "the removed address is not probed");
    }

    #[tokio::test]
    async fn a_target_behind_a_raknet_front_stays_probed() {
        let front = |name: &str, protocol| FrontTarget { name: name.parse().unwrap(), protocol };
        for (front, is_requested) in [
            (front("game", FrontProtocol::RakNet), true),
            (front("game", FrontProtocol::GameProtocol), false),
            (front("other", FrontProtocol::RakNet), false),
        ] {
            let probes = Probes::new();
            probes.follow(&targets(ProtocolKind::RakNet), Some(&front), &Counters::default());
            let pongs = |kind| probes.pongs(targets(kind).find("game").unwrap());
            let before = pongs(ProtocolKind::RakNet);
            probes.follow(&targets(ProtocolKind::GameProtocol), Some(&front), &Counters::default());
            assert_eq!(
                lock(&probes.by_address).values().any(|probe| probe.task.is_some()),
                is_requested,
                "{front:?}"
            );
            assert_eq!(Arc::ptr_eq(&before, &pongs(ProtocolKind::GameProtocol)), is_requested, "{front:?}");
        }
    }
}
