//! The HTTP routes, and which requests may open a WebSocket.

use std::path::Path;
use std::sync::Arc;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{RawQuery, State, WebSocketUpgrade};
use axum::http::header::{ALLOW, CONNECTION};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};

use super::app::App;
use super::client::{self, Opening, Resume};
use super::connected::Connected;
use super::files::serve_files;
use super::server_list::{REQUEST, admit_client, refuse_banned, servers, status_of, transports};
use super::transport::{Connection, Transport, WebSocketTransport, configure};
use crate::admission::{Request, parameter};
use crate::close::BANNED;
use crate::flow::FLOW_PROTOCOL;

/// All paths of the relay.
pub(crate) fn router(app: Arc<App>, serve: Option<&Path>) -> Router {
    let plain = Router::new().route("/healthz", get(async || "ok"));
    let plain = match serve {
        Some(directory) => serve_files(plain, directory),
        // A fallback of its own, so that it has the limits of the others.
        None => plain.fallback(async || StatusCode::NOT_FOUND),
    };
    let router = Router::new()
        .route("/ws", get(open).fallback(refuse_method))
        .route("/servers.json", get(servers).fallback(refuse_method))
        .route("/transports", get(transports).fallback(refuse_method))
        .with_state(Arc::clone(&app));
    // The others refuse in their own way, a WebSocket by a close code.
    plain.layer(from_fn_with_state(app, limit)).merge(router)
}

/// Refuses requests of clients that were banned after their connection began, or that come through a proxy, and of those that ask
/// too often.
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

/// What a request gets in the place of its answer, where no other way of refusing it is usual.
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

/// What a banned address gets: a WebSocket that says so as it closes, and so does the answer to what pages ask first.
pub(crate) fn router_for_banned(app: Arc<App>) -> Router {
    let refuse = async |State(app): State<Arc<App>>, Extension(connected): Extension<Connected>| {
        refuse_banned(&app, connected.peer());
        (StatusCode::FORBIDDEN, BANNED)
    };
    // Its connection is there for one answer: it has no share of its address, which would bound it otherwise.
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

/// Whether a proxy has named the client; no page can.
fn is_forwarded(headers: &HeaderMap) -> bool {
    ["x-forwarded-for", "forwarded"].into_iter().any(|name| headers.contains_key(name))
}

/// What is said of a request for a WebSocket that is none.
const NO_WEBSOCKET: &str = "the request asks for no WebSocket; a proxy before the relay has to pass the headers Upgrade and Connection on";

/// A client's request for a WebSocket.
///
/// It is refused by a close code, because a page sees nothing else.
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
    let is_returning = app.admits_return(resume.secret(), request.target.as_deref());
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
        closes_unreachable: request.closes_unreachable,
    };
    // Taken before the upgrade, so that a shutdown in between waits for it.
    let tracked = app.sessions.token();
    upgrade.on_upgrade(async move |socket| {
        let transport = Transport::WebSocket(Box::new(WebSocketTransport::new(socket, is_through_proxy)));
        let connection = Box::new(Connection::new(client, transport, &app.counters, tracked, connected));
        // In a task of its own: this one has room for the request and the upgrade, which a session does not need.
        tokio::spawn(async move { client::serve(&app, connection, &opening).await });
    })
}
