//! A worker with an identity key takes calls of its own cluster and of nobody else.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use superstep::prelude::*;
use superstep_postgres::Postgres;
use superstep_restate::{Restate, Worker};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::kit::{Services, cache, named, post, store};

#[derive(Clone, Debug, Default, PartialEq, State)]
struct Greeting {
    text: String,
}

fn graph() -> Graph<Greeting> {
    Graph::builder("greeting")
        .node("greet", async |_: View<Greeting>, _: NodeCx| {
            Ok::<_, NodeError>(GreetingUpdate::default().text("hello".to_owned()))
        })
        .edge(START, "greet")
        .edge("greet", END)
        .build()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn signed_calls_pass_and_unsigned_ones_are_refused() {
    let signing = Signing::start();
    let store = store(&Services::find()).await;
    let (worker, _serving) = serve(&store, &signing.public_key()).await;

    // Whoever is not the cluster is not even told what there is.
    for path in ["/discover", "/invoke/SuperstepThread/run"] {
        assert_eq!(call_unsigned(worker, path).await, 401, "{path}");
    }

    let admin = format!("http://{}/deployments", signing.admin);
    let body = serde_json::json!({ "uri": format!("http://{worker}") });
    let (status, answer) = post(&admin, &body).await;
    assert!((200..300).contains(&status), "{status}: {answer}");
    let engine = Restate::new([format!("http://{}", signing.ingress)], store.clone()).unwrap();
    let runtime = Runtime::builder(store).engine(engine).build();
    let thread = runtime.thread(&graph(), named("signed")).unwrap();
    let stopped = thread.start(GreetingUpdate::default()).await.unwrap();
    assert_eq!(stopped.state.text, "hello");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_calls_of_another_cluster_are_refused() {
    let (signing, other) = (Signing::start(), Signing::start());
    let store = store(&Services::find()).await;
    let (worker, _serving) = serve(&store, &signing.public_key()).await;
    let admin = format!("http://{}/deployments", other.admin);
    let body = serde_json::json!({ "uri": format!("http://{worker}") });
    let (status, answer) = post(&admin, &body).await;
    assert!((400..600).contains(&status), "{status}: {answer}");
    assert!(answer.contains("401"), "{answer}");
}

/// A worker that takes calls which are signed with this key. Gives where it listens; it ends with what else is given.
async fn serve(store: &Postgres, public_key: &str) -> (SocketAddr, JoinSet<()>) {
    let runtime = Runtime::new(store.clone());
    runtime.register(&graph());
    let worker = Worker::new(runtime, store.clone()).identity_key(public_key);
    let listener = Worker::listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let served = worker.serve(listener, std::future::pending());
        served.await.unwrap();
    });
    (address, serving)
}

/// The status of a call as Restate makes them, without a signature.
async fn call_unsigned(worker: SocketAddr, path: &str) -> u16 {
    let client = Client::builder(TokioExecutor::new())
        .http2_only(true)
        .build_http();
    let request = hyper::Request::post(format!("http://{worker}{path}"))
        .header("content-type", "application/vnd.restate.invocation.v5")
        .body(Full::new(Bytes::new()))
        .unwrap();
    let response = client.request(request).await.unwrap();
    let status = response.status().as_u16();
    response.into_body().collect().await.unwrap();
    status
}

/// A Restate of one node that signs its calls. It ends with this value.
struct Signing {
    server: Child,
    folder: TempDir,
    ingress: SocketAddr,
    admin: SocketAddr,
}

impl Signing {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("private.pem");
        std::fs::write(&key, private_key()).unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let [fabric, ingress, admin] = [free(), free(), free()];
        let mut command = Command::new(server());
        command
            .args(["--no-logo", "--base-dir"])
            .arg(folder.path())
            .env("RESTATE_NODE_NAME", "signing")
            .env("RESTATE_LISTEN_MODE", "tcp")
            .env("RESTATE_DEFAULT_NUM_PARTITIONS", "1")
            .env("RESTATE_DISABLE_TELEMETRY", "true")
            .env("RESTATE_BIND_ADDRESS", fabric.to_string())
            .env("RESTATE_ADVERTISED_ADDRESS", format!("http://{fabric}"))
            .env("RESTATE_INGRESS__BIND_ADDRESS", ingress.to_string())
            .env("RESTATE_ADMIN__BIND_ADDRESS", admin.to_string())
            .env(
                "RESTATE_WORKER__INVOKER__REQUEST_IDENTITY_PRIVATE_KEY_PEM_FILE",
                key,
            )
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        let signing = Self {
            server: command.spawn().unwrap(),
            folder,
            ingress,
            admin,
        };
        signing.wait_until_well();
        signing
    }

    fn wait_until_well(&self) {
        let begun = Instant::now();
        while !(answers(self.admin, "/health") && answers(self.ingress, "/restate/health")) {
            assert!(begun.elapsed() < PATIENCE, "{}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// As the server prints it when it starts.
    fn public_key(&self) -> String {
        let log = self.log();
        let at = log.find("publickeyv1_").expect("it prints its key");
        log[at..]
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
            .collect()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Signing {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Whether a GET is answered with 200.
fn answers(address: SocketAddr, path: &str) -> bool {
    use std::io::{Read, Write};
    let ask = || -> std::io::Result<[u8; 12]> {
        let mut stream = std::net::TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")?;
        let mut start = [0; 12];
        stream.read_exact(&mut start)?;
        Ok(start)
    };
    ask().is_ok_and(|start| start.ends_with(b"200"))
}

fn free() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// An Ed25519 key that nobody has seen before, as PKCS #8 in PEM.
fn private_key() -> String {
    use std::hash::{BuildHasher, RandomState};
    let header = [
        0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04,
        0x20,
    ];
    let secret = (0..4).flat_map(|n| RandomState::new().hash_one(n).to_be_bytes());
    let bytes: Vec<u8> = header.into_iter().chain(secret).collect();
    format!(
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
        base64(&bytes)
    )
}

/// Of a length that three divides.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let quads = bytes.chunks_exact(3).map(|three| {
        let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        [18, 12, 6, 0].map(|shift| char::from(DIGITS[(bits >> shift) as usize & 63]))
    });
    quads.flatten().collect()
}

/// The program that `cargo xtask services up` has installed.
fn server() -> PathBuf {
    if let Some(path) = std::env::var_os("SUPERSTEP_RESTATE_SERVER") {
        return PathBuf::from(path);
    }
    let programs = cache().map(|cache| cache.join("services/programs"));
    let versions = programs.and_then(|programs| std::fs::read_dir(programs).ok());
    let machine = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    let in_version = |version: &Path| {
        let package = format!("node_modules/@restatedev/restate-server-linux-{machine}");
        version.join(package).join("bin/restate-server")
    };
    versions
        .into_iter()
        .flatten()
        .filter_map(|version| Some(in_version(&version.ok()?.path())))
        .find(|program| program.exists())
        .expect("this test needs restate-server: run `cargo xtask services up`, or set SUPERSTEP_RESTATE_SERVER")
}

const PATIENCE: Duration = Duration::from_secs(60);
