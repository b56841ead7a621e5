//! A private authority, and certificates of it, for the tests of TLS.
//!
//! An [`Authority`] exists for as long as a test, and issues a certificate and its key ([`Issued`]) for any name, also one that has
//! expired: for a server, or for a client that proves who it is.
//!
//! Nothing else trusts it, and this crate writes no files and opens no connections: a test puts the PEM text where its server reads
//! it.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};

/// An authority that nobody but a test trusts.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A certificate and its key, both in PEM form.
#[derive(Debug, Clone)]
pub struct Issued {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

impl Authority {
    /// Makes an authority of this name.
    pub fn new(name: &str) -> Self {
        let mut params = params(name, &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("a key can be generated");
        let certificate = params.self_signed(&key).expect("the parameters are valid");
        Self {
            pem: certificate.pem(),
            issuer: Issuer::new(params, key),
        }
    }

    /// The certificate of the authority, which its clients trust.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Issues a certificate to a server of these names, some of which may be IP addresses.
    pub fn server(&self, names: &[&str]) -> Issued {
        let mut params = params("server", names);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.issue(&params)
    }

    /// Issues a certificate to a server that has expired long ago.
    pub fn expired_server(&self, names: &[&str]) -> Issued {
        let mut params = params("server", names);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(2001, 1, 1);
        self.issue(&params)
    }

    /// Issues a certificate to a client of this name.
    pub fn client(&self, name: &str) -> Issued {
        let mut params = params(name, &[]);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(&params)
    }

    fn issue(&self, params: &CertificateParams) -> Issued {
        let key = KeyPair::generate().expect("a key can be generated");
        let certificate = params.signed_by(&key, &self.issuer);
        let certificate = certificate.expect("the parameters are valid");
        Issued {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }
}

fn params(common_name: &str, names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("the names are valid");
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    params.use_authority_key_identifier_extension = true;
    params
}
