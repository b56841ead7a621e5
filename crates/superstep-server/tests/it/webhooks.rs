//! Webhooks: the end of a run reaches its receiver at least once, whatever the receiver does, and reaches no private address.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};
use superstep::registry::MemoryRegistry;
use superstep::{Memory, Runtime};
use superstep_http::{BoxFuture, NameResolver};
use superstep_server::{ServerBuilder, WebhookAttempts};

use crate::kit::Client;
use crate::receiver::{Reaction, Received, Receiver};

/// 24 bytes: the shortest secrets that there are.
const OLD: [u8; 24] = [7; 24];
const NEW: [u8; 24] = [8; 24];

const ATTEMPTS: WebhookAttempts = WebhookAttempts {
    max: 8,
    timeout: Duration::from_millis(500),
    shortest_pause: Duration::from_millis(2),
    longest_pause: Duration::from_millis(20),
};

fn server(receiver: &Receiver) -> ServerBuilder {
    let host = format!("127.0.0.1:{}", receiver.port());
    impatient().allow_webhook_host(host.parse().unwrap())
}

/// A server that gives up soon.
fn impatient() -> ServerBuilder {
    let runtime = Runtime::new(Memory::default());
    Client::builder(runtime, &MemoryRegistry::new()).webhook_attempts(ATTEMPTS)
}

fn secret(key: &[u8]) -> superstep_server::WebhookSecret {
    let text = format!("whsec_{}", STANDARD.encode(key));
    text.parse().unwrap()
}

/// Computes a signature as a receiver would.
fn signature(key: &[u8], received: &Received) -> String {
    let mut block = key.to_vec();
    block.resize(64, 0);
    let pad = |with: u8| block.iter().map(|byte| byte ^ with).collect::<Vec<u8>>();
    let signed = format!(
        "{}.{}.",
        received.id(),
        received.headers["webhook-timestamp"]
    );
    let inner = Sha256::digest([&pad(0x36)[..], signed.as_bytes(), &received.body[..]].concat());
    let outer = Sha256::digest([&pad(0x5c)[..], &inner[..]].concat());
    format!("v1,{}", STANDARD.encode(outer))
}

fn run(graph: &str, webhook: &str) -> Json {
    json!({
        "assistant_id": graph,
        "input": { "messages": [{ "role": "user", "content": "hi" }] },
        "webhook": webhook,
    })
}

/// Creates a run on a thread of its own, and returns its id.
async fn start(client: &Client, graph: &str, webhook: &str) -> String {
    let thread = client.thread().await;
    let body = run(graph, webhook);
    let created = client.post(&format!("{thread}/runs"), body).await.ok();
    created["run_id"].as_str().unwrap().to_owned()
}

/// Waits until the delivery of a run has this status, and returns it.
async fn delivery(client: &Client, run: &str, status: &str) -> Json {
    let path = format!("/superstep/deliveries?run_id={run}");
    let mut found = Json::Null;
    for _ in 0..1_000 {
        found = client.get(&path).await.ok();
        if found[0]["status"] == status {
            assert_eq!(found.as_array().unwrap().len(), 1);
            return found[0].take();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the delivery of {run} never became {status}: {found}");
}

#[tokio::test]
async fn a_receiver_gets_the_run_its_values_and_its_times() {
    let receiver = Receiver::start([]).await;
    let client = Client::of(server(&receiver)).await;
    let id = start(&client, "chat", &receiver.url()).await;
    let delivered = delivery(&client, &id, "delivered").await;
    let received = receiver.received();
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].id(), delivered["delivery_id"]);
    assert!(!received[0].headers.contains_key("webhook-signature"));
    let body = received[0].json();
    assert_eq!(body["run_id"], id.as_str());
    assert_eq!(body["status"], "success");
    assert_eq!(body["values"]["turns"], 1);
    assert_eq!(body["kwargs"]["webhook"], receiver.url());
    assert_eq!(body.get("error"), None);
    for time in ["run_started_at", "run_ended_at", "webhook_sent_at"] {
        assert!(body[time].is_string(), "{time}: {body}");
    }
    let expected = json!({
        "run_id": id, "event": "run.ended", "webhook": receiver.url(), "attempts": 1,
        "error": null, "next_attempt_at": null,
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&delivered[name], value, "{name}");
    }
}

