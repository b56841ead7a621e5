//! What Gmail and Google Calendar share: the HTTP client, the base URLs and the OAuth token.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use archie_agent::clock::seconds;
use reqwest::{Client, Method, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::mailbox::{credentials, write_private};

/// A connection to Google on behalf of one account. Cheap to clone.
#[derive(Clone)]
pub struct Google {
    client: Client,
    /// Server to use instead of Google's own, from `ARCHIE_GOOGLE_URL`.
    base: Option<String>,
    token: Arc<Mutex<Token>>,
    /// File that stores the token; `None` if the caller passed the token.
    file: Option<PathBuf>,
}

/// OAuth token of an account. `Debug` does not print its secrets.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Token {
    /// Bearer token sent with every request.
    pub access_token: String,
    /// Token for requesting a new access token; empty if Google issued none.
    #[serde(default)]
    pub refresh_token: String,
    /// Expiry of the access token, in Unix seconds.
    #[serde(default)]
    pub expires_at: u64,
}

/// A response from Google with a status below 500.
#[derive(Debug)]
pub(super) struct GoogleReply {
    pub(super) status: StatusCode,
    pub(super) body: Json,
}

/// Why there is no response from Google.
#[derive(Debug, thiserror::Error)]
pub(super) enum GoogleError {
    /// The request was not sent.
    #[error("Google cannot be reached: {0:#}")]
    NotAsked(anyhow::Error),
    /// The request was sent, and it is unknown whether Google carried it out.
    #[error("the answer of Google was lost: {0:#}")]
    Answer(anyhow::Error),
}

impl Google {
    /// Opens the account whose token `archie mail login gmail` stored in the folder `home`.
    pub fn open(account: &str, home: &Path) -> anyhow::Result<Self> {
        let file = home.join(format!("google-{account}.json"));
        let token = credentials(&file, "sign in with `archie mail login gmail`")?;
        Self::new(base_url(), token, Some(file))
    }

    /// Connects to `base` with an access token that never expires.
    pub fn with_token(base: &str, access_token: &str) -> anyhow::Result<Self> {
        let token = Token {
            access_token: access_token.to_owned(),
            expires_at: u64::MAX,
            ..Token::default()
        };
        Self::new(Some(base.to_owned()), token, None)
    }

    fn new(base: Option<String>, token: Token, file: Option<PathBuf>) -> anyhow::Result<Self> {
        // The client must not retry by itself: a repeated request could send an email twice.
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

    /// Returns the address of the events of a calendar: `primary`, or the email address of its owner.
    pub(super) fn events(&self, calendar: &str) -> anyhow::Result<String> {
        let base = self.base.as_deref().unwrap_or("https://www.googleapis.com");
        let mut url = reqwest::Url::parse(base)?;
        let mut path = url
            .path_segments_mut()
            .map_err(|()| anyhow::anyhow!("`{base}` is not the address of a server"))?;
        // The calendar's name is a segment of its own, whatever characters it has.
        path.pop_if_empty()
            .extend(["calendar", "v3", "calendars", calendar, "events"]);
        drop(path);
        Ok(url.into())
    }

    /// Sends one request, without retrying. A status of 500 or above is an error, because Google may have carried out the
    /// request.
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
        // Google may have carried out the request before it failed.
        if status.is_server_error() {
            return Err(GoogleError::Answer(anyhow::anyhow!("Google said {status}")));
        }
        Ok(GoogleReply { status, body })
    }

    /// Sends a `GET` request; any status but success is an error.
    pub(super) async fn read(&self, url: &str, query: &[(&str, &str)]) -> anyhow::Result<Json> {
        let said = self.ask(Method::GET, url, query, None).await?;
        said.success()
    }

    /// Sends a `GET` request for something that may have been deleted; returns `None` if it was.
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

/// OAuth client that identifies this program to Google.
#[derive(Clone)]
pub struct ClientId {
    /// Client id from Google's console.
    pub id: String,
    /// Client secret; empty if the environment has none.
    pub secret: String,
}

impl ClientId {
    /// Reads the client from `ARCHIE_GOOGLE_CLIENT_ID` and `ARCHIE_GOOGLE_CLIENT_SECRET`.
    pub fn find() -> anyhow::Result<Self> {
        let id = std::env::var("ARCHIE_GOOGLE_CLIENT_ID").ok();
        let id = id.context(
            "set ARCHIE_GOOGLE_CLIENT_ID (and ARCHIE_GOOGLE_CLIENT_SECRET) to a client of the kind `Desktop app` from Google's console",
        )?;
        let secret = std::env::var("ARCHIE_GOOGLE_CLIENT_SECRET").unwrap_or_default();
        Ok(Self { id, secret })
    }
}

/// Exchanges an authorization code or a refresh token for a token.
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

/// Returns the server to use instead of Google's own, from `ARCHIE_GOOGLE_URL`.
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

/// How long before its expiry a token is renewed, so that it cannot expire during a request.
const SPARE: Duration = Duration::from_secs(60);
const TIMEOUT: Duration = Duration::from_secs(60);
