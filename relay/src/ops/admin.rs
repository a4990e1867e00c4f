//! The admin address: health and metrics, apart from what clients can reach.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

/// What the admin address tells.
pub(crate) trait Health: Send + Sync + 'static {
    /// Why no new clients are accepted, if they are not.
    fn unready(&self) -> Option<&'static str>;

    /// All metrics in the text format of Prometheus.
    fn metrics(&self) -> String;

    /// Reads the configuration again, if this relay can: a line about what changed, or what is wrong.
    fn reload(&self) -> Option<Reloading<'_>>;
}

/// A reload that is under way.
pub(crate) type Reloading<'a> = Pin<Box<dyn Future<Output = Result<String, String>> + Send + 'a>>;

/// The paths of the admin address.
pub(crate) fn admin_router(health: Arc<dyn Health>, listen: SocketAddr) -> Router {
    let router = Router::new()
        // As long as this process answers requests.
        .route("/livez", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics));
    if !listen.ip().to_canonical().is_loopback() {
        return router.with_state(health);
    }
    // There is no password, so that only this machine may ask for a reload.
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
    // Every browser sends it with a POST, and a page has no business here.
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

/// A page in a browser on this machine could otherwise read the answers, by a name of its own that resolves to loopback.
async fn only_local_names(request: Request, next: Next) -> Response {
    if is_local_name(request.headers()) {
        return next.run(request).await;
    }
    (StatusCode::FORBIDDEN, "use the address, or localhost\n").into_response()
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
        assert!(is_local_name(&HeaderMap::new()), "HTTP/1.0 has no Host, and no browser speaks it");
    }
}
