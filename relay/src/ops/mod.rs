//! Operation of a relay: metrics, logs, the service manager, and two separate interfaces. The admin address serves
//! health and metrics. The admin socket accepts commands that list, end and ban clients.

mod log;
mod metrics;

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, RawQuery, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

#[cfg(test)]
pub(crate) use self::log::written::Lines;
pub(crate) use self::log::{AddressLog, RefusalLog, TOTAL_LOG_INTERVAL, TotalLog, report_missing};
pub use self::log::{LogError, start_logging};
pub(crate) use self::metrics::{Gauges, TargetHealth, render as render_metrics};
use crate::clients::{BanList, ClientList, EndedFlows};
use crate::syntax;

/// The information that the admin address serves.
pub(crate) trait Health: Send + Sync + 'static {
    /// Returns the reason why the relay accepts no new clients, or `None` if it accepts them.
    fn unready(&self) -> Option<&'static str>;

    /// Returns all metrics in the Prometheus text format.
    fn metrics(&self) -> String;

    /// Reloads the configuration, and returns a line about the changes or the error. Returns `None` if this relay does
    /// not support reloads.
    fn reload(&self) -> Option<Reloading<'_>>;
}

/// A reload in progress.
pub(crate) type Reloading<'a> = Pin<Box<dyn Future<Output = Result<String, String>> + Send + 'a>>;

/// Builds the routes of the admin address.
pub(crate) fn admin_router(health: Arc<dyn Health>, listen: SocketAddr) -> Router {
    let router = Router::new()
        // This route responds as long as the process answers requests.
        .route("/livez", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics));
    if !listen.ip().to_canonical().is_loopback() {
        return router.with_state(health);
    }
    // The admin address has no password, so only programs on this machine may request a reload.
    router.route("/reload", post(reload)).layer(from_fn(only_local_names)).with_state(health)
}

async fn ready(State(health): State<Arc<dyn Health>>) -> Response {
    match health.unready() {
        None => "ok\n".into_response(),
        Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")).into_response(),
    }
}

async fn metrics(State(health): State<Arc<dyn Health>>) -> Response {
    let text = health.metrics();
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

async fn reload(State(health): State<Arc<dyn Health>>, headers: HeaderMap) -> Response {
    // Browsers send this header with every POST request, and pages must not use this interface.
    if headers.contains_key(header::ORIGIN) {
        return (StatusCode::FORBIDDEN, "not for pages\n").into_response();
    }
    let Some(reloading) = health.reload() else {
        return (StatusCode::NOT_FOUND, "this relay has nothing to reload\n").into_response();
    };
    match reloading.await {
        Ok(changes) => format!("{changes}\n").into_response(),
        Err(error) => (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
    }
}

/// Rejects requests with other host names. Otherwise a page in a browser on this machine could read the responses, by
/// means of a name that resolves to the loopback address.
async fn only_local_names(request: Request, next: Next) -> Response {
    if is_local_name(request.headers()) {
        return next.run(request).await;
    }
    (StatusCode::FORBIDDEN, "forbidden Host header: use the IP address, or localhost\n").into_response()
}

fn is_local_name(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST).and_then(|host| host.to_str().ok()) else { return true };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        Some(_) | None => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || name.parse::<std::net::IpAddr>().is_ok()
}

/// The maximum length of a command in bytes.
const ORDER_MAX: usize = 1_024;

/// The commands of an operator.
pub(crate) trait Control: Send + Sync + 'static {
    /// Returns the clients with a flow: those in a network, or all.
    fn clients(&self, network: Option<IpNet>) -> ClientList;

    /// Ends a flow. Returns the number of ended flows, 0 or 1.
    fn kick_flow(&self, flow: u64) -> usize;

    /// Ends the flows of a network. Returns the number of ended flows.
    fn kick_network(&self, network: IpNet) -> usize;

    /// Bans a network for `duration`, or until the relay stops. Returns the number of flows that the ban has ended.
    fn ban(&self, network: IpNet, duration: Option<Duration>) -> Result<usize, String>;

    /// Lifts a ban. Returns false if there is none for exactly this network.
    fn unban(&self, network: IpNet) -> bool;

    /// Returns the bans imposed while the relay runs.
    fn bans(&self) -> BanList;
}

/// Selects the flows to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum KickOrder {
    Flow(u64),
    #[serde(deserialize_with = "network")]
    Network(IpNet),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct BanOrder {
    #[serde(deserialize_with = "network")]
    network: IpNet,
    /// The duration of the ban; absent for a ban until the relay stops.
    #[serde(default)]
    seconds: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct UnbanOrder {
    #[serde(deserialize_with = "network")]
    network: IpNet,
}

/// Builds the routes of the admin socket.
pub(crate) fn control_router(control: Arc<dyn Control>) -> Router {
    Router::new()
        .route("/clients", get(clients))
        .route("/bans", get(bans))
        .route("/kick", post(kick))
        .route("/ban", post(ban))
        .route("/unban", post(unban))
        .layer(DefaultBodyLimit::max(ORDER_MAX))
        .with_state(control)
}

async fn clients(State(control): State<Arc<dyn Control>>, RawQuery(query): RawQuery) -> Response {
    let query = query.unwrap_or_default();
    let network = form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == "network");
    match network.map(|(_, network)| syntax::network(&network)).transpose() {
        Ok(network) => json(&control.clients(network)),
        Err(error) => refused(error),
    }
}

