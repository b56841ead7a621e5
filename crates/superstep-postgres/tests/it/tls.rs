//! TLS with a real server: what is accepted, what is refused, and what is read again.

use std::path::PathBuf;
use std::time::Duration;

use certificates::{Authority, Issued};
use superstep_core::error::CheckpointError;
use superstep_postgres::{Options, Postgres};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_postgres::Client;

use crate::cluster::Cluster;
use crate::kit::client;

/// A server with a certificate of a private authority, and the files of its clients.
struct Site {
    cluster: Cluster,
    authority: Authority,
    files: TempDir,
}

impl Site {
    /// Starts one for `localhost` and `db.example`. `rules` are those of `pg_hba.conf`.
    fn start(rules: &str) -> Self {
        let authority = Authority::new("a private authority");
        let files = tempfile::tempdir().unwrap();
        let site = Self {
            cluster: Cluster::start(),
            authority,
            files,
        };
        site.file("authority.pem", site.authority.pem());
        let stranger = Authority::new("another authority");
        site.file("stranger.pem", stranger.pem());
        site.cluster.write("authority.pem", site.authority.pem());
        let settings = "ssl = on\nssl_ca_file = 'authority.pem'\n";
        site.cluster.write("postgresql.auto.conf", settings);
        // The server itself is asked over its socket, by whom it trusts.
        let rules = format!("local all all trust\n{rules}\n");
        site.cluster.write("pg_hba.conf", &rules);
        site.serve(&site.authority.server(&["localhost", "db.example"]));
        site
    }

    /// Gives the server another certificate.
    fn serve(&self, issued: &Issued) {
        self.cluster.write("server.crt", &issued.certificate);
        self.cluster.write("server.key", &issued.key);
        self.cluster.restart();
    }

