//! `GET /servers.json` and `GET /transports`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::Extension;
use axum::extract::State;
use axum::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_TYPE, ORIGIN, VARY};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use super::app::App;
use super::client::FOREIGN_ORIGIN;
use super::connected::Connected;
use super::transports::{self, UdpPort};
use crate::admission::{Forbidden, Refusal};
use crate::close::{BANNED, CloseKind, CloseReason};
use crate::now::Now;

/// The transports of the relay.
pub(super) async fn transports(
    State(app): State<Arc<App>>,
    Extension(connected): Extension<Connected>,
    headers: HeaderMap,
) -> Response {
    let channels = app.webrtc.get().filter(|_| app.admission.admits_unknown_origins());
    let port = udp_port(&app, &connected);
    answer(&app, &connected, &headers, || transports::list(app.webtransport.get(), channels, port))
}

/// What is told of the port of transports by UDP.
fn udp_port(app: &App, connected: &Connected) -> UdpPort {
    let is_proxied = connected.has_proxy_header() || app.admission.is_trusted_proxy(connected.peer().ip());
    match app.public_udp_port {
        Some(port) => UdpPort::Public(port.get()),
        // A proxy passes on TCP, and where it listens nothing is known of the relay's UDP port.
        None if is_proxied => UdpPort::Unknown,
        None => UdpPort::Own,
    }
}

/// The list of servers.
pub(super) async fn servers(
    State(app): State<Arc<App>>,
    Extension(connected): Extension<Connected>,
    headers: HeaderMap,
) -> Response {
    answer(&app, &connected, &headers, || {
        let body = app.server_list.get(Instant::now(), || {
            let list = app.probes.list(&app.admission.offered());
            // Texts and numbers are always JSON.
            serde_json::to_string(&list).unwrap_or_default()
        });
        body.to_string()
    })
}

/// Answers an address with JSON that is not banned and does not ask too often, if its page may connect. A page that is refused can
/// read why: it may have nothing but WebTransport, which it does not find without this answer.
fn answer(app: &App, connected: &Connected, headers: &HeaderMap, body: impl FnOnce() -> String) -> Response {
    let (status, body) = match admit(app, connected, headers) {
        Ok(()) => (StatusCode::OK, body()),
        Err(reason) => (status_of(&reason), refusal(&reason)),
    };
    let fixed = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store"), (VARY, "origin")];
    let mut response = (status, fixed, body).into_response();
    if let Some(origin) = headers.get(ORIGIN) {
        response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    }
    response
}

/// What refused requests have in the place of a transport.
pub(super) const REQUEST: &str = "HTTP";

/// What is logged of clients that ask too often.
const TOO_MANY_REQUESTS: &str = "too many requests of one address or network";

/// Why a request gets no answer, as a WebSocket would say it. Requests without an origin are of programs, and of pages that the relay
/// serves.
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

/// Why a client gets no answer: it is banned, or asks too often.
pub(super) fn admit_client(app: &App, client: SocketAddr, is_file: bool) -> Result<(), CloseReason> {
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
pub(super) fn refuse_banned(app: &App, client: SocketAddr) {
    app.counters.bans_refused.increment();
    app.log_refusal(client, REQUEST, BANNED, BANNED);
}

pub(super) fn status_of(reason: &CloseReason) -> StatusCode {
    if reason.kind() == CloseKind::Forbidden { StatusCode::FORBIDDEN } else { StatusCode::TOO_MANY_REQUESTS }
}

/// The close code and the text of a WebSocket, as JSON.
fn refusal(reason: &CloseReason) -> String {
    serde_json::json!({ "code": reason.kind().code(), "reason": reason.text() }).to_string()
}
