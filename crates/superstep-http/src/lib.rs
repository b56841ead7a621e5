//! Makes HTTP calls to addresses that someone else chose, and only to vetted ones.
//!
//! The [`Connector`] resolves a name once, vets every address that it has, and connects only to a vetted address. A redirect is a
//! new call and is vetted like one. Proxies are off, because they would connect to something other than the vetted address. If a
//! server repeats a secret in its answer, the connector removes it.
//!
//! Who may be called is an allow list that a person wrote, [`AllowedOrigins`], of one of two kinds:
//! - These origins and no others. A host written as an IP address needs no resolver and is called only if the list has exactly that
//!   address, so a private address is called only if the list has it as an IP address.
//! - The internet: every origin whose addresses are all public, and the hosts that the list names as exceptions.
//!
//! # In the book
//!
//! The pages are in `docs/` of the repository. These links lead to them where `cargo xtask book` has built the book next to this
//! documentation.
//!
//! - [atris, which asks APIs](../../book/html/docs/atris.html)
//! - [Webhooks of the server](../../book/html/docs/server.html)

mod address;
mod allowed;
mod origin;
mod redact;
mod retry_after;
mod wire;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub use reqwest::Url;

pub use address::denied;
pub use allowed::{AllowedHost, AllowedOrigins, NotAHost};
pub use origin::{NotAnOrigin, Origin};
use redact::Redaction;
pub use redact::{REDACTED, remove_secrets};
pub use wire::{Answer, Http, Transport};

/// A future on the heap.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Resolves host names.
pub trait NameResolver: Send + Sync {
    /// Returns every address of a name.
    fn look_up<'a>(&'a self, name: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>>;
}

/// The resolver of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemNames;

impl NameResolver for SystemNames {
    fn look_up<'a>(&'a self, name: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// A secret that is sent to one origin and to no other.
#[derive(Clone)]
pub struct Credential {
    /// The only origin that the secret is sent to.
    pub origin: Origin,
    /// Name of the header for the secret.
    pub header: String,
    /// Text before the secret in the header, such as `Bearer `.
    pub prefix: String,
    /// The secret itself. Not part of the `Debug` output.
    pub secret: String,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("origin", &self.origin)
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}

/// One HTTP call, not vetted yet.
#[derive(Debug, Clone, Default)]
pub struct Call {
    /// HTTP method, such as `GET` or `POST`.
    pub method: String,
    /// Full URL, with its query string.
    pub url: String,
    /// Headers, besides the credential's and those that every call has.
    pub headers: Vec<(String, String)>,
    /// Request body. Absent if the call has none.
    pub body: Option<Vec<u8>>,
    /// Secret of the API. Sent only if the URL has the credential's origin.
    pub credential: Option<Credential>,
}

impl Call {
    /// Creates a `GET` call without headers or body.
    pub fn get(url: impl Into<String>) -> Self {
        Self {
            method: "GET".to_owned(),
            url: url.into(),
            ..Self::default()
        }
    }
}

/// Why a call has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The connector did not send the call, because a rule forbids it.
    #[error("{0}")]
    Refused(String),
    /// The call was not sent, for example because the host has no address or did not accept a connection.
    #[error("{0}")]
    NotSent(String),
    /// The call was sent, but its outcome is unknown.
    #[error("{0}")]
    Unknown(String),
}

/// A call whose addresses were vetted.
#[derive(Debug)]
pub struct VettedCall {
    /// The call. Without its credential if it goes to another origin.
    pub call: Call,
    /// Its URL, parsed.
    pub url: Url,
    /// Addresses to connect to, in the order to try.
    pub addresses: Vec<SocketAddr>,
}

/// Makes HTTP calls, and only to vetted addresses.
#[derive(Clone)]
pub struct Connector {
    names: Arc<dyn NameResolver>,
    wire: Arc<dyn Transport>,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

impl Default for Connector {
    fn default() -> Self {
        Self::over(Arc::new(SystemNames), Arc::new(Http::default()))
    }
}

impl Connector {
    /// Creates a connector with this resolver and this transport.
    pub fn over(names: Arc<dyn NameResolver>, wire: Arc<dyn Transport>) -> Self {
        Self { names, wire }
    }

    /// Creates a connector over the network with a limit for the size of an answer in bytes, and for the time of a call.
    pub fn bounded(bytes_max: usize, timeout: Duration) -> Self {
        let http = Http {
            bytes_max,
            timeout,
            ..Http::default()
        };
        Self::over(Arc::new(SystemNames), Arc::new(http))
    }

    /// Makes a call to an origin on the allow list. A `GET` follows up to three redirects, each vetted like a new call.
    pub async fn send(&self, call: Call, reach: &AllowedOrigins) -> Result<Answer, Fault> {
        let mut call = call;
        let redaction = call.credential.as_ref().and_then(Redaction::of);
        for _ in 0..=REDIRECTS_MAX {
            let vetted = self.vet(call.clone(), reach).await?;
            let base = vetted.url.clone();
            let answer = self.wire.send(vetted).await?;
            // Before the caller sees the answer, and before a redirect repeats the secret.
            let answer = match &redaction {
                Some(redaction) => redaction.apply(answer),
                None => answer,
            };
            let Some(next) = answer.redirect().filter(|_| call.method == "GET") else {
                return Ok(answer);
            };
            let next = base.join(next).map_err(|error| refused(next, error))?;
            call.url = next.to_string();
        }
        Err(Fault::Refused(format!("{} redirects too often", call.url)))
    }

    /// Vets the target of a call and resolves its addresses. Removes the credential unless the call goes to its origin.
    pub async fn vet(&self, mut call: Call, reach: &AllowedOrigins) -> Result<VettedCall, Fault> {
        let (url, origin) = reach.check(&call.url)?;
        if call
            .credential
            .as_ref()
            .is_some_and(|credential| credential.origin != origin)
        {
            call.credential = None;
        }
        let addresses = self.addresses(&origin, reach).await?;
        let addresses = addresses
            .into_iter()
            .map(|address| SocketAddr::new(address, origin.port()))
            .collect();
        Ok(VettedCall {
            call,
            url,
            addresses,
        })
    }

    async fn addresses(
        &self,
        origin: &Origin,
        reach: &AllowedOrigins,
    ) -> Result<Vec<IpAddr>, Fault> {
        // The allow list has vetted it already.
        if let Some(address) = origin.address() {
            return Ok(vec![address]);
        }
        let found = self.names.look_up(origin.host()).await;
        let found = found.map_err(|error| {
            Fault::NotSent(format!("{} has no address: {error}", origin.host()))
        })?;
        if found.is_empty() {
            return Err(Fault::NotSent(format!("{} has no address", origin.host())));
        }
        if reach.lets_be_private(origin) {
            return Ok(found);
        }
        // Vets all of them, because the transport may connect to any.
        for address in &found {
            if let Some(why) = denied(*address) {
                return Err(Fault::Refused(format!(
                    "{} is not called: it has the address {address}, which is {why}",
                    origin.host()
                )));
            }
        }
        Ok(found)
    }
}

fn refused(what: &str, why: impl fmt::Display) -> Fault {
    Fault::Refused(format!("{what} is not called: {why}"))
}

const REDIRECTS_MAX: usize = 3;

#[cfg(test)]
mod tests;
