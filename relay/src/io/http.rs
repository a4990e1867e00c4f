//! The HTTP routes: WebSocket requests, `GET /servers.json`, `GET /transports` and the static files of `--serve`.
//!
//! Only regular files inside the directory are served. Paths with a component that begins with a dot, or that has a
//! special meaning on Windows, are refused.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::io;
use std::net::SocketAddr;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{RawQuery, State, WebSocketUpgrade};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    HeaderName, HeaderValue, ORIGIN, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::{Next, from_fn, from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rakwire_udp::is_portable_path;
use serde::Serialize;
use tower_http::services::ServeDir;

use super::app::{Announced, AnnouncedWebRtc, App, PATH};
use super::client::{self, FOREIGN_ORIGIN, Opening, Resume};
use super::transport::{Connected, Connection, Transport, WebSocketTransport, configure};
use crate::admission::{Forbidden, Refusal, Request, parameter};
use crate::close::{BANNED, CloseKind, CloseReason};
use crate::flow::FLOW_PROTOCOL;
use crate::time::Now;

/// Builds the routes of the relay.
pub(crate) fn router(app: Arc<App>, serve: Option<&Path>) -> Router {
    let plain = Router::new().route("/healthz", get(async || "ok"));
    let plain = match serve {
        Some(directory) => serve_files(plain, directory),
        // An explicit fallback, so that it has the same limits as the other routes.
        None => plain.fallback(async || StatusCode::NOT_FOUND),
    };
    let router = Router::new()
        .route("/ws", get(open).fallback(refuse_method))
        .route("/servers.json", get(servers).fallback(refuse_method))
        .route("/transports", get(transports).fallback(refuse_method))
        .with_state(Arc::clone(&app));
    // The handlers of these routes refuse clients: `/ws` with a close code, the others with an HTTP status.
    plain.layer(from_fn_with_state(app, limit)).merge(router)
}

/// Rejects requests from clients that exceed their rate or are banned.
///
/// Bans are rechecked per request: one may be added after the client connected, or apply to a client behind a proxy.
async fn limit(
    State(app): State<Arc<App>>,
    Extension(connected): Extension<Connected>,
    request: axum::extract::Request,
    next: Next,
) -> Response {
    match refusal(&app, &connected, request.headers()) {
        None => next.run(request).await,
        Some(refusal) => refusal,
    }
}

/// Returns the response to a refused request, for routes without their own form of refusal.
fn refusal(app: &App, connected: &Connected, headers: &HeaderMap) -> Option<Response> {
    let client = app.admission.client_of(connected.peer(), headers);
    let refused = admit_client(app, client, true).err()?;
    Some((status_of(&refused), refused.text()).into_response())
}

async fn refuse_method(
    State(app): State<Arc<App>>,
    Extension(connected): Extension<Connected>,
    headers: HeaderMap,
) -> Response {
    let allowed = [(ALLOW, HeaderValue::from_static("GET, HEAD"))];
    refusal(&app, &connected, &headers)
        .unwrap_or_else(|| (StatusCode::METHOD_NOT_ALLOWED, allowed).into_response())
}

/// Builds the routes for banned addresses: a WebSocket that closes with the reason, and the same reason as the response
/// to the request that pages send first.
pub(crate) fn router_for_banned(app: Arc<App>) -> Router {
    let refuse = async |State(app): State<Arc<App>>, Extension(connected): Extension<Connected>| {
        refuse_banned(&app, connected.peer());
        (StatusCode::FORBIDDEN, BANNED)
    };
    // The connection closes after one response. The limits of its address do not apply to it, because it holds no share
    // of them.
    let close = async |mut response: Response| {
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    };
    Router::new()
        .route("/ws", get(open).fallback(refuse))
        .route("/servers.json", get(servers).fallback(refuse))
        .route("/transports", get(transports).fallback(refuse))
        .fallback(refuse)
        .layer(map_response(close))
        .with_state(app)
}

/// Returns true if a proxy has forwarded the request. Pages cannot set these headers.
fn is_forwarded(headers: &HeaderMap) -> bool {
    ["x-forwarded-for", "forwarded"].into_iter().any(|name| headers.contains_key(name))
}

/// The log line about a request that lacks the WebSocket upgrade.
const NO_WEBSOCKET: &str =
    "not a WebSocket request; any proxy in front of the relay must forward Upgrade and Connection";

/// Handles a client's WebSocket request.
///
/// A refused client gets a close code, because a page cannot read an HTTP status.
async fn open(
    State(app): State<Arc<App>>,
    Extension(connected): Extension<Connected>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(rejection) => {
            if let Some(refusal) = refusal(&app, &connected, &headers) {
                return refusal;
            }
            app.counters.handshakes_failed.increment();
            let client = app.admission.client_of(connected.peer(), &headers);
            app.log_refusal(client, REQUEST, NO_WEBSOCKET, NO_WEBSOCKET);
            return rejection.into_response();
        }
    };
    let query = query.unwrap_or_default();
    let client = app.admission.client_of(connected.peer(), &headers);
    let is_through_proxy = app.admission.is_trusted_proxy(connected.peer().ip());
    if !is_through_proxy && !connected.has_proxy_header() && is_forwarded(&headers) {
        app.log_untrusted(connected.peer());
    }
    let resume = Resume::read(parameter(&query, "resume").as_deref());
    let request = Request::from_http(client, &headers, &query);
    let is_returning = app.admits_resumption(resume.secret(), request.target.as_deref());
    let request = request.returning(is_returning);
    let permission = client::permission(&app, &request);
    let upgrade = configure(upgrade, &app.admission.limits()).protocols([FLOW_PROTOCOL]);
    connected.set_websocket();
    let opening = Opening {
        client,
        permission,
        has_control: upgrade.selected_protocol().is_some(),
        resume,
        is_deferred: request.is_deferred,
        is_counted: request.is_counted(),
        closes_on_unreachable: request.closes_on_unreachable,
    };
    // The token is taken before the upgrade, so that a concurrent shutdown waits for the session.
    let tracked = app.sessions.token();
    upgrade.on_upgrade(async move |socket| {
        let transport = Transport::WebSocket(Box::new(WebSocketTransport::new(socket, is_through_proxy)));
        let connection = Box::new(Connection::new(client, transport, &app.counters, tracked, connected));
        // The session runs in its own task, because this task reserves space for the request and the upgrade, which a
        // session does not need.
        tokio::spawn(async move { client::serve(&app, connection, &opening).await });
    })
}

