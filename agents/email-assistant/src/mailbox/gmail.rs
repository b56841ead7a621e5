//! Gmail over its REST API.
//!
//! Gmail accepts no idempotency key with a send. But a draft can be sent only once: sending deletes it, and a second attempt
//! fails. So the assistant first creates a draft, records its id, and then sends that draft. If the result is lost, it searches
//! the conversation and the sent emails. A draft that still exists was not sent.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use reqwest::{Method, StatusCode};
use serde_json::{Value as Json, json};
use superstep::checkpoint::BoxFuture;

use super::{MailQuery, Mailbox, NotSent, Outgoing, Sent, SentStatus};
use crate::calendar::{Calendar, GoogleCalendar};
use crate::email::{Email, bare_id};
use crate::google::{Google, GoogleError};
use crate::mime::{self, KEY_HEADER};

/// A Gmail account.
#[derive(Debug)]
pub struct Gmail {
    account: String,
    google: Google,
    calendar: GoogleCalendar,
}

impl Gmail {
    /// Opens an account with the token that `archie mail login gmail` stored in `home`.
    pub fn open(account: &str, home: &Path) -> anyhow::Result<Self> {
        Ok(Self::new(account, Google::open(account, home)?))
    }

    /// Creates an account over an existing connection.
    pub fn new(account: &str, google: Google) -> Self {
        Self {
            account: account.to_owned(),
            calendar: GoogleCalendar::new(account, google.clone()),
            google,
        }
    }

    async fn list_now(&self, which: &MailQuery) -> anyhow::Result<Vec<Email>> {
        let mut wanted = vec!["in:inbox".to_owned()];
        if !which.include_read {
            wanted.push("is:unread".to_owned());
        }
        if let Some(since) = which.since {
            wanted.push(format!("after:{since}"));
        }
        let query = wanted.join(" ");
        let mut ids = Vec::new();
        let mut page = String::new();
        loop {
            let asked = [
                ("q", query.as_str()),
                ("maxResults", "100"),
                ("pageToken", page.as_str()),
            ];
            let asked = match page.is_empty() {
                true => &asked[..2],
                false => &asked[..],
            };
            let said = self
                .google
                .read(&self.google.gmail("messages"), asked)
                .await?;
            let found = said["messages"].as_array().into_iter().flatten();
            ids.extend(found.filter_map(|message| message["id"].as_str().map(str::to_owned)));
            match said["nextPageToken"].as_str() {
                Some(next) if !next.is_empty() => page = next.to_owned(),
                _ => break,
            }
        }
        let mut emails = Vec::new();
        for id in ids {
            // Skip an email that was deleted after it was listed.
            let Some((thread_id, bytes)) = self.fetch(&id).await? else {
                continue;
            };
            let Some(email) = mime::read(&bytes) else {
                continue;
            };
            emails.push(Email {
                id,
                thread_id,
                account: self.account.clone(),
                ..email
            });
        }
        emails.sort_by_key(|email| mime::sent_at(email).unwrap_or_default());
        Ok(emails)
    }

    /// Finds the answered emails by looking for replies in their conversations. Only messages that Gmail labels as sent count.
    async fn answered_now(&self, mails: &[Email]) -> anyhow::Result<BTreeSet<String>> {
        let mut conversations: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        let mut answered = BTreeSet::new();
        for email in mails.iter().filter(|email| !email.thread_id.is_empty()) {
            if !conversations.contains_key(email.thread_id.as_str()) {
                let url = self.google.gmail(&format!("threads/{}", email.thread_id));
                let thread = self.google.find(&url, &[("format", "metadata")]).await?;
                let replied = thread.map(|thread| replied_to(&thread)).unwrap_or_default();
                conversations.insert(&email.thread_id, replied);
            }
            let replied = conversations.get(email.thread_id.as_str());
            if replied.is_some_and(|replied| replied.contains(&email.message_id)) {
                answered.insert(email.id.clone());
            }
        }
        Ok(answered)
    }

