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
use super::files::serve_files;
use super::serve::Connected;
use super::websocket::{self, Connection};
use crate::flow::FLOW_PROTOCOL;

/// All paths of the relay.
pub(crate) fn router(app: Arc<App>, serve: Option<&Path>) -> Router {
    let router = Router::new().route("/ws", get(open)).route("/healthz", get(async || "ok")).with_state(app);
    match serve {
        Some(directory) => serve_files(router, directory),
        None => router,
    }
}

/// A client's request for a WebSocket.
///
/// Only a wrong origin is rejected here. Everything else is rejected by a close code, because a page sees nothing else.
async fn open(
    State(app): State<Arc<App>>,
    Extension(connected): Extension<Connected>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    if !app.origins.admits(&headers) {
        app.counters.origins_refused.increment();
        debug!(?headers, "origin refused");
        return (StatusCode::FORBIDDEN, "this relay does not accept pages of this origin").into_response();
    }
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(rejection) => return rejection.into_response(),
    };
    let upgrade = websocket::configure(upgrade, &app.limits).protocols([FLOW_PROTOCOL]);
    let query = query.unwrap_or_default();
    let opening = Opening {
        client: connected.peer(),
        target: parameter(&query, "target"),
        has_control: upgrade.selected_protocol().is_some(),
        resume: parameter(&query, "resume").and_then(|secret| secret.parse().ok()),
    };
    // Taken before the upgrade, so that a shutdown in between waits for it.
    let tracked = app.sessions.token();
    upgrade.on_upgrade(async move |socket| {
        client::serve(&app, Connection::new(socket, tracked, connected), opening).await;
    })
}

/// A parameter of a query string; an empty one counts as missing.
fn parameter(query: &str, name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let (_, value) = pairs.find(|(key, _)| key == name)?;
    (!value.is_empty()).then(|| value.into_owned())
}

#[cfg(test)]
mod tests {
    use super::parameter;

    #[test]
    fn parameters_are_decoded() {
        let cases = [
            ("", None),
            ("target", None),
            ("target=", None),
            ("Target=game", None),
            ("target=game", Some("game")),
            ("a=b&target=game&target=other", Some("game")),
            ("target=a%20b+c%2fd%C3%A9", Some("a b c/dé")),
            ("target=%ff%", Some("\u{fffd}%")),
        ];
        for (query, target) in cases {
            assert_eq!(parameter(query, "target").as_deref(), target, "{query}");
        }
    }
}
