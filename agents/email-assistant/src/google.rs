//! What Gmail and Google's calendar share: where they are, and who asks.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use archie_agent::clock::seconds;
use reqwest::{Client, Method, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::mailbox::{credentials, write_private};

/// A connection to Google in one person's name. Cheap to clone.
#[derive(Clone)]
pub struct Google {
    client: Client,
    /// Where to ask; Google's own addresses unless `ARCHIE_GOOGLE_URL` says otherwise.
    base: Option<String>,
    token: Arc<Mutex<Token>>,
    /// Where the token is kept; none for one that was given.
    file: Option<PathBuf>,
}

/// What lets us in. It is never printed.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Token {
    /// What each call carries.
    pub access_token: String,
    /// What a new one is asked for with.
    #[serde(default)]
    pub refresh_token: String,
    /// In seconds.
    #[serde(default)]
    pub expires_at: u64,
}

/// What Google said.
#[derive(Debug)]
pub(super) struct GoogleReply {
    pub(super) status: StatusCode,
    pub(super) body: Json,
}

/// Why nothing came from Google.
#[derive(Debug, thiserror::Error)]
pub(super) enum GoogleError {
    /// It was never asked.
    #[error("Google cannot be reached: {0:#}")]
    NotAsked(anyhow::Error),
    /// It was, and nobody knows what it did.
    #[error("the answer of Google was lost: {0:#}")]
    Answer(anyhow::Error),
}

impl Google {
    /// The account whose token `archie mail login gmail` has kept in this folder.
    pub fn open(account: &str, home: &Path) -> anyhow::Result<Self> {
        let file = home.join(format!("google-{account}.json"));
        let token = credentials(&file, "sign in with `archie mail login gmail`")?;
        Self::new(base_url(), token, Some(file))
    }

    /// With a token that is there.
    pub fn with_token(base: &str, access_token: &str) -> anyhow::Result<Self> {
        let token = Token {
            access_token: access_token.to_owned(),
            expires_at: u64::MAX,
            ..Token::default()
        };
        Self::new(Some(base.to_owned()), token, None)
    }

    fn new(base: Option<String>, token: Token, file: Option<PathBuf>) -> anyhow::Result<Self> {
        // What was asked is never asked again by the client itself: a send would be two.
        let client = Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(TIMEOUT)
            .retry(reqwest::retry::never())
            .build()?;
        Ok(Self {
            client,
            base,
            token: Arc::new(Mutex::new(token)),
            file,
        })
    }

    pub(super) fn gmail(&self, path: &str) -> String {
        let base = self
            .base
            .as_deref()
            .unwrap_or("https://gmail.googleapis.com");
        format!("{base}/gmail/v1/users/me/{path}")
    }

    pub(super) fn calendar(&self, path: &str) -> String {
        let base = self.base.as_deref().unwrap_or("https://www.googleapis.com");
        format!("{base}/calendar/v3/calendars/primary/{path}")
    }

    /// Asks once.
    pub(super) async fn ask(
        &self,
        method: Method,
        url: &str,
        query: &[(&str, &str)],
        body: Option<&Json>,
    ) -> Result<GoogleReply, GoogleError> {
        let token = self.access().await.map_err(GoogleError::NotAsked)?;
        let url = reqwest::Url::parse_with_params(url, query)
            .map_err(|error| GoogleError::NotAsked(error.into()))?;
        let mut request = self.client.request(method, url).bearer_auth(token);
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request
            .send()
            .await
            .map_err(|error| match error.is_connect() {
                true => GoogleError::NotAsked(error.into()),
                false => GoogleError::Answer(error.into()),
            })?;
        let status = answer.status();
        let bytes = answer
            .bytes()
            .await
            .map_err(|error| GoogleError::Answer(error.into()))?;
        let body = serde_json::from_slice(&bytes).unwrap_or(Json::Null);
        // Behind one of these a request may have been carried out all the same.
        if status.is_server_error() {
            return Err(GoogleError::Answer(anyhow::anyhow!("Google said {status}")));
        }
        Ok(GoogleReply { status, body })
    }

    /// Reads something, and takes anything but success for a failure.
    pub(super) async fn read(&self, url: &str, query: &[(&str, &str)]) -> anyhow::Result<Json> {
        let said = self.ask(Method::GET, url, query, None).await?;
        said.success()
    }

