//! Binds and runs the relay.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener};
#[cfg(unix)]
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use ipnet::IpNet;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

use crate::addresses::ListenAddress;
use crate::admission::{Admission, DiscoveredNames, Targets};
use crate::config::{Config, ConfigError, LoadError, Loaded, absolute};
use crate::counters::Counters;
use crate::discovery::Watcher;
use crate::flow::DropReason;
use crate::front::{FrontCounters, FrontDropReason};
#[cfg(unix)]
use crate::io::{AdminSocket, serve_admin_socket};
use crate::io::{
    AnnouncedWebRtc, App, DataChannels, FrontAdmission, PROBES_INTERVAL, Udp, UdpFront, WebTransport,
    bind_udp, router, run_data_channels, serve, serve_admin,
};
#[cfg(unix)]
use crate::ops::control_router;
use crate::ops::{TOTAL_LOG_INTERVAL, TotalLog, admin_router, report_missing, systemd};
use crate::reload::{Prepared, Reloadable, Reloader, SetCookieKeys, prepare};
use crate::tls::Tls;
use crate::webrtc::{Fingerprint, WebRtcCounters};

/// Time limit for unresponsive connections at the end of a shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// The interval at which counters are logged.
const SUMMARY_INTERVAL: Duration = Duration::from_secs(60);

/// A relay that is listening.
#[derive(Debug)]
pub struct Relay {
    listeners: Vec<TcpListener>,
    /// The addresses of the listeners.
    local_addrs: Vec<SocketAddr>,
    /// The first of these addresses; the UDP transports use the same port.
    local_addr: SocketAddr,
    router: Router,
    admin: Option<Admin>,
    #[cfg(unix)]
    admin_socket: Option<AdminSocket>,
    front: Option<UdpFront<FrontAdmission>>,
    finding: Option<Finding>,
    webtransport: Option<WebTransport>,
    data_channels: Option<DataChannels>,
    app: Arc<App>,
    config: Arc<Mutex<Config>>,
}

/// Discovery of announced servers. A reload does not change it.
#[derive(Debug)]
struct Finding {
    watcher: Watcher,
    networks: Vec<IpNet>,
}

/// The bound admin address.
#[derive(Debug)]
struct Admin {
    listener: TcpListener,
    local_addr: SocketAddr,
    router: Router,
}

/// Stops a relay immediately, without waiting for clients. Clones stop the same relay.
#[derive(Debug, Clone)]
pub struct Stopper(Arc<App>);

impl Stopper {
    /// Closes all sessions now.
    pub fn stop(&self) {
        self.0.stop.cancel();
    }
}

impl Relay {
    /// Checks a configuration as a start or a reload does, without listening. Reads all files that it names, including
    /// those of the certificate, and resolves the targets.
    ///
    /// # Errors
    ///
    /// If the configuration is invalid. The error says what to change.
    pub async fn check(config: &Config) -> Result<(), ConfigError> {
        prepare(config, &Targets::default(), None).await.map(drop)
    }

    /// Checks the configuration, resolves the targets, reads the certificate and starts to listen.
    ///
    /// # Errors
    ///
    /// If the configuration is invalid. The error says what to change.
    pub async fn bind(config: Config) -> Result<Self, ConfigError> {
        Self::bind_on(config, None).await
    }

