//! Allow lists: what may be called.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use reqwest::Url;

use crate::address::denied;
use crate::{Fault, Origin, refused};

/// Allow list of the origins that may be called. The default allows none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedOrigins(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Only(Vec<Origin>),
    Internet {
        private: Vec<AllowedHost>,
        is_https_required: bool,
    },
}

impl Default for Kind {
    fn default() -> Self {
        Self::Only(Vec::new())
    }
}

impl AllowedOrigins {
    /// Allows these origins and no others. An empty list allows none.
    pub fn only(origins: impl IntoIterator<Item = Origin>) -> Self {
        Self(Kind::Only(origins.into_iter().collect()))
    }

    /// Allows every origin on the internet, and these hosts, which may be private.
    pub fn internet(private: impl IntoIterator<Item = AllowedHost>) -> Self {
        Self(Kind::Internet {
            private: private.into_iter().collect(),
            is_https_required: false,
        })
    }

    /// Allows `https` only, apart from hosts that are named. Does nothing to a list of origins, which have their schemes.
    #[must_use]
    pub fn require_https(mut self) -> Self {
        if let Kind::Internet {
            is_https_required, ..
        } = &mut self.0
        {
            *is_https_required = true;
        }
        self
    }

    /// Returns whether this origin may be called, as far as it shows without resolving its name.
    pub fn has(&self, origin: &Origin) -> bool {
        self.objection(origin).is_none()
    }

    /// Checks an address as far as it shows without resolving a name, and returns it parsed with its origin.
    pub fn check(&self, address: &str) -> Result<(Url, Origin), Fault> {
        let url: Url = address.parse().map_err(|error| refused(address, error))?;
        let origin = Origin::of(&url).map_err(|error| refused(address, error))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Fault::Refused(
                "an address with a name and a password in it is not called".to_owned(),
            ));
        }
        match self.objection(&origin) {
            Some(why) => Err(refused(&origin.to_string(), why)),
            None => Ok((url, origin)),
        }
    }

    /// Whether the addresses of this origin may be private.
    pub(crate) fn lets_be_private(&self, origin: &Origin) -> bool {
        match &self.0 {
            Kind::Only(_) => false,
            Kind::Internet { private, .. } => private.iter().any(|host| host.matches(origin)),
        }
    }

    fn objection(&self, origin: &Origin) -> Option<String> {
        match &self.0 {
            // A person who puts an IP address on the list means exactly that address.
            Kind::Only(origins) if origins.contains(origin) => None,
            Kind::Only(_) => {
                Some("it is not in the list of hosts that this API may call".to_owned())
            }
            Kind::Internet { .. } if self.lets_be_private(origin) => None,
            Kind::Internet {
                is_https_required: true,
                ..
            } if !origin.is_secure() => Some("only `https` is called".to_owned()),
            Kind::Internet { .. } => match origin.address() {
                Some(address) => denied(address).map(|why| format!("the address is {why}")),
                None => is_internal_name(origin.host())
                    .then(|| "the name is not of the internet".to_owned()),
            },
        }
    }
}

/// Whether a name can only mean a host of a private network. What it resolves to is vetted in any case.
fn is_internal_name(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or_default();
    !host.contains('.') || INTERNAL.contains(&last) || host.ends_with(".home.arpa")
}

/// Last labels of names that no public name server has.
const INTERNAL: [&str; 9] = [
    "corp",
    "home",
    "internal",
    "intranet",
    "lan",
    "local",
    "localdomain",
    "localhost",
    "private",
];

/// A host that may be called also if it is private: `HOST`, at every port, or `HOST:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedHost {
    host: String,
    port: Option<u16>,
}

/// Why a text does not name a host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a host; write `HOST` or `HOST:PORT`, such as `hooks.internal:8080`")]
pub struct NotAHost(String);

impl AllowedHost {
    fn matches(&self, origin: &Origin) -> bool {
        self.host == origin.host() && self.port.is_none_or(|port| port == origin.port())
    }
}