    /// Writes a file of a client, and returns its path.
    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn path(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// The address under a host name, with parameters. `FILES/` is the folder of the client's files.
    fn url(&self, host: &str, port: u16, parameters: &str) -> String {
        let parameters = parameters.replace("FILES", &self.files.path().display().to_string());
        format!(
            "postgres://superstep@{host}:{port}/postgres?hostaddr=127.0.0.1&application_name={NAME}&{parameters}"
        )
    }

    async fn connect(&self, host: &str, parameters: &str) -> Result<Postgres, CheckpointError> {
        connect(&self.url(host, self.cluster.port(), parameters)).await
    }

    /// Whether the connections of the store are encrypted.
    async fn is_encrypted(&self) -> bool {
        let sql = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
             WHERE application_name = $1";
        let row = self.admin().await.query_one(sql, &[&NAME]).await.unwrap();
        row.get(0)
    }

    async fn admin(&self) -> Client {
        let socket = self.cluster.socket();
        client(&format!(
            "host={socket} port={} user=superstep dbname=postgres",
            self.cluster.port()
        ))
        .await
    }
}

const NAME: &str = "tls-test";
/// Everybody from this machine, with and without TLS.
const OPEN: &str = "host all all 127.0.0.1/32 trust";

async fn connect(url: &str) -> Result<Postgres, CheckpointError> {
    let mut options = Options::default();
    options.partitions = 1;
    options.connections = 1;
    options.patience = Duration::from_millis(100);
    Postgres::connect_with(url, options).await
}

/// The error with its sources.
fn refusal(refused: Result<Postgres, CheckpointError>) -> String {
    let error = refused.expect_err("the connection was accepted");
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(error) = source {
        text.push_str(&format!(": {error}"));
        source = error.source();
    }
    text
}

#[tokio::test]
async fn a_mode_accepts_what_it_accepts_in_libpq() {
    let site = Site::start(OPEN);
    for (host, parameters, is_encrypted) in [
        ("localhost", "sslmode=disable", false),
        ("localhost", "sslmode=prefer", true),
        ("localhost", "sslmode=require", true),
        ("other.example", "sslmode=require", true),
        (
            "other.example",
            "sslmode=verify-ca&sslrootcert=FILES/authority.pem",
            true,
        ),
        (
            "db.example",
            "sslmode=verify-full&sslrootcert=FILES/authority.pem",
            true,
        ),
    ] {
        let store = site.connect(host, parameters).await;
        let store = store.unwrap_or_else(|error| panic!("{host} {parameters}: {error:?}"));
        store.bytes().await.unwrap();
        assert_eq!(site.is_encrypted().await, is_encrypted, "{parameters}");
        site.kill_connections().await;
    }
    for (host, parameters, why) in [
        (
            "other.example",
            "sslmode=verify-full&sslrootcert=FILES/authority.pem",
            "not valid for name",
        ),
        (
            "db.example",
            "sslmode=verify-full&sslrootcert=FILES/stranger.pem",
            "UnknownIssuer",
        ),
        (
            "db.example",
            "sslmode=verify-ca&sslrootcert=FILES/stranger.pem",
            "UnknownIssuer",
        ),
        // As in libpq: an authority that was given is one that must have signed.
        (
            "db.example",
            "sslmode=require&sslrootcert=FILES/stranger.pem",
            "UnknownIssuer",
        ),
    ] {
        let text = refusal(site.connect(host, parameters).await);
        assert!(text.contains(why), "{host} {parameters}: {text}");
    }
}

impl Site {
    /// Ends the connections of the store, and waits until the server has forgotten them.
    async fn kill_connections(&self) {
        let admin = self.admin().await;
        let kill =
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1";
        let left = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1";
        for _ in 0..500 {
            admin.query(kill, &[&NAME]).await.unwrap();
            let row = admin.query_one(left, &[&NAME]).await.unwrap();
            if row.get::<_, i64>(0) == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the connections did not end");
    }
}

#[tokio::test]
async fn an_expired_certificate_is_refused_where_certificates_are_checked() {
    let site = Site::start(OPEN);
    site.serve(&site.authority.expired_server(&["db.example"]));
    for mode in ["verify-ca", "verify-full"] {
        let parameters = format!("sslmode={mode}&sslrootcert=FILES/authority.pem");
        let text = refusal(site.connect("db.example", &parameters).await);
        assert!(text.contains("expired"), "{mode}: {text}");
    }
    site.connect("db.example", "sslmode=require").await.unwrap();
}

/// A relay that tells clients that the server has no TLS, as an attacker would. Returns its port.
async fn downgrading_relay(server: u16, tasks: &mut JoinSet<()>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tasks.spawn(async move {
        let mut relays = JoinSet::new();
        while let Ok((mut client, _)) = listener.accept().await {
            relays.spawn(async move {
                let mut request = [0; 8];
                // A client that goes away has refused, which is what the test looks at.
                if client.read_exact(&mut request).await.is_err() {
                    return;
                }
                assert_eq!(request[4..], 80_877_103_u32.to_be_bytes());
                client.write_all(b"N").await.unwrap();
                let mut server = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    port
}

#[tokio::test]
async fn nobody_on_the_way_can_turn_encryption_off_where_it_is_required() {
    let site = Site::start(OPEN);
    let mut tasks = JoinSet::new();
    let relay = downgrading_relay(site.cluster.port(), &mut tasks).await;
    for parameters in [
        "sslmode=require",
        "sslmode=verify-ca&sslrootcert=FILES/authority.pem",
        "sslmode=verify-full&sslrootcert=FILES/authority.pem",
    ] {
        let text = refusal(connect(&site.url("db.example", relay, parameters)).await);
        assert!(
            text.contains("does not support TLS"),
            "{parameters}: {text}"
        );
    }
    let url = site.url("db.example", relay, "sslmode=prefer");
    let store = connect(&url).await.unwrap();
    store.bytes().await.unwrap();
    assert!(!site.is_encrypted().await);
}

#[tokio::test]
async fn a_client_certificate_is_shown_and_a_replaced_one_used_by_the_next_connection() {
    let site = Site::start("hostssl all all 127.0.0.1/32 cert");
    let verified = "sslmode=verify-full&sslrootcert=FILES/authority.pem";
    let text = refusal(site.connect("db.example", verified).await);
    assert!(text.contains("certificate"), "{text}");

    let show = |issued: &Issued| {
        site.file("client.pem", &issued.certificate);
        site.file("client.key", &issued.key);
    };
    let parameters = format!("{verified}&sslcert=FILES/client.pem&sslkey=FILES/client.key");
    show(&Authority::new("a third authority").client("superstep"));
    refusal(site.connect("db.example", &parameters).await);

    show(&site.authority.client("superstep"));
    let store = site.connect("db.example", &parameters).await.unwrap();
    store.bytes().await.unwrap();
    let before = site.client_serials().await;
    show(&site.authority.client("superstep"));
    site.kill_connections().await;
    store.bytes().await.unwrap();
    let after = site.client_serials().await;
    assert_eq!((before.len(), after.len()), (1, 1));
    assert_ne!(before, after);
}

impl Site {
    /// Serial numbers of the certificates that the connections of the store have shown.
    async fn client_serials(&self) -> Vec<String> {
        let sql = "SELECT DISTINCT client_serial::text FROM pg_stat_ssl
             JOIN pg_stat_activity USING (pid) WHERE application_name = $1";
        let rows = self.admin().await.query(sql, &[&NAME]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }
}

#[tokio::test]
async fn a_password_from_a_file_is_bound_to_the_certificate_and_read_again() {
    let site = Site::start("hostssl all all 127.0.0.1/32 scram-sha-256");
    let admin = site.admin().await;
    let set = async |password: &str| {
        let sql = format!("ALTER ROLE superstep PASSWORD '{password}'");
        admin.batch_execute(&sql).await.unwrap();
        let line = format!("db.example:*:*:superstep:{password}\n");
        site.file("passwords", &line);
    };
    set("first").await;
    // The server proves that it is the end of this very connection, and not behind somebody who relays the proofs.
    let parameters = "sslmode=verify-full&sslrootcert=FILES/authority.pem\
                      &channel_binding=require&passfile=FILES/passwords";
    let store = site.connect("db.example", parameters).await.unwrap();
    set("second").await;
    site.kill_connections().await;
    store.bytes().await.unwrap();
    site.file("passwords", "db.example:*:*:superstep:wrong\n");
    let refused = site.connect("db.example", parameters).await;
    // The file may be about to change, so this is worth another attempt.
    let is_transient = matches!(refused, Err(CheckpointError::Store { .. }));
    let text = refusal(refused);
    assert!(is_transient && text.contains("passwords"), "{text}");
}