    /// Binds like [`Relay::bind`], but listens on an existing socket instead of [`Config::listen`], such as one from a
    /// service manager.
    ///
    /// The address of that socket determines which machines can reach the relay. If other machines can, the
    /// configuration must contain the allowed page origins.
    ///
    /// # Errors
    ///
    /// If the configuration is invalid. The error says what to change.
    pub async fn bind_on(config: Config, listener: Option<StdListener>) -> Result<Self, ConfigError> {
        // The written configuration is kept, so that a reload can report the differences.
        let written = config.clone();
        let mut config = config;
        let inherited = match listener {
            Some(listener) => {
                let inherited = inherit(listener)
                    .map_err(|source| cannot_listen((Ipv4Addr::UNSPECIFIED, 0).into(), source))?;
                config.listen = inherited.1.into();
                Some(inherited)
            }
            None => None,
        };
        let Prepared { targets, listen: addresses } = prepare(&config, &Targets::default(), None).await?;
        let names = own_names(&config.listen, &addresses);
        // The first address stands for all. `prepare` has checked the configuration with each of them, so that all are
        // loopback addresses where one must be.
        if let Some(&address) = addresses.first() {
            config.listen = address.into();
        }
        let admission = Admission::new(&config, targets)?;
        let tls = Tls::new(&config.tls, &names).map_err(|error| error.of(&config.tls))?;
        let (listeners, local_addrs) = match inherited {
            Some((listener, address)) => (vec![listener], vec![address]),
            None => listen_on_each(&addresses).await?,
        };
        let local_addr = local_addrs.first().copied().unwrap_or_else(|| (Ipv4Addr::UNSPECIFIED, 0).into());
        let app = Arc::new(App::new(admission, &config, tls));
        let router = router(Arc::clone(&app), config.serve.as_deref());
        if let Some(directory) = &config.serve {
            info!(directory = %absolute(directory).display(), "serving files");
        }
        let admin = match config.admin.listen {
            Some(address) => Some(Admin::bind(address, &app).await?),
            None => None,
        };
        #[cfg(unix)]
        let admin_socket = config.admin.socket.as_deref().map(bind_admin_socket).transpose()?;
        let Udp { front, data_channels, webtransport } = bind_udp(&config, local_addr, &names, &app)?;
        let finding = config.discovery_store()?.map(|store| Finding {
            watcher: Watcher::new(store, config.discovery.interval),
            networks: config.discovery.networks.clone(),
        });
        let config = Arc::new(Mutex::new(written));
        Ok(Self {
            listeners,
            local_addrs,
            local_addr,
            router,
            admin,
            #[cfg(unix)]
            admin_socket,
            front,
            webtransport,
            data_channels,
            finding,
            app,
            config,
        })
    }

