//! TLS to a real Redis, and to the ingress of a real Restate behind a proxy, which has none of its own.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use certificates::{Authority, Issued};
use free_ports::free_port;
use superstep::prelude::*;
use superstep::{LiveBus, LiveDelivery, LiveMessage, Seq, ThreadId};
use superstep_restate::{Redis, Restate};
use superstep_tls::rustls::ServerConfig;
use superstep_tls::rustls::crypto::aws_lc_rs;
use superstep_tls::rustls::pki_types::pem::PemObject;
use superstep_tls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::kit::{Cluster, named};

/// Files with certificates.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn write_issued(&self, name: &str, issued: &Issued) {
        self.write(&format!("{name}.pem"), &issued.certificate);
        self.write(&format!("{name}.key"), &issued.key);
    }

    /// Parameters of an address. `FILES/` is the folder of these files.
    fn parameters(&self, text: &str) -> String {
        text.replace("FILES", &self.0.path().display().to_string())
    }
}

/// A Redis that speaks TLS only, with the certificate `server` and the authority `authority` of the files.
struct TlsRedis {
    port: u16,
    _child: Child,
}

impl TlsRedis {
    async fn start(files: &Files, options: &[&str]) -> Self {
        let port = free_port();
        let child = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--save", "", "--port", "0"])
            .args(["--tls-port", &port.to_string(), "--tls-cert-file"])
            .arg(files.path("server.pem"))
            .arg("--tls-key-file")
            .arg(files.path("server.key"))
            .arg("--tls-ca-cert-file")
            .arg(files.path("authority.pem"))
            .args(options)
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("`cargo xtask services up` installs redis-server");
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Self {
            port,
            _child: child,
        }
    }

    async fn connect(&self, files: &Files, parameters: &str) -> Redis {
        let parameters = files.parameters(parameters);
        let address = format!("rediss://localhost:{}?{parameters}", self.port);
        Redis::connect(&address).await.unwrap()
    }
}

/// Long enough for several attempts to connect.
const BRIEFLY: Duration = Duration::from_secs(1);
const PATIENTLY: Duration = Duration::from_secs(30);

/// Whether a message comes back within this time.
async fn hears(bus: &Redis, within: Duration) -> bool {
    let thread = ThreadId::new("tls").unwrap();
    let mut subscription = bus.subscribe(&thread);
    let heard = async {
        loop {
            bus.publish(&thread, LiveMessage::Entry(Seq(1)));
            let next = subscription.next();
            let next = tokio::time::timeout(Duration::from_millis(100), next).await;
            if let Ok(LiveDelivery::Now(_)) = next {
                return;
            }
        }
    };
    tokio::time::timeout(within, heard).await.is_ok()
}

const VERIFIED: &str = "sslrootcert=FILES/authority.pem";

