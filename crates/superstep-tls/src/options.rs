//! What a client trusts, and who it is.

use std::path::PathBuf;

/// Options of a [`TlsClient`](crate::TlsClient). By default, the server must have a certificate for its name that the system
/// trusts, and the client has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// What the certificate of the server must prove.
    pub trust: Trust,
    /// Certificate that the client shows if the server asks for one.
    pub identity: Option<ClientFiles>,
}

/// What the certificate of a server must prove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// Nothing. The connection is encrypted, but the server may be anyone.
    Anyone,
    /// That one of these authorities has signed it. Any server with such a certificate can stand in for another one.
    Chain(Roots),
    /// That one of these authorities has signed it, for this host.
    Name(Roots),
}

impl Default for Trust {
    fn default() -> Self {
        Trust::Name(Roots::System)
    }
}

/// The authorities that a client trusts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Roots {
    /// Those of the system, read once. `SSL_CERT_FILE` and `SSL_CERT_DIR` name others.
    System,
    /// Those in a PEM file.
    File(PathBuf),
}

/// The certificate of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientFiles {
    /// PEM file of the certificate, followed by those between it and the authority.
    pub certificate: PathBuf,
    /// PEM file of the private key, not encrypted.
    pub key: PathBuf,
}
