//! Tokens of issuers: an issuer with a document of keys in this process, and an issuer with a shared secret.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::routing::get;
use axum::{Json as JsonBody, Router};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value as Json, json};
use superstep_server::Authentication;
use tokio::task::JoinSet;

use crate::authorisation::{Guarded, now};

/// An issuer that publishes keys, and can rotate them or go away.
#[derive(Clone)]
struct Issuer {
    url: String,
    keys: Arc<Mutex<Vec<Json>>>,
    is_down: Arc<AtomicBool>,
    fetches: Arc<AtomicUsize>,
    serving: Arc<Mutex<JoinSet<()>>>,
}

impl Issuer {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            keys: Arc::new(Mutex::new(vec![FIRST.public()])),
            is_down: Arc::default(),
            fetches: Arc::default(),
            serving: Arc::default(),
        };
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(discovery))
            .route("/keys", get(keys))
            .with_state(issuer.clone());
        let serve = async move { axum::serve(listener, router).await.unwrap() };
        issuer.serving.lock().unwrap().spawn(serve);
        issuer
    }

    fn policy(&self) -> Authentication {
        let policy = json!({ "issuers": [{
            "issuer": self.url,
            "audience": ["superstep"],
            "refetch_seconds": 1,
            "leeway_seconds": 5,
            "tenant_claim": "org",
            "roles_claim": "realm_access.roles",
            "roles": { "viewer": ["read"], "operator": ["read", "run", "admin"] },
        }] });
        Authentication::from_json(&policy.to_string(), Path::new("")).unwrap()
    }

    /// Returns claims that are accepted.
    fn claims(&self) -> Json {
        let seconds = now().0 / 1_000;
        json!({
            "iss": self.url, "aud": "superstep", "sub": "alice", "org": "acme",
            "exp": seconds + 600, "nbf": seconds - 10,
            "realm_access": { "roles": ["viewer", "unrelated"] },
        })
    }

    /// Returns a token with changed claims.
    fn token(&self, key: &TestKey, changes: Json) -> String {
        let mut claims = self.claims();
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        key.sign(&claims)
    }
}

async fn discovery(State(issuer): State<Issuer>) -> Result<JsonBody<Json>, StatusCode> {
    if issuer.is_down.load(Ordering::Relaxed) {
        return Err(StatusCode::SERVICE_UNAVAILABLE);
    }
    let keys = format!("{}/keys", issuer.url);
    Ok(JsonBody(json!({ "issuer": issuer.url, "jwks_uri": keys })))
}

async fn keys(State(issuer): State<Issuer>) -> JsonBody<Json> {
    issuer.fetches.fetch_add(1, Ordering::Relaxed);
    let keys = issuer.keys.lock().unwrap().clone();
    JsonBody(json!({ "keys": keys }))
}

/// A key pair of Ed25519, from the test vectors of RFC 8032.
struct TestKey {
    id: &'static str,
    secret: [u8; 32],
    public: [u8; 32],
}

const FIRST: TestKey = TestKey {
    id: "first",
    secret: hex(b"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"),
    public: hex(b"d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"),
};
const SECOND: TestKey = TestKey {
    id: "second",
    secret: hex(b"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"),
    public: hex(b"3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"),
};

const fn hex(text: &[u8; 64]) -> [u8; 32] {
    const fn digit(byte: u8) -> u8 {
        match byte {
            b'0'..=b'9' => byte - b'0',
            _ => byte - b'a' + 10,
        }
    }
    let mut bytes = [0; 32];
    let mut i = 0;
    while i < 32 {
        bytes[i] = digit(text[2 * i]) * 16 + digit(text[2 * i + 1]);
        i += 1;
    }
    bytes
}

impl TestKey {
    fn public(&self) -> Json {
        let x = URL_SAFE_NO_PAD.encode(self.public);
        json!({ "kty": "OKP", "crv": "Ed25519", "kid": self.id, "use": "sig", "alg": "EdDSA", "x": x })
    }

    /// Signs claims with the private key, as PKCS #8 has it.
    fn sign(&self, claims: &Json) -> String {
        let mut der = vec![
            0x30, 0x51, 2, 1, 1, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20,
        ];
        der.extend(self.secret);
        der.extend([0x81, 0x21, 0]);
        der.extend(self.public);
        let header = Header {
            kid: Some(self.id.to_owned()),
            ..Header::new(Algorithm::EdDSA)
        };
        encode(&header, claims, &EncodingKey::from_ed_der(&der)).unwrap()
    }
}