#[tokio::test]
async fn failures_and_pauses_are_ends_too() {
    let receiver = Receiver::start([]).await;
    let client = Client::of(server(&receiver)).await;
    for (graph, status) in [("broken", "error"), ("ask", "success")] {
        let id = start(&client, graph, &receiver.url()).await;
        delivery(&client, &id, "delivered").await;
        let body = receiver.received().last().unwrap().json();
        assert_eq!(body["status"], status, "{graph}");
        match graph {
            "broken" => {
                let message = body["error"]["message"].as_str().unwrap();
                assert!(message.contains("kaboom"), "{body}");
            }
            _ => assert!(body["values"]["__interrupt__"].is_array(), "{body}"),
        }
    }
}

#[tokio::test]
async fn a_run_that_is_cancelled_is_delivered_and_one_that_never_began_is_not() {
    let receiver = Receiver::start([]).await;
    let client = Client::of(server(&receiver)).await;
    let thread = client.thread().await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let body = run("slow", &receiver.url());
        let created = client.post(&format!("{thread}/runs"), body).await.ok();
        ids.push(created["run_id"].as_str().unwrap().to_owned());
    }
    client
        .until(&format!("{thread}/runs/{}", ids[0]), "running")
        .await;
    for id in ids.iter().rev() {
        let cancel = format!("{thread}/runs/{id}/cancel?wait=true");
        client.post(&cancel, json!({})).await.ok();
    }
    delivery(&client, &ids[0], "delivered").await;
    assert_eq!(receiver.received()[0].json()["status"], "interrupted");
    let path = format!("/superstep/deliveries?run_id={}", ids[1]);
    assert_eq!(client.get(&path).await.ok(), json!([]));
}

#[tokio::test]
async fn a_receiver_that_fails_hangs_redirects_and_lies_gets_the_end_under_one_id() {
    let elsewhere = Receiver::start([]).await;
    let receiver = Receiver::start([
        Reaction::status("500 Internal Server Error"),
        Reaction::Hang,
        Reaction::redirect(&elsewhere.url()),
        Reaction::Lie,
        Reaction::status("404 Not Found"),
        Reaction::Slow,
    ])
    .await;
    let builder = server(&receiver)
        .allow_webhook_host(format!("127.0.0.1:{}", elsewhere.port()).parse().unwrap())
        .webhook_secret(secret(&OLD))
        .webhook_secret(secret(&NEW));
    let client = Client::of(builder).await;
    let id = start(&client, "chat", &receiver.url()).await;
    let delivered = delivery(&client, &id, "delivered").await;
    assert_eq!(delivered["attempts"], 6);
    let received = receiver.received();
    assert_eq!(received.len(), 6);
    for received in &received {
        assert_eq!(received.id(), delivered["delivery_id"]);
        assert_eq!(received.json()["run_id"], id.as_str());
        let expected = format!(
            "{} {}",
            signature(&OLD, received),
            signature(&NEW, received)
        );
        assert_eq!(received.headers["webhook-signature"], expected);
    }
    assert!(elsewhere.received().is_empty());
}

#[tokio::test]
async fn every_end_is_delivered_at_least_once_by_a_receiver_that_fails_half_the_time() {
    let reactions = (0..40).map(|number| match number % 4 {
        0 => Reaction::status("503 Service Unavailable"),
        1 => Reaction::Lie,
        2 => Reaction::Chatter,
        _ => Reaction::Slow,
    });
    let receiver = Receiver::start(reactions).await;
    let patient = WebhookAttempts {
        max: 100,
        ..ATTEMPTS
    };
    let client = Client::of(server(&receiver).webhook_attempts(patient)).await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(start(&client, "chat", &receiver.url()).await);
    }
    for id in &ids {
        delivery(&client, id, "delivered").await;
        let received = receiver.received();
        let of_run = received
            .iter()
            .filter(|one| one.json()["run_id"] == id.as_str());
        let delivery_ids: Vec<&str> = of_run.map(Received::id).collect();
        assert!(!delivery_ids.is_empty(), "{id}");
        assert!(delivery_ids.iter().all(|found| *found == delivery_ids[0]));
    }
}