async fn bans(State(control): State<Arc<dyn Control>>) -> Response {
    json(&control.bans())
}

async fn kick(State(control): State<Arc<dyn Control>>, body: Bytes) -> Response {
    let ended = match order(&body) {
        Ok(KickOrder::Flow(flow)) => control.kick_flow(flow),
        Ok(KickOrder::Network(network)) => control.kick_network(network),
        Err(error) => return refused(error),
    };
    if ended == 0 {
        return refused("there is no such flow".to_owned());
    }
    json(&EndedFlows::new(ended))
}

async fn ban(State(control): State<Arc<dyn Control>>, body: Bytes) -> Response {
    let banned = order(&body)
        .and_then(|BanOrder { network, seconds }| control.ban(network, seconds.map(Duration::from_secs)));
    banned.map_or_else(refused, |ended| json(&EndedFlows::new(ended)))
}

async fn unban(State(control): State<Arc<dyn Control>>, body: Bytes) -> Response {
    match order(&body) {
        Ok(UnbanOrder { network }) if control.unban(network) => StatusCode::NO_CONTENT.into_response(),
        Ok(_) => refused(
            "there is no such ban: 'rakwire-relay bans' lists those that can be lifted; others are in the file of \
             admission.bans"
                .to_owned(),
        ),
        Err(error) => refused(error),
    }
}

fn json(answer: &impl Serialize) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    match serde_json::to_string(answer) {
        Ok(text) => (kind, format!("{text}\n")).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn order<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| format!("the command cannot be parsed ({error})"))
}

fn refused(error: String) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    (StatusCode::BAD_REQUEST, kind, format!("{error}\n")).into_response()
}

fn network<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<IpNet, D::Error> {
    syntax::network(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

/// The service manager: inherited sockets, and notifications. All functions have no effect without a service manager.
pub mod systemd {
    use std::io;
    use std::net::TcpListener;

    use listenfd::ListenFd;
    use tokio::time::interval;
    use tracing::debug;

    /// Returns the listening socket opened by the service manager, if any (`LISTEN_FDS`).
    ///
    /// # Errors
    ///
    /// If the inherited descriptor is not a TCP socket.
    pub fn inherited_listener() -> io::Result<Option<TcpListener>> {
        ListenFd::from_env().take_tcp_listener(0)
    }

    /// A notification to the service manager.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Event {
        /// The relay accepts clients.
        Ready,
        /// The configuration is being reloaded; [`Event::Ready`] follows.
        Reloading,
        /// The relay is stopping.
        Stopping,
    }

    /// Notifies the service manager (`NOTIFY_SOCKET`).
    pub fn notify(event: Event) {
        if let Err(error) = send(event) {
            debug!(%error, ?event, "the service manager cannot be notified");
        }
    }

    #[cfg(unix)]
    fn send(event: Event) -> io::Result<()> {
        use sd_notify::NotifyState;

        match event {
            Event::Ready => sd_notify::notify(&[NotifyState::Ready]),
            Event::Reloading => {
                sd_notify::notify(&[NotifyState::Reloading, NotifyState::monotonic_usec_now()?])
            }
            Event::Stopping => sd_notify::notify(&[NotifyState::Stopping]),
        }
    }

    #[cfg(not(unix))]
    fn send(_: Event) -> io::Result<()> {
        Ok(())
    }

    /// Notifies the service manager periodically that the relay is alive, if it requests that (`WATCHDOG_USEC`).
    #[cfg(unix)]
    pub(crate) async fn feed_watchdog() {
        let Some(limit) = sd_notify::watchdog_enabled() else { return std::future::pending().await };
        let mut ticks = interval(limit / 2);
        loop {
            ticks.tick().await;
            if let Err(error) = sd_notify::notify(&[sd_notify::NotifyState::Watchdog]) {
                debug!(%error, "the service manager cannot be notified");
            }
        }
    }

    #[cfg(not(unix))]
    pub(crate) async fn feed_watchdog() {
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn only_addresses_and_localhost_name_a_loopback_address() {
        let local = |host: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static(host));
            is_local_name(&headers)
        };
        for host in ["localhost", "LocalHost:9100", "127.0.0.1:9100", "127.0.0.1", "[::1]:9100", "[::1]"] {
            assert!(local(host), "{host}");
        }
        for host in
            ["", "relay.example.org", "relay.example.org:9100", "localhost.example.org", "127.0.0.1.nip.io"]
        {
            assert!(!local(host), "{host}");
        }
        assert!(is_local_name(&HeaderMap::new()), "HTTP/1.0 has no Host, and no browser uses it");
    }
}
