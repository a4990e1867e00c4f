//! The static files of `--serve`: regular files of the directory alone, and none whose name, or that of a directory on the way,
//! begins with a dot or has another meaning for Windows.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{StatusCode, Uri};
use axum::middleware::{Next, from_fn, from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use rakwire_udp::is_portable_path;
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
    let root: Arc<Path> = directory.into();
    let files = Router::new()
        .fallback_service(ServeDir::new(directory))
        .layer(from_fn(correct_type))
        .layer(from_fn_with_state(root, keep_inside))
        .layer(map_response(protect));
    router.fallback_service(files)
}

/// What browsers are told of every file: it is what its type says, it belongs to pages of this relay, and its page is shown in no frame
/// of another site and loads no plugins.
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

/// Answers 404 for what is none of the files.
async fn keep_inside(State(root): State<Arc<Path>>, request: Request, next: Next) -> Response {
    let path = decoded(request.uri().path());
    let is_served = tokio::task::spawn_blocking(move || is_served(&root, path.as_deref()?));
    if is_served.await.ok().flatten() == Some(true) {
        next.run(request).await
    } else {
        StatusCode::NOT_FOUND.into_response()
    }
}

/// Whether a path is one of a file to serve, or of nothing at all.
fn is_served(root: &Path, path: &str) -> Option<bool> {
    // It may be a link that leads elsewhere after an update.
    let root = root.canonicalize().ok()?;
    let relative = Path::new(path.trim_start_matches('/'));
    if !has_plain_names(relative) || !is_portable_path(path) {
        return Some(false);
    }
    let found = match root.join(relative).canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(true),
        found => found.ok()?,
    };
    // A directory is answered by its page.
    let found = if found.is_dir() { resolved(found.join("index.html")) } else { found };
    let is_file = !found.exists() || found.is_file();
    Some(is_file && found.strip_prefix(root).is_ok_and(has_plain_names))
}

/// Where a path leads, if it is there.
fn resolved(path: PathBuf) -> PathBuf {
    path.canonicalize().unwrap_or(path)
}

/// Whether no name begins with a dot, but for the directory of RFC 8615.
fn has_plain_names(path: &Path) -> bool {
    path.components().enumerate().all(|(at, component)| match component {
        Component::Normal(name) => {
            !name.as_encoded_bytes().starts_with(b".") || (at == 0 && name == OsStr::new(".well-known"))
        }
        Component::CurDir | Component::ParentDir | Component::RootDir | Component::Prefix(_) => false,
    })
}

/// A path of a URL without its percent signs; nothing if it is no text.
fn decoded(path: &str) -> Option<String> {
    percent_encoding::percent_decode_str(path).decode_utf8().ok().map(Cow::into_owned)
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