#[tokio::test]
async fn a_dead_delivery_is_listed_and_sent_again_by_hand() {
    let receiver = Receiver::start(vec![Reaction::status("500 Oh"); 8]).await;
    let client = Client::of(server(&receiver)).await;
    let id = start(&client, "chat", &receiver.url()).await;
    let dead = delivery(&client, &id, "dead").await;
    assert_eq!(
        (&dead["attempts"], receiver.received().len()),
        (&json!(8), 8)
    );
    assert_eq!(dead["error"], "the receiver answered 500");
    let listed = client.get("/superstep/deliveries?status=dead").await.ok();
    assert_eq!(listed, json!([dead]));
    let none = client.get("/superstep/deliveries?status=pending").await;
    assert_eq!(none.ok(), json!([]));

    receiver.then([Reaction::status("502 Bad Gateway")]);
    let path = dead["delivery_id"].as_str().unwrap();
    let path = format!("/superstep/deliveries/{path}/repeat");
    let repeated = client.post(&path, json!({})).await.ok();
    assert_eq!(repeated["status"], "pending");
    let delivered = delivery(&client, &id, "delivered").await;
    assert_eq!(delivered["delivery_id"], dead["delivery_id"]);
    let received = receiver.received();
    assert!(received.iter().all(|one| one.id() == received[0].id()));
    assert_eq!(received.len(), 10);
}

#[tokio::test]
async fn a_delivery_outlives_its_server() {
    let receiver = Receiver::start([Reaction::status("500 Oh")]).await;
    let host = format!("127.0.0.1:{}", receiver.port());
    let (store, registry) = (Memory::default(), MemoryRegistry::new());
    let serve = || {
        let runtime = Runtime::new(store.clone());
        let slow = WebhookAttempts {
            shortest_pause: Duration::from_millis(400),
            longest_pause: Duration::from_millis(400),
            ..ATTEMPTS
        };
        let builder = Client::builder(runtime, &registry).webhook_attempts(slow);
        Client::of(builder.allow_webhook_host(host.parse().unwrap()))
    };
    let client = serve().await;
    let id = start(&client, "chat", &receiver.url()).await;
    let path = format!("/superstep/deliveries?run_id={id}");
    // The failure is stored, and the next attempt is not due yet.
    while !client.get(&path).await.ok()[0]["error"].is_string() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(client);
    let client = serve().await;
    let delivered = delivery(&client, &id, "delivered").await;
    assert_eq!(delivered["attempts"], 2);
    let received = receiver.received();
    assert_eq!(received.len(), 2);
    assert_eq!(received[0].id(), received[1].id());
}

#[tokio::test]
async fn a_drain_ends_the_attempts_in_progress() {
    let receiver = Receiver::start([Reaction::Slow]).await;
    let client = Client::of(server(&receiver)).await;
    let id = start(&client, "chat", &receiver.url()).await;
    while receiver.received().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    client.drain().await;
    let path = format!("/superstep/deliveries?run_id={id}");
    let found = client.get(&path).await.ok();
    assert_eq!(
        (&found[0]["status"], &found[0]["attempts"]),
        (&json!("delivered"), &json!(1))
    );
}

/// Their senders share the registry. Each attempt is one sender's, and is received once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_send_every_end_and_no_attempt_twice() {
    let reactions = (0..30).map(|number| match number % 3 {
        0 => Reaction::status("503 Service Unavailable"),
        1 => Reaction::Slow,
        _ => Reaction::status("204 No Content"),
    });
    let receiver = Receiver::start(reactions).await;
    let host = format!("127.0.0.1:{}", receiver.port());
    let (store, registry) = (Memory::default(), MemoryRegistry::new());
    let serve = || {
        let patient = WebhookAttempts {
            timeout: Duration::from_secs(30),
            max: 100,
            ..ATTEMPTS
        };
        let builder = Client::builder(Runtime::new(store.clone()), &registry);
        let builder = builder.webhook_attempts(patient);
        Client::of(builder.allow_webhook_host(host.parse().unwrap()))
    };
    let servers = tokio::join!(serve(), serve());
    let servers = [&servers.0, &servers.1];
    let mut runs = Vec::new();
    for number in 0..40 {
        runs.push(start(servers[number % 2], "chat", &receiver.url()).await);
    }
    for (number, run) in runs.iter().enumerate() {
        // The one that did not get the run knows it as well.
        let delivered = delivery(servers[(number + 1) % 2], run, "delivered").await;
        let received = receiver.received();
        let of_run = received
            .iter()
            .filter(|one| one.json()["run_id"] == run.as_str());
        let ids: Vec<&str> = of_run.map(Received::id).collect();
        assert_eq!(json!(ids.len()), delivered["attempts"], "{run}");
        assert!(ids.iter().all(|id| delivered["delivery_id"] == *id));
    }
}

