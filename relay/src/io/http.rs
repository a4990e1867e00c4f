//! The HTTP routes, and which requests may open a WebSocket.

use std::path::Path;
use std::sync::Arc;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{RawQuery, State, WebSocketUpgrade};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use tracing::debug;

use super::app::App;
use super::client::{self, Opening};
use super::connected::Connected;
use super::files::serve_files;
use super::server_list::{servers, transports};
use super::transport::{Connection, Transport, WebSocketTransport, configure};
use crate::admission::{Forbidden, Refusal, Request, parameter};
use crate::flow::FLOW_PROTOCOL;
use crate::now::Now;

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

/// A client's request for a WebSocket.
///
/// Only pages and addresses that may not connect are rejected here. Everything else is rejected by a close code, because
/// a page sees nothing else.
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
    let resume = parameter(&query, "resume").and_then(|secret| secret.parse().ok());
    let request = Request::from_http(client, &headers, &query);
    let is_returning = app.has_flow(resume.as_ref(), request.target.as_deref());
    let request = request.returning(is_returning);
    let permission = match app.admission.check(Now::read(), &request) {
        Ok(permission) => Ok(permission),
        Err(Refusal::Close(reason)) => Err(reason),
        Err(Refusal::Forbidden(forbidden)) => return forbid(&app, &request, forbidden),
    };
    let upgrade = configure(upgrade, &app.admission.limits()).protocols([FLOW_PROTOCOL]);
    connected.set_websocket();
    let opening = Opening {
        client,
        permission,
        has_control: upgrade.selected_protocol().is_some(),
        resume,
        is_deferred: request.is_deferred,
        is_counted: request.is_counted(),
    };
    // Taken before the upgrade, so that a shutdown in between waits for it.
    let tracked = app.sessions.token();
    upgrade.on_upgrade(async move |socket| {
        let transport = Transport::WebSocket(Box::new(WebSocketTransport::new(socket)));
        let connection = Box::new(Connection::new(client, transport, &app.counters, tracked, connected));
        // In a task of its own: this one has room for the request and the upgrade, which a session does not need.
        tokio::spawn(async move { client::serve(&app, connection, &opening).await });
    })
}

fn forbid(app: &App, request: &Request, forbidden: Forbidden) -> Response {
    (StatusCode::FORBIDDEN, count_forbidden(app, request, forbidden)).into_response()
}

/// Counts a request that is forbidden, and says why it is.
pub(super) fn count_forbidden(app: &App, request: &Request, forbidden: Forbidden) -> &'static str {
    let (counter, text) = match forbidden {
        Forbidden::Origin => {
            (&app.counters.origins_refused, "this relay does not accept pages of this origin")
        }
        Forbidden::Banned => (&app.counters.bans_refused, "this address is banned"),
    };
    counter.increment();
    let client = app.addresses.show(request.client);
    debug!(%client, origin = ?request.origin, ?forbidden, "request refused");
    text
}
