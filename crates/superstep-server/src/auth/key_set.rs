//! The public keys of an issuer: fetched when the first token arrives, kept, and fetched again when the issuer rotates them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jsonwebtoken::jwk::{AlgorithmParameters, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::Value as Json;
use superstep::__private::lock;
use tokio::task::JoinSet;

/// Where the keys of an issuer are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeySource {
    File(PathBuf),
    Url(String),
    /// In the document that the issuer publishes at `/.well-known/openid-configuration`.
    Discovery {
        issuer: String,
    },
}

/// The public keys of an issuer.
#[derive(Clone)]
pub(super) struct KeySet {
    shared: Arc<SharedKeySet>,
    /// Fetches that no request waits for. They end with the last handle to the set.
    fetches: Arc<Mutex<JoinSet<()>>>,
}

struct SharedKeySet {
    source: KeySource,
    /// How long to wait after an attempt to fetch the keys.
    pause: Duration,
    http: reqwest::Client,
    known: Mutex<KnownKeys>,
    /// Held while the keys are fetched, so that it happens once.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct KnownKeys {
    keys: Arc<[PublicKey]>,
    fetched: Option<Instant>,
    attempted: Option<Instant>,
}

/// A key of the set.
struct PublicKey {
    id: Option<String>,
    jwk: Jwk,
    key: DecodingKey,
}

impl PublicKey {
    /// Reads a key; `None` if it is not for signatures, or of a kind that is not known. A symmetric key in a public document would
    /// let everyone sign.
    fn read(json: &Json) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(json.clone()).ok()?;
        let is_symmetric = matches!(jwk.algorithm, AlgorithmParameters::OctetKey(_));
        let is_for_signatures = match &jwk.common.public_key_use {
            None | Some(PublicKeyUse::Signature) => true,
            Some(_) => false,
        };
        if is_symmetric || !is_for_signatures {
            return None;
        }
        Some(Self {
            id: jwk.common.key_id.clone(),
            key: DecodingKey::from_jwk(&jwk).ok()?,
            jwk,
        })
    }

    /// Whether the key can check signatures of an algorithm.
    fn is_for(&self, algorithm: Algorithm) -> bool {
        let named = self.jwk.common.key_algorithm;
        let is_named = named.is_none_or(|named| named.to_string() == format!("{algorithm:?}"));
        let is_kind = matches!(
            (&self.jwk.algorithm, algorithm),
            (
                AlgorithmParameters::RSA(_),
                Algorithm::RS256
                    | Algorithm::RS384
                    | Algorithm::RS512
                    | Algorithm::PS256
                    | Algorithm::PS384
                    | Algorithm::PS512,
            ) | (
                AlgorithmParameters::EllipticCurve(_),
                Algorithm::ES256 | Algorithm::ES384
            ) | (AlgorithmParameters::OctetKeyPair(_), Algorithm::EdDSA)
        );
        is_named && is_kind
    }
}

impl KeySet {
    pub(super) fn new(source: KeySource, pause: Duration) -> Result<Self, reqwest::Error> {
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(ANSWER_WITHIN)
            .build()?;
        Ok(Self {
            shared: Arc::new(SharedKeySet {
                source,
                pause,
                http,
                known: Mutex::default(),
                fetching: tokio::sync::Mutex::default(),
            }),
            fetches: Arc::default(),
        })
    }

    /// Returns the key with which a token is signed; the error says why there is none.
    ///
    /// A key that is not known may be a new one, so the set is fetched again, though not for every token: anyone can invent ids.
    pub(super) async fn find(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<DecodingKey, String> {
        let shared = &self.shared;
        if let Some(found) = shared.choose(id, algorithm) {
            // Old keys stay usable while the issuer does not answer, and no request waits for it.
            if shared.is_stale() && shared.may_fetch() {
                let shared = shared.clone();
                let mut fetches = lock(&self.fetches);
                while fetches.try_join_next().is_some() {}
                fetches.spawn(async move {
                    if let Ok(_guard) = shared.fetching.try_lock() {
                        shared.fetch_if_allowed().await;
                    }
                });
            }
            return Ok(found);
        }
        let _guard = shared.fetching.lock().await;
        // Another request may have fetched it meanwhile.
        if let Some(found) = shared.choose(id, algorithm) {
            return Ok(found);
        }
        shared.fetch_if_allowed().await;
        let found = shared.choose(id, algorithm);
        found.ok_or_else(|| NO_KEY.to_owned())
    }
}

impl SharedKeySet {
    fn choose(&self, id: Option<&str>, algorithm: Algorithm) -> Option<DecodingKey> {
        let keys = self.with(|known| known.keys.clone());
        let mut fitting = keys.iter().filter(|key| key.is_for(algorithm));
        match id {
            Some(id) => fitting
                .find(|key| key.id.as_deref() == Some(id))
                .map(|key| key.key.clone()),
            // Without an id there must be no doubt.
            None => {
                let only = fitting.next()?;
                fitting.next().is_none().then(|| only.key.clone())
            }
        }
    }