    /// Returns the addresses that the relay listens on. There are several if it listens on a name.
    #[must_use]
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.local_addrs
    }

    /// Returns the first address that the relay listens on.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Returns the admin address, if configured.
    #[must_use]
    pub fn admin_addr(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(|admin| admin.local_addr)
    }

    /// Returns the address of the front for native UDP clients, if configured.
    #[must_use]
    pub fn udp_addr(&self) -> Option<SocketAddr> {
        self.front.as_ref().map(UdpFront::local_addr)
    }

    /// Returns the UDP address of WebTransport, if served.
    #[must_use]
    pub fn webtransport_addr(&self) -> Option<SocketAddr> {
        self.webtransport.as_ref().map(WebTransport::local_addr)
    }

    /// Returns the counters of the front; all zero without a front.
    #[must_use]
    pub fn front_counters(&self) -> Arc<FrontCounters> {
        Arc::clone(&self.app.front_counters)
    }

    /// Returns the address of the data channels and the certificate fingerprint that pages need, if served.
    #[must_use]
    pub fn webrtc(&self) -> Option<(SocketAddr, Fingerprint)> {
        self.app.webrtc.get().map(|AnnouncedWebRtc { local_addr, fingerprint }| (*local_addr, *fingerprint))
    }

    /// Returns the counters of the data channels; all zero without data channels.
    #[must_use]
    pub fn webrtc_counters(&self) -> Arc<WebRtcCounters> {
        Arc::clone(&self.app.webrtc_counters)
    }

    /// Returns true if clients connect over TLS.
    #[must_use]
    pub fn has_tls(&self) -> bool {
        self.app.tls.is_some()
    }

    /// Returns a handle that stops this relay immediately.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.app))
    }

    /// Returns a handle that reloads this relay with the configuration returned by `load`. From then on, `POST /reload`
    /// on a loopback admin address also reloads it, with the first handle created.
    pub fn reloader(&self, load: impl Fn() -> Result<Loaded, LoadError> + Send + Sync + 'static) -> Reloader {
        let reloader = Reloader::new(Reloadable {
            admission: Arc::clone(&self.app.admission),
            tls: self.app.tls.clone(),
            drain_timeout: Arc::clone(&self.app.drain_timeout),
            front: self.app.front.get().cloned(),
            set_cookie_keys: self
                .front
                .as_ref()
                .map(|front| Arc::new(front.set_cookie_keys()) as SetCookieKeys),
            local_addr: self.most_open_addr(),
            local_addrs: self.local_addrs.clone(),
            current: Arc::clone(&self.config),
            load: Arc::new(load),
        });
        let _ = self.app.reloader.set(reloader.clone());
        reloader
    }

    /// Returns a listening address that other machines can reach, or else any listening address.
    fn most_open_addr(&self) -> SocketAddr {
        let open = self.local_addrs.iter().find(|address| !address.ip().to_canonical().is_loopback());
        open.copied().unwrap_or(self.local_addr)
    }

    /// Returns the counters, which remain valid after the relay has stopped.
    #[must_use]
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.app.counters)
    }

    /// Serves until `shutdown` completes.
    ///
    /// The relay then stops accepting clients. Connected clients may continue for [`Config::drain_timeout`], after
    /// which each session is closed with code 1001. Unresponsive clients delay the end by a few seconds at most.
    /// [`Relay::stopper`] ends all waiting. Dropping the future also closes the sessions.
    ///
    /// # Errors
    ///
    /// Never at present: failed accept calls are retried.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
        let Self {
            listeners,
            local_addrs,
            local_addr: _,
            router,
            admin,
            #[cfg(unix)]
            admin_socket,
            front,
            webtransport,
            data_channels,
            finding,
            app,
            config,
        } = self;
        let stop = app.stop.clone();
        let _stop_on_drop = app.stop.clone().drop_guard();
        // The tasks are aborted when this is dropped.
        let mut beside = JoinSet::new();
        start_beside(&mut beside, &app, admin);
        start_finding(&mut beside, &app, finding);
        #[cfg(unix)]
        start_admin_socket(&mut beside, &app, admin_socket);
        if let Some(front) = front {
            info!(udp = %front.local_addr(), "listening for native UDP clients");
            beside.spawn(run_front(front, Arc::clone(&app)));
        }
        if let Some(channels) = data_channels {
            let AnnouncedWebRtc { local_addr, fingerprint } = channels.announced();
            info!(udp = %local_addr, %fingerprint, "listening for data channels");
            // Otherwise WebTransport receives for these parts.
            if webtransport.is_none() {
                beside.spawn(run_data_channels(channels, Arc::clone(&app)));
            }
        }
        if let Some(webtransport) = webtransport {
            info!(udp = %webtransport.local_addr(), "listening for WebTransport");
            beside.spawn(webtransport.serve(Arc::clone(&app)));
        }
        if let Ok(Some(note)) = config.lock().await.note() {
            info!("{note}");
        }
        local_addrs.iter().for_each(|local_addr| info!(%local_addr, "listening"));
        systemd::notify(systemd::Event::Ready);
        let serving = listeners.into_iter().map(|one| serve(Arc::clone(&app), one, router.clone()));
        let serving = futures_util::future::join_all(serving);
        tokio::select! {
            ((), _) = async { tokio::join!(drain(&app, shutdown), serving) } => {}
            () = shutdown_timeout(&stop) => {}
            () = watch(&mut beside, &app) => {}
        }
        app.sessions.close();
        if tokio::time::timeout(SHUTDOWN_TIMEOUT, app.sessions.wait()).await.is_err() {
            warn!(left = app.sessions.len(), "sessions were not closed within the shutdown timeout");
        }
        info!("stopped: {}", app.counters.snapshot());
        Ok(())
    }
}

