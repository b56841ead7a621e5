//! HTTP calls to Restate's ingress, on whichever node answers.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, ResponseFuture};
use hyper_util::rt::TokioExecutor;
use superstep_tls::{TlsParameters, client_config};
use tokio::time::Instant;

use crate::client::RestateError;
use crate::live::without_password;
use crate::refusal::chain;

/// The ingress addresses of a cluster.
#[derive(Debug, Clone)]
pub(crate) struct Ingress {
    nodes: Vec<Node>,
    /// How long to retry while the cluster does not answer.
    pub(crate) patience: Duration,
}

/// A node, and the client that calls it.
#[derive(Debug, Clone)]
struct Node {
    /// Address without parameters and without a slash at the end.
    address: String,
    http: Http,
}

#[derive(Debug, Clone)]
enum Http {
    Plain(Client<HttpConnector, Full<Bytes>>),
    Encrypted(Client<HttpsConnector<HttpConnector>, Full<Bytes>>),
}

impl Http {
    fn request(&self, request: Request<Full<Bytes>>) -> ResponseFuture {
        match self {
            Http::Plain(client) => client.request(request),
            Http::Encrypted(client) => client.request(request),
        }
    }
}

const FIRST_WAIT: Duration = Duration::from_millis(20);
const LONGEST_WAIT: Duration = Duration::from_secs(1);

impl Ingress {
    pub(crate) fn new<T: Into<String>>(
        nodes: impl IntoIterator<Item = T>,
    ) -> Result<Self, RestateError> {
        let plain = Client::builder(TokioExecutor::new()).build(connector());
        let nodes: Vec<String> = nodes.into_iter().map(Into::into).collect();
        let nodes = nodes.iter().map(|node| node_at(node, &plain));
        let nodes: Vec<Node> = nodes.collect::<Result<_, _>>()?;
        if nodes.is_empty() {
            return Err(RestateError::NoAddress);
        }
        Ok(Self {
            nodes,
            patience: Duration::from_secs(120),
        })
    }

    /// Calls a path under an idempotency key, on one node after the other until one answers. The key makes repeated calls a
    /// single one. There is no timeout for a call in progress.
    pub(crate) async fn call(
        &self,
        path: &str,
        key: &str,
        body: Vec<u8>,
    ) -> Result<Bytes, RestateError> {
        let mut silent_since = None;
        let mut wait = FIRST_WAIT;
        let body = Bytes::from(body);
        // Spreads concurrent calls over the nodes.
        let first = key.bytes().map(usize::from).sum::<usize>();
        for turn in first.. {
            let node = &self.nodes[turn % self.nodes.len()];
            let asked = Instant::now();
            let error = match node.call(path, key, body.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(error @ RestateError::Refused { .. }) => return Err(error),
                Err(error) => error,
            };
            // A call that took long was accepted by a node: the retry deadline starts over.
            if asked.elapsed() > LONGEST_WAIT {
                silent_since = None;
            }
            let silent = *silent_since.get_or_insert(asked);
            if silent.elapsed() > self.patience {
                return Err(error);
            }
            tracing::debug!(
                node = node.address.as_str(),
                error = chain(&error),
                "asking another node"
            );
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
        unreachable!("the turns do not end")
    }
}

impl Node {
    async fn call(&self, path: &str, key: &str, body: Bytes) -> Result<Bytes, RestateError> {
        let address = &self.address;
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("{address}{path}"))
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header("idempotency-key", key)
            .body(Full::new(body))
            .map_err(|_| bad_address(address))?;
        let silent = |error: Box<dyn std::error::Error + Send + Sync>| RestateError::Silent {
            node: address.to_owned(),
            source: error,
        };
        let response = self
            .http
            .request(request)
            .await
            .map_err(|error| silent(error.into()))?;
        let status = response.status();
        let body = response
            .into_body()
            .collect()
            .await
            .map_err(|error| silent(error.into()))?
            .to_bytes();
        if status.is_success() {
            return Ok(body);
        }
        let message = String::from_utf8_lossy(&body).into_owned();
        // Rejected by a worker, permanently. Anything else may be transient: no leader, no deployment yet, a node that
        // starts.
        let is_final = matches!(
            status,
            StatusCode::BAD_REQUEST | StatusCode::GONE | StatusCode::PAYLOAD_TOO_LARGE
        );
        match is_final {
            true => Err(RestateError::Refused { message }),
            false => Err(silent(format!("{status}: {message}").into())),
        }
    }
}

/// Reads an address with the parameters of TLS. Nodes without TLS share a client.
fn node_at(node: &str, plain: &Client<HttpConnector, Full<Bytes>>) -> Result<Node, RestateError> {
    let (address, parameters) = TlsParameters::take_from_url(node)?;
    let address = address.trim_end_matches('/').to_owned();
    let uri: Uri = address.parse().map_err(|_| bad_address(node))?;
    // The client sends no credentials, so an address with some cannot mean what it says.
    let has_credentials = uri
        .authority()
        .is_some_and(|authority| authority.as_str().contains('@'));
    let is_bad = uri.host().is_none() || uri.query().is_some() || parameters.passfile.is_some();
    if has_credentials || is_bad {
        return Err(bad_address(node));
    }
    let http = match uri.scheme_str() {
        Some("http") => {
            parameters.refused()?;
            Http::Plain(plain.clone())
        }
        Some("https") => {
            let mut connector = connector();
            connector.enforce_http(false);
            let connector = HttpsConnectorBuilder::new()
                .with_tls_config(client_config(&parameters.required()?)?)
                .https_only()
                .enable_http1()
                .wrap_connector(connector);
            Http::Encrypted(Client::builder(TokioExecutor::new()).build(connector))
        }
        _ => return Err(bad_address(node)),
    };
    Ok(Node { address, http })
}

fn connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(Duration::from_secs(2)));
    connector
}

fn bad_address(node: &str) -> RestateError {
    RestateError::BadAddress {
        address: without_password(node),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_with_credentials_is_refused_without_showing_them() {
        for address in [
            "http://ada:secret@h:8080",
            "https://secret@h:8080?sslmode=require",
            "http://ada:sec?ret@h:8080",
        ] {
            let error = Ingress::new([address]).unwrap_err();
            assert_eq!(error.code(), "restate-bad-address", "{address}");
            let text = error.to_string();
            assert!(text.contains("…@h:8080"), "{text}");
            assert!(!text.contains("secret") && !text.contains("ret@"), "{text}");
        }
        assert!(Ingress::new(["http://h:8080"]).is_ok());
    }
}
