//! Handshakes with a server in the same process.

#![expect(
    clippy::unwrap_used,
    reason = "clippy lets tests unwrap, but not what helps them"
)]

use std::path::Path;
use std::sync::Arc;

use certificates::{Authority, Issued};
use superstep_tls::rustls::ServerConfig;
use superstep_tls::rustls::crypto::aws_lc_rs;
use superstep_tls::rustls::pki_types::pem::PemObject;
use superstep_tls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use superstep_tls::{ClientFiles, Roots, TlsClient, TlsError, TlsOptions, Trust, server_end_point};
use tokio_rustls::TlsAcceptor;

/// Accepts connections with this certificate.
fn acceptor(issued: &Issued) -> TlsAcceptor {
    let certificate = CertificateDer::from_pem_slice(issued.certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// Connects through memory. Returns the digest that both ends of the connection can compute, or why it is refused.
async fn handshake(
    client: &TlsClient,
    acceptor: &TlsAcceptor,
    host: &str,
) -> Result<Option<Vec<u8>>, TlsError> {
    let (near, far) = tokio::io::duplex(16_384);
    let (connected, _accepted) = tokio::join!(client.connect(host, near), acceptor.accept(far));
    let connected = connected?;
    let certificates = connected.get_ref().1.peer_certificates();
    let certificate = certificates.and_then(<[_]>::first).unwrap();
    Ok(server_end_point(certificate))
}

fn trusting(file: &Path) -> TlsOptions {
    TlsOptions {
        trust: Trust::Name(Roots::File(file.to_owned())),
        identity: None,
    }
}

#[tokio::test]
async fn a_replaced_authority_is_trusted_by_the_next_connection_and_the_old_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("authority.pem");
    let (first, second) = (Authority::new("first"), Authority::new("second"));
    std::fs::write(&file, first.pem()).unwrap();
    let client = TlsClient::new(&trusting(&file)).unwrap();
    let of_first = acceptor(&first.server(&["server.example"]));
    let of_second = acceptor(&second.server(&["server.example"]));
    let end_point = handshake(&client, &of_first, "server.example").await;
    assert_eq!(end_point.unwrap().map(|digest| digest.len()), Some(32));
    assert!(
        handshake(&client, &of_second, "server.example")
            .await
            .is_err()
    );
    std::fs::write(&file, second.pem()).unwrap();
    assert!(
        handshake(&client, &of_first, "server.example")
            .await
            .is_err()
    );
    handshake(&client, &of_second, "server.example")
        .await
        .unwrap();
    // As during an update that writes one file after the other.
    std::fs::write(&file, "half of a cert").unwrap();
    handshake(&client, &of_second, "server.example")
        .await
        .unwrap();
}

#[tokio::test]
async fn a_name_is_checked_only_where_the_options_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("authority.pem");
    let authority = Authority::new("authority");
    std::fs::write(&file, authority.pem()).unwrap();
    let acceptor = acceptor(&authority.server(&["server.example", "127.0.0.1"]));
    let named = TlsClient::new(&trusting(&file)).unwrap();
    handshake(&named, &acceptor, "127.0.0.1").await.unwrap();
    let refused = handshake(&named, &acceptor, "other.example").await;
    let error = refused.unwrap_err();
    assert!(error.to_string().contains("other.example"), "{error}");
    for trust in [Trust::Chain(Roots::File(file)), Trust::Anyone] {
        let client = TlsClient::new(&TlsOptions {
            trust,
            identity: None,
        });
        let client = client.unwrap();
        handshake(&client, &acceptor, "other.example")
            .await
            .unwrap();
    }
    let nameless = handshake(&named, &acceptor, "not a name").await;
    assert!(matches!(nameless, Err(TlsError::HostName { .. })));
}

#[test]
fn files_that_cannot_be_used_are_named_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let authority = Authority::new("authority");
    let (one, other) = (authority.client("one"), authority.client("other"));
    std::fs::write(path("one.pem"), &one.certificate).unwrap();
    std::fs::write(path("one.key"), &one.key).unwrap();
    std::fs::write(path("other.key"), &other.key).unwrap();
    let with = |certificate: &str, key: &str| {
        TlsClient::new(&TlsOptions {
            trust: Trust::Anyone,
            identity: Some(ClientFiles {
                certificate: path(certificate),
                key: path(key),
            }),
        })
    };
    assert!(with("one.pem", "one.key").is_ok());
    for (certificate, key, why) in [
        ("absent.pem", "one.key", "absent.pem"),
        ("one.key", "one.key", "no certificate"),
        ("one.pem", "one.pem", "no private key"),
        ("one.pem", "other.key", "cannot be used with the key"),
    ] {
        let error = with(certificate, key).unwrap_err().to_string();
        assert!(error.contains(why), "{certificate}, {key}: {error}");
    }
    assert!(TlsClient::new(&trusting(&path("absent.pem"))).is_err());
}
