//! Scheme, host and port: what a call goes to, and what a secret is bound to.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use reqwest::Url;

/// Scheme, host and port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Origin {
    is_secure: bool,
    host: String,
    port: u16,
}

/// Something that cannot be called over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotAnOrigin(String);

impl Origin {
    /// Of an address.
    pub fn of(url: &Url) -> Result<Self, NotAnOrigin> {
        let is_secure = match url.scheme() {
            "https" => true,
            "http" => false,
            other => return Err(NotAnOrigin(format!("`{other}` is not http or https"))),
        };
        let host = url.host_str().filter(|host| !host.is_empty());
        let host = host.ok_or_else(|| NotAnOrigin("it has no host".to_owned()))?;
        let port = url.port_or_known_default();
        let port = port
            .filter(|port| *port != 0)
            .ok_or_else(|| NotAnOrigin("it has no port".to_owned()))?;
        // With a dot at its end a name means the same, and would be another text.
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        Ok(Self {
            is_secure,
            host,
            port,
        })
    }

    /// The host as it stands in an address.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address, if the host is written as one. Whatever spelling it had is gone by now.
    pub fn address(&self) -> Option<IpAddr> {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        host.parse().ok()
    }

    /// The host, and the port where it is not the usual one.
    pub fn host_and_port(&self) -> String {
        match (self.is_secure, self.port) {
            (true, 443) | (false, 80) => self.host.clone(),
            (_, port) => format!("{}:{port}", self.host),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_secure { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.host_and_port())
    }
}

impl FromStr for Origin {
    type Err = NotAnOrigin;

    fn from_str(text: &str) -> Result<Self, NotAnOrigin> {
        let url: Url = text
            .parse()
            .map_err(|error| NotAnOrigin(format!("`{text}` is not an address: {error}")))?;
        Self::of(&url)
    }
}

impl TryFrom<String> for Origin {
    type Error = NotAnOrigin;

    fn try_from(text: String) -> Result<Self, NotAnOrigin> {
        text.parse()
    }
}

impl From<Origin> for String {
    fn from(origin: Origin) -> Self {
        origin.to_string()
    }
}