#[tokio::test]
async fn a_receiver_that_is_gone_is_not_tried_again() {
    let receiver = Receiver::start([Reaction::status("410 Gone")]).await;
    let client = Client::of(server(&receiver)).await;
    let id = start(&client, "chat", &receiver.url()).await;
    let dead = delivery(&client, &id, "dead").await;
    assert_eq!(dead["attempts"], 1);
}

#[tokio::test]
async fn deliveries_are_asked_for_in_the_right_words() {
    let client = Client::new().await;
    let unknown = "0190a6b2-0000-7000-8000-000000000001";
    let repeat = |id: &str| format!("/superstep/deliveries/{id}/repeat");
    let missing = client.post(&repeat(unknown), json!({})).await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
    let invalid = StatusCode::UNPROCESSABLE_ENTITY;
    assert_eq!(client.post(&repeat("x"), json!({})).await.status, invalid);
    for query in ["status=lost", "run_id=x", "limit=0", "limit=x"] {
        let path = format!("/superstep/deliveries?{query}");
        assert_eq!(client.get(&path).await.status, invalid, "{query}");
    }
}

/// Names of private hosts, which look like others.
struct PrivateNames;

impl NameResolver for PrivateNames {
    fn look_up<'a>(&'a self, name: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        let addresses: Vec<IpAddr> = match name {
            "metadata.example.com" => vec!["169.254.169.254".parse().unwrap()],
            "both.example.com" => vec![[93, 184, 216, 34].into(), [10, 0, 0, 1].into()],
            "six.example.com" => vec!["::1".parse().unwrap()],
            _ => vec![[127, 0, 0, 1].into()],
        };
        Box::pin(async move { Ok(addresses) })
    }
}

/// Addresses that show that they are not of the internet. `PORT` is that of a listener on this machine.
const VISIBLE: [&str; 55] = [
    "http://127.0.0.1:PORT/",
    "http://127.1:PORT/",
    "http://127.0.1:PORT/",
    "http://2130706433:PORT/",
    "http://0x7f000001:PORT/",
    "http://0x7f.0.0.1:PORT/",
    "http://0x7f.1:PORT/",
    "http://0177.0.0.1:PORT/",
    "http://017700000001:PORT/",
    "http://127.0.0.1.:PORT/",
    "http://127.255.255.254:PORT/",
    "http://0:PORT/",
    "http://0x0:PORT/",
    "http://0.0.0.0:PORT/",
    "http://①②⑦.⓪.⓪.①:PORT/",
    "http://127。0。0。1:PORT/",
    "http://%31%32%37.0.0.1:PORT/",
    "http://[::]:PORT/",
    "http://[::1]:PORT/",
    "http://[0:0:0:0:0:0:0:1]:PORT/",
    "http://[::ffff:127.0.0.1]:PORT/",
    "http://[::ffff:7f00:1]:PORT/",
    "http://[::127.0.0.1]:PORT/",
    "http://[64:ff9b::127.0.0.1]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[2002:7f00:1::]/",
    "http://[2001:0:7f00:1::]/",
    "http://[fe80::1]/",
    "http://[fc00::1]/",
    "http://[fd00:ec2::254]/latest/meta-data/",
    "http://[ff02::1]/",
    "http://169.254.169.254/latest/meta-data/",
    "http://2852039166/",
    "http://0xa9fea9fe/",
    "http://0251.0376.0251.0376/",
    "http://169.254.43518/",
    "http://[::ffff:169.254.169.254]/",
    "https://10.0.0.1/",
    "https://172.16.0.1/",
    "https://192.168.0.1/",
    "https://100.64.0.1/",
    "https://198.18.0.1/",
    "https://224.0.0.1/",
    "https://255.255.255.255/",
    "http://localhost:PORT/",
    "http://LOCALHOST.:PORT/",
    "http://a.localhost:PORT/",
    "http://printer.local/",
    "http://metadata.google.internal/",
    "http://intranet/",
    "http://user:pass@hooks.example.com/",
    "http://hooks.example.com@127.0.0.1:PORT/",
    "/relative",
    "ftp://hooks.example.com/",
    "file:///etc/passwd",
];

