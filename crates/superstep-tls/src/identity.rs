//! The certificate that a client shows.

use std::sync::Arc;

use tokio_rustls::rustls::SignatureScheme;
use tokio_rustls::rustls::client::ResolvesClientCert;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::sign::CertifiedKey;

use crate::reload::{ReadFile, Reloading};
use crate::{ClientFiles, TlsError};

/// Shows the certificate that the files hold when the server asks for one.
#[derive(Debug)]
pub(crate) struct ClientIdentity(Reloading<CertifiedKey>);

impl ClientIdentity {
    pub(crate) fn open(files: &ClientFiles) -> Result<Self, TlsError> {
        let paths = vec![files.certificate.clone(), files.key.clone()];
        Ok(Self(Reloading::open(paths, certified_key)?))
    }
}

impl ResolvesClientCert for ClientIdentity {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.0.current())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

fn certified_key(files: &[ReadFile]) -> Result<CertifiedKey, TlsError> {
    let [certificate, key] = files else {
        unreachable!("a certificate and a key were opened");
    };
    let chain: Vec<_> = certificates(certificate)?;
    let private = PrivateKeyDer::from_pem_slice(&key.text).map_err(|_| TlsError::NoKey {
        file: key.path.clone(),
    })?;
    CertifiedKey::from_der(chain, private, &aws_lc_rs::default_provider()).map_err(|source| {
        TlsError::Identity {
            certificate: certificate.path.clone(),
            key: key.path.clone(),
            source: source.into(),
        }
    })
}

/// Returns the certificates of a PEM file, at least one.
pub(crate) fn certificates(file: &ReadFile) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&file.text).collect();
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        _ => Err(TlsError::NoCertificate {
            file: file.path.clone(),
        }),
    }
}