impl FromStr for AllowedHost {
    type Err = NotAHost;

    fn from_str(text: &str) -> Result<Self, NotAHost> {
        let no_host = || NotAHost(text.to_owned());
        let is_host_and_port = !text.is_empty() && !text.contains(['/', '@', '?', '#', '\\', ' ']);
        if !is_host_and_port {
            return Err(no_host());
        }
        // An IPv6 address may come without its brackets.
        let host = match text.parse::<IpAddr>() {
            Ok(IpAddr::V6(address)) => format!("[{address}]"),
            _ => text.to_owned(),
        };
        // The parser of URLs normalizes the host as it will those of calls. It leaves out the default port of the scheme, so the
        // text is looked at for one.
        let url: Url = format!("http://{host}/").parse().map_err(|_| no_host())?;
        let origin = Origin::of(&url).map_err(|_| no_host())?;
        let tail = host.rsplit(']').next().unwrap_or_default();
        let port = tail.contains(':').then(|| origin.port());
        Ok(Self {
            host: origin.host().to_owned(),
            port,
        })
    }
}

impl fmt::Display for AllowedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}:{port}", self.host),
            None => f.write_str(&self.host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn internet(private: &[&str]) -> AllowedOrigins {
        AllowedOrigins::internet(private.iter().map(|host| host.parse().unwrap()))
    }

    #[test]
    fn the_internet_has_public_addresses_and_names_only() {
        let allowed = internet(&[]);
        for may in [
            "https://hooks.example.com/a?b=c",
            "http://hooks.example.com:8080/",
            "https://93.184.216.34/",
            "https://[2606:4700::1111]/",
        ] {
            assert!(allowed.check(may).is_ok(), "{may}");
        }
        for must_not in [
            "/relative",
            "hooks.example.com",
            "ftp://hooks.example.com/",
            "https://user@hooks.example.com/",
            "https://:secret@hooks.example.com/",
            "http://printer/",
            "http://localhost:8080/",
            "http://a.localhost/",
            "http://nas.local/",
            "http://nas.local./",
            "http://metadata.google.internal/",
            "http://router.home.arpa/",
            "http://10.0.0.1/",
            "http://0x7f.1/",
            "http://[::ffff:127.0.0.1]/",
        ] {
            let checked = allowed.check(must_not);
            assert!(matches!(checked, Err(Fault::Refused(_))), "{must_not}");
        }
    }

    #[test]
    fn a_named_host_may_be_private_at_its_port() {
        let allowed = internet(&["127.0.0.1:8080", "hooks.internal", "::1", "[fd00::1]:80"]);
        for may in [
            "http://127.0.0.1:8080/",
            "http://0x7f000001:8080/",
            "https://hooks.internal/",
            "http://HOOKS.internal.:99/",
            "http://[::1]:1234/",
            "http://[fd00::1]/",
        ] {
            assert!(allowed.check(may).is_ok(), "{may}");
        }
        for must_not in [
            "http://127.0.0.1/",
            "http://127.0.0.2:8080/",
            "http://a.hooks.internal/",
            "http://[fd00::1]:81/",
        ] {
            assert!(allowed.check(must_not).is_err(), "{must_not}");
        }
    }

    #[test]
    fn https_can_be_required_of_all_but_named_hosts() {
        let allowed = internet(&["127.0.0.1"]).require_https();
        assert!(allowed.check("https://hooks.example.com/").is_ok());
        assert!(allowed.check("http://127.0.0.1:8080/").is_ok());
        assert!(allowed.check("http://hooks.example.com/").is_err());
    }

    #[test]
    fn what_is_not_a_host_is_refused() {
        for text in ["", "http://a", "a/b", "a@b", "a:b", "a:99999", "a b"] {
            assert!(text.parse::<AllowedHost>().is_err(), "{text}");
        }
        let host: AllowedHost = "Hooks.Example.com:80".parse().unwrap();
        assert_eq!(host.to_string(), "hooks.example.com:80");
    }
}