    fn is_stale(&self) -> bool {
        self.with(|known| known.fetched.is_none_or(|at| at.elapsed() > KEPT))
    }

    fn may_fetch(&self) -> bool {
        self.with(|known| known.attempted.is_none_or(|at| at.elapsed() >= self.pause))
    }

    /// Fetches the keys, unless the last attempt was a moment ago. The caller holds `fetching`.
    async fn fetch_if_allowed(&self) {
        if !self.may_fetch() {
            return;
        }
        self.with(|known| known.attempted = Some(Instant::now()));
        match self.fetch().await {
            Ok(keys) => self.with(|known| {
                known.keys = keys.into();
                known.fetched = Some(Instant::now());
            }),
            Err(error) => {
                tracing::warn!(source = ?self.source, error, "the keys of an issuer were not fetched");
            }
        }
    }

    async fn fetch(&self) -> Result<Vec<PublicKey>, String> {
        let json = match &self.source {
            KeySource::File(path) => read_file(path).await?,
            KeySource::Url(url) => self.get(url).await?,
            KeySource::Discovery { issuer } => {
                let document = self.get(&discovery_address(issuer)).await?;
                if document.get("issuer").and_then(Json::as_str) != Some(issuer) {
                    return Err("the discovery document names another issuer".to_owned());
                }
                let url = document.get("jwks_uri").and_then(Json::as_str);
                let url = url.ok_or("the discovery document has no `jwks_uri`")?;
                if !is_trusted_address(url) {
                    return Err("the `jwks_uri` of the issuer is not https".to_owned());
                }
                self.get(url).await?
            }
        };
        let keys = keys_of(&json).ok_or("there is no list `keys`")?;
        match keys.is_empty() {
            true => Err("no key of the set can be used".to_owned()),
            false => Ok(keys),
        }
    }

    async fn get(&self, url: &str) -> Result<Json, String> {
        let failed = |error: reqwest::Error| superstep::__private::chain(&error);
        let response = self.http.get(url).send().await.map_err(failed)?;
        let mut response = response.error_for_status().map_err(failed)?;
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > BYTES_MAX {
                return Err(format!("the answer is longer than {BYTES_MAX} bytes"));
            }
        }
        serde_json::from_slice(&bytes).map_err(|error| error.to_string())
    }

    fn with<T>(&self, use_it: impl FnOnce(&mut KnownKeys) -> T) -> T {
        use_it(&mut lock(&self.known))
    }
}

impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeySet").field(&self.shared.source).finish()
    }
}

async fn read_file(path: &Path) -> Result<Json, String> {
    let path = path.to_owned();
    let read = tokio::task::spawn_blocking(move || std::fs::read(path)).await;
    let bytes = read.map_err(|error| error.to_string())?;
    let bytes = bytes.map_err(|error| error.to_string())?;
    serde_json::from_slice(&bytes).map_err(|error| error.to_string())
}

/// Returns the keys of a JWKS that can be used. A set may have keys for other purposes and of newer kinds.
fn keys_of(json: &Json) -> Option<Vec<PublicKey>> {
    let keys = json.get("keys")?.as_array()?;
    Some(keys.iter().filter_map(PublicKey::read).collect())
}

/// Returns how many keys of a JWKS can be used; `None` if it is not one.
pub(super) fn count_keys(json: &Json) -> Option<usize> {
    keys_of(json).map(|keys| keys.len())
}

fn discovery_address(issuer: &str) -> String {
    let issuer = issuer.trim_end_matches('/');
    format!("{issuer}/.well-known/openid-configuration")
}

/// Whether keys may be fetched from an address: with TLS, or from this machine.
pub(super) fn is_trusted_address(url: &str) -> bool {
    let Ok(url) = url.parse::<http::Uri>() else {
        return false;
    };
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_loopback = host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback());
    match url.scheme_str() {
        Some("https") => !host.is_empty(),
        Some("http") => is_loopback,
        _ => false,
    }
}

const NO_KEY: &str = "no key of the issuer fits to the token";
/// How long keys are used without another look.
const KEPT: Duration = Duration::from_secs(600);
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
const BYTES_MAX: usize = 1024 * 1024;

#[test]
fn keys_come_over_tls_or_from_this_machine() {
    for url in [
        "https://login.example.com/keys",
        "http://127.0.0.1:8080/keys",
        "http://localhost/keys",
        "http://[::1]:80/keys",
    ] {
        assert!(is_trusted_address(url), "{url}");
    }
    for url in [
        "http://login.example.com/keys",
        "http://127.0.0.1.example.com/",
        "file:///etc/passwd",
        "keys",
        "",
    ] {
        assert!(!is_trusted_address(url), "{url}");
    }
}
