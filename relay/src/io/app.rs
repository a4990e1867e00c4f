//! State shared by all connections of a relay, the transports announced to pages, and the cached list of servers.

use std::fmt::Display;
use std::net::SocketAddr;
use std::num::{NonZeroU16, NonZeroUsize};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use ipnet::IpNet;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{error, info};

use super::open_flows::{Handover, OpenFlows, Selected};
use super::probes::Probes;
use super::transport::Connection;
use crate::admission::{Admission, canonical_network};
use crate::clients::{BanEntry, BanList, ClientList};
use crate::config::{Config, Limits};
use crate::counters::Counters;
use crate::flow::{FlowEnd, Rate, ResumeTable, Secret, SharedRate};
use crate::front::FrontCounters;
use crate::ops::{AddressLog, Control, Gauges, Health, RefusalLog, Reloading, render_metrics};
use crate::reload::{FrontTarget, Reloader};
use crate::tls::{QuicCertificate, Tls};
use crate::webrtc::{Fingerprint, WebRtcCounters};

/// Hands the connection of a returning client over to its flow.
pub(crate) type Connections = Handover<Box<Connection>>;

/// The rate of connections from banned addresses that are notified of the ban, over all addresses. It is so low that
/// their handshakes do not burden a flooded relay.
const BAN_NOTICES: Rate =
    Rate { datagrams: const { NonZeroUsize::new(8).expect("8 is not zero") }, bytes: NonZeroUsize::MAX };

/// State shared by all connections of a relay.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) admission: Arc<Admission>,
    /// The limits at startup, for settings that a reload does not change.
    pub(crate) limits: Limits,
    pub(crate) counters: Arc<Counters>,
    /// The format of client addresses in the log.
    pub(crate) addresses: AddressLog,
    pub(crate) tls: Option<Arc<Tls>>,
    has_proxy_headers: bool,
    /// The UDP port announced to pages, if it differs from the TCP port of the relay.
    pub(super) public_udp_port: Option<NonZeroU16>,
    resumable: Mutex<ResumeTable<Arc<Connections>>>,
    /// One permit per open TCP connection.
    pub(crate) connections: Arc<Semaphore>,
    /// The time that a shutdown waits for clients. It is stored separately, so that a running reload does not delay a
    /// shutdown.
    pub(crate) drain_timeout: Arc<watch::Sender<Duration>>,
    /// The token is cancelled when the relay stops accepting clients.
    pub(crate) drain: CancellationToken,
    /// The time at which the remaining flows end during a drain.
    pub(super) drain_until: OnceLock<Instant>,
    /// The token is cancelled when all flows must end.
    pub(crate) stop: CancellationToken,
    /// The WebSocket sessions that a shutdown waits for.
    pub(crate) sessions: TaskTracker,
    /// The counters of the front; all zero without a front.
    pub(crate) front_counters: Arc<FrontCounters>,
    /// The target behind the front, if there is a front.
    pub(crate) front: OnceLock<FrontTarget>,
    /// The data channels, if they are served.
    pub(crate) webrtc: OnceLock<AnnouncedWebRtc>,
    /// The counters of the data channels; all zero without data channels.
    pub(crate) webrtc_counters: Arc<WebRtcCounters>,
    /// The reason why the relay is permanently not ready, set when a task fails.
    failure: OnceLock<&'static str>,
    /// WebTransport, if it is served.
    pub(crate) webtransport: OnceLock<Announced>,
    /// Reloads this relay; set once reloading is possible.
    pub(crate) reloader: OnceLock<Reloader>,
    /// The cached list of servers.
    pub(crate) server_list: ListCache,
    /// Results of probing the targets.
    pub(crate) probes: Probes,
    /// Limits how many connections of banned addresses are notified; the others are closed immediately.
    pub(super) ban_notices: SharedRate,
    pub(crate) refusals: Arc<RefusalLog>,
    /// The number of flows since the start.
    flows: AtomicU64,
    /// The flows that are open.
    pub(super) open_flows: Arc<OpenFlows>,
}