/// Addresses with names that only the resolver knows to be private.
const NAMES: [&str; 5] = [
    "http://127.0.0.1.nip.io:PORT/",
    "http://hooks.example.com:PORT/",
    "http://metadata.example.com/",
    "http://both.example.com/",
    "http://six.example.com:PORT/",
];

#[tokio::test]
async fn sixty_addresses_that_are_not_of_the_internet_and_none_is_called() {
    let trap = Receiver::start([]).await;
    let at = |form: &str| form.replace("PORT", &trap.port().to_string());
    let client = Client::of(impatient().webhook_names(Arc::new(PrivateNames))).await;
    let thread = client.thread().await;
    let cron = json!({ "assistant_id": "chat", "schedule": "0 0 1 1 *", "input": {} });
    for form in VISIBLE {
        let mut cron = cron.clone();
        cron["webhook"] = at(form).into();
        for (path, body) in [
            (format!("{thread}/runs"), run("chat", &at(form))),
            ("/runs/wait".to_owned(), run("chat", &at(form))),
            ("/runs/batch".to_owned(), json!([run("chat", &at(form))])),
            ("/runs/crons".to_owned(), cron),
        ] {
            let refused = client.post(&path, body).await;
            assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{form}");
            let detail = refused.json["detail"].as_str().unwrap();
            assert!(detail.starts_with("Webhook host blocked: "), "{detail}");
        }
    }
    for form in NAMES {
        let id = start(&client, "chat", &at(form)).await;
        let dead = delivery(&client, &id, "dead").await;
        assert_eq!(dead["attempts"], 1, "{form}");
        let error = dead["error"].as_str().unwrap();
        assert!(
            error.contains("is not called: it has the address"),
            "{error}"
        );
    }
    assert!(trap.received().is_empty());
    assert_eq!(VISIBLE.len() + NAMES.len(), 60);
}

#[tokio::test]
async fn https_can_be_required() {
    let client = Client::of(impatient().require_https_webhooks()).await;
    let thread = client.thread().await;
    let plain = run("chat", "http://hooks.example.com/");
    let refused = client.post(&format!("{thread}/runs"), plain).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    let detail = refused.json["detail"].as_str().unwrap();
    assert!(detail.contains("only `https` is called"), "{detail}");
}

/// Attempts of one tenant that hang take as long as an attempt may, and others have room meanwhile.
#[tokio::test]
async fn receivers_of_one_tenant_that_hang_do_not_delay_deliveries_of_others() {
    let hanging = Receiver::start(vec![Reaction::Hang; RUNS_OF_LOUD]).await;
    let receiver = Receiver::start([]).await;
    let host = format!("127.0.0.1:{}", hanging.port());
    let patient = WebhookAttempts {
        timeout: Duration::from_secs(600),
        ..ATTEMPTS
    };
    let builder = server(&receiver).allow_webhook_host(host.parse().unwrap());
    let builder = builder.webhook_attempts(patient);
    let [loud, quiet] = Client::of_tenants(builder, ["loud", "quiet"]).await;
    for _ in 0..RUNS_OF_LOUD {
        start(&loud, "chat", &hanging.url()).await;
    }
    for _ in 0..1_000 {
        if hanging.received().len() >= 16 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for _ in 0..20 {
        let id = start(&quiet, "chat", &receiver.url()).await;
        delivery(&quiet, &id, "delivered").await;
    }
    assert_eq!(hanging.received().len(), 16, "as many as a tenant may have");
}

/// More than a server sends at once.
const RUNS_OF_LOUD: usize = 140;