impl Admin {
    async fn bind(address: SocketAddr, app: &Arc<App>) -> Result<Self, ConfigError> {
        let failed = |source| ConfigError::AdminListen { address, source };
        let (listener, local_addr) = listen(address).await.map_err(failed)?;
        if !address.ip().to_canonical().is_loopback() {
            warn!(admin = %local_addr, "other machines can reach the admin address, which requires no password: use a loopback address or a firewall");
        }
        let router = admin_router(Arc::clone(app) as _, address);
        Ok(Self { listener, local_addr, router })
    }
}

#[cfg(unix)]
fn bind_admin_socket(path: &Path) -> Result<AdminSocket, ConfigError> {
    AdminSocket::bind(path).map_err(|error| ConfigError::File {
        key: "admin.socket",
        path: path.to_owned(),
        line: None,
        reason: format!(
            "cannot create the socket ({error}): use another path, in a directory that the relay's user owns"
        ),
    })
}

async fn listen(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await?;
    let local_addr = listener.local_addr()?;
    Ok((listener, local_addr))
}

/// Listens on each of the addresses. If the port is 0, all use the port that the first one gets. Addresses of a name
/// that this machine does not have are skipped, unless it has none of them.
async fn listen_on_each(
    addresses: &[SocketAddr],
) -> Result<(Vec<TcpListener>, Vec<SocketAddr>), ConfigError> {
    let (mut listeners, mut local_addrs) = (Vec::new(), Vec::<SocketAddr>::new());
    let mut left_out = Vec::new();
    for &(mut address) in addresses {
        if address.port() == 0
            && let Some(first) = local_addrs.first()
        {
            address.set_port(first.port());
        }
        match listen(address).await {
            Ok((listener, local_addr)) => {
                listeners.push(listener);
                local_addrs.push(local_addr);
            }
            Err(source) if is_for_the_operator(source.kind()) => return Err(cannot_listen(address, source)),
            Err(source) => left_out.push((address, source)),
        }
    }
    for (address, error) in left_out {
        if listeners.is_empty() {
            return Err(cannot_listen(address, error));
        }
        warn!(%address, %error, "not listening on an address of the name, because this machine does not have it");
    }
    Ok((listeners, local_addrs))
}

/// Returns true for errors about an existing address that this program cannot use.
const fn is_for_the_operator(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied)
}

fn inherit(listener: StdListener) -> io::Result<(TcpListener, SocketAddr)> {
    listener.set_nonblocking(true)?;
    let local_addr = listener.local_addr()?;
    Ok((TcpListener::from_std(listener)?, local_addr))
}

const fn cannot_listen(address: SocketAddr, source: io::Error) -> ConfigError {
    ConfigError::Listen { address, source }
}

/// Returns the names for a development certificate.
fn own_names(listen: &ListenAddress, addresses: &[SocketAddr]) -> Vec<String> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    if let ListenAddress::Name(name) = listen
        && !names.iter().any(|known| known == name.host())
    {
        names.push(name.host().to_owned());
    }
    for ip in addresses.iter().map(|address| address.ip().to_canonical()) {
        if !ip.is_unspecified() && !ip.is_loopback() {
            names.push(ip.to_string());
        }
    }
    names
}

/// Starts the background tasks of the relay.
fn start_beside(beside: &mut JoinSet<()>, app: &Arc<App>, admin: Option<Admin>) {
    beside.spawn(log_summaries(Arc::clone(&app.counters)));
    beside.spawn(resolve_again(Arc::clone(&app.admission)));
    beside.spawn(report_missing());
    let refusals = Arc::clone(&app.refusals);
    beside.spawn(async move { refusals.report().await });
    beside.spawn(log_total_rate(Arc::clone(app)));
    beside.spawn(systemd::feed_watchdog());
    if let Some(tls) = app.tls.clone() {
        beside.spawn(async move { tls.renew().await });
    }
    if let Some(Admin { listener, local_addr, router }) = admin {
        info!(admin = %local_addr, "listening for monitoring");
        beside.spawn(serve_admin(listener, router));
    }
}