impl App {
    /// Returns the number of the next flow, which identifies its lines in the log.
    pub(crate) fn next_flow(&self) -> u64 {
        self.flows.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Logs a refused client, at most once a minute for each network and reason. There are only a few distinct reasons.
    pub(crate) fn log_refusal(
        &self,
        client: SocketAddr,
        transport: impl Display,
        class: &'static str,
        reason: impl Display,
    ) {
        if self.refusals.note(Instant::now(), class, client.ip()) {
            info!(client = %self.addresses.show(client), %transport, %reason, "client refused");
        }
    }

    /// Logs a refused client with a possibly forged address. The address is omitted, and each reason has at most one
    /// line per half hour, so that a flood cannot crowd out other lines.
    pub(crate) fn log_unproven(&self, transport: impl Display, reason: &'static str) {
        if self.refusals.note_unproven(Instant::now(), reason) {
            info!(client = "unproven", %transport, reason, "client refused");
        }
    }

    /// Logs an untrusted peer that sent forwarding headers, with the same limit as refusals.
    pub(crate) fn log_untrusted(&self, peer: SocketAddr) {
        const REASON: &str = "all clients behind this proxy count as one: if the proxy is yours, add it to admission.trusted_proxies";
        if self.refusals.note(Instant::now(), "untrusted proxy", peer.ip()) {
            info!(proxy = %self.addresses.show(peer), reason = REASON, "ignored the forwarding header of an untrusted proxy");
        }
    }

    pub(crate) fn new(admission: Admission, config: &Config, tls: Option<Tls>) -> Self {
        let limits = config.limits;
        let counters = Arc::new(Counters::default());
        // Counters are created before the first client, because a missing counter looks like missing data.
        admission.targets().names().for_each(|name| drop(counters.target(name)));
        Self {
            admission: Arc::new(admission),
            limits,
            counters,
            addresses: AddressLog::new(config.log.hash_addresses),
            tls: tls.map(Arc::new),
            has_proxy_headers: config.admission.proxy_protocol,
            public_udp_port: config.webtransport.public_port,
            resumable: Mutex::default(),
            connections: Arc::new(Semaphore::new(max_connections(&limits))),
            drain_timeout: Arc::new(watch::Sender::new(config.drain_timeout)),
            drain: CancellationToken::new(),
            drain_until: OnceLock::new(),
            stop: CancellationToken::new(),
            sessions: TaskTracker::new(),
            front_counters: Arc::default(),
            front: OnceLock::new(),
            webrtc: OnceLock::new(),
            webrtc_counters: Arc::default(),
            failure: OnceLock::new(),
            webtransport: OnceLock::new(),
            reloader: OnceLock::new(),
            server_list: ListCache::default(),
            probes: Probes::new(),
            ban_notices: SharedRate::new(BAN_NOTICES, Instant::now()),
            refusals: Arc::default(),
            flows: AtomicU64::new(0),
            open_flows: Arc::default(),
        }
    }

    /// Returns the flows that clients can resume.
    pub(crate) fn resumable(&self) -> MutexGuard<'_, ResumeTable<Arc<Connections>>> {
        self.resumable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if a flow with this secret and target exists and admits another resumption, so that the client does
    /// not count as new. Counts the resumption.
    pub(crate) fn admits_resumption(&self, secret: Option<&Secret>, target: Option<&str>) -> bool {
        let now = Instant::now();
        secret
            .zip(target)
            .is_some_and(|(secret, target)| self.resumable().admits_resumption(secret, target, now))
    }

    /// Stops accepting clients. If flows may continue until a deadline, their clients are notified.
    pub(crate) fn begin_drain(&self, until: Option<Instant>) {
        if let Some(until) = until {
            let _ = self.drain_until.set(until);
        }
        self.drain.cancel();
        // A flow that begins after this call sees the cancelled token `drain`.
        self.open_flows.drain();
    }

    /// Marks the relay as permanently not ready, with a reason.
    pub(crate) fn fail(&self, reason: &'static str) {
        let _ = self.failure.set(reason);
    }

    /// Returns true if connections of this peer begin with a PROXY protocol header.
    pub(crate) fn expects_proxy_header(&self, peer: SocketAddr) -> bool {
        self.has_proxy_headers && self.admission.is_trusted_proxy(peer.ip())
    }
}

fn max_connections(limits: &Limits) -> usize {
    limits.max_connections().min(Semaphore::MAX_PERMITS)
}

impl Control for App {
    fn clients(&self, network: Option<IpNet>) -> ClientList {
        self.open_flows.list(network.map(canonical_network), Instant::now())
    }

    fn kick_flow(&self, flow: u64) -> usize {
        self.kick(Selected::Flow(flow))
    }

    fn kick_network(&self, network: IpNet) -> usize {
        self.kick(Selected::Network(canonical_network(network)))
    }

