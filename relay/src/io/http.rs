//! The HTTP routes, and which requests may open a WebSocket.

use std::path::Path;
use std::sync::Arc;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{RawQuery, State, WebSocketUpgrade};
use axum::http::header::CONNECTION;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};

use super::app::App;
use super::client::{self, BANNED, Opening};
use super::connected::Connected;
use super::files::serve_files;
use super::server_list::{servers, transports};
use super::transport::{Connection, Transport, WebSocketTransport, configure};
use crate::admission::{Request, parameter};
use crate::flow::FLOW_PROTOCOL;

/// All paths of the relay.
pub(crate) fn router(app: Arc<App>, serve: Option<&Path>) -> Router {
    let router = Router::new()
        .route("/ws", get(open))
        .route("/healthz", get(async || "ok"))
        .route("/servers.json", get(servers))
        .route("/transports", get(transports))
        .with_state(app);
    match serve {
        Some(directory) => serve_files(router, directory),
        None => router,
    }
}

/// What a banned address gets: a WebSocket that says so as it closes, and so does the answer to what pages ask first.
pub(crate) fn router_for_banned(app: Arc<App>) -> Router {
    let refuse = async |State(app): State<Arc<App>>| {
        app.counters.bans_refused.increment();
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
        .route("/ws", get(open))
        .route("/servers.json", get(servers))
        .route("/transports", get(transports))
        .fallback(refuse)
        .layer(map_response(close))
        .with_state(app)
}

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
            app.counters.handshakes_failed.increment();
            return rejection.into_response();
        }
    };
    let query = query.unwrap_or_default();
    let client = app.admission.client_of(connected.peer(), &headers);
    let is_through_proxy = app.admission.is_trusted_proxy(connected.peer().ip());
    let resume = parameter(&query, "resume").and_then(|secret| secret.parse().ok());
    let request = Request::from_http(client, &headers, &query);
    let is_returning = app.admits_return(resume.as_ref(), request.target.as_deref());
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
