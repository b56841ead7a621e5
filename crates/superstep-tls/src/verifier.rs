//! Checks the certificate of a server.

use std::sync::Arc;

use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use tokio_rustls::rustls::crypto::{
    WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::identity::certificates;
use crate::reload::{ReadFile, Reloading};
use crate::{Roots, TlsError, Trust};

/// Checks as much of a certificate as the options demand, against the authorities that their file holds now.
///
/// The server's signature is checked in any case: without it, the key of the connection could be somebody else's.
#[derive(Debug)]
pub(crate) struct ServerVerifier {
    check: Check,
    supported: WebPkiSupportedAlgorithms,
}

#[derive(Debug)]
enum Check {
    Nothing,
    Chain(Authorities),
    Name(Authorities),
}

#[derive(Debug)]
enum Authorities {
    System(Arc<RootCertStore>),
    File(Reloading<RootCertStore>),
}

impl ServerVerifier {
    pub(crate) fn open(
        trust: &Trust,
        supported: WebPkiSupportedAlgorithms,
    ) -> Result<Self, TlsError> {
        let check = match trust {
            Trust::Anyone => Check::Nothing,
            Trust::Chain(roots) => Check::Chain(Authorities::open(roots)?),
            Trust::Name(roots) => Check::Name(Authorities::open(roots)?),
        };
        Ok(Self { check, supported })
    }

    fn check_chain(
        &self,
        authorities: &Authorities,
        certificate: &ParsedCertificate<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        let roots = authorities.current();
        let algorithms = self.supported.all;
        verify_server_cert_signed_by_trust_anchor(
            certificate,
            &roots,
            intermediates,
            now,
            algorithms,
        )
    }
}

impl Authorities {
    fn open(roots: &Roots) -> Result<Self, TlsError> {
        match roots {
            Roots::System => Ok(Self::System(Arc::new(system()?))),
            Roots::File(file) => {
                Reloading::open(vec![file.clone()], root_store).map(Authorities::File)
            }
        }
    }

    fn current(&self) -> Arc<RootCertStore> {
        match self {
            Authorities::System(roots) => Arc::clone(roots),
            Authorities::File(roots) => roots.current(),
        }
    }
}

fn system() -> Result<RootCertStore, TlsError> {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::debug!(%error, "a certificate of the system cannot be read");
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    match roots.is_empty() {
        true => Err(TlsError::NoSystemRoots),
        false => Ok(roots),
    }
}

fn root_store(files: &[ReadFile]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for file in files {
        let (added, _) = roots.add_parsable_certificates(certificates(file)?);
        if added == 0 {
            return Err(TlsError::NoCertificate {
                file: file.path.clone(),
            });
        }
    }
    Ok(roots)
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match &self.check {
            Check::Nothing => {}
            Check::Chain(authorities) => {
                let certificate = ParsedCertificate::try_from(end_entity)?;
                self.check_chain(authorities, &certificate, intermediates, now)?;
            }
            Check::Name(authorities) => {
                let certificate = ParsedCertificate::try_from(end_entity)?;
                self.check_chain(authorities, &certificate, intermediates, now)?;
                verify_server_name(&certificate, server_name)?;
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.supported)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.supported)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.supported.supported_schemes()
    }
}
