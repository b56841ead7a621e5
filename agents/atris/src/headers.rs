//! Headers that an API document may declare as parameters.
//!
//! A header which controls the connection, names another sender, route or method, or carries a credential is never a parameter
//! of a call, whatever the document says. Only the program sets those.

/// Returns whether a document may declare a header of this name as a parameter.
pub(super) fn may_be_a_parameter(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_token = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
    // Some servers treat `_` and `-` as the same character.
    let name = name.replace('_', "-");
    is_token
        && !SET_BY_THE_PROGRAM.contains(&name.as_str())
        && !CONNECTION.contains(&name.as_str())
        && !SENDER_OR_ROUTE.contains(&name.as_str())
        && !PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        && !OVERRIDES.iter().any(|part| name.contains(part))
}

/// Set by the program, or by the credential that a person bound to the API.
const SET_BY_THE_PROGRAM: &[&str] = &[
    "accept",
    "accept-encoding",
    "authorization",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "cookie2",
    "host",
    "idempotency-key",
    "set-cookie",
];

/// Hop-by-hop headers: addressed to the next server on the route, not to the API.
const CONNECTION: &[&str] = &[
    "alt-used",
    "connection",
    "early-data",
    "expect",
    "http2-settings",
    "keep-alive",
    "max-forwards",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// State who sends a request, from where, or where to forward it. Servers behind a proxy trust them.
const SENDER_OR_ROUTE: &[&str] = &[
    "cf-connecting-ip",
    "client-ip",
    "destination",
    "fastly-client-ip",
    "forwarded",
    "front-end-https",
    "origin",
    "referer",
    "true-client-ip",
    "via",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-custom-ip-authorization",
    "x-host",
    "x-originating-ip",
    "x-real-ip",
    "x-real-host",
    "x-sendfile",
    "x-url-scheme",
];

const PREFIXES: &[&str] = &[
    "proxy-",
    "sec-",
    "x-accel-",
    "x-authenticated-",
    "x-envoy-",
    "x-forward",
    "x-middleware-",
    "x-original-",
    "x-proxy-",
    "x-remote-",
    "x-rewrite-",
];

/// Would let a read become another method, such as a delete.
const OVERRIDES: &[&str] = &[
    "method-override",
    "methodoverride",
    "http-method",
    "httpmethod",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_steer_are_never_parameters() {
        for name in [
            "X-HTTP-Method-Override",
            "X-Http-Method",
            "x-method-override",
            "X_HTTP_METHOD_OVERRIDE",
            "Proxy-Authorization",
            "Proxy-Connection",
            "TE",
            "Upgrade",
            "Connection",
            "Keep-Alive",
            "Host",
            "Content-Length",
            "Transfer-Encoding",
            "Trailer",
            "X-Forwarded-For",
            "X_Forwarded_For",
            "X-Forwarded-Host",
            "Forwarded",
            "X-Real-IP",
            "X-Original-URL",
            "X-Rewrite-URL",
            "Cookie",
            "Authorization",
            "Sec-Fetch-Site",
            "Origin",
            "bad name",
            "a:b",
            "x\r\ny",
            "",
        ] {
            assert!(!may_be_a_parameter(name), "{name}");
        }
        for name in [
            "X-Request-Id",
            "If-None-Match",
            "Accept-Language",
            "X-Api-Version",
            "Notion-Version",
        ] {
            assert!(may_be_a_parameter(name), "{name}");
        }
    }
}
