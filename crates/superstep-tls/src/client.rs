//! Encrypts connections to servers.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::identity::ClientIdentity;
use crate::verifier::ServerVerifier;
use crate::{TlsError, TlsOptions};

/// Encrypts connections to servers. Cheap to clone.
#[derive(Clone)]
pub struct TlsClient {
    connector: TlsConnector,
}

impl TlsClient {
    /// Creates a client. Fails if a file of the options cannot be used.
    pub fn new(options: &TlsOptions) -> Result<Self, TlsError> {
        Self::with_protocols(options, &[])
    }

    /// Creates a client that offers these protocols to servers (ALPN).
    pub fn with_protocols(options: &TlsOptions, protocols: &[&str]) -> Result<Self, TlsError> {
        let mut config = client_config(options)?;
        let protocols = protocols.iter().map(|name| name.as_bytes().to_vec());
        config.alpn_protocols = protocols.collect();
        Ok(Self {
            connector: TlsConnector::from(Arc::new(config)),
        })
    }

    /// Encrypts a connection to a host. Fails if its certificate does not prove what the options demand.
    pub async fn connect<S>(&self, host: &str, stream: S) -> Result<TlsStream<S>, TlsError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| TlsError::HostName {
            host: host.to_owned(),
        })?;
        let connected = self.connector.connect(name, stream).await;
        connected.map_err(|source| TlsError::Handshake {
            host: host.to_owned(),
            source,
        })
    }
}

impl std::fmt::Debug for TlsClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsClient").finish_non_exhaustive()
    }
}

/// Returns the configuration of a client with these options, for HTTP clients that take one. It reads the files of the options
/// again at each handshake.
pub fn client_config(options: &TlsOptions) -> Result<ClientConfig, TlsError> {
    let provider = aws_lc_rs::default_provider();
    let verifier =
        ServerVerifier::open(&options.trust, provider.signature_verification_algorithms)?;
    let identity = options.identity.as_ref().map(ClientIdentity::open);
    let identity = identity.transpose()?;
    let builder = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .map_err(|source| TlsError::Setup {
            source: source.into(),
        })?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match identity {
        Some(identity) => builder.with_client_cert_resolver(Arc::new(identity)),
        None => builder.with_no_client_auth(),
    };
    // A resumed session would skip the check of a certificate that has expired or was replaced.
    config.resumption = Resumption::disabled();
    Ok(config)
}
