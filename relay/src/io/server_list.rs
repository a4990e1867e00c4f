//! `GET /servers.json`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Extension;
use axum::extract::State;
use axum::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_TYPE, ORIGIN, VARY};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use super::app::App;
use super::connected::Connected;
use crate::admission::{Forbidden, Refusal};

/// How long a list that was written is used: the pongs in it are not younger.
const KEPT: Duration = Duration::from_secs(1);

/// The list as it was written last, and when.
#[derive(Debug, Default)]
pub(crate) struct ListCache(Mutex<Option<(Instant, Arc<str>)>>);

impl ListCache {
    /// The list, which `write` writes if there is none that is young enough.
    fn get(&self, now: Instant, write: impl FnOnce() -> String) -> Arc<str> {
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

/// The list of servers, for everybody who is not banned and does not ask too often. Pages of other origins can read it if
/// they may connect.
pub(super) async fn servers(
    State(app): State<Arc<App>>,
    Extension(connected): Extension<Connected>,
    headers: HeaderMap,
) -> Response {
    let client = app.admission.client_of(connected.peer(), &headers);
    match app.admission.admit_request(client.ip()) {
        Ok(()) => {}
        Err(Refusal::Forbidden(Forbidden::Banned | Forbidden::Origin)) => {
            app.counters.bans_refused.increment();
            return (StatusCode::FORBIDDEN, "this address is banned").into_response();
        }
        Err(Refusal::Close(_)) => {
            return (StatusCode::TOO_MANY_REQUESTS, "too many requests of this address").into_response();
        }
    }
    let body = app.server_list.get(Instant::now(), || {
        let list = app.probes.list(&app.admission.offered());
        // Texts and numbers are always JSON.
        serde_json::to_string(&list).unwrap_or_default()
    });
    let fixed = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store"), (VARY, "origin")];
    let mut response = (fixed, body.to_string()).into_response();
    if let Some(origin) = headers.get(ORIGIN).filter(|_| app.admission.admits_origin(&headers)) {
        response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_written_once_a_second() {
        let (cache, start) = (ListCache::default(), Instant::now());
        let get = |after, text: &str| cache.get(start + after, || text.to_owned());
        assert_eq!(&*get(Duration::ZERO, "one"), "one");
        assert_eq!(&*get(KEPT - Duration::from_millis(1), "two"), "one");
        assert_eq!(&*get(KEPT, "three"), "three");
    }
}
