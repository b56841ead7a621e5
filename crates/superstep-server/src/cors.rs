//! Which web pages may use the server.
//!
//! A browser sends requests to a local server for any page that a person has open, so without a rule every page on the web could
//! start runs and answer approvals. Requests of programs carry no `Origin` and are not restricted here. Nor do those of images, scripts
//! and frames, but for them browsers say with `Sec-Fetch-Site` whether the page is of another site.

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HOST, ORIGIN, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};

use crate::Shared;
use crate::error::ApiError;
use crate::routes::table::FoundRoute;

/// Origins of pages that may use the server, and names that it may be reached by.
#[derive(Debug, Clone, Default)]
pub(crate) struct AllowedOrigins {
    /// Origins besides those of this machine; `*` for all.
    origins: Vec<String>,
    /// Host names besides those of this machine.
    hosts: Vec<String>,
}

impl AllowedOrigins {
    pub(crate) fn allow_origin(&mut self, origin: &str) {
        let origin = origin.trim_end_matches('/').to_ascii_lowercase();
        self.origins.push(origin);
    }

    pub(crate) fn allow_host(&mut self, host: &str) {
        self.hosts.push(host.to_ascii_lowercase());
    }

    fn allows_origin(&self, origin: &str) -> bool {
        let origin = origin.to_ascii_lowercase();
        let is_listed = |allowed: &String| allowed == "*" || *allowed == origin;
        self.origins.iter().any(is_listed) || is_local_origin(&origin)
    }

    /// A page of another site whose name resolves to this machine (DNS rebinding) is of the same origin for its browser, but its
    /// requests name that site as their host.
    fn allows_host(&self, host: &str) -> bool {
        let name = without_port(host).to_ascii_lowercase();
        let is_address = name
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok();
        is_address || is_localhost(&name) || self.hosts.contains(&name)
    }

    /// Returns why a request is refused; `None` if it is not.
    fn refusal(&self, request: &Request) -> Option<ApiError> {
        let headers = request.headers();
        let host =
            text_of(headers, &HOST).or_else(|| request.uri().authority().map(|a| a.as_str()));
        if let Some(host) = host
            && !self.allows_host(host)
        {
            let why = format!(
                "the host `{}` is not allowed",
                superstep::__private::shorten(host)
            );
            return Some(ApiError::new(StatusCode::FORBIDDEN, why));
        }
        let Some(origin) = headers.get(ORIGIN) else {
            return self.refusal_without_origin(request);
        };
        let origin = origin.to_str().unwrap_or("null");
        // A page that this server served itself. Its host was checked above, so its name is one of this server's.
        let is_own = |host: &str| {
            origin
                .split_once("://")
                .is_some_and(|(_, own)| own.eq_ignore_ascii_case(host))
        };
        if self.allows_origin(origin) || host.is_some_and(is_own) {
            return None;
        }
        let why = format!(
            "pages of `{}` may not use this server; start it with that origin allowed",
            superstep::__private::shorten(origin)
        );
        Some(ApiError::new(StatusCode::FORBIDDEN, why))
    }

    /// Pages of other sites can cause requests whose responses they cannot read, and some of those change something: a stream may be
    /// joined so that its end cancels the run. They may lead a person to a page, though: links to Studio work.
    fn refusal_without_origin(&self, request: &Request) -> Option<ApiError> {
        let is = |name: &str, value: &str| {
            let header = request.headers().get(name);
            header.is_some_and(|found| found.as_bytes() == value.as_bytes())
        };
        if !is("sec-fetch-site", "cross-site") {
            return None;
        }
        let is_followed_link = is("sec-fetch-mode", "navigate") && is("sec-fetch-dest", "document");
        let is_open = || match FoundRoute::of(request) {
            FoundRoute::Listed(route) => route.needs.is_empty(),
            FoundRoute::OtherMethod | FoundRoute::NotListed | FoundRoute::None => true,
        };
        let allows_all = self.origins.iter().any(|origin| origin == "*");
        if allows_all || (is_followed_link && is_open()) {
            return None;
        }
        let why = "pages of other sites may not use this server";
        Some(ApiError::new(StatusCode::FORBIDDEN, why))
    }
}