/// Starts to accept commands on the admin socket.
#[cfg(unix)]
fn start_admin_socket(beside: &mut JoinSet<()>, app: &Arc<App>, socket: Option<AdminSocket>) {
    if let Some(socket) = socket {
        info!(socket = %socket.path().display(), "listening for commands of the operator");
        beside.spawn(serve_admin_socket(socket, control_router(Arc::clone(app) as _)));
    }
}

/// Starts discovering and probing targets.
fn start_finding(beside: &mut JoinSet<()>, app: &Arc<App>, finding: Option<Finding>) {
    if let Some(Finding { mut watcher, networks }) = finding {
        let (admission, counters) = (Arc::clone(&app.admission), Arc::clone(&app.counters));
        beside.spawn(async move {
            let mut names = DiscoveredNames::default();
            loop {
                let Some((found, changes)) = watcher.next().await else {
                    counters.store_failures.add(1);
                    continue;
                };
                let (targets, forbidden) = names.resolve(found, &networks).await;
                counters.servers_arrived.add(changes.arrived as u64);
                counters.servers_departed.add(changes.departed as u64);
                counters.announcements_refused.add((changes.unusable + forbidden) as u64);
                admission.set_discovered(targets);
            }
        });
    }
    let app = Arc::clone(app);
    beside.spawn(async move {
        loop {
            let offered = app.admission.offered();
            app.probes.follow(&offered, app.front.get(), &app.counters);
            let moved = app.admission.fail_over(|name, address| app.probes.is_up(name, address));
            app.probes.log_moves(Instant::now(), &moved);
            app.counters.retain(|name| offered.find(name.as_str()).is_some());
            tokio::time::sleep(PROBES_INTERVAL).await;
        }
    });
}

/// Runs the front. If it fails while the relay runs, the relay becomes not ready.
async fn run_front(front: UdpFront<FrontAdmission>, app: Arc<App>) {
    if let Err(error) = front.run(app.stop.clone()).await {
        error!(%error, "the UDP socket of the front failed");
        app.fail("the UDP front has failed");
    }
}

/// Watches the background tasks. If a task panics, the relay becomes not ready.
async fn watch(beside: &mut JoinSet<()>, app: &App) {
    while let Some(ended) = beside.join_next().await {
        if let Err(error) = ended {
            error!(%error, "a background task failed");
            app.fail("a background task failed");
        }
    }
    std::future::pending().await
}

/// Stops the relay after `shutdown`, once its clients have left or the drain time is over.
async fn drain(app: &App, shutdown: impl Future<Output = ()>) {
    tokio::select! {
        () = shutdown => {}
        () = app.stop.cancelled() => {}
    }
    let time = *app.drain_timeout.borrow();
    info!(
        clients = app.sessions.len(),
        drain_timeout = ?time,
        "shutting down: new clients are refused, and connected clients may stay for drain_timeout"
    );
    systemd::notify(systemd::Event::Stopping);
    app.begin_drain(Instant::now().checked_add(time).filter(|_| !time.is_zero()));
    app.sessions.close();
    tokio::select! {
        () = app.sessions.wait() => {}
        () = tokio::time::sleep(time) => {}
        () = app.stop.cancelled() => {}
    }
    app.stop.cancel();
}

/// Completes some time after `stop`, so that idle HTTP connections cannot keep the relay from ending.
async fn shutdown_timeout(stop: &CancellationToken) {
    stop.cancelled().await;
    tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
}

/// Resolves the names of targets periodically.
async fn resolve_again(admission: Arc<Admission>) {
    loop {
        tokio::time::sleep(admission.resolve_interval()).await;
        admission.resolve_again().await;
    }
}

