//! The one way out: calls over HTTP to addresses that were looked at first.
//!
//! A name is resolved once, every address it has is vetted, and the connection is made to a vetted address and to no other.
//! An address written as a number never meets a resolver, so it is vetted as it stands. A redirect is a new call and is vetted
//! like one. Proxies are off: they would connect to something else than what was vetted. What may be called at all is a list of
//! origins that a person wrote down; a private address is called only if it is written in that list as a number. A secret that a
//! server repeats in its answer is taken out of it here.

mod address;
mod origin;
mod redact;
mod wire;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use superstep_llm::{BoxFuture, Secret};

pub use address::denied;
pub use origin::{NotAnOrigin, Origin};
pub use redact::REDACTED;
use redact::Redaction;
pub use wire::{Answer, Http, Transport};

/// Resolves names.
pub trait NameResolver: Send + Sync {
    /// Every address of a name.
    fn look_up<'a>(&'a self, name: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>>;
}

/// As this machine resolves them.
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

/// The origins that may be called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedOrigins(Vec<Origin>);

impl AllowedOrigins {
    /// These and no others.
    pub fn only(origins: impl IntoIterator<Item = Origin>) -> Self {
        Self(origins.into_iter().collect())
    }

    /// Whether this one may be called.
    pub fn has(&self, origin: &Origin) -> bool {
        self.0.contains(origin)
    }
}

/// A secret that goes to one origin and to no other.
#[derive(Clone)]
pub struct Credential {
    /// Where it may go.
    pub origin: Origin,
    /// The header it goes in.
    pub header: String,
    /// What stands before it, such as `Bearer `.
    pub prefix: String,
    /// It.
    pub secret: Secret,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("origin", &self.origin)
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}

/// A call.
#[derive(Debug, Clone, Default)]
pub struct Call {
    /// `GET`, `POST` …
    pub method: String,
    /// Where, with everything.
    pub url: String,
    /// Headers beside those that every call has.
    pub headers: Vec<(String, String)>,
    /// What is sent along.
    pub body: Option<Vec<u8>>,
    /// The secret, if this API has one.
    pub credential: Option<Credential>,
}

impl Call {
    /// Reads from an address.
    pub fn get(url: impl Into<String>) -> Self {
        Self {
            method: "GET".to_owned(),
            url: url.into(),
            ..Self::default()
        }
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It was not sent, because it must not be.
    #[error("{0}")]
    Refused(String),
    /// It was not sent: nobody was there.
    #[error("{0}")]
    NotSent(String),
    /// It was sent, and what became of it is not known.
    #[error("{0}")]
    Unknown(String),
}

/// A call whose address was vetted.
#[derive(Debug)]
pub struct VettedCall {
    pub(crate) call: Call,
    pub(crate) url: Url,
    /// Where to connect, in the order to try.
    pub addresses: Vec<SocketAddr>,
}

/// The one way out.
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
    /// With another resolver and another wire.
    pub fn over(names: Arc<dyn NameResolver>, wire: Arc<dyn Transport>) -> Self {
        Self { names, wire }
    }

    /// For answers as large and as slow as this.
    pub fn bounded(bytes_max: usize, timeout: Duration) -> Self {
        Self::over(Arc::new(SystemNames), Arc::new(Http { bytes_max, timeout }))
    }

    /// Makes a call within a reach. A read follows redirects that stay in it.
    pub async fn send(&self, call: Call, reach: &AllowedOrigins) -> Result<Answer, Fault> {
        let mut call = call;
        let redaction = call.credential.as_ref().and_then(Redaction::of);
        for _ in 0..=REDIRECTS_MAX {
            let vetted = self.vet(call.clone(), reach).await?;
            let base = vetted.url.clone();
            let answer = self.wire.send(vetted).await?;
            // Before anybody sees it, and before a redirect carries it on.
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

    /// Looks at where a call would go. The secret stays only if it is going home.
    pub async fn vet(&self, mut call: Call, reach: &AllowedOrigins) -> Result<VettedCall, Fault> {
        let url: Url = call
            .url
            .parse()
            .map_err(|error| refused(&call.url, error))?;
        let origin = Origin::of(&url).map_err(|error| refused(&call.url, error))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Fault::Refused(
                "an address with a name and a password in it is not called".to_owned(),
            ));
        }
        if !reach.has(&origin) {
            return Err(refused(
                &origin.to_string(),
                "it is not in the list of hosts that this API may call",
            ));
        }
        if call
            .credential
            .as_ref()
            .is_some_and(|credential| credential.origin != origin)
        {
            call.credential = None;
        }
        let addresses = self.addresses(&origin).await?;
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

    async fn addresses(&self, origin: &Origin) -> Result<Vec<IpAddr>, Fault> {
        // Who writes a number into the list means that very address.
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
        // All of them: which one would be taken is not ours to guess.
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