    /// Reads something that may be gone by now.
    pub(super) async fn find(
        &self,
        url: &str,
        query: &[(&str, &str)],
    ) -> anyhow::Result<Option<Json>> {
        let said = self.ask(Method::GET, url, query, None).await?;
        match said.status {
            StatusCode::NOT_FOUND => Ok(None),
            _ => said.success().map(Some),
        }
    }

    async fn access(&self) -> anyhow::Result<String> {
        let known = self.kept();
        if known.expires_at > seconds() + SPARE.as_secs() {
            return Ok(known.access_token);
        }
        if known.refresh_token.is_empty() {
            bail!("the sign-in has expired; sign in again with `archie mail login gmail`");
        }
        let client = ClientId::find()?;
        let form: [(&str, &str); 4] = [
            ("grant_type", "refresh_token"),
            ("refresh_token", &known.refresh_token),
            ("client_id", &client.id),
            ("client_secret", &client.secret),
        ];
        let fresh = exchange(&self.client, self.base.as_deref(), &form).await;
        let fresh = fresh.context(
            "the sign-in cannot be renewed; sign in again with `archie mail login gmail`",
        )?;
        let token = Token {
            refresh_token: match fresh.refresh_token.is_empty() {
                true => known.refresh_token,
                false => fresh.refresh_token,
            },
            ..fresh
        };
        if let Some(file) = &self.file {
            write_private(file, &serde_json::to_vec(&token)?)?;
        }
        let access = token.access_token.clone();
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = token;
        Ok(access)
    }

    fn kept(&self) -> Token {
        self.token
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl GoogleReply {
    pub(super) fn success(self) -> anyhow::Result<Json> {
        match self.status.is_success() {
            true => Ok(self.body),
            false => bail!("Google said {}: {}", self.status, self.why()),
        }
    }

    pub(super) fn why(&self) -> &str {
        self.body["error"]["message"]
            .as_str()
            .unwrap_or("no reason given")
    }
}

/// Who this program is to Google.
#[derive(Clone)]
pub struct ClientId {
    /// Its id.
    pub id: String,
    /// What goes with it.
    pub secret: String,
}

impl ClientId {
    /// Reads it from the environment.
    pub fn find() -> anyhow::Result<Self> {
        let id = std::env::var("ARCHIE_GOOGLE_CLIENT_ID").ok();
        let id = id.context(
            "set ARCHIE_GOOGLE_CLIENT_ID (and ARCHIE_GOOGLE_CLIENT_SECRET) to a client of the kind `Desktop app` from Google's console",
        )?;
        let secret = std::env::var("ARCHIE_GOOGLE_CLIENT_SECRET").unwrap_or_default();
        Ok(Self { id, secret })
    }
}

/// A token for a code or for a refresh token.
pub async fn exchange(
    client: &Client,
    base: Option<&str>,
    form: &[(&str, &str)],
) -> anyhow::Result<Token> {
    let url = match base {
        Some(base) => format!("{base}/oauth2/token"),
        None => "https://oauth2.googleapis.com/token".to_owned(),
    };
    let body = reqwest::Url::parse_with_params("http://form.invalid/", form)?;
    let body = body.query().unwrap_or_default().to_owned();
    let answer = client
        .post(url)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(body)
        .send()
        .await?;
    let status = answer.status();
    let said: Json = answer.json().await?;
    let access = said["access_token"].as_str();
    let access = access.with_context(|| format!("Google said {status}: {}", said["error"]))?;
    Ok(Token {
        access_token: access.to_owned(),
        refresh_token: said["refresh_token"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        expires_at: seconds() + said["expires_in"].as_u64().unwrap_or(3_600),
    })
}

/// The server in Google's place, if `ARCHIE_GOOGLE_URL` names one.
pub fn base_url() -> Option<String> {
    let url = std::env::var("ARCHIE_GOOGLE_URL").ok();
    url.filter(|url| !url.is_empty())
        .map(|url| url.trim_end_matches('/').to_owned())
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token")
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ClientId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientId")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Google {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Google")
            .field("base", &self.base)
            .finish_non_exhaustive()
    }
}

/// So that nothing is asked with a token that ends on the way.
const SPARE: Duration = Duration::from_secs(60);
const TIMEOUT: Duration = Duration::from_secs(60);