/// Logs datagrams dropped by the total rate, at most once a minute.
async fn log_total_rate(app: Arc<App>) {
    let mut log = TotalLog::default();
    loop {
        tokio::time::sleep(TOTAL_LOG_INTERVAL).await;
        if !app.admission.total().is_limited() {
            continue;
        }
        let sessions = app.counters.snapshot();
        let reasons = [DropReason::TotalToServer, DropReason::TotalToClient];
        let of_sessions: u64 = reasons.iter().map(|reason| sessions.drops(*reason)).sum();
        let dropped = of_sessions + app.front_counters.snapshot().drops(FrontDropReason::TotalRate);
        if let Some(datagrams) = log.poll(Instant::now(), dropped) {
            let limit = app.admission.limits().total_bytes_per_second;
            info!(
                datagrams,
                limit, "datagrams dropped: all clients together exceed limits.total_bytes_per_second"
            );
        }
    }
}

async fn log_summaries(counters: Arc<Counters>) {
    loop {
        tokio::time::sleep(SUMMARY_INTERVAL).await;
        debug!("{}", counters.snapshot());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addresses::TargetName;
    use crate::admission::ResolvedTarget;
    use crate::config::Target;
    use crate::discovery::Announcement;
    use crate::ops::{Health as _, Lines};

    /// The name of the target is `localhost`. Its last known address is another one.
    #[tokio::test]
    async fn target_names_are_resolved_periodically() {
        let mut config = Config::new("127.0.0.1:0".parse().unwrap());
        config.resolve_interval = Duration::from_millis(1);
        let old: SocketAddr = "127.0.0.9:1".parse().unwrap();
        let mut targets = Targets::default();
        let (name, settings) = ("game".parse().unwrap(), Target::new("localhost:1".parse().unwrap()));
        targets.insert(ResolvedTarget::new(name, settings, old));
        let admission = Admission::new(&config, targets.clone()).unwrap();
        let app = Arc::new(App::new(admission, &config, None));
        let mut beside = JoinSet::new();
        start_beside(&mut beside, &app, None);
        for _ in 0..3 {
            app.admission.reload(&config, targets.clone()).unwrap();
            assert_eq!(app.admission.targets().find("game").unwrap().address, old);
            while app.admission.targets().find("game").unwrap().address == old {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }

    #[tokio::test]
    async fn a_panicking_task_makes_the_relay_unready() {
        let config = Config::new("127.0.0.1:0".parse().unwrap());
        let admission = Admission::new(&config, Targets::default()).unwrap();
        let app = App::new(admission, &config, None);
        let mut beside = JoinSet::new();
        beside.spawn(async {});
        assert!(tokio::time::timeout(Duration::from_millis(10), watch(&mut beside, &app)).await.is_err());
        assert_eq!(app.unready(), None);
        beside.spawn(async { panic!("a task fails") });
        let unready = async {
            while app.unready().is_none() {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            () = unready => {}
            () = watch(&mut beside, &app) => {}
        }
    }

    #[tokio::test]
    async fn an_unusable_announced_address_is_logged_once_with_its_reason() {
        // A label of 64 bytes is too long for a query.
        let unresolvable = format!("{}.invalid:1", "a".repeat(64));
        for (address, reason) in [
            ("10.0.0.7:1", "the address is neither public nor in discovery.networks"),
            (&*unresolvable, "the name has no address"),
        ] {
            let name: TargetName = "arena".parse().unwrap();
            let value = format!(r#"{{"address":"{address}","kind":"raknet"}}"#);
            let server = Announcement::parse(name.clone(), &value).unwrap();
            let (mut names, lines) = (DiscoveredNames::default(), Lines::take());
            for newly in [1, 0] {
                let (targets, counted) = names.resolve([(name.clone(), server.clone())].into(), &[]).await;
                assert_eq!((targets.find("arena"), counted), (None, newly), "{address}");
            }
            let lines = lines.with("an announced server is not offered, because its address cannot be used");
            assert_eq!(lines.len(), 1, "{lines:?}");
            for told in [
                "key=\"rakwire:server:arena\"".to_owned(),
                format!("address=\"{address}\""),
                format!("reason=\"{reason}\""),
            ] {
                assert!(lines[0].contains(&told), "{told}: {}", lines[0]);
            }
        }
    }
}