    /// Fetches an email and returns its conversation id and its bytes; `None` if it does not exist.
    async fn fetch(&self, id: &str) -> anyhow::Result<Option<(String, Vec<u8>)>> {
        let url = self.google.gmail(&format!("messages/{id}"));
        let Some(said) = self.google.find(&url, &[("format", "raw")]).await? else {
            return Ok(None);
        };
        let raw = said["raw"].as_str().context("the mail has no content")?;
        let bytes = URL_SAFE_NO_PAD.decode(raw.trim_end_matches('='))?;
        let thread = said["threadId"].as_str().unwrap_or_default();
        Ok(Some((thread.to_owned(), bytes)))
    }

    /// Returns the draft of this email: an existing one, or a new one.
    async fn draft(&self, mail: &Outgoing) -> anyhow::Result<String> {
        let known = format!("rfc822msgid:{}", mail.message_id);
        let drafts = self.google.gmail("drafts");
        let said = self.google.read(&drafts, &[("q", &known)]).await?;
        // A server that ignores the search term returns all drafts, so check each one.
        for draft in said["drafts"].as_array().into_iter().flatten() {
            let Some(id) = draft["id"].as_str() else {
                continue;
            };
            let url = self.google.gmail(&format!("drafts/{id}"));
            // The draft may belong to another email that is sent meanwhile, which deletes it.
            let whole = self.google.find(&url, &[("format", "metadata")]).await?;
            if whole.is_some_and(|whole| is_ours(&whole["message"], mail)) {
                return Ok(id.to_owned());
            }
        }
        let raw = URL_SAFE.encode(mime::write(mail)?.formatted());
        let mut message = json!({ "raw": raw });
        if !mail.envelope.thread_id.is_empty() {
            message["threadId"] = json!(mail.envelope.thread_id);
        }
        let body = json!({ "message": message });
        let said = self
            .google
            .ask(Method::POST, &drafts, &[], Some(&body))
            .await?;
        let made = said.success()?;
        Ok(made["id"]
            .as_str()
            .context("the draft has no id")?
            .to_owned())
    }

    async fn send_draft(&self, mail: &Outgoing, draft: &str) -> Result<Sent, NotSent> {
        let url = self.google.gmail("drafts/send");
        let body = json!({ "id": draft });
        let said = self.google.ask(Method::POST, &url, &[], Some(&body)).await;
        let said = said.map_err(|lost| match lost {
            GoogleError::NotAsked(why) => NotSent::Refused(why),
            GoogleError::Answer(why) => NotSent::Unknown(why),
        })?;
        match said.status {
            status if status.is_success() => Ok(Sent {
                message_id: mail.message_id.clone(),
            }),
            // The draft was sent before, or a person deleted it.
            StatusCode::NOT_FOUND => Err(NotSent::Unknown(anyhow::anyhow!("the draft is gone"))),
            _ => Err(NotSent::Refused(anyhow::anyhow!(
                "Gmail said {}: {}",
                said.status,
                said.why()
            ))),
        }
    }

    async fn look_now(&self, mail: &Outgoing, draft: Option<&str>) -> anyhow::Result<SentStatus> {
        if self.is_in_conversation(mail).await? || self.is_in_sent(mail).await? {
            return Ok(SentStatus::Sent(Sent {
                message_id: mail.message_id.clone(),
            }));
        }
        let Some(draft) = draft else {
            return Ok(SentStatus::Unknown(
                "it has no draft, and is not among the sent mails".to_owned(),
            ));
        };
        let url = self.google.gmail(&format!("drafts/{draft}"));
        let said = self
            .google
            .ask(Method::GET, &url, &[("format", "minimal")], None)
            .await?;
        Ok(match said.status {
            status if status.is_success() => SentStatus::NotSent,
            StatusCode::NOT_FOUND => SentStatus::Unknown(
                "its draft is gone, and it is not among the sent mails".to_owned(),
            ),
            _ => SentStatus::Unknown(format!("Gmail said {}: {}", said.status, said.why())),
        })
    }

    async fn is_in_conversation(&self, mail: &Outgoing) -> anyhow::Result<bool> {
        if mail.envelope.thread_id.is_empty() {
            return Ok(false);
        }
        let url = self
            .google
            .gmail(&format!("threads/{}", mail.envelope.thread_id));
        let Some(thread) = self.google.find(&url, &[("format", "metadata")]).await? else {
            return Ok(false);
        };
        let mut messages = thread["messages"].as_array().into_iter().flatten();
        Ok(messages.any(|message| is_sent(message) && is_ours(message, mail)))
    }

