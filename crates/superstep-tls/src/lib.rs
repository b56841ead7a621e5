//! TLS to the servers that Superstep uses: PostgreSQL, Redis, and the ingress and the admin API of Restate.
//!
//! The parameters of an address say what to trust, spelled as libpq spells them ([`TlsParameters`]). They become [`TlsOptions`],
//! and from these a [`TlsClient`] that encrypts connections, or the rustls configuration for an HTTP client
//! ([`client_config`]).
//!
//! Certificates are PEM files. Every new connection reads them again, so a replaced file takes effect without a restart and
//! without a watcher. If the new files cannot be used, for instance because only one of certificate and key was replaced so far,
//! connections use the last ones that could, and a warning is logged. Sessions are never resumed: each connection checks the
//! certificate of the server.
//!
//! This crate never falls back to an unencrypted connection, and never asks the network about revoked certificates. It knows no
//! protocol but TLS: which servers speak it, and when, is for the crates that connect.
//!
//! ```no_run
//! # async fn example(stream: tokio::net::TcpStream) -> Result<(), superstep_tls::TlsError> {
//! use superstep_tls::{TlsClient, TlsParameters};
//!
//! let address = "rediss://cache.internal:6379?sslrootcert=/etc/tls/authority.pem";
//! let (address, parameters) = TlsParameters::take_from_url(address)?;
//! assert_eq!(address, "rediss://cache.internal:6379");
//! let tls = TlsClient::new(&parameters.required()?)?;
//! let encrypted = tls.connect("cache.internal", stream).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # In the book
//!
//! The pages are in `docs/` of the repository. These links lead to them where `cargo xtask book` has built the book next to this
//! documentation.
//!
//! - [Configuration, with TLS and passwords](../../book/html/docs/configuration.html)

mod channel_binding;
mod client;
mod error;
mod identity;
mod mode;
mod options;
mod parameters;
mod reload;
mod verifier;

pub use channel_binding::server_end_point;
pub use client::{TlsClient, client_config};
pub use error::TlsError;
pub use mode::SslMode;
pub use options::{ClientFiles, Roots, TlsOptions, Trust};
pub use parameters::TlsParameters;
pub use tokio_rustls::client::TlsStream;
pub use tokio_rustls::rustls;
