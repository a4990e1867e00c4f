//! The static files of `--serve`.

use std::path::Path;

use axum::Router;
use axum::extract::Request;
use axum::http::Uri;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use tower_http::services::ServeDir;

/// The types of files for which the file service has those of other uses of the ending, or names that are out of date.
const TYPES: [(&str, &str); 6] = [
    ("cjs", "text/javascript"),
    ("mjs", "text/javascript"),
    ("map", "application/json"),
    // TypeScript, not the video format.
    ("ts", "text/plain"),
    ("mts", "text/plain"),
    ("cts", "text/plain"),
];

/// Serves the files of a directory at all paths that `router` does not have.
pub(crate) fn serve_files(router: Router, directory: &Path) -> Router {
    let files = Router::new().fallback_service(ServeDir::new(directory)).layer(from_fn(correct_type));
    router.fallback_service(files)
}

async fn correct_type(request: Request, next: Next) -> Response {
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
