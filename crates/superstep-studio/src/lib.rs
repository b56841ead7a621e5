//! Studio, the web page of a server of graphs, as routes for its router.
//!
//! [`routes`] serves the page below `/studio/`. It is built from `studio/` in the repository into `bundle/`, which is part of this
//! crate, so that a Rust build needs no JavaScript tools. All files are compressed with Brotli, and are decompressed for clients that
//! do not accept that.
//!
//! The page has no data of its own, so its routes need no authentication: everything on it comes from the server's public HTTP API,
//! with the caller's own key. This crate never calls that API, never stores anything, and knows no graph, thread or run.
//!
//! Every response carries a policy for the browser (`SECURITY`): the page may load its own files and call its own server, and
//! nothing else. Names of files below `assets/` change with their content, so browsers keep them; the page itself is asked for
//! each time. Addresses in the page are relative, so that it also works below the path of a proxy.
//!
//! # In the book
//!
//! The pages are in `docs/` of the repository. These links lead to them where `cargo xtask book` has built the book next to this
//! documentation.
//!
//! - [Studio](../../book/html/docs/studio.html)

use std::borrow::Cow;

use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use rust_embed::{EmbeddedFile, RustEmbed};

/// The files of the page. Each is compressed, and named as it is requested.
#[derive(RustEmbed)]
#[folder = "bundle/"]
struct Bundle;

/// Returns the routes of the page, which need no authentication: the page has no data of its own.
pub fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/studio", get(|| async { Redirect::permanent("studio/") }))
        .route(
            "/studio/",
            get(|headers| serve_file(String::new(), headers)),
        )
        .route(
            "/studio/{*path}",
            get(|Path(path), headers| serve_file(path, headers)),
        )
}

async fn serve_file(path: String, headers: HeaderMap) -> Response {
    match Bundle::get(&path) {
        Some(file) if path != INDEX => respond(&path, &file, None, &headers),
        // A file that is not there was replaced by a newer version. The page in its place would be executed as a script.
        None if path.starts_with("assets/") => StatusCode::NOT_FOUND.into_response(),
        // Every other address is a view of the page.
        _ => match Bundle::get(INDEX) {
            Some(index) => respond(INDEX, &index, Some(&path), &headers),
            None => StatusCode::NOT_FOUND.into_response(),
        },
    }
}

/// Responds with a file. `view` is the address at which the page itself was requested.
fn respond(path: &str, file: &EmbeddedFile, view: Option<&str>, headers: &HeaderMap) -> Response {
    let mut response = Response::new(Body::empty());
    let tag = format!("\"{}\"", hex(&file.metadata.sha256_hash()[..16]));
    let is_known = view.is_none()
        && headers
            .get(IF_NONE_MATCH)
            .is_some_and(|known| *known == *tag);
    let head = response.headers_mut();
    for (name, value) in SECURITY {
        head.insert(name, HeaderValue::from_static(value));
    }
    head.insert(CONTENT_TYPE, HeaderValue::from_static(type_of(path)));
    head.insert(VARY, HeaderValue::from_static("accept-encoding"));
    // The names of assets change with their content. The page names them, and so it is asked for each time.
    let caching = match path.starts_with("assets/") {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    head.insert(CACHE_CONTROL, HeaderValue::from_static(caching));
    if let (None, Ok(tag)) = (view, HeaderValue::from_str(&tag)) {
        head.insert(ETAG, tag);
    }
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return response;
    }
    let body = match view {
        Some(view) => Cow::Owned(relative_to(view, &decompress(&file.data))),
        None if accepts_brotli(headers) => {
            head.insert(CONTENT_ENCODING, HeaderValue::from_static("br"));
            file.data.clone()
        }
        None => Cow::Owned(decompress(&file.data)),
    };
    *response.body_mut() = Body::from(body.into_owned());
    response
}

/// Addresses in the page are relative to its root, which is above the view by as many levels as its path has.
fn relative_to(view: &str, page: &[u8]) -> Vec<u8> {
    let levels = view.matches('/').count();
    let page = String::from_utf8_lossy(page);
    page.replace("\"./", &format!("\"./{}", "../".repeat(levels)))
        .into_bytes()
}

fn decompress(compressed: &[u8]) -> Vec<u8> {
    let mut data = Vec::new();
    let decompressed =
        brotli_decompressor::BrotliDecompress(&mut std::io::Cursor::new(compressed), &mut data);
    debug_assert!(decompressed.is_ok(), "the bundle is compressed with Brotli");
    data
}

fn accepts_brotli(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT_ENCODING).iter();
    let accepted = accepted.filter_map(|value| value.to_str().ok());
    accepted
        .flat_map(|value| value.split(','))
        .any(|coding| matches!(coding.trim(), "br" | "*") || coding.trim().starts_with("br;q=0."))
}

fn type_of(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// What the page may do: load its own files and call its own server, and nothing else. Texts of models and mails that get into the
/// page can neither run nor load anything. The one script that the page starts by its address is the worker that lays out graphs.
const SECURITY: [(HeaderName, &str); 6] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; font-src 'self'; connect-src 'self'; \
         worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types superstep#worker",
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("permissions-policy"),
        "camera=(), microphone=(), geolocation=()",
    ),
];
const INDEX: &str = "index.html";

#[cfg(test)]
mod tests;