/// Refuses requests of pages that may not use the server, answers preflight requests, lets others be answered, and marks responses as
/// readable.
pub(crate) async fn check_origin<Answering>(
    app: &Shared,
    request: Request,
    answer: impl FnOnce(Request) -> Answering,
) -> Response
where
    Answering: Future<Output = Response>,
{
    if let Some(refusal) = app.origins.refusal(&request) {
        return refusal.into_response();
    }
    let headers = request.headers();
    let origin = headers.get(ORIGIN).cloned();
    let is_preflight =
        request.method() == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = match is_preflight {
        true => preflight(headers.get(ACCESS_CONTROL_REQUEST_HEADERS).cloned()),
        false => answer(request).await,
    };
    let headers = response.headers_mut();
    headers.append(VARY, HeaderValue::from_static("Origin"));
    // JSON with texts of others must not be taken for a page or a script.
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(origin) = origin {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(
            ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static(EXPOSED),
        );
    }
    response
}

fn preflight(wanted: Option<HeaderValue>) -> Response {
    let mut response = Response::new(Body::empty());
    let headers = response.headers_mut();
    headers.insert(
        ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("GET, POST, PUT, PATCH, DELETE, OPTIONS, HEAD"),
    );
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    if let Some(wanted) = wanted {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted);
    }
    response
}

fn text_of<'a>(headers: &'a HeaderMap, name: &http::HeaderName) -> Option<&'a str> {
    // Text that is not ASCII is no host name, and must not pass for a missing header.
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

fn is_local_origin(origin: &str) -> bool {
    let Ok(uri) = origin.parse::<Uri>() else {
        return false;
    };
    let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
    let host = uri.host().unwrap_or_default();
    let is_loopback = host
        .trim_matches(['[', ']'])
        .parse::<std::net::IpAddr>()
        .is_ok_and(|address| address.is_loopback());
    is_web && (is_loopback || is_localhost(host))
}

/// Browsers resolve `localhost` and names below it to this machine, whatever a name server says.
fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// Headers of a response that scripts may read. `location` is where a client reconnects to a stream.
const EXPOSED: &str = "x-pagination-total, x-pagination-next, x-superstep-incomplete, content-location, location, \
     retry-after, x-request-id, x-superstep-dropped-keys";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_this_machine_and_listed_ones_are_allowed() {
        let mut allowed = AllowedOrigins::default();
        allowed.allow_origin("https://chat.example.com/");
        for origin in [
            "http://localhost:3000",
            "https://localhost",
            "http://127.0.0.1:2024",
            "http://[::1]:5173",
            "http://studio.localhost:3000",
            "https://chat.example.com",
        ] {
            assert!(allowed.allows_origin(origin), "{origin}");
        }
        for origin in [
            "null",
            "https://example.com",
            "http://localhost.example.com",
            "http://127.0.0.1.example.com",
            "file://localhost",
            "https://chat.example.com:8443",
        ] {
            assert!(!allowed.allows_origin(origin), "{origin}");
        }
    }

    #[test]
    fn what_other_sites_embed_is_refused_and_links_to_pages_are_followed() {
        let refused = |headers: &[(&str, &str)]| {
            let mut request = http::Request::get("/studio/");
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let request = request.body(Body::empty()).unwrap();
            AllowedOrigins::default().refusal(&request).is_some()
        };
        let cross = ("sec-fetch-site", "cross-site");
        let navigate = ("sec-fetch-mode", "navigate");
        assert!(refused(&[cross, ("sec-fetch-mode", "no-cors")]));
        assert!(refused(&[cross, navigate, ("sec-fetch-dest", "iframe")]));
        assert!(!refused(&[cross, navigate, ("sec-fetch-dest", "document")]));
        assert!(!refused(&[("sec-fetch-site", "same-origin")]));
        assert!(!refused(&[]));
    }

    #[test]
    fn a_name_that_only_resolves_to_this_machine_is_refused() {
        let mut allowed = AllowedOrigins::default();
        allowed.allow_host("agents.example.com");
        for host in [
            "localhost:2024",
            "127.0.0.1:2024",
            "[::1]:2024",
            "agents.example.com",
        ] {
            assert!(allowed.allows_host(host), "{host}");
        }
        for host in ["rebound.example.com:2024", "localhost.example.com", ""] {
            assert!(!allowed.allows_host(host), "{host}");
        }
    }
}