#[tokio::test(flavor = "multi_thread")]
async fn redis_is_heard_over_tls_if_its_certificate_proves_what_the_address_demands() {
    let files = Files::new();
    let authority = Authority::new("a private authority");
    files.write("authority.pem", authority.pem());
    files.write("stranger.pem", Authority::new("a stranger").pem());
    files.write_issued("server", &authority.server(&["localhost"]));
    let redis = TlsRedis::start(&files, &["--tls-auth-clients", "no"]).await;
    assert!(hears(&redis.connect(&files, VERIFIED).await, PATIENTLY).await);
    let stranger = redis
        .connect(&files, "sslrootcert=FILES/stranger.pem")
        .await;
    assert!(!hears(&stranger, BRIEFLY).await);

    files.write_issued("server", &authority.server(&["other.example"]));
    let redis = TlsRedis::start(&files, &["--tls-auth-clients", "no"]).await;
    assert!(!hears(&redis.connect(&files, VERIFIED).await, BRIEFLY).await);
    let chain = format!("sslmode=verify-ca&{VERIFIED}");
    assert!(hears(&redis.connect(&files, &chain).await, PATIENTLY).await);

    files.write_issued("server", &authority.expired_server(&["localhost"]));
    let redis = TlsRedis::start(&files, &["--tls-auth-clients", "no"]).await;
    assert!(!hears(&redis.connect(&files, VERIFIED).await, BRIEFLY).await);
    let anyone = redis.connect(&files, "sslmode=require").await;
    assert!(hears(&anyone, PATIENTLY).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_client_certificate_and_password_are_used_by_the_next_connection() {
    let files = Files::new();
    let authority = Authority::new("a private authority");
    files.write("authority.pem", authority.pem());
    files.write_issued("server", &authority.server(&["localhost"]));
    files.write_issued("client", &Authority::new("a stranger").client("us"));
    files.write("password", "wrong\n");
    let options = ["--tls-auth-clients", "yes", "--requirepass", "right"];
    let redis = TlsRedis::start(&files, &options).await;
    let parameters = format!(
        "{VERIFIED}&sslcert=FILES/client.pem&sslkey=FILES/client.key&passfile=FILES/password"
    );
    let bus = redis.connect(&files, &parameters).await;
    assert!(!hears(&bus, BRIEFLY).await);
    files.write_issued("client", &authority.client("us"));
    assert!(!hears(&bus, BRIEFLY).await);
    files.write("password", "right\n");
    assert!(hears(&bus, PATIENTLY).await);
}

/// A proxy that speaks TLS in front of a server without. Returns its port.
async fn tls_proxy(server: String, issued: &Issued, tasks: &mut JoinSet<()>) -> u16 {
    let certificate = CertificateDer::from_pem_slice(issued.certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tasks.spawn(async move {
        let mut relays = JoinSet::new();
        while let Ok((client, _)) = listener.accept().await {
            let (acceptor, server) = (acceptor.clone(), server.clone());
            relays.spawn(async move {
                // A client that does not accept the certificate goes away.
                let Ok(mut client) = acceptor.accept(client).await else {
                    return;
                };
                let mut server = TcpStream::connect(server).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    port
}

#[derive(Clone, Debug, Default, PartialEq, State)]
struct Greeting {
    #[state(append)]
    lines: Vec<String>,
}

fn graph() -> Graph<Greeting> {
    Graph::builder("greets")
        .node("greet", async |_: View<Greeting>, _: NodeCx| {
            Ok::<_, NodeError>(GreetingUpdate::default().lines("hello".to_owned()))
        })
        .edge(START, "greet")
        .edge("greet", END)
        .build()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ingress_is_called_over_tls_if_its_certificate_is_for_its_name() {
    let files = Files::new();
    let authority = Authority::new("a private authority");
    files.write("authority.pem", authority.pem());
    let mut cluster = Cluster::start().await;
    let ingress = cluster.services.ingress.replace("http://", "");
    let mut tasks = JoinSet::new();
    let right = authority.server(&["localhost"]);
    let right = tls_proxy(ingress.clone(), &right, &mut tasks).await;
    let wrong = authority.server(&["other.example"]);
    let wrong = tls_proxy(ingress, &wrong, &mut tasks).await;
    let restate = |port: u16| {
        let parameters = files.parameters(VERIFIED);
        let address = format!("https://localhost:{port}/?{parameters}");
        Restate::new([address], cluster.store.clone()).unwrap()
    };
    let (right, wrong) = (restate(right), restate(wrong).patience(Duration::ZERO));

    cluster.restate = right;
    let thread = cluster.runtime().thread(&graph(), named("tls")).unwrap();
    let stopped = thread.start(GreetingUpdate::default()).await.unwrap();
    assert_eq!(stopped.outcome, Outcome::Finished);
    assert_eq!(stopped.state.lines, ["hello"]);

    cluster.restate = wrong;
    let thread = cluster.runtime().thread(&graph(), named("mitm")).unwrap();
    let refused = thread.start(GreetingUpdate::default()).await.unwrap_err();
    let refused = format!("{refused:?}");
    assert!(refused.contains("not valid for name"), "{refused}");
}

#[tokio::test]
async fn addresses_of_an_ingress_with_wrong_parameters_are_refused() {
    let store = crate::kit::store(&crate::kit::Services::find()).await;
    for (address, code) in [
        ("http://h:8080?sslrootcert=/a", "restate-bad-parameters"),
        (
            "https://h:8080?sslrootcert=/absent",
            "restate-bad-parameters",
        ),
        ("https://h:8080?other=1", "restate-bad-address"),
        ("ftp://h", "restate-bad-address"),
    ] {
        let refused = Restate::new([address], store.clone()).unwrap_err();
        assert_eq!(refused.code(), code, "{address}");
    }
}