async fn search(server: &Guarded, token: &str) -> StatusCode {
    let sent = server
        .client
        .call_as(token, "POST", "/threads/search", Some(json!({})));
    sent.await.status
}

#[tokio::test]
async fn the_claims_of_a_token_say_who_its_caller_is() {
    let issuer = Issuer::start().await;
    let server = Guarded::with(issuer.policy()).await;
    assert_eq!(
        issuer.fetches.load(Ordering::Relaxed),
        0,
        "before a token came"
    );
    let viewer = issuer.token(&FIRST, json!({}));
    assert_eq!(search(&server, &viewer).await, StatusCode::OK);
    let refused = server
        .client
        .call_as(&viewer, "POST", "/threads", Some(json!({})));
    assert_eq!(refused.await.status, StatusCode::FORBIDDEN);
    let operator = json!({ "realm_access": { "roles": ["operator"] } });
    let operator = issuer.token(&FIRST, operator);
    let created = server
        .client
        .call_as(&operator, "POST", "/threads", Some(json!({})));
    let path = format!(
        "/threads/{}",
        created.await.ok()["thread_id"].as_str().unwrap()
    );
    let shown = server.client.call_as(&viewer, "GET", &path, None).await;
    assert_eq!(shown.status, StatusCode::OK);
    let other = issuer.token(&FIRST, json!({ "org": "other" }));
    let shown = server.client.call_as(&other, "GET", &path, None).await;
    assert_eq!(shown.status, StatusCode::NOT_FOUND);
    assert_eq!(issuer.fetches.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_token_that_is_not_right_in_every_way_is_refused() {
    let issuer = Issuer::start().await;
    let server = Guarded::with(issuer.policy()).await;
    let seconds = now().0 / 1_000;
    for changes in [
        json!({ "exp": seconds - 60 }),
        json!({ "exp": null }),
        json!({ "exp": "soon" }),
        json!({ "nbf": seconds + 60 }),
        json!({ "aud": "another" }),
        json!({ "aud": ["another"] }),
        json!({ "aud": null }),
        json!({ "iss": "https://evil.example.com" }),
        json!({ "iss": [issuer.url] }),
        json!({ "iss": null }),
        json!({ "sub": "" }),
        json!({ "sub": null }),
        json!({ "org": "" }),
        json!({ "org": null }),
        json!({ "org": "../acme" }),
    ] {
        let token = issuer.token(&FIRST, changes.clone());
        let status = search(&server, &token).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{changes}");
    }
    assert_eq!(
        search(&server, &issuer.token(&FIRST, json!({}))).await,
        StatusCode::OK
    );

    let parts = |header: Json, signature: &str| {
        let encoded =
            [header, issuer.claims()].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        format!("{}.{}.{signature}", encoded[0], encoded[1])
    };
    let good = issuer.token(&FIRST, json!({}));
    let signature = good.rsplit('.').next().unwrap();
    let with_secret = |secret: &[u8]| {
        let header = Header {
            kid: Some("first".to_owned()),
            ..Header::new(Algorithm::HS256)
        };
        encode(&header, &issuer.claims(), &EncodingKey::from_secret(secret)).unwrap()
    };
    // The signature of another key, under the name of the right one.
    let impostor = TestKey {
        id: "first",
        ..SECOND
    };
    for token in [
        parts(json!({ "alg": "none" }), ""),
        parts(json!({ "alg": "None", "kid": "first" }), ""),
        parts(json!({ "alg": "EdDSA", "kid": "first" }), ""),
        parts(json!({ "alg": "EdDSA", "kid": "first" }), signature),
        // A public key as a shared secret, in both forms.
        with_secret(&FIRST.public),
        with_secret(URL_SAFE_NO_PAD.encode(FIRST.public).as_bytes()),
        issuer.token(&impostor, json!({})),
        issuer.token(&SECOND, json!({})),
        good.replace('.', ".."),
        format!("{good}A"),
        "a.b.c".to_owned(),
        "x".repeat(100_000),
    ] {
        let status = search(&server, &token).await;
        assert_eq!(
            status,
            StatusCode::UNAUTHORIZED,
            "{}",
            &token[..token.len().min(200)]
        );
    }
}

#[tokio::test]
async fn keys_are_rotated_and_an_issuer_may_be_down() {
    let issuer = Issuer::start().await;
    let server = Guarded::with(issuer.policy()).await;
    let first = issuer.token(&FIRST, json!({}));
    let second = issuer.token(&SECOND, json!({}));
    assert_eq!(search(&server, &first).await, StatusCode::OK);
    // Anyone can invent keys, so they must not cause many fetches.
    for _ in 0..20 {
        assert_eq!(search(&server, &second).await, StatusCode::UNAUTHORIZED);
    }
    assert!(issuer.fetches.load(Ordering::Relaxed) <= 2);
    issuer.keys.lock().unwrap().push(SECOND.public());
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    assert_eq!(search(&server, &second).await, StatusCode::OK);
    assert_eq!(search(&server, &first).await, StatusCode::OK);

    issuer.is_down.store(true, Ordering::Relaxed);
    let unknown = TestKey {
        id: "third",
        ..FIRST
    };
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    let refused = search(&server, &issuer.token(&unknown, json!({}))).await;
    assert_eq!(refused, StatusCode::UNAUTHORIZED);
    for token in [&first, &second] {
        assert_eq!(
            search(&server, token).await,
            StatusCode::OK,
            "the keys are known"
        );
    }
}

#[tokio::test]
async fn a_shared_secret_and_a_table_of_subjects() {
    let folder = tempfile::tempdir().unwrap();
    let secret = "a secret that is long enough for HS256";
    std::fs::write(folder.path().join("secret"), format!("{secret}\n")).unwrap();
    let policy = json!({
        "javascript_refusals": true,
        "issuers": [{
            "secret": "file:secret",
            "roles_claim": "scopes",
            "roles": { "me": ["read", "run"], "all": ["read", "run", "admin"] },
            "subjects": { "alice": { "permissions": ["read", "run"] } },
            "restricted": true,
        }],
    });
    let policy = Authentication::from_json(&policy.to_string(), folder.path()).unwrap();
    let server = Guarded::with(policy).await;
    let token = |sub: &str, scopes: Json, secret: &str| {
        let claims = json!({ "sub": sub, "scopes": scopes, "exp": now().0 / 1_000 + 60 });
        let key = EncodingKey::from_secret(secret.as_bytes());
        encode(&Header::new(Algorithm::HS256), &claims, &key).unwrap()
    };
    let alice = token("alice", json!(["all"]), secret);
    let created = server
        .client
        .call_as(&alice, "POST", "/threads", Some(json!({})));
    assert_eq!(created.await.ok()["metadata"]["owner"], "alice");
    // The table says less than the token.
    let metrics = server.client.call_as(&alice, "GET", "/metrics", None).await;
    assert_eq!(metrics.status, StatusCode::FORBIDDEN);
    assert!(metrics.bytes.starts_with(b"Not authorized: "));
    // The stream of a run that is not there has an error event; every other request is 404.
    let run =
        "/threads/00000000-0000-4000-8000-000000000000/runs/00000000-0000-4000-8000-000000000001";
    let stream = format!("{run}/stream");
    let stream = server.client.call_as(&alice, "GET", &stream, None).await;
    assert_eq!(stream.status, StatusCode::OK);
    assert_eq!(
        String::from_utf8_lossy(&stream.bytes),
        "event: error\r\ndata: {\"error\":\"Error\",\"message\":\"404: Run not found\"}\r\n\r\n"
    );
    let read = server.client.call_as(&alice, "GET", run, None).await;
    assert_eq!(read.status, StatusCode::NOT_FOUND);
    let nothing = token("alice", json!([]), secret);
    assert_eq!(search(&server, &nothing).await, StatusCode::FORBIDDEN);
    let mallory = token("mallory", json!(["all"]), secret);
    assert_eq!(search(&server, &mallory).await, StatusCode::UNAUTHORIZED);
    let forged = token(
        "alice",
        json!(["all"]),
        "another secret that is long enough",
    );
    assert_eq!(search(&server, &forged).await, StatusCode::UNAUTHORIZED);
}
