//! Origins: the scheme, host and port that a call goes to and a secret is bound to.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use reqwest::Url;

/// Scheme, host and port of a URL. Stored as text, such as `https://api.example.com:8443`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Origin {
    is_secure: bool,
    host: String,
    port: u16,
}

/// Why a text or URL has no origin that can be called over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotAnOrigin(String);

impl Origin {
    /// Returns the origin of a URL. Only `http` and `https` have one.
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
        // A trailing dot does not change which host a name means, but would make a different origin.
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        Ok(Self {
            is_secure,
            host,
            port,
        })
    }

    /// Returns the host in lower case, as in a URL: an IPv6 address is in brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns whether the scheme is `https`.
    pub fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// Returns the port, which is the scheme's default if the URL has none.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the IP address if the host is one. The URL parser has already normalized its spelling.
    pub fn address(&self) -> Option<IpAddr> {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        host.parse().ok()
    }

    /// Returns the host, with the port if it is not the scheme's default.
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
