//! Errors of options, certificates and handshakes.

use std::error::Error;
use std::path::PathBuf;

use crate::SslMode;

/// Why a connection is not encrypted: wrong options, unusable files, or a handshake that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The text is not a mode.
    #[error(
        "`{text}` is not an sslmode; write disable, allow, prefer, require, verify-ca or verify-full"
    )]
    UnknownMode {
        /// The rejected text.
        text: String,
    },
    /// Nothing reads the parameter; it may be misspelled.
    #[error("the address has a parameter `{name}`, which is not known")]
    UnknownParameter {
        /// Name of the parameter.
        name: String,
    },
    /// A parameter is not valid percent-encoded text.
    #[error("the value of `{name}` in the address is not percent-encoded UTF-8")]
    Undecodable {
        /// Name of the parameter.
        name: String,
    },
    /// Libraries disagree about where the parameters of the address begin.
    #[error("the address has an `@` behind a `?`; write %40 in a parameter, and %3F in a password")]
    Ambiguous,
    /// The mode checks a chain, and there is nothing to check it against.
    #[error(
        "sslmode={mode} needs the certificate of an authority: give sslrootcert=FILE, or use verify-full, which trusts the system's"
    )]
    NoRoots {
        /// The mode.
        mode: SslMode,
    },
    /// Every owner of a domain has a certificate that the system trusts, so the name must be checked, too.
    #[error("sslrootcert=system needs sslmode=verify-full, not {mode}")]
    WeakSystemRoots {
        /// The mode.
        mode: SslMode,
    },
    /// Only one of certificate and key was given.
    #[error("give both sslcert and sslkey, or neither")]
    HalfIdentity,
    /// The address asks for an encrypted connection, and the mode allows another one.
    #[error(
        "sslmode={mode} contradicts the scheme of the address, which demands TLS; write require, verify-ca or verify-full"
    )]
    Contradiction {
        /// The mode.
        mode: SslMode,
    },
    /// The handshake is to come first, so the server cannot be asked whether it has TLS.
    #[error("sslnegotiation=direct needs sslmode=require, verify-ca or verify-full, not {mode}")]
    WeakDirect {
        /// The mode.
        mode: SslMode,
    },
    /// The address has parameters of TLS, and its scheme is one without.
    #[error("the address has `{name}`, but its scheme does not encrypt; use the scheme with TLS")]
    Unencrypted {
        /// Name of the parameter.
        name: &'static str,
    },
    /// A file cannot be read.
    #[error("cannot read `{}`", .file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file holds no certificate.
    #[error("`{}` holds no certificate in PEM form", .file.display())]
    NoCertificate {
        /// The file.
        file: PathBuf,
    },
    /// A file holds no key that can be read.
    #[error("`{}` holds no private key in PEM form, or an encrypted one; decrypt it first", .file.display())]
    NoKey {
        /// The file.
        file: PathBuf,
    },
    /// Certificate and key do not belong together, or are of an unknown kind.
    #[error("the certificate in `{}` cannot be used with the key in `{}`", .certificate.display(), .key.display())]
    Identity {
        /// File of the certificate.
        certificate: PathBuf,
        /// File of the key.
        key: PathBuf,
        /// Why not.
        source: Box<dyn Error + Send + Sync>,
    },
    /// This machine has no certificates of authorities.
    #[error(
        "this system has no certificates of authorities; install them, or give sslrootcert=FILE"
    )]
    NoSystemRoots,
    /// The configuration was rejected.
    #[error("TLS cannot be set up")]
    Setup {
        /// Why not.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The name of the host cannot be in a certificate.
    #[error("`{host}` is not a host name or an IP address, so no certificate can be for it")]
    HostName {
        /// The rejected name.
        host: String,
    },
    /// The handshake failed: the certificate is not accepted, by one side or the other.
    #[error(
        "the TLS handshake with `{host}` failed (it needs TLS 1.2 or newer and a certificate of version 3)"
    )]
    Handshake {
        /// Host of the server.
        host: String,
        /// What was wrong.
        source: std::io::Error,
    },
}