/// Serves the announced transports of the relay.
async fn transports(
    State(app): State<Arc<App>>,
    Extension(connected): Extension<Connected>,
    headers: HeaderMap,
) -> Response {
    let channels = app.webrtc.get().filter(|_| app.admission.admits_unknown_origins());
    let port = udp_port(&app, &connected);
    answer(&app, &connected, &headers, || list(app.webtransport.get(), channels, port))
}

/// Returns the UDP port to announce to the client.
fn udp_port(app: &App, connected: &Connected) -> UdpPort {
    let is_proxied = connected.has_proxy_header() || app.admission.is_trusted_proxy(connected.peer().ip());
    match app.public_udp_port {
        Some(port) => UdpPort::Public(port.get()),
        // A proxy forwards only TCP, so the UDP port by which pages reach the relay is unknown.
        None if is_proxied => UdpPort::Unknown,
        None => UdpPort::Own,
    }
}

/// Serves the list of servers.
async fn servers(
    State(app): State<Arc<App>>,
    Extension(connected): Extension<Connected>,
    headers: HeaderMap,
) -> Response {
    answer(&app, &connected, &headers, || {
        let body = app.server_list.get(Instant::now(), || {
            let list = app.probes.list(&app.admission.offered());
            // Strings and numbers always serialize.
            serde_json::to_string(&list).unwrap_or_default()
        });
        body.to_string()
    })
}

/// Responds with JSON if the client is not banned or over its rate limit, and its page may connect. A refused page can
/// read the reason: if it supports only WebTransport, it cannot discover the reason in another way.
fn answer(app: &App, connected: &Connected, headers: &HeaderMap, body: impl FnOnce() -> String) -> Response {
    let (status, body) = match admit(app, connected, headers) {
        Ok(()) => (StatusCode::OK, body()),
        Err(reason) => (status_of(&reason), refusal_text(&reason)),
    };
    let fixed = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store"), (VARY, "origin")];
    let mut response = (status, fixed, body).into_response();
    if let Some(origin) = headers.get(ORIGIN) {
        response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    }
    response
}

