//! The modes of libpq.

use std::fmt;
use std::str::FromStr;

use crate::TlsError;

/// How much a connection has to prove, as libpq's `sslmode`. Ordered from the weakest to the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SslMode {
    /// Never encrypt.
    Disable,
    /// Same as `prefer`. libpq would try without TLS first.
    Allow,
    /// Encrypt if the server can. An attacker on the way can turn that off.
    Prefer,
    /// Always encrypt. Without a root certificate, the server may be anyone.
    Require,
    /// Always encrypt; an authority that you trust has signed the server's certificate.
    VerifyCa,
    /// Like `verify-ca`, and the certificate is for this host.
    VerifyFull,
}

impl SslMode {
    fn as_str(self) -> &'static str {
        match self {
            SslMode::Disable => "disable",
            SslMode::Allow => "allow",
            SslMode::Prefer => "prefer",
            SslMode::Require => "require",
            SslMode::VerifyCa => "verify-ca",
            SslMode::VerifyFull => "verify-full",
        }
    }

    /// Returns whether a server without TLS is refused.
    pub fn is_required(self) -> bool {
        self >= SslMode::Require
    }
}

const ALL: [SslMode; 6] = [
    SslMode::Disable,
    SslMode::Allow,
    SslMode::Prefer,
    SslMode::Require,
    SslMode::VerifyCa,
    SslMode::VerifyFull,
];

impl FromStr for SslMode {
    type Err = TlsError;

    fn from_str(text: &str) -> Result<Self, TlsError> {
        let found = ALL.into_iter().find(|mode| mode.as_str() == text);
        found.ok_or_else(|| TlsError::UnknownMode {
            text: text.to_owned(),
        })
    }
}

impl fmt::Display for SslMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
