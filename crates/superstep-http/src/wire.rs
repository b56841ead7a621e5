//! The transport: connects to a vetted address, without proxies, redirects or cookies, and limits the size and the time of an
//! answer.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::retry_after::retry_after;
use crate::{BoxFuture, Fault, VettedCall};

/// Answer of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status code.
    pub status: u16,
    /// Value of the `content-type` header. Empty if there is none.
    pub content_type: String,
    /// Value of the `location` header.
    pub location: Option<String>,
    /// Time to wait from the `retry-after` header, which is a number of seconds or a date.
    pub retry_after: Option<Duration>,
    /// Response body.
    pub body: Vec<u8>,
}

impl Answer {
    /// Returns the target if the answer is a redirect.
    pub(super) fn redirect(&self) -> Option<&str> {
        let moved = matches!(self.status, 301 | 302 | 303 | 307 | 308);
        self.location.as_deref().filter(|_| moved)
    }
}

/// Sends vetted calls.
pub trait Transport: Send + Sync {
    /// Sends a call to one of its vetted addresses and to no other.
    fn send(&self, vetted: VettedCall) -> BoxFuture<'_, Result<Answer, Fault>>;
}

/// Transport over the network.
#[derive(Debug, Clone)]
pub struct Http {
    /// Maximum size of an answer, in bytes. Default: 8 MiB.
    pub bytes_max: usize,
    /// Maximum time of a whole call. Default: 10 seconds.
    pub timeout: Duration,
    /// Whether a longer answer is cut, and not an error. Default: no.
    pub is_cut: bool,
    /// Value of the `user-agent` header. Default: `superstep/` and the version.
    pub user_agent: Cow<'static, str>,
}

impl Default for Http {
    fn default() -> Self {
        Self {
            bytes_max: 8 * 1024 * 1024,
            timeout: Duration::from_secs(10),
            is_cut: false,
            user_agent: Cow::Borrowed(concat!("superstep/", env!("CARGO_PKG_VERSION"))),
        }
    }
}

impl Transport for Http {
    fn send(&self, vetted: VettedCall) -> BoxFuture<'_, Result<Answer, Fault>> {
        Box::pin(self.call(vetted))
    }
}

impl Http {
    async fn call(&self, vetted: VettedCall) -> Result<Answer, Fault> {
        let VettedCall {
            call,
            url,
            addresses,
        } = vetted;
        let not_sent = |why: String| Fault::NotSent(why);
        // One client per call: whatever name it resolves, it gets the addresses that were vetted for this call.
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .dns_resolver(Pinned(addresses))
            .timeout(self.timeout)
            .user_agent(&*self.user_agent)
            .build()
            .map_err(|error| not_sent(told(&error)))?;
        let method = call
            .method
            .parse()
            .map_err(|_| not_sent(format!("`{}` is not a method", call.method)))?;
        let mut headers = HeaderMap::new();
        let secret = call.credential.as_ref().map(|credential| {
            (
                credential.header.clone(),
                format!("{}{}", credential.prefix, credential.secret),
            )
        });
        for (name, value) in call.headers.iter().cloned().chain(secret) {
            let name: HeaderName = name
                .parse()
                .map_err(|_| not_sent(format!("`{name}` is not a header")))?;
            // The error does not include the value, because it may be the secret.
            let value: HeaderValue = value
                .parse()
                .map_err(|_| not_sent(format!("the header `{name}` cannot be sent")))?;
            headers.insert(name, value);
        }
        let mut request = client.request(method, url).headers(headers);
        if let Some(body) = call.body {
            request = request.body(body);
        }
        let mut response = request.send().await.map_err(fault)?;
        let header = |name: &str| {
            let value = response
                .headers()
                .get(name)
                .and_then(|value| value.to_str().ok());
            value.map(str::to_owned)
        };
        let mut answer = Answer {
            status: response.status().as_u16(),
            content_type: header("content-type").unwrap_or_default(),
            location: header("location"),
            retry_after: header("retry-after").and_then(|value| retry_after(&value, seconds())),
            body: Vec::new(),
        };
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| Fault::Unknown(told(&error)))?
        {
            let room = self.bytes_max - answer.body.len();
            if chunk.len() > room {
                if self.is_cut {
                    answer.body.extend_from_slice(&chunk[..room]);
                    break;
                }
                return Err(Fault::Unknown(format!(
                    "the answer is longer than {} bytes",
                    self.bytes_max
                )));
            }
            answer.body.extend_from_slice(&chunk);
        }
        Ok(answer)
    }
}

/// Returns the current time in seconds since 1970.
fn seconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

/// Resolves every name to the vetted addresses, without asking a real resolver.
struct Pinned(Vec<SocketAddr>);

impl Resolve for Pinned {
    fn resolve(&self, _: Name) -> Resolving {
        let addresses = self.0.clone();
        Box::pin(async move { Ok(Box::new(addresses.into_iter()) as Addrs) })
    }
}

fn fault(error: reqwest::Error) -> Fault {
    match error.is_connect() || error.is_builder() {
        true => Fault::NotSent(told(&error)),
        false => Fault::Unknown(told(&error)),
    }
}

/// Returns the innermost cause of an error. Leaves out the URL, which may hold what a person typed.
fn told(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "nothing came in time".to_owned();
    }
    let mut told = Vec::new();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        told.push(error.to_string());
        cause = error.source();
    }
    match told.last() {
        Some(last) => last.clone(),
        None => "it could not be sent".to_owned(),
    }
}