    async fn is_in_sent(&self, mail: &Outgoing) -> anyhow::Result<bool> {
        let query = format!("in:sent rfc822msgid:{}", mail.message_id);
        let url = self.google.gmail("messages");
        let said = self
            .google
            .read(&url, &[("q", &query), ("maxResults", "10")])
            .await?;
        for found in said["messages"].as_array().into_iter().flatten() {
            let Some(id) = found["id"].as_str() else {
                continue;
            };
            let url = self.google.gmail(&format!("messages/{id}"));
            let message = self.google.find(&url, &[("format", "metadata")]).await?;
            if message.is_some_and(|message| is_sent(&message) && is_ours(&message, mail)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Mailbox for Gmail {
    fn account(&self) -> &str {
        &self.account
    }

    fn list<'a>(&'a self, which: &'a MailQuery) -> BoxFuture<'a, anyhow::Result<Vec<Email>>> {
        Box::pin(self.list_now(which))
    }

    fn answered<'a>(
        &'a self,
        mails: &'a [Email],
    ) -> BoxFuture<'a, anyhow::Result<BTreeSet<String>>> {
        Box::pin(self.answered_now(mails))
    }

    fn raw<'a>(&'a self, id: &'a str) -> BoxFuture<'a, anyhow::Result<Vec<u8>>> {
        Box::pin(async move {
            let (_, bytes) = self.fetch(id).await?.context("the mail is gone")?;
            Ok(bytes)
        })
    }

    fn mark_as_read<'a>(&'a self, id: &'a str) -> BoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            let url = self.google.gmail(&format!("messages/{id}/modify"));
            let body = json!({ "removeLabelIds": ["UNREAD"] });
            let said = self
                .google
                .ask(Method::POST, &url, &[], Some(&body))
                .await?;
            said.success().map(drop)
        })
    }

    fn prepare<'a>(&'a self, mail: &'a Outgoing) -> BoxFuture<'a, anyhow::Result<Option<String>>> {
        Box::pin(async move { self.draft(mail).await.map(Some) })
    }

    fn send<'a>(
        &'a self,
        mail: &'a Outgoing,
        prepared: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Sent, NotSent>> {
        Box::pin(async move {
            let draft = prepared.context("there is no draft to send");
            self.send_draft(mail, draft.map_err(NotSent::Refused)?)
                .await
        })
    }

    fn look<'a>(
        &'a self,
        mail: &'a Outgoing,
        prepared: Option<&'a str>,
    ) -> BoxFuture<'a, anyhow::Result<SentStatus>> {
        Box::pin(self.look_now(mail, prepared))
    }

    fn calendar(&self) -> &dyn Calendar {
        &self.calendar
    }
}

/// Returns the `Message-ID`s that the sent messages of a conversation answer.
fn replied_to(thread: &Json) -> BTreeSet<String> {
    let messages = thread["messages"].as_array().into_iter().flatten();
    let headers = messages
        .filter(|message| is_sent(message))
        .flat_map(|message| {
            message["payload"]["headers"]
                .as_array()
                .into_iter()
                .flatten()
        });
    headers
        .filter(|header| {
            let name = header["name"].as_str().unwrap_or_default();
            name.eq_ignore_ascii_case("in-reply-to") || name.eq_ignore_ascii_case("references")
        })
        .flat_map(|header| {
            header["value"]
                .as_str()
                .unwrap_or_default()
                .split_whitespace()
        })
        .map(bare_id)
        .collect()
}

fn is_sent(message: &Json) -> bool {
    let mut labels = message["labelIds"].as_array().into_iter().flatten();
    labels.any(|label| label == "SENT")
}

fn is_ours(message: &Json, mail: &Outgoing) -> bool {
    let mut headers = message["payload"]["headers"]
        .as_array()
        .into_iter()
        .flatten();
    headers.any(|header| {
        let name = header["name"].as_str().unwrap_or_default();
        let value = header["value"].as_str().unwrap_or_default();
        let is_id =
            name.eq_ignore_ascii_case("message-id") || name.eq_ignore_ascii_case(KEY_HEADER);
        is_id && bare_id(value) == mail.message_id
    })
}