/// The transport name in logs of refused requests.
const REQUEST: &str = "HTTP";

/// The log line about a client that exceeds the request limit.
const TOO_MANY_REQUESTS: &str = "too many requests from one address or network";

/// Checks whether a request may be answered. The error is the close reason that a WebSocket would get. Requests without
/// an origin come from programs, or from pages that the relay serves.
fn admit(app: &App, connected: &Connected, headers: &HeaderMap) -> Result<(), CloseReason> {
    let client = app.admission.client_of(connected.peer(), headers);
    admit_client(app, client, false)?;
    if headers.contains_key(ORIGIN) && !app.admission.admits_origin(headers) {
        app.counters.origins_refused.increment();
        app.log_refusal(client, REQUEST, FOREIGN_ORIGIN, FOREIGN_ORIGIN);
        return Err(CloseReason::Forbidden(FOREIGN_ORIGIN));
    }
    Ok(())
}

/// Refuses a client that is banned or exceeds its rate.
fn admit_client(app: &App, client: SocketAddr, is_file: bool) -> Result<(), CloseReason> {
    app.admission.admit_request(Now::read(), client.ip(), is_file).map_err(|refusal| match refusal {
        Refusal::Forbidden(Forbidden::Banned | Forbidden::Origin) => {
            refuse_banned(app, client);
            CloseReason::Forbidden(BANNED)
        }
        Refusal::Close(reason) => {
            app.counters.requests_refused.increment();
            app.log_refusal(client, REQUEST, TOO_MANY_REQUESTS, TOO_MANY_REQUESTS);
            reason
        }
    })
}

/// Counts and logs the request of a banned client.
fn refuse_banned(app: &App, client: SocketAddr) {
    app.counters.bans_refused.increment();
    app.log_refusal(client, REQUEST, BANNED, BANNED);
}

fn status_of(reason: &CloseReason) -> StatusCode {
    if reason.kind() == CloseKind::Forbidden { StatusCode::FORBIDDEN } else { StatusCode::TOO_MANY_REQUESTS }
}

/// Formats the close code and the text of a WebSocket as JSON.
fn refusal_text(reason: &CloseReason) -> String {
    serde_json::json!({ "code": reason.kind().code(), "reason": reason.text() }).to_string()
}

#[derive(Serialize)]
struct List {
    websocket: WebSocketEntry,
    #[serde(skip_serializing_if = "Option::is_none")]
    webtransport: Option<WebTransportEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    webrtc: Option<WebRtcEntry>,
}

#[derive(Serialize)]
struct WebSocketEntry {
    path: &'static str,
}

#[derive(Serialize)]
struct WebTransportEntry {
    port: u16,
    path: &'static str,
    /// SHA-256 hashes of the certificate in base64.
    certificate_hashes: Vec<String>,
}

#[derive(Serialize)]
struct WebRtcEntry {
    port: u16,
    /// The certificate's fingerprint in the format of session descriptions.
    fingerprint: String,
}

/// The UDP port by which pages reach the relay.
#[derive(Debug, Clone, Copy)]
enum UdpPort {
    /// The port on which the relay listens.
    Own,
    /// The configured public port.
    Public(u16),
    /// The port is unknown to the relay.
    Unknown,
}

impl UdpPort {
    fn or(self, local_addr: &SocketAddr) -> Option<u16> {
        match self {
            Self::Own => Some(local_addr.port()),
            Self::Public(port) => Some(port),
            Self::Unknown => None,
        }
    }
}

/// Formats the list as JSON.
fn list(announced: Option<&Announced>, webrtc: Option<&AnnouncedWebRtc>, port: UdpPort) -> String {
    let list = List {
        websocket: WebSocketEntry { path: "/ws" },
        webtransport: announced.and_then(|Announced { local_addr, certificate }| {
            let certificate_hashes = certificate.hashes().iter().map(|hash| STANDARD.encode(hash)).collect();
            port.or(local_addr).map(|port| WebTransportEntry { port, path: PATH, certificate_hashes })
        }),
        webrtc: webrtc.and_then(|AnnouncedWebRtc { local_addr, fingerprint }| {
            let fingerprint = fingerprint.to_string();
            port.or(local_addr).map(|port| WebRtcEntry { port, fingerprint })
        }),
    };
    // Strings and numbers always serialize.
    serde_json::to_string(&list).unwrap_or_default()
}