    fn ban(&self, network: IpNet, duration: Option<Duration>) -> Result<usize, String> {
        let network = canonical_network(network);
        self.admission.ban(Instant::now(), network, duration).map_err(|error| error.to_string())?;
        let ended = self.open_flows.end(Selected::Network(network), FlowEnd::Banned);
        self.counters.ended_by_bans.add(ended as u64);
        let seconds = duration.map(|duration| duration.as_secs());
        info!(network = %self.addresses.show_network(network), seconds, ended, "the operator banned a network");
        Ok(ended)
    }

    fn unban(&self, network: IpNet) -> bool {
        let is_lifted = self.admission.unban(Instant::now(), network);
        if is_lifted {
            info!(network = %self.addresses.show_network(network), "the operator lifted a ban");
        }
        is_lifted
    }

    fn bans(&self) -> BanList {
        let bans = self.admission.operator_bans(Instant::now()).into_iter();
        BanList::new(bans.map(|(network, left)| BanEntry::new(network, left)).collect())
    }
}

impl App {
    fn kick(&self, selected: Selected) -> usize {
        let ended = self.open_flows.end(selected, FlowEnd::Kicked);
        self.counters.kicked.add(ended as u64);
        info!(ended, "the operator ended flows");
        ended
    }
}

impl Health for App {
    fn unready(&self) -> Option<&'static str> {
        if self.drain.is_cancelled() {
            return Some("shutting down");
        }
        if let Some(reason) = self.failure.get() {
            return Some(reason);
        }
        let is_waiting = self.tls.as_ref().is_some_and(|tls| !tls.is_ready());
        is_waiting.then_some("no certificate yet")
    }

    fn reload(&self) -> Option<Reloading<'_>> {
        let reloader = self.reloader.get()?;
        Some(Box::pin(async {
            match reloader.reload().await {
                Ok(changes) => {
                    info!("configuration reloaded; {changes}");
                    Ok(changes.to_string())
                }
                Err(error) => {
                    error!("configuration rejected, the old one stays in use: {error}");
                    Err(error.to_string())
                }
            }
        }))
    }

    fn metrics(&self) -> String {
        let max_connections = max_connections(&self.limits);
        let gauges = Gauges {
            max_clients: self.admission.limits().max_clients,
            connections: max_connections.saturating_sub(self.connections.available_permits()),
            max_connections,
            is_ready: self.unready().is_none(),
            is_draining: self.drain.is_cancelled(),
            certificate_expires: self.tls.as_ref().and_then(|tls| tls.expires()),
            targets: self.probes.health(&self.admission.offered()),
            total_bytes_per_second: self.admission.limits().total_bytes_per_second,
            operator_bans: self.admission.operator_bans(Instant::now()).len(),
        };
        render_metrics(
            &self.counters.snapshot(),
            &self.front_counters.snapshot(),
            &self.webrtc_counters.snapshot(),
            &gauges,
        )
    }
}

/// The path of session requests.
pub(crate) const PATH: &str = "/wt";

/// WebTransport as announced to pages.
#[derive(Debug)]
pub(crate) struct Announced {
    pub(crate) local_addr: SocketAddr,
    pub(crate) certificate: QuicCertificate,
}

/// Data channels as announced to pages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnnouncedWebRtc {
    pub(crate) local_addr: SocketAddr,
    pub(crate) fingerprint: Fingerprint,
}

/// The lifetime of a cached list. Servers are pinged once a second, so a shorter lifetime would show nothing newer.
const KEPT: Duration = Duration::from_secs(1);

/// The last list with the time at which it was built.
#[derive(Debug, Default)]
pub(crate) struct ListCache(Mutex<Option<(Instant, Arc<str>)>>);

impl ListCache {
    /// Returns the cached list, or the result of `write` if the cached list has expired.
    pub(super) fn get(&self, now: Instant, write: impl FnOnce() -> String) -> Arc<str> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some((at, list)) if now.saturating_duration_since(*at) < KEPT => Arc::clone(list),
            Some(_) | None => {
                let list: Arc<str> = write().into();
                *kept = Some((now, Arc::clone(&list)));
                list
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_list_is_built_at_most_once_a_second() {
        let (cache, start) = (ListCache::default(), Instant::now());
        let get = |after, text: &str| cache.get(start + after, || text.to_owned());
        assert_eq!(&*get(Duration::ZERO, "one"), "one");
        assert_eq!(&*get(KEPT - Duration::from_millis(1), "two"), "one");
        assert_eq!(&*get(KEPT, "three"), "three");
    }
}
