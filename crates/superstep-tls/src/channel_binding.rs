//! Binds the authentication inside of a connection to its certificate: `tls-server-end-point` of RFC 5929.

use sha2::{Digest, Sha256, Sha384, Sha512};
use tokio_rustls::rustls::pki_types::CertificateDer;

/// Returns the digest of a server's certificate that both sides mix into their proofs, so that a proof is worthless on another
/// connection. `None` if the certificate is signed in a way that names no hash function, for instance with Ed25519.
pub fn server_end_point(certificate: &CertificateDer<'_>) -> Option<Vec<u8>> {
    let digest = match signature_algorithm(certificate)? {
        // Instead of MD5 and SHA-1, the standard takes SHA-256.
        RSA_MD5 | RSA_SHA1 | RSA_SHA256 | ECDSA_SHA1 | ECDSA_SHA256 => {
            Sha256::digest(certificate).to_vec()
        }
        RSA_SHA384 | ECDSA_SHA384 => Sha384::digest(certificate).to_vec(),
        RSA_SHA512 | ECDSA_SHA512 => Sha512::digest(certificate).to_vec(),
        _ => return None,
    };
    Some(digest)
}

// Object identifiers as a certificate encodes them.
const RSA_MD5: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 4];
const RSA_SHA1: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 5];
const RSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11];
const RSA_SHA384: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 12];
const RSA_SHA512: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 13];
const ECDSA_SHA1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1];
const ECDSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
const ECDSA_SHA384: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3];
const ECDSA_SHA512: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4];

/// Returns the object identifier of the signature: the certificate is a sequence of its contents, this, and the signature.
fn signature_algorithm(certificate: &[u8]) -> Option<&[u8]> {
    let (certificate, _) = element(SEQUENCE, certificate)?;
    let (_contents, rest) = element(SEQUENCE, certificate)?;
    let (algorithm, _) = element(SEQUENCE, rest)?;
    let (identifier, _) = element(OBJECT_IDENTIFIER, algorithm)?;
    Some(identifier)
}

const SEQUENCE: u8 = 0x30;
const OBJECT_IDENTIFIER: u8 = 0x06;

/// Splits DER after its first element, which must have this tag, and returns what is in the element and what follows.
fn element(tag: u8, der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (found, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    if *found != tag {
        return None;
    }
    let (length, rest) = match *first {
        short @ 0..=0x7f => (usize::from(short), rest),
        long @ 0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
            let number = digits
                .iter()
                .fold(0, |number, digit| (number << 8) | usize::from(*digit));
            (number, rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_of_a_certificate_names_the_hash() {
        let long = [0; 300];
        let mut contents = vec![SEQUENCE, 0x82, 1, 0x2c];
        contents.extend(long);
        let mut signed = contents.clone();
        signed.extend([SEQUENCE, 10, OBJECT_IDENTIFIER, 8]);
        signed.extend(ECDSA_SHA384);
        let mut certificate = vec![SEQUENCE, 0x82, 1, 0x3c];
        certificate.extend(signed);
        assert_eq!(signature_algorithm(&certificate), Some(ECDSA_SHA384));
        let der = CertificateDer::from(certificate.clone());
        assert_eq!(server_end_point(&der).map(|digest| digest.len()), Some(48));
        certificate.truncate(200);
        assert_eq!(signature_algorithm(&certificate), None);
        assert_eq!(server_end_point(&CertificateDer::from(vec![])), None);
    }
}