/// Media types by file extension, where the file service's table has an unrelated or obsolete type.
const TYPES: [(&str, &str); 6] = [
    ("cjs", "text/javascript"),
    ("mjs", "text/javascript"),
    ("map", "application/json"),
    // TypeScript, not the video format.
    ("ts", "text/plain"),
    ("mts", "text/plain"),
    ("cts", "text/plain"),
];

/// Serves the files of a directory at all paths without another route.
fn serve_files(router: Router, directory: &Path) -> Router {
    let root: Arc<Path> = directory.into();
    let files = Router::new()
        .fallback_service(ServeDir::new(directory))
        .layer(from_fn(correct_type))
        .layer(from_fn_with_state(root, keep_inside))
        .layer(map_response(protect));
    router.fallback_service(files)
}

/// The headers of every file. Browsers do not guess its type, other sites can neither embed nor load it, and its page
/// loads no plugins.
const PROTECTION: [(HeaderName, HeaderValue); 3] = [
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("object-src 'none'; base-uri 'self'; frame-ancestors 'self'"),
    ),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
];

async fn protect(mut response: Response) -> Response {
    response.headers_mut().extend(PROTECTION);
    response
}

/// Answers 404 for paths outside the served files.
async fn keep_inside(State(root): State<Arc<Path>>, request: axum::extract::Request, next: Next) -> Response {
    let path = decoded(request.uri().path());
    let is_served = tokio::task::spawn_blocking(move || is_served(&root, path.as_deref()?));
    if is_served.await.ok().flatten() == Some(true) {
        next.run(request).await
    } else {
        StatusCode::NOT_FOUND.into_response()
    }
}

/// Returns true if the path leads to a file that may be served, or to nothing; `None` if the file system reports an
/// error.
fn is_served(root: &Path, path: &str) -> Option<bool> {
    // The directory may be a link that is changed by an update.
    let root = root.canonicalize().ok()?;
    let relative = Path::new(path.trim_start_matches('/'));
    if !has_plain_names(relative) || !is_portable_path(path) {
        return Some(false);
    }
    let found = match root.join(relative).canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(true),
        found => found.ok()?,
    };
    // The response for a directory is its index page.
    let found = if found.is_dir() { resolved(found.join("index.html")) } else { found };
    let is_file = !found.exists() || found.is_file();
    Some(is_file && found.strip_prefix(root).is_ok_and(has_plain_names))
}

/// Resolves links in a path if it exists.
fn resolved(path: PathBuf) -> PathBuf {
    path.canonicalize().unwrap_or(path)
}

/// Returns true if no component begins with a dot, except `.well-known` (RFC 8615).
fn has_plain_names(path: &Path) -> bool {
    path.components().enumerate().all(|(at, component)| match component {
        Component::Normal(name) => {
            !name.as_encoded_bytes().starts_with(b".") || (at == 0 && name == OsStr::new(".well-known"))
        }
        Component::CurDir | Component::ParentDir | Component::RootDir | Component::Prefix(_) => false,
    })
}

/// Percent-decodes the path of a URL; `None` if the result is not UTF-8.
fn decoded(path: &str) -> Option<String> {
    percent_encoding::percent_decode_str(path).decode_utf8().ok().map(Cow::into_owned)
}

async fn correct_type(request: axum::extract::Request, next: Next) -> Response {
    let uri = request.uri().clone();
    with_type(&uri, next.run(request).await)
}

fn with_type(uri: &Uri, mut response: Response) -> Response {
    let ending = uri.path().rsplit_once('.').map_or("", |(_, ending)| ending);
    let known = TYPES.iter().find(|(known, _)| known.eq_ignore_ascii_case(ending));
    if let Some((_, mime)) = known.filter(|_| response.status().is_success()) {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(mime));
    }
    response
}
